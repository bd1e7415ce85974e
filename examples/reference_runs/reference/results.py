"""Everything that was found out so far: evaluations, curves, the plain loop's numbers, and who can play."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from marlctl.config import read_file, resolve
from marlctl.metrics import read
from marlctl.opening import make_env
from marlctl.records import EnvSpec
from reference.games import Games, Side
from reference.plan import SCENARIOS, Job, run_file
from reference.work import Worker
from reference.yardstick import Line, actors, chosen

POINTS = 25  # of a thinned curve


@dataclass(frozen=True)
class Curve:
    """A run's returns in training, thinned: each value is the mean of the episodes since the one before."""

    name: str
    seed: int
    episodes: list[int]
    returns: dict[str, list[float]]  # in all and by team


@dataclass(frozen=True)
class Results:
    """What tables are made from. Only finished runs count."""

    worker: Worker
    jobs: tuple[Job, ...]
    lines: list[Line]  # of the plain loop
    games: Games

    @cached_property
    def finished(self) -> tuple[Job, ...]:
        return tuple(job for job in self.jobs if self.worker.finished(job))

    @cached_property
    def scenarios(self) -> tuple[str, ...]:
        there = {job.scenario for job in self.finished}
        return tuple(scenario for scenario in SCENARIOS if scenario in there)

    def of(self, name: str) -> list[Job]:
        """The finished seeds of a run file, in order."""
        return sorted((job for job in self.finished if job.name == name), key=lambda job: job.seed)

    def evaluations(self, name: str, mode: str) -> list[dict[str, Any]]:
        return [self.worker.record(job)[mode] for job in self.of(name)]

    def returns(self, name: str, who: str, mode: str) -> list[float]:
        """The mean return of `total` or of a team, seed by seed."""
        found = self.evaluations(name, mode)
        return [(each["total"] if who == "total" else each["teams"][who])["mean"] for each in found]

    def plain_lines(self, scenario: str, algo: str) -> list[Line]:
        episodes = next((job.episodes for job in self.finished if job.scenario == scenario), 0)
        return chosen(self.lines, scenario, algo, episodes)

    def plain_returns(self, scenario: str, algo: str, who: str, mode: str) -> list[float]:
        lines = self.plain_lines(scenario, algo)
        if who == "total":
            return [line[mode]["total"] for line in lines]
        spec = spec_of(f"{scenario}-{algo}")
        columns = [spec.names.index(agent) for agent in spec.teams[who]]
        return [sum(line[mode]["mean"][i] for i in columns) for line in lines]

    def sides(self, name: str, who: str = "ours") -> list[Side]:
        """Who can play a team: the seeds of a run file."""
        label = f"{who}-{name}"
        return [Side(f"{label}-s{job.seed}", job.folder(self.worker.out).path, name) for job in self.of(name)]

    def plain_sides(self, scenario: str, algo: str) -> list[Side]:
        seeds = {line["seed"] for line in self.plain_lines(scenario, algo)}
        found = actors(self.worker.out / "plain", scenario, algo)
        name = f"{scenario}-{algo}"
        return [Side(f"plain-{name}-s{seed}", path, name) for seed, path in found if seed in seeds]

    def curves(self) -> Iterator[Curve]:
        for job in self.finished:
            rows = [row for row in read(job.folder(self.worker.out).metrics) if row["kind"] == "train"]
            yield thin(job, rows)


@cache
def spec_of(name: str) -> EnvSpec:
    """The agents of a run file's scenario."""
    env = make_env(resolve(read_file(run_file(name))), 1)
    env.close()
    return env.spec


def teams_of(name: str) -> list[str]:
    """The teams of a run file's scenario, in their order."""
    return list(spec_of(name).teams)


def thin(job: Job, rows: list[dict[str, Any]]) -> Curve:
    """A curve of few points, each the mean of its stretch of episodes."""
    episodes = np.array([row["episode"] for row in rows])
    weights = np.diff(episodes, prepend=0)  # episodes that a row averages
    bins = np.minimum((episodes - 1) * POINTS // max(job.episodes, 1), POINTS - 1)
    whole = [(row["return"]["total"], *row["return"]["teams"].values()) for row in rows]
    names = ("total", *rows[0]["return"]["teams"])
    values = np.array(whole)  # (rows, names)
    ends, returns = [], []
    for part in np.unique(bins):
        inside = bins == part
        ends.append(int(episodes[inside][-1]))
        returns.append(np.average(values[inside], axis=0, weights=weights[inside]))
    columns = np.round(returns, 2).T.tolist()
    return Curve(job.name, job.seed, ends, dict(zip(names, columns, strict=True)))
