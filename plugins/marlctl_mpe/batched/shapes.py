"""The two scenarios whose agents take their places in a figure: a circle, or a line."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from marlctl.records import Array
from marlctl_mpe.batched.task import Task
from marlctl_mpe.batched.world import Body
from marlctl_mpe.scenarios import SimpleFormation, SimpleLine

RADIUS = 0.5  # of the circle
LENGTH = 1.25  # of the line
TURN = np.radians(5)
IN_PLACE = 0.05
FEW = 5  # so many agents can be assigned to places by trying everything


class FigureTask(Task):
    """Everybody earns minus the mean distance to the places, under the best assignment."""

    options = frozenset({"N", "terminate_on_success"})

    def __init__(self, options: SimpleFormation | SimpleLine, landmarks: list[Body], n: int, *, size: float) -> None:
        agents = [Body(f"agent_{i}", size=size, collides=True) for i in range(options.N)]
        super().__init__(agents, landmarks, n, kept={"figure": (2, options.N)})
        self._ends = options.terminate_on_success
        self._ways = np.array(list(permutations(range(options.N)))) if options.N <= FEW else None

    def sees(self, agent: int) -> list[Array]:
        return [self.own("vel", agent), self.own("pos", agent), self.landmarks(agent)]

    def reward(self) -> Array:
        x, y = self.world.pos[:, : self.n_agents, None] - self.world["figure"][:, None]
        self._missing = self._assigned(np.sqrt(x * x + y * y))
        self.earned[:] = -np.minimum(self._missing, 2).mean(0)
        return self.earned

    def solved(self) -> Array | None:
        return np.all(self._missing < IN_PLACE, axis=0) if self._ends else None

    def _assigned(self, distance: Array) -> Array:
        """How far every agent (agents, n) is from its place, from all distances (agents, places, n)."""
        if self._ways is None:
            from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped] # noqa: PLC0415

            best = np.array([linear_sum_assignment(distance[..., copy])[1] for copy in range(self.world.n)]).T
        else:
            tried = distance[np.arange(self.n_agents), self._ways].sum(1)  # (ways, n)
            best = self._ways[tried.argmin(0)].T  # (agents, n)
        assigned: Array = np.take_along_axis(distance, best[:, None], axis=1)[:, 0]
        return assigned


class FormationTask(FigureTask):
    """A circle around the landmark, that begins where the agent of the smallest angle is."""

    def __init__(self, options: SimpleFormation, n: int) -> None:
        super().__init__(options, [Body(size=0.03, spread=0.5)], n, size=0.05)
        self._apart = np.arange(options.N)[:, None] * (2 * np.pi / options.N)

    def happen(self) -> None:
        x, y = self.world.delta[:, :, -1]  # of the landmark, seen from the agents
        angle = np.arctan2(-y, -x)
        angle[angle < 0] += 2 * np.pi
        angles = angle.min(0) + self._apart  # (agents, n)
        figure = self.world["figure"]
        np.cos(angles, out=figure[0])
        np.sin(angles, out=figure[1])
        figure *= RADIUS
        figure += self.world.pos[:, -1:]


class LineTask(FigureTask):
    """A line from the first landmark to the second."""

    def __init__(self, options: SimpleLine, n: int) -> None:
        super().__init__(options, [Body(size=0.02, spread=0.25), Body(size=0.02)], n, size=0.03)
        self._along = np.arange(options.N)[:, None] * (LENGTH / max(options.N - 1, 1))
        self.n_numbers -= 1  # of the second landmark, only a direction is drawn

    def _place(self, copies: Array, numbers: Array, choices: Array) -> None:
        super()._place(copies, np.append(numbers, numbers[:, -1:], axis=1), choices)
        start = self.world.pos[:, self.n_agents, copies]  # (2, copies)
        angle = numbers[:, -1] * (2 * np.pi)
        end, heading = _end(start, angle)
        while (out := (np.abs(end) >= 1).any(0)).any():
            angle[out] += TURN
            end, heading = _end(start, angle)
        self.world.pos[:, -1, copies] = end
        self.world["figure"][..., copies] = start[:, None] + self._along * heading[:, None]


def _end(start: Array, angle: Array) -> tuple[Array, Array]:
    heading = np.stack([np.cos(angle), np.sin(angle)])
    return start + LENGTH * heading, heading
