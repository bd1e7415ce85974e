"""Coded rounds: each learner answers with one combination of gradients, and any good set of answers gives all back.

A round, without processes::

    code = Code.build(scheme, n_learners, n_units, rng)
    decoder = Decoder(code, lengths)
    for learner in whoever_is_quick:
        decoder.add(learner, encode(code.matrix[learner], gradients))
        if decoder.ready:
            break
    gradients = decoder.decode()  # bit for bit what `to_grid` made of them
"""

from marlctl.coding.code import Code, Solution
from marlctl.coding.decoder import Decoder, Outcome
from marlctl.coding.grid import STEP, encode, to_grid
from marlctl.coding.tolerance import Tolerance, tolerance, work_per_learner

__all__ = [
    "STEP",
    "Code",
    "Decoder",
    "Outcome",
    "Solution",
    "Tolerance",
    "encode",
    "to_grid",
    "tolerance",
    "work_per_learner",
]
