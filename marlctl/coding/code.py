"""A code's matrix, and for each set of answers the way back from them, with the size of gradients it is exact for.

Why exact. Let C be the n rows that answered, P a left inverse (M, n), x the gradients on the grid with no number above
m, and u = 2**-53. An answer is off by at most (M + 1) u |C| m, the product with P adds at most (n + 1) u |P||C| m, and
P itself is off by PC - I, which is known to n u |P||C|. So ::

    |P y - x| <= s m,   s = (M + 2n + 6) u max|P||C|1 + max|PC - I|1     (max|P||C|1 is the condition number)

and rounding gives x back where s m < STEP / 2: `plain` below.

Where the coefficients are multiples of 2**-q with few bits, and m is not too large for 53 bits (`room`), the answers
have no error at all, and neither has the residual y - C z of any z on the grid. One step of refinement,
z + P (y - C z), then is off by at most s (s m + STEP / 2), so that x comes back where s**2 m < (1 - s) STEP / 2:
`refined`. The codes of marlctl are of this kind, and bear gradients of hundreds with any answers of full rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from marlctl.coding.grid import BITS, STEP, UNIT
from marlctl.contracts import CodingScheme
from marlctl.errors import PluginError
from marlctl.records import Array

LeftInverse = Callable[[Array], Array | None]
FINEST = 24  # bits behind the point that a coefficient may have for the sums to be exact


@dataclass(frozen=True, eq=False)
class Solution:
    """How to get the gradients back from one set of answers."""

    inverse: Array  # (n_units, n_learners), 0 for those who did not answer
    condition: float
    slack: float  # the largest error before rounding, for gradients with no number above 1
    limit: float  # gradients with no number above this come back exactly


class Code:
    """A matrix, one row a learner and one column a unit, and the ways back from sets of its rows."""

    def __init__(self, matrix: Array, left_inverse: LeftInverse | None = None) -> None:
        self.matrix = np.array(matrix, np.float64)
        self.matrix.setflags(write=False)
        self.room = room(self.matrix)  # (n_learners,)
        self._left_inverse = left_inverse
        # Stragglers are often the same ones, and a set of answers has one way back.
        self.solution = lru_cache(maxsize=4096)(self._solution)

    @classmethod
    def build(cls, scheme: CodingScheme, n_learners: int, n_units: int, rng: np.random.Generator) -> Code:
        """The code of a scheme, refused where the scheme breaks its contract."""
        matrix = np.asarray(scheme.matrix(n_learners, n_units, rng))
        name = type(scheme).__name__
        if matrix.shape != (n_learners, n_units) or matrix.dtype.kind not in "fiu" or not np.isfinite(matrix).all():
            raise PluginError(
                f"{name}.matrix gave {matrix.dtype} {matrix.shape}; "
                f"it must give ({n_learners}, {n_units}) finite real numbers"
            )
        code = cls(matrix, getattr(scheme, "left_inverse", None))
        if code.solution(tuple(range(n_learners))) is None:
            raise PluginError(f"{name}.matrix gave a matrix that cannot be decoded even when every learner answers")
        return code

    @property
    def n_learners(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def n_units(self) -> int:
        return int(self.matrix.shape[1])

    def units_of(self, learner: int) -> tuple[int, ...]:
        """The units whose gradients a learner computes."""
        return tuple(int(unit) for unit in np.flatnonzero(self.matrix[learner]))

    def _solution(self, learners: tuple[int, ...]) -> Solution | None:
        """The way back from the answers of these learners (in ascending order), or None without full rank."""
        rows = self.matrix[list(learners)]
        inverse = self._quick(rows)
        if inverse is None:
            inverse = least_squares(rows)
        if inverse is None:
            return None
        whole = np.zeros((self.n_units, self.n_learners))
        whole[:, list(learners)] = inverse
        condition, slack, limit = reach(inverse, rows, self.room[list(learners)])
        return Solution(whole, float(condition), float(slack), float(limit))

    def _quick(self, rows: Array) -> Array | None:
        """The scheme's own left inverse, if it has one and it is one."""
        inverse = self._left_inverse(rows) if self._left_inverse else None
        if inverse is None or inverse.shape != rows.T.shape:
            return None
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.abs(inverse @ rows - np.eye(self.n_units)).max()
        return inverse if off < 2.0**-20 else None


def least_squares(rows: Array) -> Array | None:
    """A left inverse (n_units, n), or None where the rows lack full rank.

    A unit that came alone is taken as it came, without arithmetic; the others are the least squares of what is left
    when those are subtracted, which is better conditioned than least squares of all.
    """
    alone = np.flatnonzero((np.count_nonzero(rows, axis=1) == 1) & (rows.sum(axis=1) == 1))
    known, first = np.unique(rows[alone].argmax(axis=1), return_index=True)
    source = alone[first]  # one row for each known unit
    inverse = np.zeros(rows.T.shape)
    inverse[known, source] = 1
    sought = np.setdiff1d(np.arange(rows.shape[1]), known)
    if not len(sought):
        return inverse
    others = np.setdiff1d(np.arange(len(rows)), alone)
    part = pseudo_inverse(rows[np.ix_(others, sought)])
    if part is None:
        return None
    inverse[np.ix_(sought, others)] = part
    inverse[np.ix_(sought, source)] = -part @ rows[np.ix_(others, known)]
    return inverse


def pseudo_inverse(rows: Array) -> Array | None:
    """The pseudo-inverse, or None where the columns are not independent."""
    if len(rows) < rows.shape[1]:
        return None
    # Rows of very different size would look like lost rank; powers of two change no digit.
    scale = np.ldexp(1.0, -np.frexp(np.abs(rows).max(axis=1))[1])[:, None]
    left, sizes, right = np.linalg.svd(rows * scale, full_matrices=False)
    if sizes[-1] <= sizes[0] * len(rows) * 2 * UNIT:
        return None
    solved: Array = (right.T / sizes) @ left.T * scale.T
    return solved


def reach(inverse: Array, rows: Array, room: Array) -> tuple[Array, Array, Array]:
    """Condition number, slack, and the size up to which gradients come back exactly; also for stacks of sets."""
    n, n_units = rows.shape[-2:]
    weight = (np.abs(inverse) @ np.abs(rows)).sum(-1)  # (..., n_units)
    off = np.abs(inverse @ rows - np.eye(n_units)).sum(-1)
    slack = (n_units + 2 * n + 6) * UNIT * weight + off
    copied = (np.count_nonzero(inverse, axis=-1) == 1) & (inverse.max(-1) == 1) & (weight == 1) & (off == 0)
    with np.errstate(divide="ignore", over="ignore"):
        plain = np.where(copied, np.inf, STEP / 2 / slack)
        refined = np.where(slack < 0.5, (1 - slack) * STEP / 2 / slack**2, 0)
    limit = np.maximum(plain, np.minimum(refined, room.min(-1)[..., None]))
    return weight.max(-1), slack.max(-1), limit.min(-1)


def room(matrix: Array) -> Array:
    """For each row, the size of gradients up to which an answer has no rounding error; 0 where it always may."""
    return np.array([_row_room(row) for row in matrix])


def _row_room(row: Array) -> float:
    if np.count_nonzero(row) <= 1 and np.abs(row).sum() in (0, 1):
        return float("inf")
    for bits in range(FINEST + 1):
        if not np.any(np.ldexp(row, bits) % 1):
            # Half of what 53 bits hold: who checks knows the gradients' size only from what was decoded.
            return float(2.0 ** (52 - BITS - bits) / np.abs(row).sum())
    return 0.0
