"""One environment and the episode it is in: who acts, who has left, and how to get here again."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

from pettingzoo import ParallelEnv

from marlctl.errors import MarlctlError, PluginError
from marlctl.plugins import owner
from marlctl.records import Array

Env: TypeAlias = "ParallelEnv[str, Any, Any]"
T = TypeVar("T")


@dataclass(frozen=True)
class Scenario:
    """Which scenario it is and whose, looked up only when there is something to complain about."""

    plugin: type

    def __str__(self) -> str:
        return f"{self.plugin.__name__} of {owner(self.plugin)}"


def guarded(scenario: object, doing: str, call: Callable[[], T]) -> T:
    """Whatever goes wrong in an environment becomes one PluginError."""
    try:
        return call()
    except MarlctlError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"{scenario} failed in its {doing}: {type(error).__name__}: {error}") from error


class Seen(NamedTuple):
    """What one environment shows, and to whom."""

    agents: Container[str]
    obs: Mapping[str, Any]
    infos: Mapping[str, Mapping[str, Any]]


class Moved(NamedTuple):
    """What a step of one environment gave; `reward` has exactly the agents that took part."""

    seen: Seen
    reward: Mapping[str, float]
    terminated: set[str]
    truncated: set[str]


class Copy:
    """One environment, and the episode it is in."""

    def __init__(self, env: Env, scenario: object, length: int | None) -> None:
        self._env, self._scenario, self._length = env, scenario, length
        self.seed = 0
        self.history: list[Array] = []  # the joint actions since the reset
        self.alive: tuple[str, ...] = ()  # who acts next
        self._gone: set[str] = set()

    def reset(self, seed: int) -> Seen:
        obs, infos = guarded(self._scenario, "reset", lambda: self._env.reset(seed=int(seed)))
        self.seed, self.history, self._gone = int(seed), [], set()
        self.alive = tuple(self._env.agents)
        if not self.alive:
            raise PluginError(f"{self._scenario} began an episode without agents")
        return Seen(self.alive, obs, infos)

    def step(self, joint: Array, actions: Mapping[str, Any]) -> Moved:
        self.history.append(joint)
        return guarded(self._scenario, "step", lambda: self._step(actions))

    def _step(self, actions: Mapping[str, Any]) -> Moved:
        acting = self.alive
        obs, reward, ends, cuts, infos = self._env.step({agent: actions[agent] for agent in acting})
        remaining = set(self._env.agents)
        truncated = {agent for agent in acting if cuts.get(agent, False)}
        # An agent that leaves without a word does not come back: that is an end.
        terminated = {a for a in acting if ends.get(a, False) or (a not in remaining and a not in truncated)}
        if self._length is not None and len(self.history) >= self._length:
            truncated.update(agent for agent in acting if agent not in terminated)
            remaining.clear()
        # Some environments go on listing agents whose end they have told.
        self._gone |= terminated | truncated
        self.alive = tuple(agent for agent in self._env.agents if agent in remaining and agent not in self._gone)
        rewards = {agent: float(reward.get(agent, 0)) for agent in acting}
        return Moved(Seen({*acting, *self.alive}, obs, infos), rewards, terminated, truncated)

    def close(self) -> None:
        guarded(self._scenario, "close", self._env.close)
