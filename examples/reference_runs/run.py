"""All reference runs with one command: train what is missing, evaluate it, compare it, and write it down.

    python examples/reference_runs/run.py --jobs 2

It can be stopped at any time, also by a kill, and goes on where it was. While it runs, the same command with
--tables-only makes the tables from what is there.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from reference import figures, page, systems, tables, yardstick
from reference.games import Games
from reference.plan import HOME, Job, jobs
from reference.results import Results
from reference.work import Halted, Processes, Task, Worker, do_all

from marlctl.storage.files import write_whole

OUT = HOME.parents[1] / "runs" / "reference"  # of the repository, and not in git


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of the runs (default: runs/reference in the repository)")
    parser.add_argument("--results", type=Path, help="folder of the tables (default: here; with --episodes, in --out)")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side, one thread each")
    parser.add_argument("--only", default="*", help="a scenario, or a pattern of run files such as 'simple_tag-*'")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--episodes", type=int, help="train for so many episodes instead, to try it out")
    parser.add_argument("--eval-episodes", type=int, default=1000)
    parser.add_argument("--yardstick", type=Path, help="folder with results of plain_loop.py to take over")
    parser.add_argument("--plain", action="store_true", help="compute results of plain_loop.py that are missing: hours")
    parser.add_argument("--tables-only", action="store_true", help="start no run")
    given = parser.parse_args(argv)
    if given.jobs < 1:
        parser.error(f"--jobs {given.jobs}: there must be at least 1")
    given.out = given.out or (OUT if given.episodes is None else OUT.with_name(f"reference-{given.episodes}"))
    given.results = given.results or (HOME if given.episodes is None else given.out / "results")
    return given


@contextmanager
def stopping(processes: Processes) -> Iterator[None]:
    """Ctrl-C and SIGTERM end what runs, after it has saved."""

    def stop(number: int, frame: Any) -> None:
        print("stopping; the same command goes on", file=sys.stderr)
        processes.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def work(given: argparse.Namespace, worker: Worker, wanted: tuple[Job, ...]) -> list[str]:
    """Train and evaluate; what failed."""
    missing = [job for job in wanted if not worker.finished(job)]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} runs are there", file=sys.stderr)
    tasks: list[Task] = [(job.exp_name, partial(worker.do, job)) for job in missing]
    if given.plain:
        tasks += yardstick.tasks(list(wanted), given.out / "plain", worker.processes)
    return do_all(tasks, given.jobs, worker.say)


def write(given: argparse.Namespace, worker: Worker, all_jobs: tuple[Job, ...]) -> None:
    """Tables, thinned curves, figures and the page, from what is there."""
    torch.set_num_threads(1)
    lines = yardstick.merge(given.results / "plain_loop.jsonl", given.out / "plain")
    games = Games(given.out / "games.json", given.eval_episodes, lambda: worker.processes.stopping)
    results = Results(worker, all_jobs, lines, games)
    curves = list(results.curves())
    try:
        made = tables.make(results, curves)
    finally:
        games.save()
    others = systems.make(results)
    folder = given.results / "results"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "tables.json", (json.dumps(asdict(made) | asdict(others), indent=1) + "\n").encode())
    write_whole(folder / "curves.jsonl", "".join(json.dumps(asdict(curve)) + "\n" for curve in curves).encode())
    drawn = figures.draw(results, given.results / "figures")
    readme = given.results / "README.md"
    before = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    write_whole(readme, page.written(before, page.section(made, others, drawn)).encode())


def main(argv: Sequence[str] | None = None) -> int:
    """Do it; the exit code."""
    given = arguments(argv)
    worker = Worker(given.out, given.eval_episodes, say=lambda text: print(text, file=sys.stderr, flush=True))
    wanted = tuple(jobs(given.only, given.seeds, given.episodes))
    if not wanted:
        print(f"--only {given.only}: no such run", file=sys.stderr)
        return 2
    if given.yardstick:
        yardstick.adopt(given.yardstick, given.out / "plain")
    failed: list[str] = []
    with stopping(worker.processes):
        if not given.tables_only:
            failed = work(given, worker, wanted)
        try:
            if worker.processes.stopping:
                raise Halted
            write(given, worker, tuple(jobs("*", given.seeds, given.episodes)))
        except Halted:
            return 130
    print("failed: " + ", ".join(failed) if failed else "all is there", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
