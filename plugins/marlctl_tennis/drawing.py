"""A picture of one game: the court from the side, as a spectator in the stands sees it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from marlctl.records import Array
from marlctl_tennis import rules

TRAIL = 9  # steps of the ball's way that are shown
WIDTH, HEIGHT = 640, 360
FINE = 2  # drawn so many times larger, then made smaller: that smooths the edges
SCALE = 21.5  # pixels a unit
GROUND = 296  # row of the court's surface

SKY_TOP, SKY_LOW = (23, 42, 66), (88, 129, 156)
STANDS, STANDS_EDGE = (33, 56, 82), (47, 74, 103)
CLAY, CLAY_DARK, LINE = (196, 98, 62), (158, 74, 46), (244, 236, 224)
BALL, BALL_EDGE = (223, 246, 86), (150, 172, 40)
COLOURS = ((240, 178, 92), (128, 214, 226))  # of the first and the second player
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
    for player, (x, y) in enumerate(scene.rackets):
        _racket(pen, x, y, 1 - 2 * player, COLOURS[player])
    _net(pen)
    _ball(pen, scene.trail)
    _board(pen, scene)
    return np.asarray(image.resize((WIDTH, HEIGHT), Image.Resampling.BOX))


def _at(x: float, y: float) -> Point:
    return FINE * (WIDTH / 2 + SCALE * x), FINE * (GROUND - SCALE * (y - rules.FLOOR))


def _disc(pen: ImageDraw.ImageDraw, centre: Point, radius: float, **how: object) -> None:
    x, y = centre
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), **how)  # type: ignore[arg-type]


@cache
def _background() -> Image.Image:
    fade = np.linspace(0, 1, FINE * HEIGHT)[:, None]
    column = np.array(SKY_TOP) * (1 - fade) + np.array(SKY_LOW) * fade
    pixels = np.repeat(column[:, None], FINE * WIDTH, axis=1).astype(np.uint8)
    image = Image.fromarray(pixels)
    pen = ImageDraw.Draw(image, "RGBA")
    right, bottom, ground = FINE * WIDTH, FINE * HEIGHT, FINE * GROUND
    for row in range(3):  # the stands, each row before the one behind
        top = ground - FINE * (66 - 22 * row)
        pen.rectangle((0, top, right, ground), fill=STANDS, outline=STANDS_EDGE, width=FINE)
    pen.rectangle((0, ground, right, bottom), fill=CLAY)
    pen.rectangle((0, ground + FINE * 30, right, bottom), fill=CLAY_DARK)
    pen.rectangle((0, ground, right, ground + 2 * FINE), fill=LINE)
    for side in (-1, 1):
        x, _ = _at(side * rules.COURT, 0)
        pen.rectangle((*sorted((x, x + side * FINE * 40))[:1], 0, max(x, x + side * FINE * 40), ground), fill=SKY_TOP)
    return image


def _net(pen: ImageDraw.ImageDraw) -> None:
    x, top = _at(0, rules.NET_TOP)
    ground = FINE * GROUND
    pen.rectangle((x - FINE * 1.5, top, x + FINE * 1.5, ground), fill=(225, 230, 235, 150))
    pen.rectangle((x - FINE * 3, top - FINE * 2, x + FINE * 3, top + FINE * 2), fill=LINE)


def _racket(pen: ImageDraw.ImageDraw, x: float, y: float, side: int, colour: tuple[int, int, int]) -> None:
    (ax, ay), half = rules.ALONG, rules.HALF_RACKET
    ends = [_at(x + side * sign * half * ax, y + sign * half * ay) for sign in (-1, 1)]
    pen.line(ends, fill=colour, width=6 * FINE)
    for end in ends:
        _disc(pen, end, 3 * FINE - 0.5, fill=colour)
    shadow = _at(x, rules.FLOOR)
    pen.ellipse(
        (shadow[0] - 17 * FINE, shadow[1] + 4 * FINE, shadow[0] + 17 * FINE, shadow[1] + 9 * FINE),
        fill=(60, 20, 10, 90),
    )


def _ball(pen: ImageDraw.ImageDraw, trail: Sequence[Point]) -> None:
    *past, now = trail
    radius = FINE * SCALE * rules.BALL_RADIUS
    for age, place in enumerate(reversed(past), 1):
        fresh = 1 - age / TRAIL
        _disc(pen, _at(*place), radius * (0.35 + 0.5 * fresh), fill=(*BALL, int(130 * fresh)))
    x, _ = _at(now[0], 0)
    ground = FINE * (GROUND + 6)
    pen.ellipse((x - radius, ground - 2 * FINE, x + radius, ground + 2 * FINE), fill=(60, 20, 10, 90))
    _disc(pen, _at(*now), radius, fill=BALL, outline=BALL_EDGE, width=FINE)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(FINE * size)


def _board(pen: ImageDraw.ImageDraw, scene: Scene) -> None:
    middle = FINE * WIDTH / 2
    pen.text((middle, FINE * 14), "rally", fill=(*WORDS, 170), font=_font(13), anchor="mt")
    pen.text((middle, FINE * 31), str(scene.rally), fill=WORDS, font=_font(30), anchor="mt")
    for place, anchor, colour, earned in zip((20, WIDTH - 20), ("lt", "rt"), COLOURS, scene.earned, strict=True):
        text = f"{earned:+.2f}" if abs(earned) > 1e-9 else "0.00"
        pen.text((FINE * place, FINE * 16), text, fill=colour, font=_font(22), anchor=anchor)
