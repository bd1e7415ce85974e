"""How the authors of a task judge an episode, and when they call the task solved."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Any

import numpy as np

from marlctl.contracts import Environment, has_score
from marlctl.episodes import Scenario, guarded
from marlctl.errors import PluginError
from marlctl.records import Array, State

SOLVED_OVER = 100  # episodes, unless the scenario says otherwise


@dataclass(frozen=True)
class Task:
    """What an episode is judged by: the scenario's own score, or the total return where it has none."""

    environment: Any  # contracts.Environment
    own_score: bool
    solved_at: float | None  # the mean that counts as solved
    solved_over: int  # episodes that mean is over

    @property
    def measure(self) -> str:
        return "score" if self.own_score else "total return"

    def judge(self, returns: Array) -> Array:
        """One number an episode, from returns (episodes, agents)."""
        if not self.own_score:
            return np.asarray(returns.sum(-1), float)
        scenario = Scenario(type(self.environment))
        scores = guarded(scenario, "score", lambda: np.asarray(self.environment.score(returns.copy()), float))
        if scores.shape != returns.shape[:-1] or not np.isfinite(scores).all():
            what = f"numbers of shape {scores.shape}" if scores.shape != returns.shape[:-1] else "what is not finite"
            raise PluginError(
                f"the score of {scenario} must be one finite number an episode; "
                f"for returns of shape {returns.shape} (episodes, agents) it gave {what}"
            )
        return scores


def task_of(environment: Environment, n_agents: int) -> Task | None:
    """The scenario's task, checked by trying its score; None where it only has returns."""
    own, at = has_score(environment), getattr(environment, "solved_at", None)
    over = getattr(environment, "solved_over", SOLVED_OVER)
    if not own and at is None:
        return None
    if not (at is None or (isinstance(at, int | float) and isfinite(at))) or not (isinstance(over, int) and over > 0):
        raise PluginError(
            f"{Scenario(type(environment))}: solved_at must be a number and solved_over a number of episodes, "
            f"not {at!r} and {over!r}"
        )
    task = Task(environment, own, at, over)
    task.judge(np.zeros((n_agents + 1, n_agents)))  # not square: a score over the wrong axis shows
    return task


@dataclass(frozen=True)
class Standing:
    """How near a run is to having solved its task."""

    task: Task
    mean: float  # of the last training episodes
    episodes: int  # that the mean is over
    solved: int  # the episode at which the mean first was there; 0: not yet


class Judge:
    """Judges training episodes as they end: the mean since the last row, and that of the last so many."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.sum, self.episodes = 0.0, 0  # since the last row
        self.last: deque[float] = deque(maxlen=task.solved_over)
        self.solved = 0

    def add(self, returns: Array, before: int) -> dict[str, Any] | None:
        """Take in episodes that came after `before` others; the row to write where they first solve the task."""
        found = None
        for number, score in enumerate(self.task.judge(returns).tolist(), before + 1):
            self.sum, self.episodes = self.sum + score, self.episodes + 1
            self.last.append(score)
            if not self.solved and self._there:
                self.solved = number
                found = {"episode": number, "mean": self.mean, "by": self.task.measure, "over": len(self.last)}
        return found

    @property
    def mean(self) -> float:
        return fsum(self.last) / len(self.last)

    @property
    def _there(self) -> bool:
        goal = self.task.solved_at
        return goal is not None and len(self.last) == self.last.maxlen and self.mean >= goal

    def row(self) -> dict[str, float]:
        """The mean score since the last row; then counting begins anew."""
        row = {"score": self.sum / self.episodes} if self.task.own_score and self.episodes else {}
        self.sum, self.episodes = 0.0, 0
        return row

    def standing(self) -> Standing | None:
        return Standing(self.task, self.mean, len(self.last), self.solved) if self.last else None

    def state(self) -> State:
        counts = {"sum": self.sum, "episodes": self.episodes, "solved": self.solved}
        return {**counts, "last": np.array(self.last, float)}

    def load(self, state: State) -> None:
        self.sum, self.episodes, self.solved = float(state["sum"]), int(state["episodes"]), int(state["solved"])
        self.last = deque(np.asarray(state["last"], float).tolist(), maxlen=self.task.solved_over)
