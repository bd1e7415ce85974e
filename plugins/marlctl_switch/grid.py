"""The map: where one can stand, where the agents begin and want to go, and where each move leads.

A cell is a number; walls have none.
"""

from __future__ import annotations

import numpy as np

from marlctl.records import Array

MAP = (
    "..###..",
    ".......",
    "..###..",
)
ROWS, COLUMNS = len(MAP), len(MAP[0])
PLACES = [(row, column) for row in range(ROWS) for column in range(COLUMNS) if MAP[row][column] == "."]
CELL = {place: cell for cell, place in enumerate(PLACES)}

# By agent, of whom there are two or four.
STARTS = [CELL[place] for place in ((0, 1), (0, 5), (2, 1), (2, 5))]
HOMES = [CELL[place] for place in ((0, 6), (0, 0), (2, 6), (2, 0))]

STEPS = ((1, 0), (0, -1), (-1, 0), (0, 1), (0, 0))  # down, left, up, right, stay
MOVES = len(STEPS)


def ways(home: int) -> Array:
    """Where every move leads from every cell, if nobody is in the way: (cells, moves). Who is home stays there."""
    table = np.array([[CELL.get((row + y, column + x), CELL[row, column]) for y, x in STEPS] for row, column in PLACES])
    table[home] = home
    return table


def sights() -> Array:
    """What one sees of a place, (cells, 2): row and column as parts of the whole, to two decimals."""
    return np.array(
        [[round(row / (ROWS - 1), 2), round(column / (COLUMNS - 1), 2)] for row, column in PLACES], np.float32
    )
