"""Playing: a policy acts in n copies of an environment, one step of all copies at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from marlctl.contracts import BatchedEnv, Policy
from marlctl.errors import DivergedError, PluginError
from marlctl.records import Acts, Array, EnvSpec, Joint, Mode, State, Step
from marlctl.seeding import episode_seed, load_rng, rng_state


@dataclass(frozen=True)
class Played:
    """One step of every copy: what was seen, done, and what came of it."""

    obs: Joint
    mask: Joint | None
    acts: Acts
    step: Step


@dataclass(frozen=True)
class Episodes:
    """Episodes that ended in a step."""

    copies: Array  # (episodes,) the copy each was played in
    returns: Array  # (episodes, agents)
    lengths: Array  # (episodes,)


class Player:
    """Keeps the open episodes of n copies: what is seen, what is carried, what was earned so far."""

    def __init__(
        self,
        env: BatchedEnv,
        policy: Policy,
        *,
        seed: int,
        mode: Mode,
        seed_of: Callable[[int, int, int], int] = episode_seed,
        whole: EnvSpec | None = None,
    ) -> None:
        """Play `policy` in `env`; returns are counted for the agents of `whole` where that is more than env.spec."""
        self.env, self.policy, self.seed, self.mode, self._seed_of = env, policy, seed, mode, seed_of
        n = env.n
        self.rng = np.random.Generator(np.random.PCG64(episode_seed(seed, -1, 0)))
        self.episode = np.zeros(n, np.int64)  # number of the episode each copy is in
        self.returns = np.zeros((n, (whole or env.spec).scalar.width))
        self.lengths = np.zeros(n, np.int64)
        self.carry: dict[str, Array] = {}
        self.time = {"acting": 0.0, "environment": 0.0}
        self.obs, self.mask = env.reset([seed_of(seed, copy, 0) for copy in range(n)])
        self._next_seeds = [seed_of(seed, copy, 1) for copy in range(n)]

    def step(self) -> tuple[Played, Episodes]:
        start = perf_counter()
        acts = self.policy.act(self.obs, self.carry, rng=self.rng, mode=self.mode, mask=self.mask)
        if not (isinstance(acts, Acts) and isinstance(acts.action, Joint)):
            raise PluginError(f"{type(self.policy).__name__}.act must return Acts(action), the action a Joint")
        if not np.isfinite(acts.action.array).all():
            agent = next(a for a in acts.action if not np.isfinite(acts.action[a]).all())
            raise DivergedError(f"the action of {agent} is not finite; a smaller learning rate may help")
        middle = perf_counter()
        step = self.env.step(acts.action, self._next_seeds)
        played = Played(self.obs, self.mask, acts, step)
        self.returns += (step.everyone or step.reward).array
        self.lengths += 1
        self.obs, self.mask = step.obs, step.mask
        self.carry = {name: array.copy() for name, array in acts.carry.items()}
        episodes = self._end(np.flatnonzero(step.ended))
        self.time["acting"] += middle - start
        self.time["environment"] += perf_counter() - middle
        return played, episodes

    def _end(self, copies: Array) -> Episodes:
        done = Episodes(copies, self.returns[copies], self.lengths[copies])
        if len(copies):
            self.returns[copies] = 0
            self.lengths[copies] = 0
            self.episode[copies] += 1
            for array in self.carry.values():
                array[copies] = 0
            for copy in copies:
                self._next_seeds[copy] = self._seed_of(self.seed, int(copy), int(self.episode[copy]) + 1)
        return done

    def state(self) -> State:
        return {
            "env": self.env.state(),
            "obs": self.obs.array,
            "rng": rng_state(self.rng),
            "episode": self.episode.copy(),
            "returns": self.returns.copy(),
            "lengths": self.lengths.copy(),
            "carry": self.carry,
        }

    def load(self, state: State) -> bool:
        """Go on where `state` was taken; False when the environment did not come back to what was seen."""
        self.obs, self.mask = self.env.load(state["env"])
        load_rng(self.rng, state["rng"])
        self.episode[:] = state["episode"]
        self.returns[:] = state["returns"]
        self.lengths[:] = state["lengths"]
        self.carry = {name: np.array(array) for name, array in state["carry"].items()}
        self._next_seeds = [self._seed_of(self.seed, c, int(e) + 1) for c, e in enumerate(self.episode)]
        return bool(np.array_equal(self.obs.array, state["obs"]))
