"""The particle physics of n copies at once: MPE2's own, in its order of operations.

Everything lies in one table, a row a number and a column a copy. What an agent sees is then a choice of
rows, and a step is a few operations on whole arrays, whatever the number of agents and copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from marlctl.records import Array

STEP = 0.1  # seconds
DAMPING = 0.25
STIFFNESS = 1e2
MARGIN = 1e-3  # how soft a contact begins
# So far from touching, a contact pushes with less than 1e-50: in float32, where observations are, nothing.
APART = 0.12

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Body:
    """An agent or a landmark, as physics sees it."""

    name: str = ""
    size: float = 0.05
    collides: bool = False
    accel: float = 5.0
    max_speed: float = inf
    mass: float = 1.0
    moves: bool = True
    words: int = 0  # numbers in what it says
    spread: float = 1.0  # episodes begin with it anywhere in [-spread, spread]


class World:
    """Bodies in n copies; agents come first. `kept` and `derived` are the scenario's own rows."""

    def __init__(
        self, agents: Sequence[Body], landmarks: Sequence[Body], n: int, kept: Shapes, derived: Shapes
    ) -> None:
        self.agents, self.bodies, self.n = tuple(agents), (*agents, *landmarks), n
        a, e = len(self.agents), len(self.bodies)
        kept = {"pos": (2, e), "vel": (2, a), **kept}
        # "delta" is where a body (last) is, seen from an agent (before it); "nothing" is a row of zeros.
        shapes = {**kept, **derived, "delta": (2, a, e), "distance": (a, e), "nothing": (1,)}
        self.kept = tuple(kept)
        self.table = np.zeros((sum(map(prod, shapes.values())), n))
        self.rows: dict[str, Array] = {}
        self._views: dict[str, Array] = {}
        start = 0
        for name, shape in shapes.items():
            place = slice(start, start := start + prod(shape))
            self.rows[name] = np.arange(place.start, place.stop).reshape(shape)
            self._views[name] = self.table[place].reshape(*shape, n)
        self.pos, self.vel = self["pos"], self["vel"]  # (2, bodies, n), (2, agents, n)
        self.delta, self.distance = self["delta"], self["distance"]  # (2, agents, bodies, n), (agents, bodies, n)
        self._squares = np.zeros_like(self.delta)
        self._there, self._here = self.pos[:, None], self.pos[:, :a, None]
        self._walking = self.pos[:, :a]
        self._prepare_motion()
        self._prepare_contacts()

    def __getitem__(self, name: str) -> Array:
        """The rows of that name, as a view of the table: (*shape, n)."""
        return self._views[name]

    def step(self, drive: Array) -> None:
        """Move everybody on; `drive` (2, agents, n) is what each agent does, before its acceleration."""
        np.multiply(drive, self._accel, out=self._force)
        if self._near is not None:
            self._collide()
        np.multiply(self.vel, STEP, out=self._way)
        self._walking += self._way  # with the velocity before this step, as MPE2 does
        self.vel *= 1 - DAMPING
        if self._mass is not None:
            self._force /= self._mass
        self._force *= STEP
        self.vel += self._force
        if self._limit is not None:
            self._slow_down(self._limit)

    def measure(self) -> None:
        """Bring the derived rows up to date, after bodies have moved."""
        np.subtract(self._there, self._here, out=self.delta)
        np.square(self.delta, out=self._squares)
        np.add(self._squares[0], self._squares[1], out=self.distance)
        np.sqrt(self.distance, out=self.distance)

    def _prepare_motion(self) -> None:
        def column(name: str) -> Array:
            return np.array([getattr(body, name) for body in self.agents])[:, None]  # (agents, 1)

        self._accel, mass, limit = column("accel"), column("mass"), column("max_speed")
        self._mass = mass if (mass != 1).any() else None
        self._limit = limit if np.isfinite(limit).any() else None
        self._force, self._way = np.zeros_like(self.vel), np.zeros_like(self.vel)

    def _prepare_contacts(self) -> None:
        a, n = len(self.agents), self.n
        size = np.array([body.size for body in self.bodies])
        solid = np.array([body.collides for body in self.bodies])
        self.touch = (size[:a, None] + size)[..., None]  # (agents, bodies, 1): the distance at which two touch
        meet = solid[:a, None] & solid & ~np.eye(a, len(size), dtype=bool)
        self._near = np.where(meet[..., None], self.touch + APART, -1.0) if meet.any() else None
        # For every number in `distance`: where its two touch, and whose force (in x) a contact changes.
        self._touch_of = np.broadcast_to(self.touch, self.distance.shape).ravel()
        whose = np.arange(a * n).reshape(a, 1, n)
        self._force_of = np.broadcast_to(whose, self.distance.shape).ravel()

    def _collide(self) -> None:
        """Push apart who overlaps. Pairs are in MPE2's order, so that the sums are its sums."""
        near = np.flatnonzero(self.distance < self._near)
        if not near.size:
            return
        distance = self.distance.reshape(-1).take(near)
        depth = np.logaddexp(0, (self._touch_of.take(near) - distance) / MARGIN)
        depth *= MARGIN
        push = self.delta.reshape(2, -1).take(near, axis=1)  # (2, contacts)
        push *= STIFFNESS
        push /= distance
        push *= depth
        force = self._force.reshape(2, -1)
        whose = self._force_of.take(near)
        np.subtract.at(force[0], whose, push[0])
        np.subtract.at(force[1], whose, push[1])

    def _slow_down(self, limit: Array) -> None:
        squares = np.square(self.vel, out=self._way)
        speed = np.sqrt(squares[0] + squares[1])
        fast = speed > limit
        if np.count_nonzero(fast):
            np.divide(self.vel, speed, out=self.vel, where=fast)
            np.multiply(self.vel, limit, out=self.vel, where=fast)
