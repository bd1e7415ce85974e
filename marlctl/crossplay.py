"""Policies of several runs in one game: everybody against everybody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from marlctl.errors import ConfigError
from marlctl.evaluation import Scores, evaluate
from marlctl.opening import make_env
from marlctl.rundir import RunFolder


@dataclass(frozen=True)
class Meeting:
    """One game of the table: who played the first team, who played everybody else, and what came of it."""

    first: RunFolder
    others: RunFolder
    scores: Scores


def teams(folder: RunFolder) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The first team's name, its agents, and all other agents of a run's scenario."""
    config = folder.config()
    env = make_env(config, 1)
    env.close()
    sides = env.spec.teams
    if len(sides) < 2:
        raise ConfigError(
            f"{config.run.scenario} has one team, so nobody can be crossed; --agents 'agent_0=RUN' mixes runs in it"
        )
    first = next(iter(sides))
    return first, sides[first], tuple(name for name in env.spec.names if name not in sides[first])


def cross(runs: Sequence[RunFolder], **how: Any) -> Iterator[Meeting]:
    """Every run's first team against every run's others; `how` is what `evaluate` takes beside them."""
    if not runs:
        raise ConfigError("--cross needs runs to cross")
    scenarios = {run.config().run.scenario for run in runs}
    if len(scenarios) > 1:
        raise ConfigError(f"runs of {' and '.join(sorted(scenarios))} cannot meet in one game")
    _, mine, theirs = teams(runs[0])
    for first in runs:
        for others in runs:
            cast = dict.fromkeys(mine, str(first.path)) | dict.fromkeys(theirs, str(others.path))
            yield Meeting(first, others, evaluate(first, agents=cast, **how))
