"""Scenarios whose agents may see only the nearest of the others and of the landmarks."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Protocol

import numpy as np

from marlctl.records import Array
from marlctl_mpe.batched.task import Task
from marlctl_mpe.batched.world import Body

NEIGHBOURS = frozenset({"num_agent_neighbors", "num_landmark_neighbors"})


class Sighted(Protocol):
    """The options of such a scenario; None is everybody."""

    @property
    def num_agent_neighbors(self) -> int | None: ...

    @property
    def num_landmark_neighbors(self) -> int | None: ...


class NearestTask(Task):
    """The nearest come first; places that nobody fills are zero."""

    def __init__(
        self, options: Sighted, agents: Sequence[Body], landmarks: Sequence[Body], n: int, *, goals: int = 0
    ) -> None:
        self.n_near, self.n_near_landmarks = options.num_agent_neighbors, options.num_landmark_neighbors
        derived = {}
        if self.n_near is not None:
            derived["near"] = derived["near_vel"] = (2, len(agents), self.n_near)
        if self.n_near_landmarks is not None:
            derived["near_landmarks"] = (2, len(agents), self.n_near_landmarks)
        super().__init__(agents, landmarks, n, goals=goals, derived=derived)
        self._itself = np.where(np.eye(self.n_agents, dtype=bool), inf, 0.0)[..., None]
        self._seen_vel = np.ones((self.n_agents, 1))  # 0 for those whose velocity is never seen

    def look(self) -> None:
        world, a = self.world, self.n_agents
        if self.n_near is not None:
            order = np.argsort(world.distance[:, :a] + self._itself, axis=1)[:, : min(self.n_near, a - 1)]
            _select(world.delta[:, :, :a], order, world["near"])
            moving = np.broadcast_to((world.vel * self._seen_vel)[:, None], (2, a, a, world.n))
            _select(moving, order, world["near_vel"])
        if self.n_near_landmarks is not None:
            order = np.argsort(world.distance[:, a : self.n_drawn], axis=1)[:, : self.n_near_landmarks]
            _select(world.delta[:, :, a : self.n_drawn], order, world["near_landmarks"])

    def others(self, agent: int) -> Array:
        return super().others(agent) if self.n_near is None else self.own("near", agent)

    def landmarks(self, agent: int) -> Array:
        return super().landmarks(agent) if self.n_near_landmarks is None else self.own("near_landmarks", agent)


def _select(seen: Array, order: Array, into: Array) -> None:
    into[:, :, : order.shape[1]] = np.take_along_axis(seen, order[None], axis=2)
