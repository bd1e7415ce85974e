"""`marlctl doctor`: what is installed and whether it works."""

from __future__ import annotations

from marlctl.cli.flags import Json


def doctor(json: Json = False) -> None:
    """Check this installation."""
