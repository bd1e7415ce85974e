"""`marlctl inspect`: what is inside a file, without trusting it."""

from __future__ import annotations

from pathlib import Path

from marlctl.cli.flags import Json


def inspect(file: Path, json: Json = False) -> None:
    """Show what is inside a file."""
