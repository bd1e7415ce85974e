"""What a code costs and what it bears, told before a run begins."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from marlctl.coding.code import Code, reach
from marlctl.coding.grid import UNIT
from marlctl.records import Array

SAMPLE = 1000  # sets of stragglers, where there are too many to look at all


@dataclass(frozen=True)
class Tolerance:
    """How many stragglers a code bears: with every set of them, and with most."""

    shares: tuple[float, ...]  # of the sets of k stragglers, the part that leaves a decodable rest; k = 0, 1, ...
    exact: tuple[float, ...]  # the same, for gradients up to the size asked for to come back exactly
    counted: tuple[bool, ...]  # whether all sets of k were looked at, or a sample

    @property
    def guaranteed(self) -> int:
        """So many stragglers are borne, whoever they are."""
        return _last(tuple(share == 1 and all_seen for share, all_seen in zip(self.exact, self.counted, strict=True)))

    @property
    def effective(self) -> int:
        """So many stragglers are borne by most sets."""
        return _last(tuple(share > 0.5 for share in self.exact))

    @property
    def average(self) -> float:
        """How many learners can fall behind, one after the other, before a round has to wait for one of them."""
        return float(sum(self.exact[1:]))


def _last(borne: tuple[bool, ...]) -> int:
    """How far from k = 0 on it holds without a break; -1 if nowhere."""
    return (*borne, False).index(False) - 1


def work_per_learner(code: Code) -> Array:
    """How many units' gradients each learner computes in a round."""
    work: Array = np.count_nonzero(code.matrix, axis=1)
    return work


def tolerance(
    code: Code, rng: np.random.Generator, *, size: float = 1.0, stragglers: int | None = None, most: int = 10_000
) -> Tolerance:
    """Look at every set of up to so many stragglers, or at a sample where there are more than `most`.

    `size` is the largest number that a gradient may hold, as its clipping says.
    """
    shares, exact, counted = [], [], []
    spare = code.n_learners - code.n_units
    for k in range(1 + (spare if stragglers is None else min(stragglers, spare))):
        counted.append(comb(code.n_learners, k) <= most)
        sets = answer_sets(code.n_learners, code.n_learners - k, rng, most if counted[-1] else min(most, SAMPLE))
        limits = np.concatenate([_limits(code, part) for part in np.array_split(sets, len(sets) // 1000 + 1)])
        shares.append(float((limits >= 0).mean()))
        exact.append(float((limits >= size).mean()))
    return Tolerance(tuple(shares), tuple(exact), tuple(counted))


def answer_sets(n: int, size: int, rng: np.random.Generator, most: int) -> Array:
    """Sets of `size` of n learners, one a row: all of them, or `most` drawn at random."""
    if comb(n, size) <= most:
        return np.array(list(combinations(range(n), size)))
    return np.sort(rng.permuted(np.tile(np.arange(n), (most, 1)), axis=1)[:, :size], axis=1)


def _limits(code: Code, sets: Array) -> Array:
    """For each set of answers the size that decodes exactly; -1 without full rank.

    All sets at once, by plain least squares: a scheme's own way back, and units that come alone, can only bear more.
    """
    rows = code.matrix[sets]  # (sets, n, n_units)
    scale = np.ldexp(1.0, -np.frexp(np.abs(rows).max(axis=2))[1])[..., None]
    left, sizes, right = np.linalg.svd(rows * scale, full_matrices=False)
    whole = sizes[:, -1] > sizes[:, 0] * rows.shape[1] * 2 * UNIT
    sizes = np.where(whole[:, None], sizes, 1.0)
    inverse = (right.transpose(0, 2, 1) / sizes[:, None]) @ left.transpose(0, 2, 1) * scale.transpose(0, 2, 1)
    _, _, limits = reach(inverse, rows, code.room[sets])
    return np.where(whole, limits, -1.0)
