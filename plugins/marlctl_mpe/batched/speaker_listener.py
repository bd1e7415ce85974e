"""Cooperative communication: the speaker knows the landmark, only the listener can go there."""

from __future__ import annotations

import numpy as np

from marlctl.records import Array
from marlctl_mpe.batched.task import Task
from marlctl_mpe.batched.world import Body
from marlctl_mpe.scenarios import SimpleSpeakerListener

COLOURS = ((0.65, 0.15, 0.15), (0.15, 0.65, 0.15), (0.15, 0.15, 0.65))
REACHED = 0.1


class SpeakerListenerTask(Task):
    """Both earn minus the squared distance of the listener to the goal."""

    def __init__(self, options: SimpleSpeakerListener, n: int) -> None:
        agents = [Body("speaker_0", size=0.075, moves=False, words=3), Body("listener_0", size=0.075)]
        super().__init__(agents, [Body(size=0.04)] * 3, n, goals=1, palette=COLOURS)
        self._to_goal = self.world.distance[1, -1]  # (n,)

    def sees(self, agent: int) -> list[Array]:
        rows = self.world.rows
        if agent == 0:
            return [rows["colour"][0]]
        return [self.own("vel", agent), self.landmarks(agent), rows["said"][0]]

    def reward(self) -> Array:
        self.earned[:] = -np.square(self._to_goal)
        return self.earned

    def measures(self) -> dict[str, Array]:
        distance, reached = (np.full(self.earned.shape, np.nan) for _ in range(2))
        distance[1], reached[1] = self._to_goal, self._to_goal < REACHED
        return {"goal_distance": distance, "target_reached": reached}
