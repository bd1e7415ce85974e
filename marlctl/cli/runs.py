"""`marlctl runs`: which runs there are, and what is in one."""

from __future__ import annotations

import typer

from marlctl.cli.flags import RUNS, RunName, SaveDir

app = typer.Typer(help="Runs, finished and not.", no_args_is_help=True)


@app.command("list")
def list_(save_dir: SaveDir = RUNS) -> None:
    """List every run."""


@app.command("show")
def show_(run: RunName = None, save_dir: SaveDir = RUNS) -> None:
    """Show one run."""
