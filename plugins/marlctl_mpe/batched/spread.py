"""Cooperative navigation: cover all landmarks without bumping into each other."""

from __future__ import annotations

import numpy as np

from marlctl.records import Array
from marlctl_mpe.batched.nearest import NEIGHBOURS, NearestTask
from marlctl_mpe.batched.world import Body
from marlctl_mpe.scenarios import SimpleSpread

COVERED = 0.1


class SpreadTask(NearestTask):
    """All share what the landmarks cost; each pays for its own collisions."""

    options = NEIGHBOURS | {"N", "local_ratio", "curriculum", "terminate_on_success"}

    def __init__(self, options: SimpleSpread, n: int) -> None:
        agents = [Body(f"agent_{i}", size=0.15, collides=True) for i in range(options.N)]
        super().__init__(options, agents, [Body()] * options.N, n)
        self._local, self._ends = options.local_ratio, options.terminate_on_success
        self._careless = options.curriculum  # MPE2's first stage, and none other is reached from here
        self._between, self._to_landmarks = np.split(self.world.distance, 2, axis=1)
        self._touch = self.world.touch[:, : options.N]

    def sees(self, agent: int) -> list[Array]:
        others = self.others(agent)
        silence = self.zeros(others.size)  # nobody speaks here, but there are two numbers for it
        return [self.own("vel", agent), self.own("pos", agent), self.landmarks(agent), others, silence]

    def reward(self) -> Array:
        self._gaps = np.minimum.reduce(self._to_landmarks, axis=0)  # (landmarks, n) to the nearest agent
        self._far = np.add.reduce(self._gaps, axis=0)
        shared = self._far * (self._local - 1)
        if self._careless:
            self.earned[:] = shared
        else:
            np.multiply(self._collisions(), -self._local, out=self.earned)
            self.earned += shared
        return self.earned

    def solved(self) -> Array | None:
        return (self._gaps < COVERED).all(0) if self._ends else None

    def measures(self) -> dict[str, Array]:
        collisions = self._collisions()
        all_alike = np.zeros_like(self.earned)
        return {
            "reward": -self._far - collisions,
            "collisions": collisions,
            "min_distance": all_alike + self._far,
            "occupied_landmarks": all_alike + (self._gaps < COVERED).sum(0),
        }

    def _collisions(self) -> Array:
        """With how many others every agent collides (agents, n)."""
        touching = self._between < self._touch
        count: Array = np.add.reduce(touching, axis=1, dtype=np.float64)
        return count - 1  # it touches itself
