"""Keep-away: the adversary pushes the agent from a landmark that it has to guess."""

from __future__ import annotations

import numpy as np

from marlctl.records import Array
from marlctl_mpe.batched.task import Task
from marlctl_mpe.batched.world import Body
from marlctl_mpe.scenarios import SimplePush

LANDMARKS = ((0.1, 0.9, 0.1), (0.1, 0.1, 0.9))  # their colours
AGENT = ((0.25, 0.75, 0.25), (0.25, 0.25, 0.75))  # the agent's own, by its goal


class PushTask(Task):
    """The adversary comes first."""

    def __init__(self, options: SimplePush, n: int) -> None:
        agents = [Body("adversary_0", collides=True), Body("agent_0", collides=True)]
        super().__init__(agents, [Body()] * 2, n, goals=1, palette=AGENT, derived={"landmark_colours": (2, 3)})
        self.world["landmark_colours"][...] = np.array(LANDMARKS)[..., None]
        self._to_goal = self.world.distance[:, -1]  # (agents, n)

    def sees(self, agent: int) -> list[Array]:
        moving, landmarks, others = self.own("vel", agent), self.landmarks(agent), self.others(agent)
        if agent == 0:
            return [moving, landmarks, others]
        rows = self.world.rows
        colours = rows["landmark_colours"].ravel()
        return [moving, self.goal(agent), rows["colour"][0], landmarks, colours, others]

    def reward(self) -> Array:
        adversary, agent = self._to_goal
        np.subtract(agent, adversary, out=self.earned[0])
        np.negative(agent, out=self.earned[1])
        return self.earned
