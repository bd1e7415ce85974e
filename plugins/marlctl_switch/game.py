"""The rules, for n games at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from marlctl.records import Array
from marlctl_switch.grid import HOMES, MOVES, PLACES, STARTS, sights, ways

if TYPE_CHECKING:
    from marlctl_switch.scenario import Switch

ARRIVAL = 5.0  # the reward of the step that leads home


class Outcome(NamedTuple):
    """What a move of n games came to; all but `over` are (n, agents)."""

    alive: Array  # who took part
    reward: Array
    arrived: Array  # who came home with this move
    cut: Array  # who did not before the time was up
    over: Array  # (n,) games that have ended


class Game:
    """n games. Nothing in it is random; arrays that were handed out are never written to again."""

    def __init__(self, scenario: Switch, n: int) -> None:
        self._agents, self._n = scenario.n_agents, n
        self._full = scenario.full_observable
        self._limit = scenario.max_steps
        homes, starts = HOMES[: self._agents], STARTS[: self._agents]
        self._homes, self._starts = (np.array(cells)[:, None] for cells in (homes, starts))
        self._ways = np.concatenate([ways(home).ravel() for home in homes])
        self._first_way = np.arange(self._agents)[:, None] * len(PLACES) * MOVES
        self._sights = sights()
        # By the parts an agent has played in a step: none, taking part, coming home.
        self._rewards = np.array([0.0, scenario.step_cost, ARRIVAL])
        self._clock = (np.arange(self._limit + 1) / self._limit).astype(np.float32) if scenario.clock else None
        self.cells = np.repeat(self._starts, n, axis=1)  # (agents, n)
        self.time = np.zeros(n, np.int64)  # steps since the game began

    @property
    def obs_size(self) -> int:
        return (2 + (self._clock is not None)) * (self._agents if self._full else 1)

    @property
    def alive(self) -> Array:
        """Who is not home, (n, agents)."""
        away: Array = self.cells != self._homes
        return away.T

    def begin(self, copies: Array) -> None:
        """Put everybody at the start."""
        self.cells[:, copies] = self._starts
        self.time[copies] = 0

    def move(self, choices: Array) -> Outcome:
        """Everybody moves, one after the other, if nobody is in the way; `choices` is (agents, n)."""
        away = self.cells != self._homes
        goals = self._ways.take(self._first_way + self.cells * MOVES + choices)
        for own, goal in zip(self.cells, goals, strict=True):
            np.copyto(own, goal, where=~(self.cells == goal).any(0))
        self.time += 1
        still_away = self.cells != self._homes
        late = self.time >= self._limit
        arrived = away & ~still_away
        return Outcome(
            alive=_rows(away),
            reward=self._rewards.take(_rows(away.astype(np.int8) + arrived)),
            arrived=_rows(arrived),
            cut=_rows(still_away & late),
            over=late | ~still_away.any(0),
        )

    def look(self) -> Array:
        """What everybody would see, home or not: (n, agents, obs_size)."""
        places = self._sights.take(self.cells.T, axis=0)  # (n, agents, 2)
        if self._clock is not None:
            time = np.repeat(self._clock.take(self.time), self._agents).reshape(self._n, self._agents, 1)
            places = np.concatenate([places, time], axis=2)
        if self._full:
            places = np.repeat(places.reshape(self._n, 1, -1), self._agents, axis=1)
        return places


def _rows(by_agent: Array) -> Array:
    return np.ascontiguousarray(by_agent.T)
