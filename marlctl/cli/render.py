"""`marlctl render`: watch a trained run."""

from __future__ import annotations

from marlctl.cli.flags import RUNS, RunName, SaveDir


def render(run: RunName = None, save_dir: SaveDir = RUNS) -> None:
    """Film a run's policy."""
