"""Tables on the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from benchmarks.text import Table


def show(tables: list[Table]) -> None:
    """Draw them one below the other; a file or a pipe has room for whole lines."""
    console = Console(highlight=False)
    console.width = console.width if console.is_terminal else max(console.width, 160)
    for table in tables:
        drawn = Drawn(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in table.columns:
            drawn.add_column(column, overflow="fold")
        for row in table.rows:
            drawn.add_row(*map(Text, row))
        console.print(Text(table.title.replace("`", ""), style="bold"))
        console.print(drawn)
