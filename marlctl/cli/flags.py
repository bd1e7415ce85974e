"""Flags and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marlctl.cli import complete

SaveDir = Annotated[Path, typer.Option("--save-dir", help="Folder the runs are kept in.")]
RunName = Annotated[
    str | None,
    typer.Argument(
        help="Run folder, or the name of a run; the newest when left out.",
        show_default=False,
        autocompletion=complete.runs,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Which = Annotated[str, typer.Option("--which", help="Checkpoint to use: best, last or a step.")]
RUNS = Path("runs")
