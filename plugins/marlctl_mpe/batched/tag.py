"""Predator and prey: slow adversaries hunt faster agents around obstacles."""

from __future__ import annotations

import numpy as np

from marlctl.records import Array
from marlctl_mpe.batched.hunt import outside, predator, prey, touches
from marlctl_mpe.batched.nearest import NEIGHBOURS, NearestTask
from marlctl_mpe.batched.world import Body
from marlctl_mpe.scenarios import SimpleTag


class TagTask(NearestTask):
    """The adversaries come first, and share what any of them catches."""

    options = NEIGHBOURS | {"num_good", "num_adversaries", "num_obstacles", "curriculum", "terminate_on_success"}

    def __init__(self, options: SimpleTag, n: int) -> None:
        first = self._first = options.num_adversaries  # of the prey
        pace = 0.5 if options.curriculum else 1.0  # MPE2's first stage, and none other is reached from here
        hunters = [predator(f"adversary_{i}") for i in range(first)]
        hunted = [prey(f"agent_{i}", size=0.05, pace=pace) for i in range(options.num_good)]
        obstacles = [Body(size=0.2, collides=True, spread=0.9)] * options.num_obstacles
        super().__init__(options, [*hunters, *hunted], obstacles, n)
        self._ends = options.terminate_on_success
        self._seen_vel[:first] = 0
        self._between = self.world.distance[:first, first : self.n_agents]  # (adversaries, prey, n)
        self._touch = self.world.touch[:first, first : self.n_agents]
        self._prey = self.world.pos[:, first : self.n_agents]

    def sees(self, agent: int) -> list[Array]:
        prey = [i for i in range(self._first, self.n_agents) if i != agent]
        moving = self.world.rows["vel"][:, prey] if self.n_near is None else self.own("near_vel", agent)
        return [self.own("vel", agent), self.own("pos", agent), self.landmarks(agent), self.others(agent), moving]

    def reward(self) -> Array:
        self._touching = self._between < self._touch
        hunters, hunted = self.earned[: self._first], self.earned[self._first :]
        np.add.reduce(self._touching, axis=0, out=hunted, dtype=np.float64)  # by how many each is caught
        hunted *= 10
        hunters[:] = np.add.reduce(hunted, axis=0)
        np.negative(hunted, out=hunted)
        hunted -= outside(self._prey)
        return self.earned

    def solved(self) -> Array | None:
        return self._touching.any(0).all(0) if self._ends else None

    def measures(self) -> dict[str, Array]:
        return {"touches": touches(self._touching, self.n_agents)}
