"""Two players on a line who want to meet: a small game that takes coordination.

Walking towards each other is not enough. Two neighbours who both step forward pass each other, and two
who both wait never meet: one has to learn to wait and the other to come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from marlctl import option
from marlctl.records import Array

MOVES = (0, -1, 1)  # wait, left, right
COLOURS = ((200, 80, 60), (60, 90, 160))


class RendezvousEnv(ParallelEnv[str, Array, int]):  # type: ignore[misc]
    """A plain PettingZoo environment; nothing in it knows of marlctl."""

    metadata = {"name": "rendezvous_v0", "render_modes": ["rgb_array"]}  # noqa: RUF012 (PettingZoo's own form)

    def __init__(self, size: int, max_cycles: int, render_mode: str | None = None) -> None:
        self.possible_agents = ["player_0", "player_1"]
        self.agents: list[str] = []
        self.size, self.max_cycles, self.render_mode = size, max_cycles, render_mode
        self._sight = spaces.Box(0, 1, (2 * size - 1,), np.float32)
        self._moves = spaces.Discrete(len(MOVES))

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._sight

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._moves

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self._time = 0
        self._at = self._rng.choice(self.size, size=2, replace=False)  # never in one place already
        return self._seen(), {agent: {} for agent in self.agents}

    def _seen(self) -> dict[str, Array]:
        """How far away the other one is, and on which side, as a one-hot vector."""
        away = int(self._at[1] - self._at[0])
        eye = np.eye(2 * self.size - 1, dtype=np.float32)
        return {"player_0": eye[self.size - 1 + away], "player_1": eye[self.size - 1 - away]}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        self._time += 1
        moves = [MOVES[actions[agent]] for agent in self.possible_agents]
        self._at = np.clip(self._at + moves, 0, self.size - 1)
        met = bool(self._at[0] == self._at[1])
        late = not met and self._time >= self.max_cycles
        reward = 1.0 if met else -0.1
        everybody = self.agents
        self.agents = [] if met or late else everybody
        return (
            self._seen(),
            dict.fromkeys(everybody, reward),
            dict.fromkeys(everybody, met),  # a true end
            dict.fromkeys(everybody, late),  # the clock ran out, which is not the same
            {agent: {} for agent in everybody},
        )

    def render(self) -> Array:
        picture = np.full((40, 40 * self.size, 3), 235, np.uint8)
        for place, top, colour in zip(self._at, (2, 21), COLOURS, strict=True):
            picture[top : top + 17, 40 * place + 4 : 40 * place + 36] = colour
        return picture


@dataclass(frozen=True)
class Rendezvous:
    """Two players on a line who want to meet."""

    size: int = option(7, "cells of the line", low=2, high=1000)
    max_cycles: int = option(15, "steps of an episode", low=1)

    def make(self, *, render_mode: str | None = None) -> RendezvousEnv:
        return RendezvousEnv(self.size, self.max_cycles, render_mode)
