"""`marlctl plot`: learning curves of one run or of many."""

from __future__ import annotations

from marlctl.cli.flags import RUNS, RunName, SaveDir


def plot(run: RunName = None, save_dir: SaveDir = RUNS) -> None:
    """Draw learning curves."""
