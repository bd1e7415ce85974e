"""Physical deception: cover the target without showing which one it is."""

from __future__ import annotations

import numpy as np

from marlctl.records import Array
from marlctl_mpe.batched.nearest import NEIGHBOURS, NearestTask
from marlctl_mpe.batched.world import Body
from marlctl_mpe.scenarios import SimpleAdversary

COVERED = 0.16  # two landmark sizes


class AdversaryTask(NearestTask):
    """The adversary comes first, and does not see which landmark is the goal."""

    options = NEIGHBOURS | {"N"}

    def __init__(self, options: SimpleAdversary, n: int) -> None:
        agents = [Body(name, size=0.15) for name in ("adversary_0", *(f"agent_{i}" for i in range(options.N)))]
        super().__init__(options, agents, [Body(size=0.08)] * options.N, n, goals=1)
        self._to_goal = self.world.distance[:, -1]  # (agents, n)

    def sees(self, agent: int) -> list[Array]:
        known = [] if agent == 0 else [self.goal(agent)]
        return [*known, self.landmarks(agent), self.others(agent)]

    def reward(self) -> Array:
        np.negative(self._to_goal[0], out=self.earned[0])
        self.earned[1:] = self._to_goal[0] - self._to_goal[1:].min(0)
        return self.earned

    def measures(self) -> dict[str, Array]:
        return {"goal_distance": self._to_goal, "target_reached": self._to_goal < COVERED}
