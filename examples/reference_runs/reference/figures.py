"""Learning curves by `marlctl plot`: the mean over seeds, with 95 % bands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
    """Draw every figure; their names."""
    drawn = []
    for scenario, metric, name in wanted(results):
        jobs = [job for algo in ALGOS for job in results.of(f"{scenario}-{algo}")]
        runs = [job.folder(results.worker.out).path for job in jobs]
        look = ["--metric", metric, "--x", "episodes", "--smooth", str(SMOOTH), "--out", folder / name]
        results.worker.processes.marlctl("plot", *runs, *look)
        drawn.append(name)
    return drawn
