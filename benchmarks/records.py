"""What was measured: one line of JSON each, appended as soon as it is known."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class BenchmarkError(Exception):
    """Something the user can understand and mend."""


@dataclass(frozen=True)
class Measurement:
    """One number, or the reason why there is none."""

    part: str
    contestant: str
    round: int
    threads: int | None = None  # None: as the contestant itself decides
    value: float | None = None
    unit: str = ""
    setting: Mapping[str, Any] = field(default_factory=dict)  # which of the contestant's numbers
    facts: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None

    @property
    def job(self) -> tuple[str, str, int | None, int]:
        return self.part, self.contestant, self.threads, self.round


@dataclass(frozen=True)
class Results:
    """Everything measured, and on which machine."""

    machine: Mapping[str, Any]
    measurements: tuple[Measurement, ...]

    @property
    def done(self) -> set[tuple[str, str, int | None, int]]:
        """Jobs that need not be done again; what failed may work the next time."""
        return {m.job for m in self.measurements if m.error is None}


def append(path: Path, machine: Mapping[str, Any], measurements: Iterable[Measurement]) -> None:
    """Add the results of one process; half a line at the end, left by a crash, is cut off first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"machine": machine, **dataclasses.asdict(m)}) + "\n" for m in measurements]
    with path.open("ab+") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write("".join(lines).encode())
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> Results:
    """The results in a file of JSON lines, or in the one JSON object that a report was made of."""
    if not path.is_file():
        raise BenchmarkError(f"{path} is not there; `python -m benchmarks run` makes it")
    text = path.read_text(encoding="utf-8")
    try:
        if path.suffix == ".json":
            whole = json.loads(text)
            return Results(whole["machine"], tuple(Measurement(**row) for row in whole["measurements"]))
        rows = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        machine = {**rows[-1]["machine"]} if rows else {}
        commits = dict.fromkeys(row["machine"].get("commit", "unknown") for row in rows)
        machine["commit"] = " and ".join(commits)
        for row in rows:
            if row.pop("machine").get("cpu") != machine.get("cpu"):
                raise BenchmarkError(f"{path} holds results of two machines; begin another file with --fresh")
        return Results(machine, tuple(latest(Measurement(**row) for row in rows)))
    except (ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"{path} is not what the benchmarks write: {error}") from error


def latest(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Without the failures that were made good later."""
    kept = list(measurements)
    good = {m.job for m in kept if m.error is None}
    last = {m.job: m for m in kept if m.error is not None}
    return [m for m in kept if m.error is None or (m.job not in good and last[m.job] is m)]


def write_json(path: Path, results: Results) -> None:
    """Every single measurement in one JSON object, one a line."""
    rows = ",\n".join(json.dumps(dataclasses.asdict(m)) for m in results.measurements)
    path.write_text(f'{{"machine": {json.dumps(results.machine)},\n"measurements": [\n{rows}\n]}}\n', encoding="utf-8")
