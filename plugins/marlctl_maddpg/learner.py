"""The maths of MADDPG, for all agents at once: every tensor has the agents in its first dimension.

    y = r + gamma (1 - terminated) Q'(x', a'_1 .. a'_N)            a'_j drawn from target policy j
    critic:  mean (Q(x, a_1 .. a_N) - y)^2
    actor:  -mean Q(x, a_1 .. pi_i(o_i) .. a_N) + c mean logits^2

x is every agent's observation, or the agent's own for DDPG. Both losses read the networks as they
were before the update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from marlctl.nets import (
    MLP,
    Adam,
    Heads,
    Pass,
    Trace,
    Units,
    affine,
    clip_parts,
    gumbel,
    polyak,
    product,
)
from marlctl.records import Acts, Array, Batch, EnvSpec, Gradient, Metrics, Mode, State
from marlctl.seeding import stream
from marlctl_maddpg.views import Views

if TYPE_CHECKING:
    from marlctl_maddpg import MADDPG

NETWORKS = ("actor", "critic", "target_actor", "target_critic")
FIGURES = ("actor_loss", "critic_loss", "q")
ALL = slice(None)


class MADDPGLearner:
    """One actor, one critic and their targets for each agent."""

    plays: Mode = "greedy"

    def __init__(self, options: MADDPG, spec: EnvSpec, *, seed: int, device: str) -> None:
        self.options, self.spec, self.seed, self.device = options, spec, seed, device
        self.units = spec.names
        self.acted = 0  # environment steps explored, for the decay of the noise
        self.heads = Heads(
            self.units, [a.action for a in spec.agents], spec.action, soft=options.soft_actions, device=device
        )
        self.views = Views(spec, self._seen(), self.heads, device)
        hidden = (options.num_units,) * options.num_layers
        how = (options.activation, options.layer_norm)
        self.actor_shape = MLP((self.views.actor_inputs, *hidden, self.heads.size), *how)
        self.critic_shape = MLP((self.views.critic_inputs, *hidden, 1), *how)
        outputs = self.heads.used.sum((1, 2)).tolist()
        self.actor = self._init(self.actor_shape, "actor", self.views.actor_used, outputs)
        self.critic = self._init(self.critic_shape, "critic", self.views.critic_used, [1] * len(outputs))
        self.target_actor, self.target_critic = self.actor.clone(), self.critic.clone()
        self.actor_adam = Adam(self.actor, options.actor_lr or options.lr)
        self.critic_adam = Adam(self.critic, options.critic_lr or options.lr)

    def _seen(self) -> dict[str, list[str]]:
        """Whose observations and actions each agent's critic sees."""
        policy = {"adversary": self.options.adv_policy}
        local = {a.name for a in self.spec.agents if policy.get(a.team, self.options.good_policy) == "ddpg"}
        return {name: [name] if name in local else list(self.units) for name in self.units}

    def _init(self, shape: MLP, name: str, inputs: Sequence[int], outputs: Sequence[int]) -> Tensor:
        flat = [
            shape.init(stream(self.seed, "init", name, unit), inputs=i, outputs=o)
            for unit, i, o in zip(self.units, inputs, outputs, strict=True)
        ]
        return torch.from_numpy(np.stack(flat)).to(self.device)

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    # -- acting ---------------------------------------------------------------------------------

    @torch.no_grad()
    def act(
        self,
        obs: Mapping[str, Array],
        carry: Mapping[str, Array],
        *,
        rng: np.random.Generator,
        mode: Mode,
        mask: Mapping[str, Array] | None = None,
    ) -> Acts:
        joint = self._tensor(self.spec.obs.join(obs).array.astype(np.float32, copy=False))
        out = self.actor_shape(self.actor, self.views.own(joint, ALL))
        noise = None if mode == "greedy" else self._tensor(gumbel(rng.random(out.shape, np.float32)))
        action = self.heads.join(self.heads.action(out, ALL, noise=noise, mask=self._mask(mask, ALL))).cpu().numpy()
        kept: dict[str, Array] = {}
        if mode == "explore":
            action, kept = self._explore(action, carry, rng)
        return Acts(self.spec.action.joint(action), kept)

    def _explore(
        self, action: Array, carry: Mapping[str, Array], rng: np.random.Generator
    ) -> tuple[Array, dict[str, Array]]:
        """Add noise to Box actions; its drift is the carry."""
        o = self.options
        scale = max(o.noise_floor, o.noise_scale * o.noise_decay**self.acted)
        self.acted += len(action)
        if o.soft_actions or not self.heads.any_squashed:
            return action, {}
        drift = carry.get("drift", np.zeros_like(action))
        drift = (0.85 * drift if o.noise == "ou" else 0) + scale * rng.standard_normal(action.shape, np.float32)
        low, high, reach = self.bounds
        noisy = np.clip(action + drift * reach, low, high).astype(np.float32)
        return noisy, {"drift": drift.astype(np.float32)} if o.noise == "ou" else {}

    @cached_property
    def bounds(self) -> tuple[Array, Array, Array]:
        """Lowest and highest joint action, and half the way between; a choice gets no noise and no bound."""
        low, high, reach = (self.spec.action.zeros() for _ in range(3))
        for agent in self.spec.agents:
            box = agent.action.kind == "box"
            low[agent.name][:] = agent.action.low if box else -np.inf
            high[agent.name][:] = agent.action.high if box else np.inf
            reach[agent.name][:] = np.subtract(agent.action.high, agent.action.low) / 2 if box else 0
        return low.array, high.array, reach.array

    # -- learning -------------------------------------------------------------------------------

    @torch.no_grad()
    def gradients(self, units: Sequence[str], batch: Batch, round: int) -> dict[str, Gradient]:
        heads, u, rows = self.heads, self._pick(units), len(batch.obs.array)
        obs, next_obs, action = (self._tensor(x.array) for x in (batch.obs, batch.next_obs, batch.action))
        reward, ended, alive = (
            self._tensor(x.array.T.astype(np.float32))[u] for x in (batch.reward, batch.terminated, batch.alive)
        )
        weight = alive / alive.sum(1, keepdim=True).clamp(min=1)  # (units, rows): the dead do not count

        next_action = self._target_action(next_obs, batch, round)
        next_q = self.critic_shape(self.target_critic[u], self.views.judged(next_obs, next_action, u)).squeeze(2)
        goal = reward + self.options.gamma * (1 - ended) * next_q

        critic, seen = self.critic_shape.layers(self.critic[u]), self.views.judged(obs, action, u)
        hidden = affine(seen, *critic[0])
        taken = Trace(self.critic_shape, critic, hidden)
        q = taken.out.squeeze(2)
        error = q - goal
        critic_gradient = taken.parameters(seen, taken.back((2 * error * weight).unsqueeze(2)))

        policy = Pass(self.actor_shape, self.actor[u], self.views.own(obs, u))
        how: dict[str, Any] = {"noise": self._noise(u, rows, "actor", round), "mask": self._mask(batch.mask, u)}
        # With its own action in place of the one taken, only that much changes in the critic's first layer.
        change = heads.action(policy.out, u, **how) - heads.spread(action, u)
        action_weights = self.views.action_weights(critic[0][0], u)
        hoped = Trace(self.critic_shape, critic, torch.baddbmm(hidden, change, action_weights))
        value = hoped.out.squeeze(2)
        slope = product(hoped.back(-weight.unsqueeze(2))[0], action_weights.mT)
        # Without the penalty the logits saturate and the agent stops exploring.
        logits = self.options.logit_penalty * heads.share[u] * policy.out
        penalty = (logits * policy.out).sum(2)
        pull = heads.back(slope, policy.out, u, **how) + 2 * logits * weight.unsqueeze(2)
        actor_gradient = policy.gradient(pull)

        lengths = [*self.actor_shape.lengths, *self.critic_shape.lengths]
        gradient = torch.cat([actor_gradient, critic_gradient], dim=1).cpu().numpy()
        vectors = clip_parts(gradient, lengths, self.options.clip)
        figures = torch.stack([penalty - value, error.square(), q], dim=2) * weight.unsqueeze(2)
        return {
            unit: Gradient(vector, dict(zip(FIGURES, numbers, strict=True)), self._parts)
            for unit, vector, numbers in zip(units, vectors, figures.sum(1).tolist(), strict=True)
        }

    def _target_action(self, next_obs: Tensor, batch: Batch, round: int) -> Tensor:
        """Everybody's next action side by side: each critic's goal needs them all."""
        out = self.actor_shape(self.target_actor, self.views.own(next_obs, ALL))
        noise = self._noise(ALL, len(next_obs), "target", round)
        return self.heads.join(self.heads.action(out, ALL, noise=noise, mask=self._mask(batch.next_mask, ALL)))

    def _pick(self, units: Sequence[str]) -> Units:
        """All of them is a view; some are a copy."""
        if tuple(units) == self.units:
            return ALL
        return torch.tensor([self.units.index(unit) for unit in units], device=self.device)

    @cached_property
    def _shapes(self) -> tuple[MLP, MLP]:
        return self.actor_shape, self.critic_shape

    @cached_property
    def _parts(self) -> dict[str, slice]:
        parts, start = {}, 0
        for network, shape in zip(NETWORKS, self._shapes, strict=False):
            for name, length in zip(shape.shapes, shape.lengths, strict=True):
                parts[f"{network}.{name}"] = slice(start, start + length)
                start += length
        return parts

    def _mask(self, mask: Mapping[str, Array] | None, units: Units) -> Tensor | None:
        return None if mask is None else self.heads.spread(self._tensor(self.spec.action.join(mask).array), units)

    def _noise(self, units: Units, rows: int, purpose: str, round: int) -> Tensor | None:
        """Gumbel noise, each agent's own whoever else is at work, so that all who compute it get the same."""
        if self.heads.all_squashed:
            return None
        shape = (len(self.units), rows, self.heads.size)
        return self._tensor(gumbel(stream(self.seed, "update", round, purpose).random(shape, np.float32)))[units]

    @torch.no_grad()
    def apply(self, gradients: Mapping[str, Gradient]) -> Metrics:
        flat = self._tensor(np.stack([gradients[unit].vector for unit in self.units]))
        actor, critic = torch.split(flat, [shape.size for shape in self._shapes], dim=1)
        self.actor_adam.step(actor)
        self.critic_adam.step(critic)
        polyak(self.target_actor, self.actor, self.options.tau)
        polyak(self.target_critic, self.critic, self.options.tau)
        norms = torch.cat([self.actor.norm(dim=1), self.critic.norm(dim=1)]).tolist()
        names = [f"{unit}.{network}_norm" for network in ("actor", "critic") for unit in self.units]
        return dict(zip(names, norms, strict=True))

    # -- keeping --------------------------------------------------------------------------------

    def weights(self) -> State:
        return {name: getattr(self, name).cpu().numpy().copy() for name in NETWORKS}

    def load_weights(self, weights: State) -> None:
        for name in NETWORKS:
            getattr(self, name).copy_(torch.from_numpy(weights[name]))

    def state(self) -> State:
        adams = {"actor_adam": self.actor_adam.state(), "critic_adam": self.critic_adam.state()}
        return {"weights": self.weights(), **adams, "acted": self.acted}

    def load(self, state: State) -> None:
        self.load_weights(state["weights"])
        self.actor_adam.load(state["actor_adam"])
        self.critic_adam.load(state["critic_adam"])
        self.acted = int(state["acted"])
