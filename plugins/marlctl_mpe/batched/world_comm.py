"""Predator and prey with food, forests to hide in, and a leader who sees all and calls out."""

from __future__ import annotations

import numpy as np

from marlctl.records import Array
from marlctl_mpe.batched.hunt import outside, predator, prey, touches
from marlctl_mpe.batched.task import Task
from marlctl_mpe.batched.world import Body
from marlctl_mpe.scenarios import SimpleWorldComm


class WorldCommTask(Task):
    """The leader comes first, then the other adversaries; obstacles before food before forests."""

    options = frozenset({"num_good", "num_adversaries", "num_obstacles", "num_food", "num_forests", "factored_actions"})

    def __init__(self, options: SimpleWorldComm, n: int) -> None:
        first, a = options.num_adversaries, options.num_adversaries + options.num_good
        hunters = [predator("leadadversary_0", words=4), *(predator(f"adversary_{i}") for i in range(first - 1))]
        hunted = [prey(f"agent_{i}", size=0.045) for i in range(options.num_good)]
        landmarks = [
            *[Body(size=0.2, collides=True, spread=0.9)] * options.num_obstacles,
            *[Body(size=0.03, spread=0.9)] * options.num_food,
            *[Body(size=0.3, spread=0.9)] * options.num_forests,
        ]
        derived = {"shown": (2, a, a), "shown_vel": (2, a, options.num_good), "inside": (a, options.num_forests)}
        super().__init__([*hunters, *hunted], landmarks, n, derived=derived)
        self._first, self._redrawn = first, options.num_food + options.num_forests
        self.n_numbers += 2 * self._redrawn
        food = slice(a + options.num_obstacles, a + options.num_obstacles + options.num_food)
        distance, touch = self.world.distance, self.world.touch
        self._between, self._touch = distance[:first, first:a], touch[:first, first:a]  # (adversaries, prey, ·)
        self._to_food, self._touch_food = distance[first:a, food], touch[first:a, food]
        self._to_forests, self._touch_forests = distance[:, food.stop :], touch[:, food.stop :]
        self._prey = self.world.pos[:, first:a]

    def sees(self, agent: int) -> list[Array]:
        rows = self.world.rows
        others = [i for i in range(self.n_agents) if i != agent]
        moving = rows["shown_vel"][:, agent, [i - self._first for i in others if i >= self._first]]
        near = [self.own("vel", agent), self.own("pos", agent), self.landmarks(agent), rows["shown"][:, agent, others]]
        if agent < self._first:
            return [*near, moving, rows["inside"][agent], rows["said"][0]]
        return [*near, rows["inside"][agent], moving]

    def look(self) -> None:
        """Who is in a forest sees, and is seen by, only who is in it too; and the leader sees everybody."""
        world, a = self.world, self.n_agents
        inside = self._to_forests < self._touch_forests  # (agents, forests, n)
        world["inside"][...] = np.where(inside, 1.0, -1.0)
        in_the_open = ~inside.any(1)
        visible = (inside[:, None] & inside).any(2) | (in_the_open[:, None] & in_the_open)  # (agents, agents, n)
        visible[0] = True
        np.multiply(world.delta[:, :, :a], visible, out=world["shown"])
        np.multiply(world.vel[:, None, self._first :], visible[:, self._first :], out=world["shown_vel"])

    def reward(self) -> Array:
        self._touching = self._between < self._touch
        hunters, hunted = self.earned[: self._first], self.earned[self._first :]
        np.add.reduce(self._touching, axis=0, out=hunted, dtype=np.float64)  # by how many each is caught
        hunted *= 5
        np.minimum.reduce(self._between, axis=1, out=hunters)
        hunters *= -0.1
        hunters += np.add.reduce(hunted, axis=0)
        np.negative(hunted, out=hunted)
        hunted -= 2 * outside(self._prey)
        hunted += 2 * np.add.reduce(self._to_food < self._touch_food, axis=1)
        hunted -= 0.05 * np.minimum.reduce(self._to_food, axis=1)
        return self.earned

    def measures(self) -> dict[str, Array]:
        return {"touches": touches(self._touching, self.n_agents)}

    def _place(self, copies: Array, numbers: Array, choices: Array) -> None:
        """MPE2 places food and forests twice; the second time counts."""
        first = 2 * (self.n_drawn - self._redrawn)
        super()._place(copies, np.delete(numbers, np.s_[first : first + 2 * self._redrawn], axis=1), choices)
