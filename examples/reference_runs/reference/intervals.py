"""Means over seeds, and how sure of them one can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt, tan
from typing import Literal

import numpy as np

LEVEL = 0.95
Verdict = Literal["better", "worse", "no difference shown", "too few seeds"]


@dataclass(frozen=True)
class Estimate:
    """A mean, or a difference of means, and half the width of its 95 % interval."""

    mean: float
    half: float | None  # None: one seed tells nothing about another
    n: int  # seeds; in a difference, of the side that has fewer

    @property
    def low(self) -> float | None:
        return None if self.half is None else self.mean - self.half

    @property
    def high(self) -> float | None:
        return None if self.half is None else self.mean + self.half


def t_quantile(df: float, level: float = LEVEL) -> float:
    """The t with |T| < t in `level` of all cases, T being Student's with `df` degrees of freedom.

    With T = sqrt(df) tan(a), the density of the angle a is proportional to cos(a) ** (df - 1).
    """
    angle = np.linspace(0, np.pi / 2, 100_001)
    density = np.cos(angle).clip(0) ** (df - 1)
    below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return sqrt(df) * tan(float(np.interp(level, below / below[-1], angle)))


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of some seeds with Student's interval."""
    return Estimate(float(np.mean(values)), _half(values), len(values))


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Mean of the first less that of the second, with Welch's interval."""
    return Estimate(float(np.mean(ours) - np.mean(theirs)), _half(ours, theirs), min(len(ours), len(theirs)))


def crossed(table: Sequence[Sequence[float]]) -> Estimate:
    """The mean of a table of games, seeds of one side by seeds of the other: both are drawn by chance."""
    games = np.asarray(table, float)  # (seeds of one side, seeds of the other)
    return Estimate(float(games.mean()), _half(games.mean(1).tolist(), games.mean(0).tolist()), min(games.shape))


def _half(*samples: Sequence[float]) -> float | None:
    """Half the interval of a sum of independent means, its degrees of freedom as Welch and Satterthwaite count."""
    if min(map(len, samples)) < 2:
        return None
    parts = [float(np.var(values, ddof=1)) / len(values) for values in samples]
    variance = sum(parts)
    if variance == 0:
        return 0.0
    df = variance**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, samples, strict=True))
    return t_quantile(df) * sqrt(variance)


def verdict(gap: Estimate) -> Verdict:
    """What a difference says, more being better."""
    if gap.low is None or gap.high is None:
        return "too few seeds"
    return "better" if gap.low > 0 else "worse" if gap.high < 0 else "no difference shown"
