"""n games of Switch as the core sees them."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from marlctl.errors import ConfigError
from marlctl.finite import check_joint
from marlctl.records import ActionSpec, AgentSpec, Array, EnvSpec, Joint, State, Step
from marlctl_switch.game import Game, Outcome
from marlctl_switch.grid import MOVES

if TYPE_CHECKING:
    from marlctl_switch.scenario import Switch


class Batched:
    """n copies in arrays. Seeds change nothing: every game begins alike."""

    def __init__(self, scenario: Switch, n: int) -> None:
        self.n, self._name, self._measured = n, scenario.name, scenario.measured
        self._game = Game(scenario, n)
        self.spec = EnvSpec(
            tuple(
                AgentSpec(f"agent_{i}", "agent", self._game.obs_size, ActionSpec("discrete", (MOVES,)))
                for i in range(scenario.n_agents)
            )
        )
        self._obs, self._scalar, self._action = self.spec.obs, self.spec.scalar, self.spec.action

    def reset(self, seeds: Sequence[int]) -> tuple[Joint, None]:
        self._game.begin(np.arange(self.n))
        return self._seen(self._game.look(), self._game.alive), None

    def step(self, action: Joint, seeds: Sequence[int]) -> Step:
        game = self._game
        moved = game.move(self._choices(action))
        diagnostics = self._diagnose(moved) if self._measured else {}
        sight = game.look()
        final = self._seen(sight, moved.alive)
        if np.count_nonzero(moved.over):
            game.begin(moved.over)
            sight = game.look()
        flags = self._scalar.joint
        return Step(
            self._seen(sight, game.alive),
            flags(moved.reward.astype(np.float32)),
            terminated=flags(moved.arrived),
            truncated=flags(moved.cut),
            alive=flags(moved.alive),
            final_obs=final,
            ended=moved.over,
            diagnostics=diagnostics,
        )

    def state(self) -> State:
        return {"cells": self._game.cells.copy(), "time": self._game.time.copy()}

    def load(self, state: State) -> tuple[Joint, None]:
        if {name: np.shape(array) for name, array in state.items()} != {k: v.shape for k, v in self.state().items()}:
            raise ConfigError(f"this state is not of {self.n} copies of {self._name}")
        self._game.cells[:], self._game.time[:] = state["cells"], state["time"]
        return self._seen(self._game.look(), self._game.alive), None

    def close(self) -> None:
        """Nothing is open."""

    def _choices(self, action: Joint) -> Array:
        """The moves (agents, n) that the actions stand for: of preferences, the greatest."""
        flat = np.asarray(action.array, np.float32)
        numbers = flat.reshape(-1)
        if not isfinite(numbers @ numbers):
            check_joint("action", self._action.joint(flat))
        moves: Array = flat.reshape(self.n, -1, MOVES).argmax(2)
        return moves.T

    def _seen(self, sight: Array, who: Array) -> Joint:
        """Who is not there is shown zeros."""
        return self._obs.joint((sight * who[..., None]).reshape(self.n, -1))

    def _diagnose(self, moved: Outcome) -> dict[str, Joint]:
        measures = {"home": moved.arrived, "steps": moved.alive}
        return {name: self._scalar.joint(np.where(moved.alive, m, np.nan)) for name, m in measures.items()}
