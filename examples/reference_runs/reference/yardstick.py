"""What the plain loop reached: one line a run, and its actors where they were kept."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from marlctl.storage.files import write_whole
from reference.plan import ALGOS, HOME, Job
from reference.work import Processes, Task

Line = dict[str, Any]
SCRIPT = HOME / "plain_loop.py"


def adopt(source: Path, into: Path) -> None:
    """Take over results (and actors) that were computed elsewhere; a file still being written is left alone."""
    into.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.json")):
        if _read(path):
            for file in (path, path.with_suffix(".npz")):
                if file.is_file():
                    shutil.copyfile(file, into / file.name)


def merge(jsonl: Path, folder: Path) -> list[Line]:
    """All results known, sorted, one line a run; those of `folder` are written down with the others."""
    known = jsonl.read_text(encoding="utf-8").splitlines() if jsonl.is_file() else []
    lines = [json.loads(line) for line in known]
    lines += [line for path in sorted(folder.glob("*.json")) if (line := _read(path))]
    by_run = {(line["scenario"], line["algo"], line["seed"], line["episodes"]): line for line in lines}
    merged = [by_run[run] for run in sorted(by_run)]
    text = "".join(json.dumps(line) + "\n" for line in merged)
    if merged and text.splitlines() != known:
        jsonl.parent.mkdir(parents=True, exist_ok=True)
        write_whole(jsonl, text.encode())
    return merged


def chosen(lines: list[Line], scenario: str, algo: str, episodes: int) -> list[Line]:
    """The results to compare with. With one agent DDPG is MADDPG, so each stands for the other."""
    algos = ALGOS if scenario == "simple" else (algo,)
    found = [line for line in lines if line["scenario"] == scenario and line["episodes"] == episodes]
    by_seed = {line["seed"]: line for line in found if line["algo"] in algos}
    return [by_seed[seed] for seed in sorted(by_seed)]


def actors(folder: Path, scenario: str, algo: str) -> Iterator[tuple[int, Path]]:
    """Seeds whose actors were kept, and where."""
    for path in sorted(folder.glob(f"{scenario}-{algo}-s*.npz")):
        yield int(path.stem.rpartition("-s")[2]), path


def tasks(jobs: list[Job], folder: Path, processes: Processes) -> Iterator[Task]:
    """The plain loop for every run of the nine scenarios that has no result yet."""
    for job in jobs:
        path = folder / f"{job.exp_name}.json"
        if job.name == f"{job.scenario}-{job.algo}" and not path.is_file():
            yield f"plain loop {job.exp_name}", partial(_compute, job, path, processes)


def _compute(job: Job, path: Path, processes: Processes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    how = ["--episodes", str(job.episodes), "--seed", str(job.seed), "--algo", job.algo]
    kept = ["--actors", str(path.with_suffix(".npz"))]
    line = processes.run([sys.executable, str(SCRIPT), job.scenario, *how, *kept])
    write_whole(path, line.encode())


def _read(path: Path) -> Line | None:
    try:
        line: Line = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return line if {"scenario", "algo", "seed", "episodes", "greedy", "sampled"} <= line.keys() else None
