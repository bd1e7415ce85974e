"""A million joint transitions of simple_tag in memory, and what saving them takes."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.child import settings, tell
from marlctl.config import resolve
from marlctl.memory import Ring, fields
from marlctl.opening import memory_kind, open_env
from marlctl.records import Array, EnvSpec, Replay
from marlctl.storage.checkpoint import Checkpoints

PIECE = 10_000  # rows


def status(name: str) -> float:
    """A line of /proc/self/status, in MB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) * 1024 / 1e6


def on_disk() -> float:
    """What lies in the current folder, in MB."""
    return sum(path.stat().st_size for path in Path.cwd().rglob("*") if path.is_file()) / 1e6


def forget_peak() -> None:
    """Let the peak, VmHWM, begin anew from what is in use now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def rows_of(spec: EnvSpec, rng: np.random.Generator) -> dict[str, Array]:
    """Rows that do not compress."""
    return {
        name: rng.random((PIECE, layout.width), np.float32).astype(dtype)
        for name, (layout, dtype) in fields(spec).items()
    }


def main() -> None:
    """Fill a ring, save it, add a little and save again."""
    asked = settings()
    config = resolve({"run": {"algo": "maddpg", "scenario": "simple_tag"}})
    env, spec = open_env(config, 1)
    env.close()
    kind = memory_kind(config)
    if not isinstance(kind, Replay):
        raise SystemExit("maddpg has no replay memory any more")
    ring = Ring(Replay(asked["rows"], kind.batch_size, kind.warmup, kind.update_every), spec, seed=0)
    rows = rows_of(spec, np.random.default_rng(0))
    empty = status("VmRSS")
    while len(ring) < asked["rows"]:
        ring.fill(ring.total, rows)
    full = status("VmRSS")
    tell(full - empty, "MB", {"what": "ring"}, rows=asked["rows"], array_mb=ring.nbytes / 1e6)
    checkpoints = Checkpoints(Path.cwd())
    for what, step in (("first save", 1), ("next save", 2)):
        forget_peak()
        before, written, begin = status("VmRSS"), on_disk(), perf_counter()
        checkpoints.save(step, {"learner": {}}, {}, ring)
        seconds = perf_counter() - begin
        facts = {"seconds": round(seconds, 3), "written_mb": on_disk() - written, "resident_mb": before}
        tell(status("VmHWM") - before, "MB", {"what": what}, **facts)
        ring.fill(ring.total, rows)


if __name__ == "__main__":
    main()
