"""What commands print: results on stdout, talk on stderr, text from outside escaped."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from typing import Any

import typer

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Text from outside without what could steer a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def say(text: str) -> None:
    """A line of talk; when nobody listens any more, the work goes on."""
    with suppress(OSError):
        typer.echo(clean(text), err=True)


def complain(text: str) -> None:
    """What went wrong."""
    lines = clean(text).splitlines() or ["unknown error"]
    with suppress(OSError):
        typer.secho(f"error: {lines[0]}", err=True, fg="red" if sys.stderr.isatty() else None)
        for line in lines[1:]:
            typer.echo(f"  {line}", err=True)


def as_json(value: Any) -> None:
    """One JSON object on stdout."""
    typer.echo(json.dumps(value, indent=2 if sys.stdout.isatty() else None))


def width() -> int:
    """Columns of the terminal; a file or a pipe has room for whole lines."""
    from rich.console import Console

    console = Console()
    return console.width if console.is_terminal else max(console.width, 200)


def table(columns: list[str], rows: list[list[str]], *, title: str | None = None) -> None:
    """A table on stdout below its title; numbers, recognisable as such, stand to the right and in one piece."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if title:
        typer.echo(clean(title))
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(_NUMBER.fullmatch(row[index]) for row in rows)
        drawn.add_column(column, justify="right" if numeric else "left", overflow="fold", no_wrap=numeric)
    for row in rows:
        drawn.add_row(*(Text(clean(cell)) for cell in row))
    Console(highlight=False, width=width()).print(drawn)


def table_width(columns: list[str], rows: list[list[str]]) -> int:
    """Columns of the terminal that a table takes when nothing in it is broken."""
    return sum(max(map(len, cells)) for cells in zip(columns, *rows, strict=True)) + 3 * len(columns) - 1


def cut(text: str, length: int) -> str:
    """Text of at most that length, with a sign where some is missing."""
    return text if len(text) <= length else f"{text[: max(0, length - 1)]}…"


def count(number: int, word: str) -> str:
    """So many of something: 1 episode, 2,000 episodes."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


_NUMBER = re.compile(r"[-+±\d.,e %\[\]]*")


def size(n_bytes: float) -> str:
    """So many bytes, in the unit that reads best."""
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"


def facts(lines: dict[str, Any]) -> None:
    """Names and what they are, on stdout; what is empty is left out."""
    told = {name: str(value) for name, value in lines.items() if value not in ("", None)}
    width = max(map(len, told), default=0)
    for name, value in told.items():
        typer.echo(f"{name:<{width}}  {clean(value)}")
