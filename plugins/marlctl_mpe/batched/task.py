"""What the batched scenarios have in common: how an episode begins, and the words for what agents see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from marlctl.records import Array, State
from marlctl_mpe.batched.world import Body, Shapes, World


class Task:
    """A scenario in n copies: who is there, what they see and what they earn.

    A goal is a landmark chosen at the start of an episode. It is one more body, last in the world and
    where the chosen one is, so that its distances are there like all others; `palette` is what it looks like.
    """

    options: ClassVar[frozenset[str]] = frozenset()  # those of the scenario that are known here

    def __init__(
        self,
        agents: Sequence[Body],
        landmarks: Sequence[Body],
        n: int,
        *,
        goals: int = 0,
        palette: Sequence[Sequence[float]] = (),
        kept: Shapes | None = None,
        derived: Shapes | None = None,
    ) -> None:
        self.n_agents, self.n_drawn = len(agents), len(agents) + len(landmarks)
        self.n_numbers, self.n_choices = 2 * self.n_drawn, goals  # to draw at the start of an episode
        self.speakers = [i for i, body in enumerate(agents) if body.words]
        self._palette = np.array(palette)  # (landmarks, colours)
        kept = dict(kept or {})
        if self.speakers:
            kept["said"] = (len(self.speakers), agents[self.speakers[0]].words)
        if palette:
            kept["colour"] = (goals, len(palette[0]))
        self.world = World(agents, [*landmarks, *[Body()] * goals], n, kept, derived or {})
        self.earned = np.zeros((self.n_agents, n))
        self._spread = np.array([body.spread for body in self.world.bodies[: self.n_drawn]])[:, None]

    # -- an episode --------------------------------------------------------------------------------

    def begin(self, copies: Array, seeds: Sequence[int]) -> None:
        """Start an episode in these copies, as MPE2 does with these seeds."""
        numbers = np.empty((len(seeds), self.n_numbers))
        choices = np.zeros((len(seeds), self.n_choices), np.int64)
        for some_numbers, some_choices, seed in zip(numbers, choices, seeds, strict=True):
            self._draw(np.random.Generator(np.random.PCG64(seed)), some_numbers, some_choices)
        for name in self.world.kept:
            self.world[name][..., copies] = 0
        self._place(copies, numbers, choices.T)

    def happen(self) -> None:
        """What happens beside physics, before rewards are given."""

    def look(self) -> None:
        """Fill derived rows, once everything has been measured."""

    def reward(self) -> Array:
        """What every agent earns in this step (agents, n); the array is used again."""
        raise NotImplementedError

    def solved(self) -> Array | None:
        """In which copies (n,) the task is done and the episode over; None where that is no end."""
        return None

    def measures(self) -> dict[str, Array]:
        """The scenario's own diagnostics, each (agents, n) and NaN for who has none."""
        return {}

    def state(self) -> State:
        return {name: self.world[name].copy() for name in self.world.kept}

    def load(self, state: State) -> None:
        for name in self.world.kept:
            self.world[name][...] = state[name]

    def _draw(self, rng: np.random.Generator, numbers: Array, choices: Array) -> None:
        """Draw the goals, then numbers in [0, 1) for where the bodies are."""
        for i in range(len(choices)):
            choices[i] = rng.integers(self.n_drawn - self.n_agents)
        rng.random(out=numbers)

    def _place(self, copies: Array, numbers: Array, choices: Array) -> None:
        """Make a world of what was drawn: (copies, numbers) and (choices, copies)."""
        places = (numbers.reshape(len(copies), -1, 2) * (2 * self._spread) - self._spread).T  # (2, bodies, copies)
        self.world.pos[:, : self.n_drawn, copies] = places
        if self.n_drawn < len(self.world.bodies):
            goals = np.take_along_axis(places, choices[None] + self.n_agents, axis=1)
            self.world.pos[:, self.n_drawn :, copies] = goals
        if self._palette.size:
            self.world["colour"][..., copies] = self._palette[choices].swapaxes(1, 2)

    # -- what agents see: rows of the world's table, in order; (2, several) is x and y of each ------

    def sees(self, agent: int) -> list[Array]:
        raise NotImplementedError

    def own(self, name: str, agent: int) -> Array:
        return self.world.rows[name][:, agent]

    def others(self, agent: int) -> Array:
        """The other agents, from where this one is."""
        return self.world.rows["delta"][:, agent, [i for i in range(self.n_agents) if i != agent]]

    def landmarks(self, agent: int) -> Array:
        return self.world.rows["delta"][:, agent, self.n_agents : self.n_drawn]

    def goal(self, agent: int) -> Array:
        return self.world.rows["delta"][:, agent, -1]

    def zeros(self, count: int) -> Array:
        return np.repeat(self.world.rows["nothing"], count)
