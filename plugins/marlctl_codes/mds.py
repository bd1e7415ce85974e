"""Codes where any M answers are enough (maximum distance separable)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from marlctl.coding.code import Code
from marlctl.coding.tolerance import answer_sets, tolerance
from marlctl.errors import ConfigError
from marlctl.options import option
from marlctl.records import Array
from marlctl_codes.dyadic import dyadic
from marlctl_codes.sizes import FEWER, at_least_units, require

WORK = 4_000_000  # multiplications that judging one draw may take, about 10 ms
LOST_RANK = 1e12  # a condition that only sets of answers without full rank have


@dataclass(frozen=True)
class MDS:
    """Any M answers give all M gradients; of several random codes the one that is best conditioned."""

    form: Literal["dense", "systematic"] = option(
        "dense", "every learner computes every unit, or the first M one unit each and only the others all"
    )
    draws: int = option(64, "codes drawn, to take the one whose worst set of answers is best", low=1, high=10_000)

    def matrix(self, n_learners: int, n_units: int, rng: np.random.Generator) -> Array:
        """Random codes have a few bad sets of answers, so the draw is picked by its worst."""
        require("mds", n_learners, n_units, at_least_units, FEWER)
        sets = answer_sets(n_learners, n_units, rng, max(200, WORK // n_units**3))
        draws = [self._draw(n_learners, n_units, rng) for _ in range(self.draws)]
        worst = [worst_condition(matrix[sets]) for matrix in draws]
        best = int(np.argmin(worst))
        if worst[best] > LOST_RANK:
            raise ConfigError(
                f"mds: each of {self.draws} codes for {n_units} units over {n_learners} learners has a set of answers "
                "that cannot be decoded; draw more of them, or take a number of learners nearer to that of units"
            )
        return draws[best]

    def _draw(self, n_learners: int, n_units: int, rng: np.random.Generator) -> Array:
        if self.form == "dense":
            return dyadic(np.linalg.qr(rng.standard_normal((n_learners, n_units)))[0])
        parity = rng.standard_normal((n_learners - n_units, n_units))
        return np.vstack([np.eye(n_units), dyadic(parity)])


def worst_condition(squares: Array) -> float:
    """The largest condition number (of |A^-1||A|, which does not mind how rows are scaled) in a stack of matrices."""
    try:
        return float((np.abs(np.linalg.inv(squares)) @ np.abs(squares)).sum(-1).max())
    except np.linalg.LinAlgError:
        return float("inf")


@dataclass(frozen=True)
class Vandermonde:
    """The paper's MDS code, powers of M numbers from 0.1 to 0.5; for comparison only, since rounding ruins it."""

    def matrix(self, n_learners: int, n_units: int, rng: np.random.Generator) -> Array:
        """Refused from about 7 units on, where decoding would magnify rounding errors beyond the grid."""
        require("mds-vandermonde", n_learners, n_units, at_least_units, FEWER)
        code = Code(powers(n_learners, n_units))
        found = code.solution(tuple(range(n_learners)))
        condition = f"{found.condition:.1g}" if found else "infinite"
        why = (
            f"its condition number is {condition} even when all answer, so gradients do not come back exactly; take mds"
        )
        require("mds-vandermonde", n_learners, n_units, useful, why)
        return powers(n_learners, n_units)


def powers(n_learners: int, n_units: int) -> Array:
    """Row j holds the nodes to the power N - 1 - j."""
    nodes = np.linspace(0.1, 0.5, n_units)
    return np.array([nodes**power for power in range(n_learners - 1, -1, -1)])


def useful(n_learners: int, n_units: int) -> bool:
    """Whether gradients of size 1 come back exactly whichever one learner straggles (none, where all are needed)."""
    if not at_least_units(n_learners, n_units):
        return False
    code = Code(powers(n_learners, n_units))
    rng = np.random.default_rng(0)  # not drawn from: all sets of one straggler are looked at
    return tolerance(code, rng, size=1.0, stragglers=1).guaranteed == min(1, n_learners - n_units)
