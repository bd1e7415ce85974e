"""COMA in a corridor and MADDPG at tennis: what each seed reached, and how long it took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marlctl.metrics import read
from reference.plan import SWITCH, SYSTEMS, Job
from reference.results import Results

TENNIS = "tennis-maddpg"


@dataclass(frozen=True)
class Corridor:
    """One run of COMA on Switch: mean returns of all agents together."""

    name: str
    seed: int
    halfway: float  # as it acts, 200 episodes, after half of its training
    sampled: float  # as it acts, at the end
    greedy: float  # its likeliest actions, at the end
    seconds: float


@dataclass(frozen=True)
class Rally:
    """One run of MADDPG at tennis."""

    seed: int
    solved: int | None  # the training episode at which the mean score of the last 100 was 0.5, noise and all
    steps: int | None  # environment steps by then
    seconds: float | None  # and the time, with the evaluations that came before
    episodes: int  # trained for in all
    score: float  # of the last policy without noise


@dataclass(frozen=True)
class Systems:
    switch: list[Corridor]
    tennis: list[Rally]


def make(results: Results) -> Systems:
    """Whatever has been run."""
    names = [name for name in SYSTEMS if name != TENNIS]
    switch = [_corridor(results, job) for name in names for job in results.of(name)]
    return Systems(switch, [_rally(results, job) for job in results.of(TENNIS)])


def figures() -> Iterator[tuple[list[str], str, str]]:
    """The run files, the metric and the file name of each figure."""
    for n in (2, 4):
        yield [f"{each}-coma" for each in SWITCH if each.startswith(f"Switch{n}")], "return.total", f"Switch{n}.png"
    yield [TENNIS], "score", "tennis.png"


def _corridor(results: Results, job: Job) -> Corridor:
    record = results.worker.record(job)
    judged = [row for row in read(job.folder(results.worker.out).metrics) if row["kind"] == "eval"]
    halfway = min(judged, key=lambda row: abs(row["episode"] - job.episodes / 2))
    return Corridor(
        job.name,
        job.seed,
        halfway=halfway["return"]["total"],
        sampled=record["sampled"]["total"]["mean"],
        greedy=record["greedy"]["total"]["mean"],
        seconds=_seconds(results, job)[-1]["spent"],
    )


def _rally(results: Results, job: Job) -> Rally:
    rows = [row for row in read(job.folder(results.worker.out).metrics) if row["kind"] == "solved"]
    score = results.worker.record(job)["greedy"]["score"]["mean"]
    if not rows:
        return Rally(job.seed, None, None, None, job.episodes, score)
    step = rows[0]["step"]
    spent = next(row["spent"] for row in _seconds(results, job) if row["step"] >= step)
    return Rally(job.seed, rows[0]["episode"], step, spent, job.episodes, score)


def _seconds(results: Results, job: Job) -> list[dict[str, Any]]:
    """The timings of a run with the seconds `spent` over all processes that worked on it."""
    before, last, began, found = 0.0, 0.0, None, []
    for row in read(job.folder(results.worker.out).timings):
        if began not in (None, row["began"]):
            before += last
        began, last = row["began"], row["seconds"]
        found.append({**row, "spent": before + last})
    return found
