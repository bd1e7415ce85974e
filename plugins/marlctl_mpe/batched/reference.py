"""Each agent knows the other's landmark and has to tell it."""

from __future__ import annotations

import numpy as np

from marlctl.records import Array
from marlctl_mpe.batched.task import Task
from marlctl_mpe.batched.world import Body
from marlctl_mpe.scenarios import SimpleReference

COLOURS = ((0.75, 0.25, 0.25), (0.25, 0.75, 0.25), (0.25, 0.25, 0.75))


class ReferenceTask(Task):
    """The first goal is where agent 0 wants agent 1 to be, the second where agent 1 wants agent 0."""

    options = frozenset({"local_ratio", "factored_actions"})

    def __init__(self, options: SimpleReference, n: int) -> None:
        agents = [Body(f"agent_{i}", words=10) for i in range(2)]
        super().__init__(agents, [Body()] * 3, n, goals=2, palette=COLOURS)
        self._local = options.local_ratio
        self._to_goals = self.world.distance[:, self.n_drawn :]  # (agents, goals, n)

    def sees(self, agent: int) -> list[Array]:
        rows = self.world.rows
        return [self.own("vel", agent), self.landmarks(agent), rows["colour"][agent], rows["said"][1 - agent]]

    def reward(self) -> Array:
        np.negative(self._to_goals[1, 0], out=self.earned[0])
        np.negative(self._to_goals[0, 1], out=self.earned[1])
        shared = (self.earned[0] + self.earned[1]) / 2 * (1 - self._local)
        self.earned *= self._local
        self.earned += shared
        return self.earned
