"""The grid that gradients lie on, so that a decoded one can be put back exactly where it was.

Sums of coefficients times gradients pick up rounding errors. An error of 1e-13 where the true gradient is 0 becomes a
real step under Adam, so errors must go, not just be small: a gradient is rounded to multiples of `STEP` before it is
coded, and again after it is decoded. What lies closer than half a step to the truth then is the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from marlctl.records import Array

BITS = 32
STEP = 2.0**-BITS
UNIT = 2.0**-53  # the largest relative error of one float64 operation


def to_grid(vector: Array) -> Array:
    """The nearest multiples of `STEP`, in float64, and never -0.0: equal values have equal bits.

    Numbers from 2**20 on are multiples already; beyond 2**991 they become infinite, which whoever applies them notices.
    """
    with np.errstate(over="ignore"):
        scaled = np.multiply(vector, 1 / STEP, dtype=np.float64)
    np.rint(scaled, out=scaled)
    scaled *= STEP
    scaled += 0.0
    return scaled


def encode(row: Array, gradients: Mapping[int, Array] | Sequence[Array]) -> Array:
    """One learner's answer: its row of the matrix times the gradients of its units, put on the grid.

    Only gradients whose coefficient is not 0 are read. The answer is as long as the longest of them. Products and sums
    are taken one by one, in the order of the units, so that every machine gets the same bits.
    """
    units = np.flatnonzero(row)
    answer = np.zeros(max((len(gradients[int(unit)]) for unit in units), default=0))
    for unit in units:
        part = to_grid(gradients[int(unit)])
        answer[: len(part)] += row[unit] * part
    return answer
