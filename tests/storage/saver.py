"""Kill a saver at random moments, many times, and look at what is left. Run as a script; prints what it saw."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from marlctl.storage.checkpoint import Checkpoints


class Counter:
    """A memory of 60 rows whose row k is k."""

    def __init__(self) -> None:
        self.total = self.oldest = 0

    def add(self, n: int) -> None:
        self.total += n
        self.oldest = max(0, self.total - 60)

    def rows(self, start: int, stop: int) -> dict[str, np.ndarray]:
        return {"k": np.arange(start, stop)}

    def fill(self, start: int, rows: dict[str, np.ndarray]) -> None:
        assert rows["k"].tolist() == list(range(start, start + len(rows["k"]))), "a row is wrong"
        self.total, self.oldest = start + len(rows["k"]), max(0, start + len(rows["k"]) - 60)


def state(step: int) -> dict:
    return {"w": np.full(5000, step), "step": step}


def restore(folder: Path) -> tuple[Checkpoints, Counter, int, list[str]]:
    """What is there, checked to the last number."""
    checkpoints, memory = Checkpoints(folder), Counter()
    manifest, skipped = checkpoints.newest()
    loaded = checkpoints.read_state(manifest)
    assert loaded["step"] == manifest.step == manifest.note["step"], "a state is wrong"
    assert (loaded["w"] == manifest.step).all(), "a weight is wrong"
    checkpoints.fill(manifest, memory)
    assert memory.total == manifest.step * 7, "rows are missing"
    return checkpoints, memory, manifest.step, skipped


def save_for_ever(folder: Path, acknowledge: int) -> None:
    checkpoints, memory, step, _ = restore(folder)
    checkpoints.tidy()
    while True:
        step += 1
        memory.add(7)
        checkpoints.save(step, state(step), {"step": step}, memory)
        os.write(acknowledge, f"{step}\n".encode())
        checkpoints.prune(2)


def kill_once(folder: Path, rng: random.Random) -> int:
    """Let a child save until it is killed; the last step that it said was saved, or 0."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            save_for_ever(folder, writing)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        before = [stream.readline() for _ in range(rng.randrange(4))]
        time.sleep(rng.uniform(0, 0.008))
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL, "the saver failed by itself"
        return max((int(line) for line in (*before, *stream)), default=0)


def main(folder: Path, kills: int, seed: int) -> None:
    rng, lost, skips, saved, leftovers = random.Random(seed), 0, 0, 0, 0
    first = Counter()
    first.add(7)
    Checkpoints(folder).save(1, state(1), {"step": 1}, first)
    for _ in range(kills):
        acknowledged = kill_once(folder, rng)
        leftovers += len(list(folder.glob("*/.*.part")))
        _, _, step, skipped = restore(folder)
        lost += step < acknowledged
        skips += len(skipped)
        saved = max(saved, acknowledged)
    sys.stdout.write(json.dumps({"lost": lost, "skipped": skips, "saved": saved, "leftovers": leftovers}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
