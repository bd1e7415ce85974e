"""Who is measured when: all contestants in turn, round after round, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import venvs
from benchmarks.child import MARK
from benchmarks.contestants import Contestant
from benchmarks.records import BenchmarkError, Measurement

ROOT = Path(__file__).parents[1]
SECONDS = 900  # that no process takes


@dataclass(frozen=True)
class Job:
    """One process."""

    contestant: Contestant
    threads: int | None
    round: int

    @property
    def key(self) -> tuple[str, str, int | None, int]:
        return self.contestant.part, self.contestant.name, self.threads, self.round


def jobs(contestants: list[Contestant], rounds: int, done: set[tuple[str, str, int | None, int]]) -> list[Job]:
    """What is left to do. A slow moment of the machine then hits everybody and not one alone."""
    every = (
        Job(contestant, threads, number)
        for number in range(1, rounds + 1)
        for contestant in contestants
        for threads in contestant.threads
        if number == 1 or not contestant.once
    )
    return [job for job in every if job.key not in done]


class Runner:
    """Runs jobs; a peer that cannot be installed, or that fails, is a row that says so."""

    def __init__(self, cache: Path, scale: float = 1.0, say: Callable[[str], None] = lambda text: None) -> None:
        self.cache, self.scale, self.say = cache, scale, say
        self._pythons: dict[str | None, Path | BenchmarkError] = {None: Path(sys.executable)}
        self._versions: dict[str | None, Mapping[str, str]] = {}

    def run(self, job: Job) -> list[Measurement]:
        c = job.contestant
        try:
            python = self._python(c.venv)
            results = list(self._results(job, python))
        except BenchmarkError as error:
            return [Measurement(c.part, c.name, job.round, job.threads, error=self._anonymous(str(error)))]
        return [
            Measurement(c.part, c.name, job.round, job.threads, **result, versions=self._versions[c.venv])
            for result in results
        ]

    def _python(self, venv: str | None) -> Path:
        if venv not in self._pythons:
            try:
                self.say(f"preparing the environment of {venv}")
                self._pythons[venv] = venvs.prepare(str(venv), self.cache)
            except BenchmarkError as error:
                self._pythons[venv] = error
        python = self._pythons[venv]
        if isinstance(python, BenchmarkError):
            raise python
        if venv not in self._versions:
            self._versions[venv] = venvs.versions(python)
        return python

    def _results(self, job: Job, python: Path) -> Iterator[dict[str, Any]]:
        asked = {"threads": job.threads, **job.contestant.settings}
        if asked.get("seconds"):
            asked["seconds"] *= self.scale
        command = [str(python), "-m", f"benchmarks.{job.contestant.module}", json.dumps(asked)]
        # A folder that goes away with whatever the contestant leaves behind.
        with tempfile.TemporaryDirectory(prefix="marlctl-benchmarks-") as place:
            code, out, err = _finish(command, place, _environment(job.threads))
        found = [json.loads(line.removeprefix(MARK)) for line in out.splitlines() if line.startswith(MARK)]
        if code or not found:
            last = [line for line in err.splitlines() if line.strip()]
            raise BenchmarkError(f"it ended with {code}: {last[-1] if last else 'and said nothing'}")
        yield from found

    def _anonymous(self, text: str) -> str:
        """Without the names of folders of this machine."""
        for folder in (self.cache.resolve(), ROOT, Path.home(), Path(tempfile.gettempdir())):
            text = text.replace(str(folder), "…")
        return text[:300]


def _environment(threads: int | None) -> dict[str, str]:
    """Ours, with the threads that the contestant may use; it finds this package, and no tracker."""
    more = {"PYTHONPATH": str(ROOT), "WANDB_MODE": "disabled", "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
    if threads is not None:
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
        more |= dict.fromkeys(names, str(threads))
    return {**os.environ, **more}


def _finish(command: list[str], place: str, environment: dict[str, str]) -> tuple[int, str, str]:
    """Run a process to its end; when we are stopped, so is it, with whatever it started."""
    child = subprocess.Popen(
        command,
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"it took more than {SECONDS} s") from None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return child.returncode, out, err
