"""A regular low-density parity-check code, made over two elements and used over the reals, as the paper does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from marlctl.options import option
from marlctl.records import Array
from marlctl_codes.sizes import require


@dataclass(frozen=True)
class LDPC:
    """The first M learners compute one unit each, the others sums of a few; an answer at a time is solved."""

    gamma: int | None = option(None, "checks that each answer is part of (the most that fits, unless said)", low=1)

    def matrix(self, n_learners: int, n_units: int, rng: np.random.Generator) -> Array:
        """[I; parity] of an array code: N = p rho answers, in gamma p checks of rho answers each."""
        why = "a check matrix of p x p shifts has only certain sizes"
        require("ldpc", n_learners, n_units, lambda n, m: shape(n, m, self.gamma) is not None, why)
        found = shape(n_learners, n_units, self.gamma)
        assert found is not None  # `require` has seen to it
        return generator(*found)

    def left_inverse(self, rows: Array) -> Array | None:
        """Peeling: an answer that holds one unknown unit gives it, and is subtracted from the others; None if stuck.

        With coefficients 0 and 1 this takes only sums of whole multiples, where least squares would divide.
        """
        n, n_units = rows.shape
        inverse, known = np.zeros((n_units, n)), np.zeros(n_units, bool)
        while not known.all():
            unknown = (rows != 0) & ~known
            singles = np.flatnonzero(unknown.sum(axis=1) == 1)
            if not len(singles):
                return None
            row = singles[0]
            unit = int(unknown[row].argmax())
            rest = -(rows[row] * known) @ inverse
            rest[row] += 1
            inverse[unit] = rest / rows[row, unit]
            known[unit] = True
        return inverse


def checks(p: int, rho: int, gamma: int) -> Array:
    """The check matrix: gamma x rho blocks, block (a, b) the p x p cyclic shift to the power ab."""
    block = np.arange(gamma)[:, None] * np.arange(rho)  # how far each block shifts
    shifted = np.eye(p, dtype=np.uint8)[:, (np.arange(p) - block[..., None]) % p]  # (row, gamma, rho, column)
    return shifted.transpose(1, 0, 2, 3).reshape(gamma * p, rho * p)


def reduced(check: Array) -> tuple[Array, list[int]]:
    """Reduced row echelon form over two elements, and the columns of its leading ones."""
    rows = check.copy()
    leading: list[int] = []
    for column in range(rows.shape[1]):
        here = len(leading)
        below = np.flatnonzero(rows[here:, column])
        if not len(below):
            continue
        rows[[here, here + below[0]]] = rows[[here + below[0], here]]
        others = np.flatnonzero(rows[:, column])
        rows[others[others != here]] ^= rows[here]
        leading.append(column)
        if len(leading) == len(rows):
            break
    return rows[: len(leading)], leading


@lru_cache(maxsize=256)
def shape(n_learners: int, n_units: int, gamma: int | None) -> tuple[int, int, int] | None:
    """(p, rho, gamma) of a code with these sizes, the one with most checks an answer; None if there is none.

    For 15 learners these are the paper's: (3, 5, 3) for 8 units and (3, 5, 2) for 10.
    """
    found = [
        (p, n_learners // p, g)
        for p in range(1, n_learners // 2 + 1)
        if n_learners % p == 0
        for g in range(1, p + 1)
        if g == (gamma or g) and n_learners - len(reduced(checks(p, n_learners // p, g))[1]) == n_units
    ]
    return max(found, key=lambda code: code[2], default=None)


def generator(p: int, rho: int, gamma: int) -> Array:
    """The systematic generator, one row an answer: units first, then the sums that the checks ask for."""
    rows, leading = reduced(checks(p, rho, gamma))
    free = [column for column in range(p * rho) if column not in leading]
    return np.vstack([np.eye(len(free)), rows[:, free]]).astype(np.float64)
