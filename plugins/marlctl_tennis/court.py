"""The game itself: n courts in arrays, moved in physics steps, with the points that players make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from marlctl.records import Array
from marlctl_tennis import rules

PLAYERS = 2
VALUES = 8  # x, y, vx, vy of the racket, then of the ball
NOBODY = -1

_NORMAL, _ALONG = (np.array(way)[:, None, None] for way in (rules.NORMAL, rules.ALONG))
_NEAR, _FAR = (np.array(limits)[:, None] for limits in zip(rules.START, rules.START, rules.DROP, strict=True))
_LOST = rules.GRAVITY * rules.PHYSICS_STEP  # speed, in a physics step


class Points(NamedTuple):
    """What the players did in one decision step."""

    over: Array  # (2, n) how often the player brought the ball over the net
    missed: Array  # (2, n) whether the player made the mistake that ends the rally


class Court:
    """n courts. `table` is everything that moves, as each player sees it: its own side has negative x.

    So both players have the same rules, and the ball is in the table twice, once mirrored.
    """

    def __init__(self, n: int) -> None:
        self.table = np.zeros((VALUES, PLAYERS, n))
        self.last_hit = np.full(n, NOBODY)
        bodies = self.table.reshape(2, 4, PLAYERS, n)
        self._pos, self._vel = bodies[:, :2], bodies[:, 2:]  # (racket and ball, x and y, 2, n)
        self._rising = bodies[:, 3]
        self._racket, self._ball = self._pos
        self._racket_vel, self._ball_vel = self._vel
        self._face = np.ones((PLAYERS, n))  # 1 where the ball is before the racket's face, -1 behind it
        self._left = np.zeros(n, bool)  # whether the ball is in the first player's half
        self._way = np.zeros_like(self._pos)
        self._height = np.zeros((PLAYERS, n))  # of the ball over the plane of the racket
        self._over, self._missed = np.zeros((PLAYERS, n)), np.zeros((PLAYERS, n), bool)
        self._frozen: list[tuple[Array, Array]] = []

    def serve(self, copies: Array, seeds: Sequence[int]) -> None:
        """Begin a rally in these copies: rackets near the middle of their halves, and a ball that falls."""
        drawn = np.empty((4, len(seeds)))  # two rackets, the ball, and its side
        for i, seed in enumerate(seeds):
            drawn[:, i] = np.random.Generator(np.random.PCG64(seed)).random(4)
        places = _NEAR + (_FAR - _NEAR) * drawn[:3]
        ball_x = np.copysign(places[2], drawn[3] - 0.5)
        table = np.zeros((VALUES, PLAYERS, len(seeds)))
        table[0], table[1] = -places[:2], rules.REST
        table[4], table[5] = (ball_x, -ball_x), rules.DROP_HEIGHT
        self.table[:, :, copies] = table
        self.last_hit[copies] = NOBODY
        self.look()

    def look(self) -> None:
        """See anew where the balls are, after the table was written from outside."""
        away = self._ball - self._racket
        self._face = np.copysign(1, (away * _NORMAL).sum(0))
        self._left = self._ball[0, 0] < 0

    def play(self, action: Array) -> Points:
        """One decision step. `action` is (2 actions, 2 players, n), in [-1, 1]."""
        self._over, self._missed = np.zeros_like(self._over), np.zeros_like(self._missed)
        self._move_rackets(*action)
        for _ in range(rules.PHYSICS_STEPS):
            before = self._ball[:, 0].copy()
            self._advance()
            self._hit()
            self._judge(before)
        if self._frozen:
            self._take_back()
        return Points(self._over, self._missed)

    def _take_back(self) -> None:
        """What came after a miss has not been."""
        for copies, table in self._frozen:
            self.table[:, :, copies] = table
        self._frozen.clear()
        self.look()

    # -- a physics step --------------------------------------------------------------------------

    def _move_rackets(self, run: Array, jump: Array) -> None:
        """Speeds for one decision step. Near its limits a racket is only as fast as takes it there."""
        x, y = self._racket
        fastest, slowest = ((limit - x) / rules.DECISION for limit in (rules.NEAREST, rules.REARMOST))
        vx, vy = self._racket_vel
        np.minimum(np.maximum(run * rules.SPEED, slowest), fastest, out=vx)
        vy[(jump > 0) & (y <= rules.REST)] = rules.JUMP

    def _advance(self) -> None:
        self._rising -= _LOST
        np.maximum(self._ball_vel, -rules.BALL_SPEED, out=self._ball_vel)
        np.minimum(self._ball_vel, rules.BALL_SPEED, out=self._ball_vel)
        np.multiply(self._vel, rules.PHYSICS_STEP, out=self._way)
        self._pos += self._way
        height, rising = self._racket[1], self._racket_vel[1]
        rising *= height > rules.REST  # who lands stands
        np.maximum(height, rules.REST, out=height)

    def _hit(self) -> None:
        """Find balls that came into a racket or through it, from whichever side they were on.

        Nothing passes unseen however fast it is: what counts is the side at the end of the step.
        """
        away = np.subtract(self._ball, self._racket, out=self._way[0])
        height, offset = (np.add(*np.multiply(away, way, out=self._way[1])) for way in (_NORMAL, _ALONG))
        self._height = height
        touching = height * self._face < rules.BALL_RADIUS
        touching &= np.abs(offset, out=offset) < rules.HALF_RACKET
        if np.count_nonzero(touching):
            self._bounce(*np.nonzero(touching))
        np.copysign(1, height, out=self._face)

    def _bounce(self, players: Array, copies: Array) -> None:
        """Turn balls back that come towards the racket they touch; a racket is too heavy to feel it."""
        normal = np.array(rules.NORMAL)[:, None]
        face = self._face[players, copies]
        relative = self._ball_vel[:, players, copies] - self._racket_vel[:, players, copies]
        closing = (relative * normal).sum(0)
        met = closing * face < 0
        players, copies, face, closing = players[met], copies[met], face[met], closing[met]
        outside = face * rules.BALL_RADIUS
        ball = self.table[4:, players, copies]
        ball[:2] += (outside - self._height[players, copies]) * normal
        ball[2:] -= (1 + rules.RESTITUTION) * closing * normal
        self.table[4:, players, copies] = ball
        ball[::2] *= -1
        self.table[4:, 1 - players, copies] = ball
        self._height[players, copies] = outside
        self.last_hit[copies] = players

    # -- points ----------------------------------------------------------------------------------

    def _judge(self, before: Array) -> None:
        """See who brought the ball over the net, and who made a mistake; `before` is where balls were (2, n)."""
        x, y = self._ball[:, 0]
        left = x < 0
        crossed = left != self._left
        if np.count_nonzero(crossed):
            self._cross(np.flatnonzero(crossed), before)
        self._left = left
        out = np.abs(x) > rules.COURT - rules.BALL_RADIUS
        down = y < rules.FLOOR + rules.BALL_RADIUS
        if np.count_nonzero(down):
            copies = np.flatnonzero(down)
            self._end(copies, np.where(left[copies], 0, 1))  # it was theirs to return
        if np.count_nonzero(out):
            copies = np.flatnonzero(out)
            self._end(copies, self.last_hit[copies])

    def _cross(self, copies: Array, before: Array) -> None:
        """A ball comes from the half of who hit it last: rackets do not reach over the net."""
        (x0, y0), (x1, y1) = before[:, copies], self._ball[:, 0, copies]
        height = y0 + (y1 - y0) * x0 / (x0 - x1)
        players = np.where(x0 < 0, 0, 1)
        netted = height < rules.NET_TOP + rules.BALL_RADIUS
        self._end(copies[netted], players[netted])
        good = ~(netted | self._missed[:, copies].any(0))
        self._over[players[good], copies[good]] += 1

    def _end(self, copies: Array, players: Array) -> None:
        """The first mistake ends the rally; everything stays as it is at that moment."""
        first = ~self._missed[:, copies].any(0)
        copies, players = copies[first], players[first]
        self._missed[players, copies] = True
        self._frozen.append((copies, self.table[:, :, copies]))
        self._ball[1, :, copies] = rules.DROP_HEIGHT  # out of the way for the rest of this step
