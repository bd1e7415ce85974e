"""Small games that every algorithm must solve in seconds. Each asks for one thing a learner can get wrong.

    probe/matching   choose what you are shown                       (does it learn at all?)
    probe/delay      what pays comes a step after the choice         (does it look ahead?)
    probe/leaving    one agent is done at once, the other plays on   (does the end of one spoil the other?)
    probe/masked     the best action is often forbidden              (does it keep to the mask?)
    probe/pointing   give the number you are shown                   (Box actions)

A game's `solved_at` is the mean total return that counts as solved; the best possible is named beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from marlctl.errors import ConfigError
from marlctl.options import option, unknown
from marlctl.records import Array

Seen = dict[str, Array]
Outcome = tuple[Seen, dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]


class Game(ParallelEnv[str, Array, Any]):  # type: ignore[misc]
    """Two agents that each see a signal of three numbers and answer it for `max_cycles` steps."""

    metadata: ClassVar[dict[str, Any]] = {"name": "probe_v0", "render_modes": []}
    render_mode = None

    def __init__(self, max_cycles: int) -> None:
        self.possible_agents = ["agent_0", "agent_1"]
        self.agents: list[str] = []
        self.max_cycles = max_cycles
        self._see = spaces.Box(-1, 1, (4,), np.float32)
        self._act: spaces.Space[Any] = spaces.Discrete(3)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._see

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._act

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self._time = 0
        self._begin()
        return self._look(), self._infos()

    def _begin(self) -> None:
        self._signal = {agent: int(self._rng.integers(3)) for agent in self.possible_agents}

    def _look(self) -> Seen:
        clock = self._time / self.max_cycles
        return {a: np.array([*(np.arange(3) == self._signal[a]), clock], np.float32) for a in self.agents}

    def _infos(self) -> dict[str, Any]:
        return {agent: {} for agent in self.agents}

    def _pay(self, actions: dict[str, Any]) -> dict[str, float]:
        return {agent: float(actions[agent] == self._signal[agent]) for agent in self.agents}

    def _leaves(self, agent: str) -> bool:
        return False

    def step(self, actions: dict[str, Any]) -> Outcome:
        self._time += 1
        reward = self._pay(actions)
        gone = {agent: self._leaves(agent) for agent in self.agents}
        late = {agent: self._time >= self.max_cycles and not gone[agent] for agent in self.agents}
        self._begin()
        seen, infos = self._look(), self._infos()
        self.agents = [agent for agent in self.agents if not (gone[agent] or late[agent])]
        return seen, reward, gone, late, infos


class Delay(Game):
    """The choice at the first step pays at the second, where nothing can be done any more."""

    def _begin(self) -> None:
        if self._time == 0:
            super()._begin()

    def _look(self) -> Seen:
        chosen = {a: float(self._time > 0 and self._right[a]) for a in self.agents}
        return {
            a: np.array([*((np.arange(3) == self._signal[a]) * (self._time == 0)), chosen[a]], np.float32)
            for a in self.agents
        }

    def _pay(self, actions: dict[str, Any]) -> dict[str, float]:
        if self._time == 1:
            self._right = {a: bool(actions[a] == self._signal[a]) for a in self.agents}
            return dict.fromkeys(self.agents, 0.0)
        return {a: float(self._right[a]) for a in self.agents}

    def _leaves(self, agent: str) -> bool:
        return self._time == 2


class Leaving(Game):
    """The second agent is done after its first answer."""

    def _leaves(self, agent: str) -> bool:
        return agent == "agent_1"


class Masked(Game):
    """Higher actions pay more; which are allowed is drawn anew at each step."""

    def _begin(self) -> None:
        super()._begin()
        self._allowed = {agent: self._rng.permutation([1, 1, 0]).astype(np.int8) for agent in self.possible_agents}

    def _infos(self) -> dict[str, Any]:
        return {agent: {"action_mask": self._allowed[agent]} for agent in self.agents}

    def _pay(self, actions: dict[str, Any]) -> dict[str, float]:
        best = {agent: int(np.flatnonzero(self._allowed[agent]).max()) for agent in self.agents}
        forbidden = [a for a in self.agents if not self._allowed[a][int(actions[a])]]
        return {a: -5.0 if a in forbidden else float(actions[a] == best[a]) for a in self.agents}


class Pointing(Game):
    """Each agent is shown a place in [-1, 1] and points to it; a miss costs its square."""

    def __init__(self, max_cycles: int) -> None:
        super().__init__(max_cycles)
        self._act = spaces.Box(-1, 1, (1,), np.float32)

    def _begin(self) -> None:
        self._place = {agent: float(self._rng.uniform(-0.8, 0.8)) for agent in self.possible_agents}

    def _look(self) -> Seen:
        return {a: np.array([self._place[a], 0, 0, self._time / self.max_cycles], np.float32) for a in self.agents}

    def _pay(self, actions: dict[str, Any]) -> dict[str, float]:
        return {a: -float((actions[a][0] - self._place[a]) ** 2) for a in self.agents}


@dataclass(frozen=True)
class Probe:
    """A small game that every algorithm must solve."""

    max_cycles: int = option(5, "steps of an episode", low=1)
    game: ClassVar[type[Game]] = Game
    solved_at: ClassVar[float] = 9.0  # of 10

    def make(self, *, render_mode: str | None = None) -> Game:
        return self.game(self.max_cycles)


@dataclass(frozen=True)
class DelayProbe(Probe):
    game: ClassVar[type[Game]] = Delay
    solved_at: ClassVar[float] = 1.8  # of 2


@dataclass(frozen=True)
class LeavingProbe(Probe):
    game: ClassVar[type[Game]] = Leaving
    solved_at: ClassVar[float] = 5.4  # of 6


@dataclass(frozen=True)
class MaskedProbe(Probe):
    game: ClassVar[type[Game]] = Masked
    solved_at: ClassVar[float] = 9.0  # of 10


@dataclass(frozen=True)
class PointingProbe(Probe):
    game: ClassVar[type[Game]] = Pointing
    solved_at: ClassVar[float] = -0.25  # of 0; always pointing to the middle costs 2.1


PROBES: dict[str, type[Probe]] = {
    "matching": Probe,
    "delay": DelayProbe,
    "leaving": LeavingProbe,
    "masked": MaskedProbe,
    "pointing": PointingProbe,
}


def family(name: str) -> type[Probe]:
    """The probe of that name."""
    if name not in PROBES:
        raise ConfigError(unknown(f"probe/{name}", [f"probe/{known}" for known in PROBES], what="scenario"))
    return PROBES[name]
