"""Learning curves by `marlctl plot`: the mean over seeds, with 95 % bands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from marlctl.storage.files import write_whole
from reference.plan import ALGOS
from reference.results import Results, teams_of

SMOOTH = 5  # rows of metrics, 100 episodes each


def wanted(results: Results) -> Iterator[tuple[str, str, str]]:
    """Scenario, metric and file name of every figure there can be."""
    for scenario in results.scenarios:
        if any(results.of(f"{scenario}-{algo}") for algo in ALGOS):
            teams = teams_of(f"{scenario}-maddpg")
            if len(teams) == 1:
                yield scenario, "return.total", f"{scenario}.png"
            else:
                for team in teams:
                    yield scenario, f"return.teams.{team}", f"{scenario}-{team}.png"


def draw(results: Results, folder: Path) -> list[str]:
    """Draw every figure that is not there as it would be; the names of all."""
    memory = results.worker.out / "figures.json"  # which runs each figure was drawn from
    known: dict[str, list[str]] = json.loads(memory.read_text(encoding="utf-8")) if memory.is_file() else {}
    drawn = []
    for scenario, metric, name in wanted(results):
        sides = [side for algo in ALGOS for side in results.sides(f"{scenario}-{algo}")]
        path, keys = folder / name, [side.key for side in sides]
        if not path.is_file() or known.get(str(path.resolve())) != keys:
            look = ["--metric", metric, "--x", "episodes", "--smooth", str(SMOOTH), "--out", path]
            results.worker.processes.marlctl("plot", *(side.path for side in sides), *look)
            known[str(path.resolve())] = keys
            write_whole(memory, (json.dumps(known) + "\n").encode())
        drawn.append(name)
    return drawn
