"""A scenario of ma-gym as a PettingZoo environment."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
from pettingzoo import ParallelEnv

from marlctl.errors import ConfigError
from marlctl.records import Array
from marlctl.window import Window
from marlctl_magym.cage import registered

Numbers = dict[str, float]


class Scale(int):
    """A step limit that ma-gym divides by, for its clock, and never reaches.

    ma-gym calls everybody done when the time is up. With this as its limit, only those are done who have
    come to an end; the time is ours to watch.
    """

    def __le__(self, count: int) -> bool:  # ma-gym asks: count >= limit
        return False


class MaGymEnv(ParallelEnv[str, Array, int]):  # type: ignore[misc] # PettingZoo is untyped to us
    """ma-gym's own game, whose agents leave when they are done."""

    def __init__(self, name: str, kwargs: Mapping[str, Any], render_mode: str | None = None) -> None:
        self.metadata = {"name": name, "render_modes": ["human", "rgb_array"], "render_fps": 5}
        self.render_mode = render_mode
        self._registration, self._kwargs = registered()[name], kwargs
        self._window = Window(name, render_mode)
        self._random = Random()
        self._open()
        self.possible_agents = [f"agent_{i}" for i in range(self._game.n_agents)]
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> Any:
        return self._game.observation_space[self.possible_agents.index(agent)]

    def action_space(self, agent: str) -> Any:
        return self._game.action_space[self.possible_agents.index(agent)]

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Numbers]]:
        if seed is not None:
            # A new game: TrafficJunction shows routes of the last episode in the next.
            self._open()
            self._game.seed(seed)
            self._random = Random(seed)
        obs = self._drawing_from_ours().reset()
        self.agents = list(self.possible_agents)
        self._window.refresh(self._picture)
        return self._by_agent(obs), {agent: {} for agent in self.agents}

    def step(
        self, actions: Mapping[str, int]
    ) -> tuple[dict[str, Array], Numbers, dict[str, bool], dict[str, bool], dict[str, Numbers]]:
        acting = self.agents
        if not acting:
            return {}, {}, {}, {}, {}
        obs, rewards, dones, info = self._drawing_from_ours().step(self._choices(actions))
        places = {agent: self.possible_agents.index(agent) for agent in acting}
        late = self._limit is not None and self._game._step_count >= self._limit
        seen = self._by_agent(obs)
        ends = {agent: bool(dones[i]) for agent, i in places.items()}
        cuts = {agent: late and not ends[agent] for agent in acting}
        reward = {agent: float(rewards[i]) for agent, i in places.items()}
        infos = {agent: _numbers(info, i) for agent, i in places.items()}
        self.agents = [agent for agent in acting if not (ends[agent] or cuts[agent])]
        self._window.refresh(self._picture)
        return seen, reward, ends, cuts, infos

    def render(self) -> Array | None:
        return self._window.render(self._picture)

    def close(self) -> None:
        self._window.close()

    def _open(self) -> None:
        self._game = self._registration.game(**{**self._registration.kwargs, **self._kwargs})
        self._limit = getattr(self._game, "_max_steps", None)
        if self._limit is not None:
            self._limit = int(self._limit)
            self._game._max_steps = Scale(self._limit)

    def _drawing_from_ours(self) -> Any:
        """The game; where its module draws from Python's own generator, from now on it draws from ours."""
        names = type(self._game).step.__globals__
        if "random" in names:
            names["random"] = self._random
        return self._game

    def _picture(self) -> Array:
        return np.array(self._game.render(mode="rgb_array"))

    def _by_agent(self, obs: Any) -> dict[str, Array]:
        """What those see who take part."""
        sights = zip(self.possible_agents, obs, strict=True)
        return {agent: np.array(sight, np.float32) for agent, sight in sights if agent in self.agents}

    def _choices(self, actions: Mapping[str, int]) -> list[int]:
        for agent in self.agents:
            if agent not in actions:
                raise ConfigError(f"there is no action for {agent}, who is still playing")
            if not self.action_space(agent).contains(actions[agent]):
                allowed = self.action_space(agent)
                raise ConfigError(f"action of {agent} is {actions[agent]!r}; it must be of {allowed}")
        # What those do who have left is ignored.
        return [int(actions[agent]) if agent in self.agents else 0 for agent in self.possible_agents]


def _numbers(info: Mapping[str, Any], agent: int) -> Numbers:
    """ma-gym's info as numbers: of a list how many are true, of a mapping by agent the agent's own."""
    found: Numbers = {}
    for name, value in info.items():
        if isinstance(value, list):
            found[name] = float(sum(value))
        elif not isinstance(value, dict):
            found[name] = float(value)
        elif agent in value:
            found[name] = float(value[agent])
        else:
            found |= {f"{name}_{kind}": float(number) for kind, number in value.items()}
    return found
