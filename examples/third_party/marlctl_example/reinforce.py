"""REINFORCE (Williams, 1992) for each agent by itself, with a linear softmax policy, in numpy.

ascend   mean  A_t  d log pi(a_t | o_t) / d w        A_t: discounted return from t on, standardised
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marlctl import Acts, Batch, EnvSpec, Gradient, Rollout, option
from marlctl.records import Array, Metrics, Mode, State


@dataclass(frozen=True)
class Reinforce:
    """Independent REINFORCE with linear policies."""

    lr: float = option(6.0, "step size", above=0)
    gamma: float = option(0.95, "discount of future rewards", low=0, high=1)
    steps: int = option(16, "steps of every copy to learn from at once", low=1)

    @property
    def memory(self) -> Rollout:
        return Rollout(self.steps)

    def drives(self, spec: EnvSpec) -> str | None:
        """Why this algorithm cannot play such a game, or None when it can."""
        for agent in spec.agents:
            if agent.action.kind != "discrete" or len(agent.action.parts) > 1:
                return f"{agent.name} does not choose one of a few actions"
        return None

    def build(self, spec: EnvSpec, *, seed: int, device: str) -> ReinforceLearner:
        return ReinforceLearner(self, spec)


class ReinforceLearner:
    """One weight matrix an agent, from what it sees to a score for each action."""

    plays: Mode = "greedy"

    def __init__(self, options: Reinforce, spec: EnvSpec) -> None:
        self.options, self.spec, self.units = options, spec, spec.names
        self.w = {agent.name: np.zeros((agent.obs_size, agent.action.size)) for agent in spec.agents}

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
        for name, seen in obs.items():
            score = seen @ self.w[name]
            if mode != "greedy":
                score = score + rng.gumbel(size=score.shape)  # the largest is then a draw from the softmax
            if mask is not None:
                score = np.where(mask[name], score, -np.inf)
            joint[name][np.arange(rows), score.argmax(1)] = 1
        return Acts(joint)

    def gradients(self, units: Sequence[str], batch: Batch, round: int) -> dict[str, Gradient]:
        return {unit: self._gradient(unit, batch) for unit in units}

    def _gradient(self, unit: str, batch: Batch) -> Gradient:
        seen, action, alive = batch.obs[unit], batch.action[unit], batch.alive[unit]  # (time, copies, ...)
        mask = True if batch.mask is None else batch.mask[unit]
        score = np.where(mask, seen @ self.w[unit], -np.inf)
        odds = np.exp(score - score.max(-1, keepdims=True))
        odds /= odds.sum(-1, keepdims=True)
        value = returns(batch, unit, self.options.gamma)
        advantage = alive * (value - value.mean()) / (value.std() + 1e-8)
        slope = np.einsum("tns,tna->sa", seen, (odds - action) * advantage[..., None]) / advantage.size
        chosen = np.log((odds * action).sum(-1) + 1e-12)
        return Gradient(slope.ravel(), {"loss": float(-(advantage * chosen).mean())}, {"w": slice(0, slope.size)})

    def apply(self, gradients: Mapping[str, Gradient]) -> Metrics:
        for unit, gradient in gradients.items():
            self.w[unit] = self.w[unit] - self.options.lr * gradient.vector.reshape(self.w[unit].shape)
        return {}

    def weights(self) -> State:
        return {name: w.copy() for name, w in self.w.items()}

    def load_weights(self, weights: State) -> None:
        for name, w in self.w.items():
            if np.shape(weights[name]) != w.shape:
                raise ValueError(f"{name} has weights of shape {np.shape(weights[name])}, not {w.shape}")
        self.w = {name: np.array(weights[name]) for name in self.w}

    def state(self) -> State:
        return self.weights()  # there is no optimizer to remember

    def load(self, state: State) -> None:
        self.load_weights(state)


def returns(batch: Batch, unit: str, gamma: float) -> Array:
    """(time, copies): what was earned from each step to the end of its episode, or to the end of the batch."""
    reward, ended = batch.reward[unit], batch.terminated[unit] | batch.truncated[unit]
    value, rest = np.zeros_like(reward, dtype=np.float64), np.zeros(reward.shape[1])
    for t in reversed(range(len(reward))):
        value[t] = rest = reward[t] + gamma * ~ended[t] * rest
    return value
