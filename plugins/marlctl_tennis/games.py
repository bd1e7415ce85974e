"""n games as players meet them: frames in, actions checked, points turned into rewards, a limit on time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from marlctl.errors import ConfigError, DivergedError
from marlctl.records import Array, State
from marlctl_tennis import rules
from marlctl_tennis.court import PLAYERS, VALUES, Court, Points

NAMES = ("player_0", "player_1")
ACTIONS = 2  # run and jump
SEEN = rules.FRAMES * VALUES
ROUNDING = 1e-6  # by so much an action may lie outside its space


class Turn(NamedTuple):
    """What one step of n games gave."""

    points: Points
    reward: Array  # (n, 2)
    terminated: Array  # (n,) somebody missed
    truncated: Array  # (n,) the time is up


class Games:
    """n games. Arrays that were handed out are never written to again."""

    def __init__(self, n: int, length: int) -> None:
        self.n, self._length = n, length
        self.court = Court(n)
        self.frames = np.zeros((n, PLAYERS, rules.FRAMES, VALUES), np.float32)  # what the players see
        self.time = np.zeros(n, np.int64)

    @property
    def obs(self) -> Array:
        """What the players see, side by side (n, 48)."""
        return self.frames.reshape(self.n, -1)

    def begin(self, copies: Array, seeds: Sequence[int]) -> None:
        self.court.serve(copies, seeds)
        self.time[copies] = 0
        frames = self.frames.copy()
        frames[copies] = 0
        frames[copies, :, -1] = self.court.table[:, :, copies].T
        self.frames = frames

    def step(self, action: Array) -> Turn:
        """One step with the actions (n, 4), each player's run and jump."""
        points = self.court.play(_checked(action).reshape(self.n, PLAYERS, ACTIONS).T)
        frames = np.empty_like(self.frames)
        frames[:, :, :-1] = self.frames[:, :, 1:]
        frames[:, :, -1] = self.court.table.T
        self.frames = frames
        self.time += 1
        missed = points.missed[0] | points.missed[1]
        reward = (rules.OVER * points.over + rules.MISS * points.missed).T.astype(np.float32, order="C")
        return Turn(points, reward, missed, (self.time >= self._length) & ~missed)

    def state(self) -> State:
        court = self.court
        held = {"table": court.table, "last_hit": court.last_hit, "frames": self.frames, "time": self.time}
        return {name: array.copy() for name, array in held.items()}

    def load(self, state: State) -> None:
        here = {name: array.shape for name, array in self.state().items()}
        if {name: np.shape(array) for name, array in state.items()} != here:
            raise ConfigError(f"this state is not of {self.n} games of tennis")
        self.court.table[:], self.court.last_hit[:] = state["table"], state["last_hit"]
        self.court.look()
        self.frames, self.time[:] = np.array(state["frames"]), state["time"]


def _checked(action: Array) -> Array:
    """The actions within [-1, 1]; whoever acts outside is named."""
    numbers = np.asarray(action, np.float64)
    if not np.abs(numbers).max() <= 1:  # also where one is NaN
        for name, own in zip(NAMES, numbers.reshape(-1, PLAYERS, ACTIONS).swapaxes(0, 1), strict=True):
            _check(name, own)
    return np.minimum(np.maximum(numbers, -1), 1)


def _check(name: str, own: Array) -> None:
    if not np.isfinite(own).all():
        raise DivergedError(f"action of {name} is not finite")
    outside = own[np.abs(own).max(axis=1) > 1 + ROUNDING]
    if len(outside):
        raise ConfigError(f"action of {name} is {outside[0].tolist()}; both of its numbers must be in [-1, 1]")
