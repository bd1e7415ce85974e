"""A game of Switch as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from marlctl.records import Array
from marlctl_switch.grid import CELL, COLUMNS, HOMES, PLACES, ROWS

SIZE = 64  # pixels of a cell
FINE = 3  # drawn so many times larger and then made smaller, which smooths the edges
WALL, FLOOR, LINE, WHITE = "#2f3542", "#f7f7f5", "#dcdcd6", "#ffffff"
COLOURS = ("#d64545", "#2f6fdb", "#2c9c5a", "#e08a1e")  # of the agents and their homes
PALE = ("#f6d3d3", "#cfdff8", "#cfebd9", "#f9e3c6")


def draw(places: Sequence[tuple[int, int]]) -> Array:
    """The agents at these places, (height, width, 3)."""
    unit = SIZE * FINE
    image = Image.new("RGB", (COLUMNS * unit, ROWS * unit), LINE)
    pen = ImageDraw.Draw(image)
    for row, column in product(range(ROWS), range(COLUMNS)):
        floor = (row, column) in CELL
        pen.rectangle(_box(row, column, 0.01 if floor else 0), fill=FLOOR if floor else WALL)
    for agent in range(len(places)):
        _home(pen, PLACES[HOMES[agent]], agent)
    for agent, place in enumerate(places):
        _agent(pen, place, agent)
    return np.asarray(image.resize((COLUMNS * SIZE, ROWS * SIZE), Image.Resampling.LANCZOS))


def _home(pen: ImageDraw.ImageDraw, place: tuple[int, int], agent: int) -> None:
    pen.rounded_rectangle(
        _box(*place, 0.06), radius=0.12 * SIZE * FINE, fill=PALE[agent], outline=COLOURS[agent], width=4 * FINE
    )
    _write(pen, place, agent, COLOURS[agent])


def _agent(pen: ImageDraw.ImageDraw, place: tuple[int, int], agent: int) -> None:
    pen.ellipse(_box(*place, 0.17), fill=COLOURS[agent], outline=WHITE, width=2 * FINE)
    _write(pen, place, agent, WHITE)


def _write(pen: ImageDraw.ImageDraw, place: tuple[int, int], agent: int, colour: str) -> None:
    row, column = place
    middle = ((column + 0.5) * SIZE * FINE, (row + 0.5) * SIZE * FINE)
    pen.text(middle, str(agent), fill=colour, anchor="mm", font=ImageFont.load_default(0.4 * SIZE * FINE))


def _box(row: int, column: int, margin: float) -> tuple[float, float, float, float]:
    unit = SIZE * FINE
    return (
        (column + margin) * unit,
        (row + margin) * unit,
        (column + 1 - margin) * unit,
        (row + 1 - margin) * unit,
    )
