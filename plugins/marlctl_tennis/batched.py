"""n games of tennis as the core sees them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marlctl.records import ActionSpec, AgentSpec, Array, EnvSpec, Joint, State, Step
from marlctl_tennis.games import ACTIONS, NAMES, SEEN, Games

TEAM = "player"  # one team: who wants points needs somebody who plays the ball back


class Batched:
    """n copies that reset themselves. What a step returns is never written to again."""

    def __init__(self, n: int, length: int, *, measured: bool) -> None:
        self.n, self._measured = n, measured
        self._games = Games(n, length)
        acts = ActionSpec("box", (ACTIONS,), (-1.0,) * ACTIONS, (1.0,) * ACTIONS)
        self.spec = EnvSpec(tuple(AgentSpec(name, TEAM, SEEN, acts) for name in NAMES))
        self._obs, self._scalar = self.spec.obs, self.spec.scalar
        self._everybody = self._scalar.joint(np.ones((n, len(NAMES)), bool))
        self._everybody.array.flags.writeable = False  # all steps share it

    def reset(self, seeds: Sequence[int]) -> tuple[Joint, None]:
        self._games.begin(np.arange(self.n), seeds)
        return self._seen(), None

    def step(self, action: Joint, seeds: Sequence[int]) -> Step:
        turn = self._games.step(action.array)
        final = self._seen()
        ended = turn.terminated | turn.truncated
        over = np.flatnonzero(ended)
        if over.size:
            self._games.begin(over, [seeds[copy] for copy in over.tolist()])
        measures = {}
        if self._measured:
            rally = turn.points.over.sum(0, keepdims=True).repeat(len(NAMES), axis=0)
            measures = {"rally": rally, "misses": turn.points.missed.astype(np.float64)}
        return Step(
            self._seen(),
            self._scalar.joint(turn.reward),
            self._flags(turn.terminated),
            self._flags(turn.truncated),
            alive=self._everybody,
            final_obs=final,
            ended=ended,
            diagnostics={name: self._scalar.joint(np.ascontiguousarray(m.T)) for name, m in measures.items()},
        )

    def state(self) -> State:
        return self._games.state()

    def load(self, state: State) -> tuple[Joint, None]:
        self._games.load(state)
        return self._seen(), None

    def close(self) -> None:
        """Nothing is open."""

    def _seen(self) -> Joint:
        return self._obs.joint(self._games.obs)

    def _flags(self, copies: Array) -> Joint:
        return self._scalar.joint(copies[:, None].repeat(len(NAMES), axis=1))
