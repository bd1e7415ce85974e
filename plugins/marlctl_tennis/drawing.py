"""A picture of one game: the court from the side, as somebody in the stands sees it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from marlctl.records import Array
from marlctl_tennis import rules

TRAIL = 9  # steps of the ball's way that are shown
WIDTH, HEIGHT = 640, 360
FINE = 2  # drawn so many times larger, then made smaller: that smooths the edges
SCALE = 21.5 * FINE  # pixels a unit
GROUND = 300 * FINE  # row of the court's surface

SKY, WALL = (52, 82, 112), (26, 42, 64)
STANDS, STANDS_EDGE = (30, 50, 76), (44, 68, 98)
CROWD = (74, 90, 112)
CLAY, CLAY_DARK, LINE, SHADOW = (198, 100, 63), (166, 80, 50), (246, 238, 226), (70, 24, 12, 110)
BALL, BALL_EDGE = (224, 247, 86), (150, 172, 40)
COLOURS = ((244, 184, 98), (130, 216, 228))  # of the first and the second player
WORDS = (236, 241, 245)

Point = tuple[float, float]


class Scene(NamedTuple):
    """What there is to draw, in units of the court."""

    rackets: Sequence[Point]
    trail: Sequence[Point]  # where the ball was, its place now last
    earned: Sequence[float]
    rally: int


def draw(scene: Scene) -> Array:
    """The scene as pixels (360, 640, 3)."""
    image = _background().copy()
    pen = ImageDraw.Draw(image, "RGBA")
    for (x, _), wide in zip((*scene.rackets, scene.trail[-1]), (13, 13, 6), strict=True):
        _oval(pen, (_at(x, 0)[0], GROUND + 10 * FINE), wide, 2.5, fill=SHADOW)
    for player, (x, y) in enumerate(scene.rackets):
        _racket(pen, x, y, 1 - 2 * player, COLOURS[player])
    _ball(pen, scene.trail)
    _board(pen, scene)
    return np.asarray(image.resize((WIDTH, HEIGHT), Image.Resampling.BOX))


def _at(x: float, y: float) -> Point:
    """Where a place on the court is in the picture."""
    return FINE * WIDTH / 2 + SCALE * x, GROUND - SCALE * (y - rules.FLOOR)


def _oval(pen: ImageDraw.ImageDraw, centre: Point, wide: float, high: float, **how: Any) -> None:
    (x, y), wide, high = centre, FINE * wide, FINE * high
    pen.ellipse((x - wide, y - high, x + wide, y + high), **how)


# -- what does not move --------------------------------------------------------------------------


@cache
def _background() -> Image.Image:
    # Few colours: a GIF has 256 for a picture, and those of the ball must be among them.
    image = Image.new("RGB", (FINE * WIDTH, FINE * HEIGHT), SKY)
    pen = ImageDraw.Draw(image, "RGBA")
    _stands(pen)
    right, bottom = FINE * WIDTH, FINE * HEIGHT
    pen.rectangle((0, GROUND, right, bottom), fill=CLAY)
    pen.rectangle((0, GROUND + FINE * 34, right, bottom), fill=CLAY_DARK)
    pen.rectangle((0, GROUND, right, GROUND + 2 * FINE), fill=LINE)
    _walls(pen)
    _net(pen)
    return image


def _stands(pen: ImageDraw.ImageDraw) -> None:
    """Rows of spectators, who sit where they always sit."""
    rng = np.random.default_rng(3)
    for row in range(4):
        top = GROUND - FINE * (104 - 21 * row)
        for x in np.arange(4, FINE * WIDTH, 9 * FINE) + rng.uniform(-3, 3, 71) * FINE:
            if rng.random() < 0.7:
                _oval(pen, (x, top - 2 * FINE), 3.2, 4.2, fill=CROWD)
        pen.rectangle((0, top, FINE * WIDTH, GROUND), fill=STANDS)
        pen.rectangle((0, top, FINE * WIDTH, top + FINE), fill=STANDS_EDGE)


def _walls(pen: ImageDraw.ImageDraw) -> None:
    left, right = (_at(side * rules.COURT, 0)[0] for side in (-1, 1))
    for start, end in ((0.0, left), (right, float(FINE * WIDTH))):
        pen.rectangle((start, 0, end, GROUND), fill=WALL)


def _net(pen: ImageDraw.ImageDraw) -> None:
    x, top = _at(0, rules.NET_TOP)
    pen.rectangle((x - FINE * 1.5, top, x + FINE * 1.5, GROUND), fill=(226, 231, 236))
    pen.rectangle((x - FINE * 3.5, top - FINE, x + FINE * 3.5, top + FINE * 2.5), fill=LINE)


# -- what does -----------------------------------------------------------------------------------


def _racket(pen: ImageDraw.ImageDraw, x: float, y: float, side: int, colour: tuple[int, int, int]) -> None:
    (ax, ay), half = rules.ALONG, rules.HALF_RACKET
    low, high = (_at(x + side * way * half * ax, y + way * half * ay) for way in (-1, 1))
    for width, shade in ((8, (20, 30, 44)), (5, colour)):
        pen.line([low, high], fill=shade, width=width * FINE)
        for end in (low, high):
            _oval(pen, end, width / 2 - 0.25, width / 2 - 0.25, fill=shade)


def _ball(pen: ImageDraw.ImageDraw, trail: Sequence[Point]) -> None:
    *past, now = trail
    radius = SCALE * rules.BALL_RADIUS / FINE
    for age, place in enumerate(reversed(past), 1):
        fresh = 1 - age / TRAIL
        small = radius * (0.35 + 0.5 * fresh)
        _oval(pen, _at(*place), small, small, fill=(*BALL, int(150 * fresh)))
    _oval(pen, _at(*now), radius, radius, fill=BALL, outline=BALL_EDGE, width=FINE)


def _board(pen: ImageDraw.ImageDraw, scene: Scene) -> None:
    middle = FINE * WIDTH / 2
    pen.text((middle, FINE * 14), "rally", fill=(*WORDS, 180), font=_font(13), anchor="mt")
    pen.text((middle, FINE * 31), str(scene.rally), fill=WORDS, font=_font(30), anchor="mt")
    for place, anchor, colour, earned in zip((26, WIDTH - 26), ("lt", "rt"), COLOURS, scene.earned, strict=True):
        pen.text((FINE * place, FINE * 16), f"{earned:.2f}", fill=colour, font=_font(22), anchor=anchor)


@cache
def _font(size: int) -> Any:
    return ImageFont.load_default(FINE * size)
