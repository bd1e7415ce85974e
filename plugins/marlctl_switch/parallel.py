"""One game of Switch as a PettingZoo environment."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from marlctl.errors import ConfigError, DivergedError
from marlctl.records import Array
from marlctl.window import Window
from marlctl_switch.game import Game
from marlctl_switch.grid import MOVES, PLACES
from marlctl_switch.picture import draw

if TYPE_CHECKING:
    from marlctl_switch.scenario import Switch

Numbers = dict[str, float]


class SwitchEnv(ParallelEnv[str, Array, int]):  # type: ignore[misc] # PettingZoo is untyped to us
    """Agents leave as they come home; the others play on."""

    def __init__(self, scenario: Switch, render_mode: str | None = None) -> None:
        self.metadata = {"name": scenario.name, "render_modes": ["human", "rgb_array"], "render_fps": 5}
        self.render_mode = render_mode
        self._game = Game(scenario, 1)
        self._window = Window(scenario.name, render_mode)
        self.possible_agents = [f"agent_{i}" for i in range(scenario.n_agents)]
        self.agents: list[str] = []
        size = self._game.obs_size
        self._sees = {agent: spaces.Box(0, 1, (size,), np.float32) for agent in self.possible_agents}
        self._acts = {agent: spaces.Discrete(MOVES) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Box:
        return self._sees[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        return self._acts[agent]

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Numbers]]:
        """Begin a game; there is nothing random in it for a seed to change."""
        self._game.begin(np.array([0]))
        self.agents = list(self.possible_agents)
        self._window.refresh(self._picture)
        return self._look(), {agent: {} for agent in self.agents}

    def step(
        self, actions: Mapping[str, int]
    ) -> tuple[dict[str, Array], Numbers, dict[str, bool], dict[str, bool], dict[str, Numbers]]:
        acting = self.agents
        if not acting:
            return {}, {}, {}, {}, {}
        moved = self._game.move(self._choices(actions))
        given = self._by_agent
        arrived, cut = given(moved.arrived[0].tolist()), given(moved.cut[0].tolist())
        obs, reward = self._look(), given(moved.reward[0].tolist())
        infos = {agent: {"home": float(arrived[agent]), "steps": 1.0} for agent in acting}
        self.agents = [agent for agent in acting if not (arrived[agent] or cut[agent])]
        self._window.refresh(self._picture)
        return obs, reward, arrived, cut, infos

    def render(self) -> Array | None:
        return self._window.render(self._picture)

    def state(self) -> Array:
        """All that everybody sees, also of who is home."""
        return self._game.look().reshape(-1)

    def close(self) -> None:
        self._window.close()

    def _picture(self) -> Array:
        return draw([PLACES[cell] for cell in self._game.cells[:, 0]])

    def _look(self) -> dict[str, Array]:
        return self._by_agent(list(self._game.look()[0]))

    def _by_agent(self, values: list[Any]) -> dict[str, Any]:
        """Of those who take part."""
        return {a: value for a, value in zip(self.possible_agents, values, strict=True) if a in self.agents}

    def _choices(self, actions: Mapping[str, int]) -> Array:
        for agent in self.agents:
            if agent not in actions:
                raise ConfigError(f"there is no action for {agent}, who is still playing")
        chosen = [_choice(a, actions[a]) if a in self.agents else 0 for a in self.possible_agents]
        return np.array(chosen)[:, None]


def _choice(agent: str, action: Any) -> int:
    number = np.asarray(action)
    if number.shape == () and number.dtype.kind in "iuf":
        if not isfinite(number):
            raise DivergedError(f"action of {agent} is not finite: {action}")
        if number == int(number) and 0 <= number < MOVES:
            return int(number)
    raise ConfigError(f"action of {agent} is {action!r}; it must be a whole number from 0 to {MOVES - 1}")
