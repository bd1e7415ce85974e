"""From the vectors that learners give to forces and messages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import isfinite, prod
from typing import TYPE_CHECKING

import numpy as np

from marlctl.finite import check_joint
from marlctl.records import ActionSpec, Array, Joint
from marlctl_mpe.batched.world import Body

if TYPE_CHECKING:
    from marlctl_mpe.scenario import Scenario

MOVES = 5  # stay, left, right, down, up


class Hands:
    """How the agents of a scenario act.

    Forces and messages are sums of an action's numbers, whether those are a choice of one move and
    message, two choices or numbers in [0, 1]: so one matrix reads all actions of all copies.
    """

    def __init__(self, scenario: Scenario, agents: Sequence[Body], n: int) -> None:
        self.specs = [_spec(body, scenario) for body in agents]
        self._n, self._boxed = n, scenario.continuous_actions
        self._blocks = [size for spec in self.specs for size in spec.parts]
        self._forces = 2 * len(agents)
        self._matrix = _matrix(agents, self.specs)

    def read(self, action: Joint) -> tuple[Array, Array]:
        """The forces (2, agents, n) before acceleration, and the messages (words of all speakers, n)."""
        done = self._matrix @ self._numbers(action).T
        return done[: self._forces].reshape(2, -1, self._n), done[self._forces :]

    def _numbers(self, action: Joint) -> Array:
        """The actions (n, width), one-hot or in [0, 1]."""
        array: Array = np.asarray(action.array, np.float32)
        total = square_sum(array)
        if not isfinite(total):
            check_joint("action", action.layout.joint(array))
        if self._boxed:
            return np.minimum(np.maximum(array, 0), 1)
        # As many ones as choices: that is how it should be, and quickly seen.
        return array if total == self._n * len(self._blocks) else self._choose(array)

    def _choose(self, array: Array) -> Array:
        """Choices that came as preferences: the greatest of each block counts, as in `Copies`."""
        hard = np.zeros_like(array)
        for start, size in zip(accumulate(self._blocks, initial=0), self._blocks, strict=False):
            hard[np.arange(self._n), start + array[:, start : start + size].argmax(1)] = 1
        return hard


def square_sum(array: Array) -> float:
    """Finite where every number is (and none is huge); the quickest way to know."""
    flat = array.reshape(-1)
    return float(flat @ flat)


def _spec(body: Body, scenario: Scenario) -> ActionSpec:
    """How MPE2 lets such a body act."""
    parts = (MOVES,) * body.moves + (body.words,) * (body.words > 0)
    if scenario.continuous_actions:
        return ActionSpec("box", parts, (0.0,) * sum(parts), (1.0,) * sum(parts))
    return ActionSpec("discrete", parts if getattr(scenario, "factored_actions", False) else (prod(parts),))


def _matrix(agents: Sequence[Body], specs: Sequence[ActionSpec]) -> Array:
    """Rows: the forces in x of all agents, then in y, then the messages. Columns: the actions side by side."""
    said = 2 * len(agents)  # the row where the next message begins
    columns = []
    for i, (body, spec) in enumerate(zip(agents, specs, strict=True)):
        own = np.zeros((2 * len(agents) + sum(body.words for body in agents), spec.size), np.float32)
        both = body.moves and body.words and len(spec.parts) == 1  # one choice: move + 5 * message
        if body.moves:
            moves = own.reshape(len(own), -1, MOVES) if both else own[:, None, :MOVES]
            moves[i, :, 1:3] = moves[len(agents) + i, :, 3:5] = -1, 1
        if body.words:
            times = MOVES if both else 1
            own[said : said + body.words, -body.words * times :] = np.repeat(np.eye(body.words), times, axis=1)
            said += body.words
        columns.append(own)
    return np.hstack(columns)
