"""`marlctl train` as a user types it, with default settings, ended by Ctrl-C once enough was seen.

The rate is that of the run's own timings.jsonl, from 20 updates after the warm-up on: metrics,
evaluations and checkpoints are in it; starting, the warm-up and the last checkpoint are not.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.child import settings, tell
from marlctl.config import read_file
from marlctl.metrics import read

SKIP = 20  # updates
STOPPED = 130


def main() -> None:
    """Train for so many seconds after the warm-up, or to the end where `seconds` is none."""
    asked = settings()
    begin = time.perf_counter()
    algo = asked.get("algo", "maddpg")
    command = [sys.executable, "-m", "marlctl", "train", "--algo", algo, "--scenario", asked["scenario"]]
    child = subprocess.Popen([*command, "--exp-name", "bench", "--quiet", *asked.get("more", ())])
    try:
        folder = Path("runs") / asked["scenario"] / algo / "bench"
        if asked["seconds"] is None:
            finish(child, 0)
            tell(time.perf_counter() - begin, "s", steps=timings(folder)[-1]["step"], **chosen(folder))
            return
        rows = watch(child, folder, asked["seconds"])
        child.send_signal(signal.SIGINT)
        finish(child, STOPPED)
    finally:
        child.kill()
    first, last = rows[0], rows[-1]
    seconds = last["seconds"] - first["seconds"]
    names = ("acting", "environment", "sampling", "learning", "evaluation", "saving")
    parts = {name: round((last[name] - first[name]) / seconds, 4) for name in names if name in last}
    steps = last["step"] - first["step"]
    tell(steps / seconds, steps=steps, warm_up_seconds=round(first["seconds"], 2), time=parts, **chosen(folder))


def finish(child: subprocess.Popen[bytes], code: int) -> None:
    """Wait for the run to end, as it should."""
    if child.wait(600) != code:
        raise SystemExit(f"marlctl train ended with {child.returncode}")


def watch(child: subprocess.Popen[bytes], folder: Path, seconds: float) -> list[dict[str, Any]]:
    """Rows of timings since the run was warm, once they span so many seconds."""
    while child.poll() is None:
        time.sleep(0.25)
        if not folder.exists():
            continue
        rows = timings(folder)
        if rows and rows[-1]["seconds"] - rows[0]["seconds"] >= seconds:
            return rows
    raise SystemExit(f"marlctl train ended with {child.returncode} before it was warm")


def timings(folder: Path) -> list[dict[str, Any]]:
    """Rows of a training that is warm."""
    if not (folder / "timings.jsonl").exists():
        return []
    algo = read_file(folder / "run.toml")["algo"]
    warm = algo["warmup"] + SKIP * algo["update_every"] if "warmup" in algo else 0  # a rollout learns from the start
    return [row for row in read(folder / "timings.jsonl") if row["kind"] == "train" and row["step"] >= warm]


def chosen(folder: Path) -> dict[str, Any]:
    """What the defaults were."""
    run = read_file(folder / "run.toml")["run"]
    return {name: run[name] for name in ("num_envs", "threads") if name in run}


if __name__ == "__main__":
    main()
