"""One agent goes to one landmark."""

from __future__ import annotations

import numpy as np

from marlctl.records import Array
from marlctl_mpe.batched.task import Task
from marlctl_mpe.batched.world import Body
from marlctl_mpe.scenarios import Simple


class SimpleTask(Task):
    """Earns minus the squared distance."""

    def __init__(self, options: Simple, n: int) -> None:
        super().__init__([Body("agent_0")], [Body()], n)

    def sees(self, agent: int) -> list[Array]:
        return [self.own("vel", agent), self.landmarks(agent)]

    def reward(self) -> Array:
        np.square(self.world.distance[:, 1], out=self.earned)
        return np.negative(self.earned, out=self.earned)
