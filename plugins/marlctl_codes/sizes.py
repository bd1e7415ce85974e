"""Refusing a number of learners that a scheme cannot use, with the nearest that it can."""

from __future__ import annotations

from collections.abc import Callable

from marlctl.errors import ConfigError

Fits = Callable[[int, int], bool]  # (n_learners, n_units)


def require(scheme: str, n_learners: int, n_units: int, fits: Fits, why: str) -> None:
    """Go on if the scheme can spread so many units over so many learners, else say what it can."""
    if not fits(n_learners, n_units):
        learners, units = nearest(n_learners, n_units, fits)
        raise ConfigError(
            f"{scheme} cannot spread {_count(n_units, 'unit')} over {_count(n_learners, 'learner')}: {why}; "
            f"the nearest it can: {_count(units, 'unit')} over {_count(learners, 'learner')}"
        )


def nearest(n_learners: int, n_units: int, fits: Fits) -> tuple[int, int]:
    """The nearest pair that fits: other learners for the same units if possible, since the game fixes the units."""
    reach = n_learners + n_units
    same = [(n, n_units) for n in range(1, n_learners + reach + 1)]
    other = [(n, m) for n in range(1, n_learners + 4) for m in range(1, n_units + 4)]
    for pairs in (same, other):
        ordered = sorted(pairs, key=lambda pair: (abs(pair[0] - n_learners) + abs(pair[1] - n_units), -pair[0]))
        for pair in ordered:
            if fits(*pair):
                return pair
    return 1, 1


def at_least_units(n_learners: int, n_units: int) -> bool:
    """What every scheme needs: answers that can have full rank."""
    return 1 <= n_units <= n_learners


FEWER = "each unit needs an answer of its own"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
