"""A batched scenario as the core sees it: actions in, observations and rewards out."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from marlctl.errors import ConfigError
from marlctl.finite import check_joint
from marlctl.records import AgentSpec, Array, EnvSpec, Joint, Layout, State, Step
from marlctl_mpe.batched.acting import Hands, square_sum
from marlctl_mpe.batched.task import Task

if TYPE_CHECKING:
    from marlctl_mpe.scenario import Scenario


class Batched:
    """n copies of a scenario in arrays. What a step returns is never written to again."""

    def __init__(self, scenario: Scenario, task: Task, n: int) -> None:
        self.n, self._task, self._world = n, task, task.world
        self._scenario, self._length, self._measured = scenario.name, scenario.max_cycles, scenario.measured
        agents = self._world.agents
        self._hands = Hands(scenario, agents, n)
        sights = [np.concatenate([part.T.ravel() for part in task.sees(agent)]) for agent in range(len(agents))]
        self.spec = EnvSpec(
            tuple(
                AgentSpec(body.name, scenario.team(body.name), len(sight), action)
                for body, sight, action in zip(agents, sights, self._hands.specs, strict=True)
            )
        )
        self._obs, self._scalar = self.spec.obs, self.spec.scalar
        self._sight = np.concatenate(sights)  # the rows of the world's table that all observations are made of
        self._seen = np.zeros((len(self._sight), n))
        self._time = np.zeros(n, np.int64)  # steps since the episode began
        self._everybody, self._nobody = (_constant(self._scalar, n, value) for value in (True, False))

    def reset(self, seeds: Sequence[int]) -> tuple[Joint, None]:
        self._begin(np.arange(self.n), seeds)
        return self._observe(), None

    def step(self, action: Joint, seeds: Sequence[int]) -> Step:
        self._move(action)
        reward = self._joint(self._task.reward(), np.float32)
        measures = self._task.measures() if self._measured else {}
        diagnostics = {name: self._joint(measure, np.float64) for name, measure in measures.items()}
        terminated, truncated, ended = self._ends()
        obs = final = self._observe()
        over = np.flatnonzero(ended)
        if over.size:
            self._begin(over, [seeds[copy] for copy in over.tolist()])
            obs = self._observe()
        return Step(
            obs,
            reward,
            terminated,
            truncated,
            alive=self._everybody,
            final_obs=final,
            ended=ended,
            diagnostics=diagnostics,
        )

    def state(self) -> State:
        return {"time": self._time.copy(), **self._task.state()}

    def load(self, state: State) -> tuple[Joint, None]:
        here = {name: array.shape for name, array in self.state().items()}
        if {name: np.shape(array) for name, array in state.items()} != here:
            raise ConfigError(
                f"this state is not of {self.n} copies of {self._scenario} as they are here; "
                "if it was saved with env.backend=mpe2, go on with that"
            )
        self._time[:] = state["time"]
        self._task.load(state)
        self._world.measure()
        return self._observe(), None

    def close(self) -> None:
        """Nothing is open."""

    def _begin(self, copies: Array, seeds: Sequence[int]) -> None:
        self._time[copies] = 0
        self._task.begin(copies, seeds)
        self._world.measure()

    def _move(self, action: Joint) -> None:
        forces, messages = self._hands.read(action)
        self._world.step(forces)
        if messages.size:
            self._world["said"].reshape(messages.shape)[...] = messages
        self._world.measure()
        self._task.happen()

    def _ends(self) -> tuple[Joint, Joint, Array]:
        """Who has come to an end, who to the time limit, and in which copies."""
        self._time += 1
        cut = self._time >= self._length
        solved = self._task.solved()
        if solved is None:
            return self._nobody, self._flags(cut), cut
        done = solved & ~cut  # as in MPE2, the time limit comes first
        return self._flags(done), self._flags(cut), cut | done

    def _flags(self, copies: Array) -> Joint:
        if not np.count_nonzero(copies):
            return self._nobody
        return self._scalar.joint(np.repeat(copies[:, None], self._scalar.width, axis=1))

    def _joint(self, rows: Array, dtype: type) -> Joint:
        return self._scalar.joint(rows.T.astype(dtype, order="C"))

    def _observe(self) -> Joint:
        self._task.look()
        self._world.table.take(self._sight, axis=0, out=self._seen, mode="clip")  # "raise" would copy once more
        obs: Array = self._seen.T.astype(np.float32, order="C")
        seen = self._obs.joint(obs)
        if not isfinite(square_sum(obs)):
            check_joint("observation", seen)
        return seen


def _constant(layout: Layout, n: int, value: bool) -> Joint:
    array = np.full((n, layout.width), value)
    array.flags.writeable = False  # many steps share it
    return layout.joint(array)
