"""Learning curves by `marlctl plot`: the mean over seeds, with 95 % bands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from marlctl.storage.files import write_whole
from reference import systems
from reference.plan import ALGOS
from reference.results import Results, teams_of

SMOOTH = 5  # rows of metrics, 100 episodes each


def wanted(results: Results) -> Iterator[tuple[list[str], str, str]]:
    """Run files, metric and file name of every figure there can be."""
    for scenario in results.scenarios:
        both = [f"{scenario}-{algo}" for algo in ALGOS]
        teams = teams_of(both[0])
        if len(teams) == 1:
            yield both, "return.total", f"{scenario}.png"
        else:
            for team in teams:
                yield both, f"return.teams.{team}", f"{scenario}-{team}.png"
    yield from systems.figures()


def draw(results: Results, folder: Path) -> list[str]:
    """Draw every figure that is not there as it would be; the names of all."""
    memory = results.worker.out / "figures.json"  # which runs each figure was drawn from
    known: dict[str, list[str]] = json.loads(memory.read_text(encoding="utf-8")) if memory.is_file() else {}
    drawn = []
    for runs, metric, name in wanted(results):
        sides = [side for run in runs for side in results.sides(run)]
        if not sides:
            continue
        path, keys = folder / name, [side.key for side in sides]
        if not path.is_file() or known.get(str(path.resolve())) != keys:
            look = ["--metric", metric, "--x", "episodes", "--smooth", str(SMOOTH), "--out", path]
            results.worker.processes.marlctl("plot", *(side.path for side in sides), *look)
            known[str(path.resolve())] = keys
            write_whole(memory, (json.dumps(known) + "\n").encode())
        drawn.append(name)
    return drawn
