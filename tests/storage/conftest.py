from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from marlctl.storage.checkpoint import Checkpoints


class Ring:
    """A plain memory whose row k holds k, and the salt of its timeline."""

    def __init__(self, capacity: int = 50, salt: int = 0) -> None:
        self.capacity, self.salt, self.total, self.oldest = capacity, salt, 0, 0
        self._numbers = np.zeros((capacity, 3), np.float32)
        self._flags = np.zeros(capacity, bool)

    def add(self, n: int) -> Ring:
        numbers = np.arange(self.total, self.total + n)
        self.fill(
            self.total,
            {"numbers": np.stack([numbers, numbers * 2, numbers * 0 + self.salt], 1), "flags": numbers % 3 == 0},
        )
        return self

    def rows(self, start: int, stop: int) -> dict[str, np.ndarray]:
        assert self.oldest <= start <= stop <= self.total, "asked for rows that are not held"
        slots = np.arange(start, stop) % self.capacity
        return {"numbers": self._numbers[slots], "flags": self._flags[slots]}

    def fill(self, start: int, rows: dict[str, np.ndarray]) -> None:
        assert self.total in (0, start), "pieces are not consecutive"
        n = len(rows["flags"])
        for k in range(n):
            self._numbers[(start + k) % self.capacity] = rows["numbers"][k]
            self._flags[(start + k) % self.capacity] = rows["flags"][k]
        first = self.oldest if self.total else start
        self.total = start + n
        self.oldest = max(first, self.total - self.capacity)

    def held(self) -> list[tuple]:
        rows = self.rows(self.oldest, self.total)
        return [(self.oldest + k, *rows["numbers"][k].tolist(), bool(f)) for k, f in enumerate(rows["flags"])]


class Faults:
    """Counts the calls that change the disk, and makes one of them fail, or that one and all after it."""

    CALLS = ((os, "open"), (os, "write"), (os, "fsync"), (Path, "replace"), (Path, "unlink"), (Path, "mkdir"))

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.calls: list[tuple] = []

    @contextmanager
    def at(self, n: int = 0, error: BaseException | None = None, sticky: bool = False):
        self.calls = []
        with self._monkeypatch.context() as patch:
            for owner, name in self.CALLS:
                patch.setattr(owner, name, self._wrap(name, getattr(owner, name), n, error, sticky))
            yield self

    def _wrap(self, name, real, n, error, sticky):
        def call(*args, **kwargs):
            if name == "open" and not args[1] & (os.O_CREAT | os.O_DIRECTORY):
                return real(*args, **kwargs)
            self.calls.append((name, *args))
            if error is not None and (len(self.calls) == n or (sticky and len(self.calls) > n)):
                raise error
            return real(*args, **kwargs)

        return call


class Watch:
    """Tells whether anyone, libhdf5 included, opened a file."""

    def __init__(self, path: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert libc.inotify_add_watch(self._handle, os.fsencode(path), 0x21) > 0  # IN_ACCESS | IN_OPEN

    def opened(self) -> bool:
        try:
            return bool(os.read(self._handle, 4096))
        except BlockingIOError:
            return False

    def close(self) -> None:
        os.close(self._handle)


@pytest.fixture
def make_ring():
    return Ring


@pytest.fixture
def faults(monkeypatch):
    return Faults(monkeypatch)


@pytest.fixture
def watch():
    watches = []

    def begin(path: Path) -> Watch:
        watches.append(Watch(path))
        return watches[-1]

    yield begin
    for each in watches:
        each.close()


@pytest.fixture
def state():
    """The state of step k, as every test here saves it."""
    return lambda k: {"learner": {"weights": np.full((4, 5), k, np.float32), "rounds": k}, "empty": {}}


@pytest.fixture
def check(state):
    """See that the folder's newest checkpoint loads and holds what was saved at its step; returns the step."""

    def newest(folder: Path, memory: int = 50) -> int:
        checkpoints = Checkpoints(folder)
        manifest, _ = checkpoints.newest()
        loaded = checkpoints.read_state(manifest)
        assert np.array_equal(loaded["learner"]["weights"], state(manifest.step)["learner"]["weights"])
        assert (loaded["learner"]["rounds"], loaded["empty"]) == (manifest.step, {})
        assert manifest.note == {"score": manifest.step / 2}
        ring = Ring(memory)
        checkpoints.fill(manifest, ring)
        assert ring.held() == Ring(memory).add(manifest.step * 7).held()
        return manifest.step

    return newest


@pytest.fixture
def save(state):
    """Save step k with 7 rows a step."""

    def save(checkpoints: Checkpoints, ring: Ring, step: int) -> None:
        ring.add(step * 7 - ring.total)
        checkpoints.save(step, state(step), {"score": step / 2}, ring)

    return save
