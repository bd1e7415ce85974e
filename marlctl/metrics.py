"""Metrics as JSON lines. `metrics.jsonl` holds only what the seed determines; wall times lie in `timings.jsonl`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from marlctl.errors import FileError, StorageError
from marlctl.records import Array, EnvSpec, State


class Lines:
    """An append-only file of JSON lines; one write a line, so that a crash can only cut the last."""

    def __init__(self, path: Path, *, keep: int | None = None) -> None:
        """Append to `path`, after cutting it back to `keep` bytes, or to its last whole line."""
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o666)
            if keep is not None and os.fstat(self._file).st_size < keep:
                os.close(self._file)
                raise FileError(f"{path} is shorter than its checkpoint says; it was changed from outside")
            os.ftruncate(self._file, self._whole() if keep is None else keep)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error

    def _whole(self) -> int:
        """The length of the file without half a line at its end."""
        size = os.fstat(self._file).st_size
        tail = os.pread(self._file, 1 << 16, max(0, size - (1 << 16)))
        return size - len(tail) + tail.rfind(b"\n") + 1

    def append(self, row: Mapping[str, Any]) -> None:
        data = (json.dumps(row) + "\n").encode()
        try:
            written = os.write(self._file, data)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}; free some space") from error
        if written != len(data):
            raise StorageError(
                f"cannot write {self.path}: the disk took {written} of {len(data)} bytes; free some space"
            )

    def sync(self) -> int:
        """Make everything appended durable; the file's length."""
        try:
            os.fsync(self._file)
            return os.fstat(self._file).st_size
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}") from error

    def close(self) -> None:
        os.close(self._file)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file of JSON lines; half a line at the end, left by a crash, is skipped."""
    if not path.is_file():
        raise FileError(f"{path} does not exist")
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        if not line.endswith(b"\n"):
            return
        try:
            row = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise FileError(f"{path}, line {number}: not JSON that marlctl wrote") from error
        if not isinstance(row, dict):
            raise FileError(f"{path}, line {number}: not a JSON object")
        yield row


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number")


def returns_row(spec: EnvSpec, mean: Array) -> dict[str, Any]:
    """Mean returns (agents,) in all, by team and by agent."""
    by_agent = dict(zip(spec.names, mean.tolist(), strict=True))
    teams = {team: float(sum(by_agent[a] for a in agents)) for team, agents in spec.teams.items()}
    return {"total": float(mean.sum()), "teams": teams, "agents": by_agent}


class Tally:
    """What happened since the last row of metrics: sums, so that it can be saved and gone on with."""

    def __init__(self, spec: EnvSpec) -> None:
        self.spec = spec
        self.episodes = 0
        self.returns = np.zeros(len(spec.names))
        self.length = 0
        self.updates = 0
        self.losses: dict[str, float] = {}

    def add_episodes(self, returns: Array, lengths: Array) -> None:
        self.episodes += len(returns)
        self.returns += returns.sum(0)
        self.length += int(lengths.sum())

    def add_update(self, losses: Mapping[str, float]) -> None:
        self.updates += 1
        for name, loss in losses.items():
            self.losses[name] = self.losses.get(name, 0.0) + loss

    def row(self) -> dict[str, Any]:
        """The means so far; then counting begins anew."""
        row: dict[str, Any] = {}
        if self.episodes:
            row["return"] = returns_row(self.spec, self.returns / self.episodes)
            row["length"] = self.length / self.episodes
        if self.updates:
            row["loss"] = {name: self.losses[name] / self.updates for name in sorted(self.losses)}
        self.__init__(self.spec)  # type: ignore[misc]
        return row

    def state(self) -> State:
        plain = {
            "episodes": self.episodes,
            "returns": self.returns.copy(),
            "length": self.length,
            "updates": self.updates,
        }
        return {**plain, "losses": dict(self.losses)}

    def load(self, state: State) -> None:
        self.episodes, self.length = int(state["episodes"]), int(state["length"])
        self.updates = int(state["updates"])
        self.returns = np.array(state["returns"])
        self.losses = dict(state["losses"])
