"""A numpy-only algorithm and environment that start at once: for tests of everything but learning.

The grid has three agents that see, move, die early and are masked, so that a run with it walks every
path a real one does. The algorithm is a real learner in the small: linear policies pulled towards the
rewarded action, with an optimizer state that matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from marlctl.options import option
from marlctl.records import Acts, Array, Batch, EnvSpec, Gradient, Metrics, Mode, Replay, Rollout, State
from marlctl.seeding import stream


class Grid(ParallelEnv[str, Array, int]):  # type: ignore[misc]
    """Agents on a line walk to their own goals; one that arrives is done, the others go on."""

    metadata = {"name": "toy_grid_v0", "render_modes": ["rgb_array"]}  # noqa: RUF012 (PettingZoo's own form)

    def __init__(self, n_agents: int, size: int, max_cycles: int, render_mode: str | None = None) -> None:
        self.possible_agents = [f"agent_{i}" for i in range(n_agents)]
        self.agents: list[str] = []
        self.size, self.max_cycles, self.render_mode = size, max_cycles, render_mode
        self._see = spaces.Box(-1, 1, (3,), np.float32)
        self._move = spaces.Discrete(3)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._see

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._move

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self._time = 0
        self._at = {a: int(self._rng.integers(self.size)) for a in self.agents}
        self._goal = {a: int(self._rng.integers(self.size)) for a in self.agents}
        return self._seen(), self._infos()

    def _seen(self) -> dict[str, Array]:
        scale = max(1, self.size - 1)
        clock = self._time / self.max_cycles
        return {a: np.array([self._at[a] / scale, self._goal[a] / scale, clock], np.float32) for a in self.agents}

    def _infos(self) -> dict[str, Any]:
        """A step off the line is masked."""
        return {
            a: {"action_mask": np.array([1, self._at[a] > 0, self._at[a] < self.size - 1], np.int8)}
            for a in self.agents
        }

    def step(
        self, actions: dict[str, int]
    ) -> tuple[dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        self._time += 1
        for agent in self.agents:
            move = (0, -1, 1)[int(actions[agent])]
            self._at[agent] = min(max(self._at[agent] + move, 0), self.size - 1)
        arrived = {a: self._at[a] == self._goal[a] for a in self.agents}
        reward = {a: 1.0 if arrived[a] else -abs(self._at[a] - self._goal[a]) / self.size for a in self.agents}
        late = {a: self._time >= self.max_cycles and not arrived[a] for a in self.agents}
        seen, infos = self._seen(), self._infos()
        self.agents = [a for a in self.agents if not (arrived[a] or late[a])]
        return seen, reward, arrived, late, infos

    def render(self) -> Array:
        picture = np.full((20 * len(self.possible_agents), 20 * self.size, 3), 255, np.uint8)
        for row, agent in enumerate(self.possible_agents):
            for column, colour in ((self._goal[agent], (180, 220, 180)), (self._at[agent], (60, 90, 160))):
                picture[20 * row + 2 : 20 * row + 18, 20 * column + 2 : 20 * column + 18] = colour
        return picture


@dataclass(frozen=True)
class ToyGrid:
    """Agents on a line, each with a goal of its own."""

    n_agents: int = option(3, "agents on the line", low=1, high=50)
    size: int = option(7, "cells of the line", low=2, high=1000)
    max_cycles: int = option(12, "steps of an episode", low=1)

    def make(self, *, render_mode: str | None = None) -> Grid:
        return Grid(self.n_agents, self.size, self.max_cycles, render_mode)


@dataclass(frozen=True)
class Toy:
    """Linear policies learnt by reward-weighted regression, in numpy alone."""

    lr: float = option(0.1, "learning rate", above=0)
    momentum: float = option(0.9, "how much of the last step goes on", low=0, high=1)
    batch_size: int = option(32, "joint transitions an update", low=1)
    capacity: int = option(500, "joint transitions kept", low=1)
    warmup: int = option(50, "transitions before the first update", low=1)
    update_every: int = option(10, "environment steps an update", low=1)
    on_policy: bool = option(False, "learn from rollouts of update_every steps instead of a replay")

    @property
    def memory(self) -> Replay | Rollout:
        if self.on_policy:
            return Rollout(self.update_every)
        return Replay(self.capacity, self.batch_size, self.warmup, self.update_every)

    def drives(self, spec: EnvSpec) -> str | None:
        """Why this algorithm cannot drive such agents, or None when it can."""
        boxed = [agent.name for agent in spec.agents if agent.action.kind == "box"]
        return f"{boxed[0]} has Box actions, and it only chooses among actions" if boxed else None

    def build(self, spec: EnvSpec, *, seed: int, device: str) -> ToyLearner:
        return ToyLearner(self, spec, seed)


class ToyLearner:
    """One weight matrix an agent, from its observation to its action."""

    plays: Mode = "greedy"

    def __init__(self, options: Toy, spec: EnvSpec, seed: int) -> None:
        self.options, self.spec, self.seed = options, spec, seed
        self.units = spec.names
        self.w = {
            a.name: stream(seed, "init", a.name).normal(0, 0.01, (a.obs_size, a.action.size)) for a in spec.agents
        }
        self.speed = {name: np.zeros_like(w) for name, w in self.w.items()}

    def act(
        self,
        obs: Mapping[str, Array],
        carry: Mapping[str, Array],
        *,
        rng: np.random.Generator,
        mode: Mode,
        mask: Mapping[str, Array] | None = None,
    ) -> Acts:
        rows = len(next(iter(obs.values())))
        joint = self.spec.action.zeros(rows)
        count = carry.get("count", np.zeros(rows, np.int64)) + 1
        for name in obs:
            score = obs[name] @ self.w[name]
            if mode != "greedy":
                # Every other step of an episode is not explored, so that what is carried matters.
                score = score + rng.gumbel(size=score.shape) * (count % 2)[:, None]
            if mask is not None:
                score = np.where(mask[name], score, -np.inf)
            joint[name][np.arange(rows), score.argmax(1)] = 1
        return Acts(joint, {"count": count}, {"score": joint.array.sum(1)})

    def gradients(self, units: Sequence[str], batch: Batch, round: int) -> dict[str, Gradient]:
        found = {}
        for unit in units:
            obs, action = (x[unit].reshape(-1, x[unit].shape[-1]) for x in (batch.obs, batch.action))
            weight = (batch.reward[unit] * batch.alive[unit]).ravel()[:, None]
            error = action - obs @ self.w[unit]
            noise = stream(self.seed, "update", round, unit).normal(0, 1e-3, self.w[unit].shape)
            slope = -obs.T @ (weight * error) / len(obs) + noise
            loss = float((weight * error**2).mean())
            found[unit] = Gradient(slope.ravel(), {"loss": loss}, {"w": slice(0, slope.size)})
        return found

    def apply(self, gradients: Mapping[str, Gradient]) -> Metrics:
        for unit, gradient in gradients.items():
            slope = np.clip(gradient.vector.reshape(self.w[unit].shape), -1, 1)
            self.speed[unit] = self.options.momentum * self.speed[unit] - self.options.lr * slope
            self.w[unit] = 0.999 * (self.w[unit] + self.speed[unit])
        return {f"{unit}.w_norm": float(np.linalg.norm(w)) for unit, w in self.w.items()}

    def weights(self) -> State:
        return {name: w.copy() for name, w in self.w.items()}

    def load_weights(self, weights: State) -> None:
        for name, w in self.w.items():
            if weights[name].shape != w.shape:
                raise ValueError(f"{name} has weights of shape {weights[name].shape}, not {w.shape}")
        self.w = {name: np.array(weights[name]) for name in self.w}

    def state(self) -> State:
        return {"w": self.weights(), "speed": {name: s.copy() for name, s in self.speed.items()}}

    def load(self, state: State) -> None:
        self.load_weights(state["w"])
        self.speed = {name: np.array(state["speed"][name]) for name in self.speed}
