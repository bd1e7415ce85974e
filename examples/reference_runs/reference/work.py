"""Doing what is missing: every run is trained and evaluated by `marlctl` in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marlctl.errors import FileError
from marlctl.storage.checkpoint import Checkpoints
from marlctl.storage.files import write_whole
from reference.plan import Job

MODES = {"greedy": "--deterministic", "sampled": "--stochastic"}
Task = tuple[str, Callable[[], None]]  # its name, and what to do
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


class Halted(Exception):
    """Somebody wished to stop."""


class Failed(Exception):
    """A command ended with an error."""


class Processes:
    """Commands that run side by side and can be ended together."""

    def __init__(self) -> None:
        self._alive: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self.stopping = False

    def marlctl(self, *arguments: object) -> str:
        """What the command prints."""
        return self.run([sys.executable, "-m", "marlctl", *map(str, arguments)])

    def run(self, command: Sequence[str]) -> str:
        with self._lock:
            if self.stopping:
                raise Halted
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, **ONE_THREAD},
                start_new_session=True,  # Ctrl-C is for us; we pass it on, once
            )
            self._alive.add(process)
        try:
            printed, said = process.communicate()
        finally:
            with self._lock:
                self._alive.discard(process)
        if process.returncode and self.stopping:
            raise Halted
        if process.returncode:
            raise Failed(f"{' '.join(command[2:])}\nended with {process.returncode}: {said.strip()[-2000:]}")
        return printed

    def stop(self) -> None:
        """Let every command save and end."""
        with self._lock:
            self.stopping = True
            for process in self._alive:
                process.terminate()


@dataclass(frozen=True)
class Worker:
    """Trains and evaluates jobs in `out`. What is done is written down there and not done again."""

    out: Path
    eval_episodes: int = 1000
    processes: Processes = field(default_factory=Processes)
    say: Callable[[str], None] = print

    def record_file(self, job: Job) -> Path:
        return self.out / "done" / f"{job.exp_name}.json"

    def record(self, job: Job) -> dict[str, Any]:
        """What is known of a job: how many episodes it was trained for, and its evaluations."""
        path = self.record_file(job)
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return known

    def finished(self, job: Job) -> bool:
        return not self._missing(job, self.record(job))

    def _missing(self, job: Job, record: dict[str, Any]) -> list[str]:
        trained = record.get("trained", 0) >= job.episodes
        played = {mode: record.get(mode, {}).get("episodes") == self.eval_episodes for mode in MODES}
        return ["train"] * (not trained) + [mode for mode in MODES if not (trained and played[mode])]

    def do(self, job: Job) -> None:
        """Whatever is missing of a job."""
        if self.processes.stopping:
            raise Halted
        record = self.record(job)
        for step in self._missing(job, record):
            if step == "train":
                self._train(job)
                record = {"trained": job.episodes}
            else:
                record[step] = self._evaluate(job, step)
            self._keep(job, record)
        # Only an unfinished run needs its replay memory again, and it is hundreds of megabytes.
        shutil.rmtree(job.folder(self.out).path / "replay", ignore_errors=True)
        self.say(f"{job.exp_name}: {record['greedy']['total']['mean']:.2f} greedy, return in all")

    def _keep(self, job: Job, record: dict[str, Any]) -> None:
        path = self.record_file(job)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(record) + "\n").encode())

    def _train(self, job: Job) -> None:
        path = job.folder(self.out).path
        budget = ["--num-episodes", str(job.episodes), "--quiet"]
        if can_go_on(path):
            self.say(f"going on with {job.exp_name}")
            self.processes.marlctl("train", "--restore", "--load-dir", path, *budget)
            return
        self.say(f"training {job.exp_name}")
        named = ["--seed", str(job.seed), "--exp-name", job.exp_name, "--save-dir", self.out]
        anew = ["--force"] if path.exists() else []  # it was killed before its first checkpoint
        self.processes.marlctl("train", "--config", job.file, *named, *budget, *anew)

    def _evaluate(self, job: Job, mode: str) -> dict[str, Any]:
        path = job.folder(self.out).path
        how = ["--episodes", str(self.eval_episodes), MODES[mode], "--benchmark"]
        where = ["--benchmark-dir", path / "benchmark" / mode]
        summary: dict[str, Any] = json.loads(self.processes.marlctl("eval", path, *how, *where, "--json"))
        return {name: value for name, value in summary.items() if name not in ("run", "files")}


def can_go_on(path: Path) -> bool:
    """Whether a run folder has a checkpoint to continue from."""
    try:
        Checkpoints(path).newest()
    except (FileError, OSError):
        return False
    return True


def do_all(tasks: Iterable[Task], side_by_side: int, say: Callable[[str], None] = print) -> list[str]:
    """Do everything, so many at a time; the names of what failed. One failure does not stop the others."""
    failed = []
    with ThreadPoolExecutor(side_by_side) as pool:
        running = [(name, pool.submit(task)) for name, task in tasks]
        for name, task in running:
            try:
                task.result()
            except Halted:
                continue
            except Failed as error:
                say(f"{name} failed: {error}")
                failed.append(name)
    return failed
