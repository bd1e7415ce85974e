"""One game of tennis as a PettingZoo environment."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from marlctl.errors import ConfigError
from marlctl.records import Array
from marlctl.window import Window
from marlctl_tennis import rules
from marlctl_tennis.drawing import TRAIL, Scene, draw
from marlctl_tennis.games import ACTIONS, NAMES, SEEN, Games

FARTHEST = 20.0  # nothing on the court is farther away, nor faster


class TennisEnv(ParallelEnv[str, Array, Array]):  # type: ignore[misc] # PettingZoo is untyped to us
    """The same game as n copies in arrays, n = 1."""

    metadata = {  # noqa: RUF012 (PettingZoo's own form)
        "name": "tennis_v0",
        "render_modes": ["human", "rgb_array"],
        "render_fps": round(1 / rules.DECISION),
    }

    def __init__(self, max_cycles: int, render_mode: str | None = None) -> None:
        self.possible_agents = list(NAMES)
        self.agents: list[str] = []
        self.render_mode = render_mode
        self._window = Window("tennis", render_mode)
        self._games = Games(1, max_cycles)
        self._seeds = np.random.default_rng()
        self._sight = {name: spaces.Box(-FARTHEST, FARTHEST, (SEEN,), np.float32) for name in NAMES}
        self._acts = {name: spaces.Box(-1, 1, (ACTIONS,), np.float32) for name in NAMES}
        self._begin()

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._sight[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._acts[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, dict[str, Any]]]:
        if seed is None:
            seed = int(self._seeds.integers(2**63))
        else:
            self._seeds = np.random.default_rng(seed)  # whoever resets without a seed after this goes on from it
        self._games.begin(np.arange(1), [seed])
        self.agents = list(NAMES)
        self._begin()
        self._window.refresh(self._picture)
        return self._seen(), {name: {} for name in NAMES}

    def step(
        self, actions: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        if not self.agents:
            return {}, {}, {}, {}, {}
        turn = self._games.step(np.concatenate([_action(name, actions) for name in NAMES])[None])
        rally = float(turn.points.over.sum())
        self._rally += int(rally)
        self._earned += turn.reward[0]
        self._trail.append(self._ball())
        if turn.terminated[0] or turn.truncated[0]:
            self.agents = []
        self._window.refresh(self._picture)
        return (
            self._seen(),
            dict(zip(NAMES, turn.reward[0].tolist(), strict=True)),
            dict.fromkeys(NAMES, bool(turn.terminated[0])),
            dict.fromkeys(NAMES, bool(turn.truncated[0])),
            {n: {"rally": rally, "misses": float(m)} for n, m in zip(NAMES, turn.points.missed[:, 0], strict=True)},
        )

    def render(self) -> Array | None:
        return self._window.render(self._picture)

    def state(self) -> Array:
        """Everything both players see."""
        seen: Array = self._games.obs[0].copy()
        return seen

    def close(self) -> None:
        self._window.close()

    def _picture(self) -> Array:
        table = self._games.court.table[:, :, 0]
        rackets = tuple((sign * float(x), float(y)) for sign, (x, y) in zip((1, -1), table[:2].T, strict=True))
        return draw(Scene(rackets, tuple(self._trail), tuple(self._earned.tolist()), self._rally))

    def _begin(self) -> None:
        self._rally, self._earned = 0, np.zeros(len(NAMES))
        self._trail = deque([self._ball()], maxlen=TRAIL)

    def _ball(self) -> tuple[float, float]:
        x, y = self._games.court.table[4:6, 0, 0].tolist()
        return x, y

    def _seen(self) -> dict[str, Array]:
        return {name: seen.copy() for name, seen in zip(NAMES, self._games.obs.reshape(len(NAMES), -1), strict=True)}


def _action(name: str, actions: Mapping[str, Any]) -> Array:
    """A player's two numbers; whether they are allowed is for the game to say."""
    if name not in actions:
        raise ConfigError(f"there is no action for {name}, who is still playing")
    given: Array = np.asarray(actions[name])
    if given.shape != (ACTIONS,) or given.dtype.kind not in "fiu":
        raise ConfigError(f"action of {name} is {actions[name]!r}; it must be {ACTIONS} numbers in [-1, 1]")
    return given.astype(np.float64)
