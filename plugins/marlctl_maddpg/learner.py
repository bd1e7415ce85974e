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
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from marlctl.nets import MLP, Adam, Heads, clip_parts, gumbel, polyak
from marlctl.records import Acts, Array, Batch, EnvSpec, Gradient, Layout, Metrics, Mode, State
from marlctl.seeding import stream

if TYPE_CHECKING:
    from marlctl_maddpg import MADDPG

NETWORKS = ("actor", "critic", "target_actor", "target_critic")


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
        hidden = (options.num_units,) * options.num_layers
        self.obs_columns = self._columns({a.name: [a.name] for a in spec.agents}, (spec.obs,))
        self.q_columns = self._columns(self._seen(), (spec.obs, spec.action))
        self.all_central = all(len(seen) == len(self.units) for seen in self._seen().values())
        self.actor_shape = MLP(
            (self.obs_columns.shape[1], *hidden, self.heads.size), options.activation, options.layer_norm
        )
        self.critic_shape = MLP((self.q_columns.shape[1], *hidden, 1), options.activation, options.layer_norm)
        self.actor = self._init(
            self.actor_shape, "actor", (self.obs_columns < spec.obs.width).sum(1), self.heads.used.sum((1, 2))
        )
        joint = spec.obs.width + spec.action.width
        self.critic = self._init(
            self.critic_shape, "critic", (self.q_columns < joint).sum(1), torch.ones(len(self.units))
        )
        self.target_actor, self.target_critic = self.actor.clone(), self.critic.clone()
        self.actor_adam = Adam(self.actor, options.actor_lr or options.lr)
        self.critic_adam = Adam(self.critic, options.critic_lr or options.lr)

    def _seen(self) -> dict[str, list[str]]:
        """Whose observations and actions each agent's critic sees."""
        policy = {"adversary": self.options.adv_policy}
        local = {a.name for a in self.spec.agents if policy.get(a.team, self.options.good_policy) == "ddpg"}
        return {name: [name] if name in local else list(self.units) for name in self.units}

    def _columns(self, seen: Mapping[str, Sequence[str]], layouts: Sequence[Layout]) -> Tensor:
        """For each unit, which columns of the layouts' arrays side by side it takes; padding points past the end."""
        rows: list[list[int]] = [[] for _ in self.units]
        offset = 0
        for layout in layouts:
            ids = layout.joint(np.arange(layout.width) + offset)
            for row, name in zip(rows, self.units, strict=True):
                row.extend(np.concatenate([ids[other] for other in seen[name]]).tolist())
            offset += layout.width
        longest = max(map(len, rows))
        return torch.tensor([row + [offset] * (longest - len(row)) for row in rows], device=self.device)

    def _init(self, shape: MLP, name: str, inputs: Tensor, outputs: Tensor) -> Tensor:
        flat = [
            shape.init(stream(self.seed, "init", name, unit), inputs=int(i), outputs=int(o))
            for unit, i, o in zip(self.units, inputs, outputs, strict=True)
        ]
        return torch.from_numpy(np.stack(flat)).to(self.device)

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    @staticmethod
    def _take(joint: Tensor, columns: Tensor) -> Tensor:
        """(rows, width) as each unit sees it: (units, rows, columns)."""
        return torch.nn.functional.pad(joint, (0, 1))[:, columns].transpose(0, 1)

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
        rows = len(next(iter(obs.values())))
        units = torch.arange(len(self.units), device=self.device)
        joint = self._tensor(self.spec.obs.join(obs).array.astype(np.float32, copy=False))
        out = self.actor_shape(self.actor, self._take(joint, self.obs_columns))
        shape = (len(units), rows, self.heads.size)
        noise = None if mode == "greedy" else self._tensor(gumbel(rng.random(shape, np.float32)))
        allowed = self._mask(mask, units)
        action = self.heads.join(self.heads.action(out, units, noise=noise, mask=allowed)).cpu().numpy()
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

    def gradients(self, units: Sequence[str], batch: Batch, round: int) -> dict[str, Gradient]:
        u = torch.tensor([self.units.index(unit) for unit in units], device=self.device)
        obs, next_obs, action = (self._tensor(x.array) for x in (batch.obs, batch.next_obs, batch.action))
        reward, ended, alive = (
            self._tensor(x.array.T.astype(np.float32))[u] for x in (batch.reward, batch.terminated, batch.alive)
        )
        weight = alive / alive.sum(1, keepdim=True).clamp(min=1)  # (units, rows): the dead do not count

        with torch.no_grad():
            next_action = self._target_action(next_obs, batch, round)
            next_q = self.critic_shape(self.target_critic[u], self._seen_by(u, next_obs, next_action)).squeeze(2)
            goal = reward + self.options.gamma * (1 - ended) * next_q

        critic = self.critic[u].requires_grad_()
        hidden = self.critic_shape.first(critic, self._seen_by(u, obs, action))
        q = self.critic_shape.rest(critic, hidden).squeeze(2)
        critic_loss = ((q - goal).square() * weight).sum(1)

        actor = self.actor[u].requires_grad_()
        out = self.actor_shape(actor, self._take(obs, self.obs_columns[u]))
        mine = self.heads.action(
            out, u, noise=self._noise(units, len(obs), "actor", round), mask=self._mask(batch.mask, u)
        )
        # With its own action in place of the one taken, only that much changes in the critic's first layer.
        change = torch.bmm(mine - self.heads.spread(action, u), self._own_weights(u))
        value = self.critic_shape.rest(self.critic[u], hidden.detach() + change).squeeze(2)
        penalty = self.options.logit_penalty * self.heads.square(out, u)
        # Without the penalty the logits saturate and the agent stops exploring.
        actor_loss = ((penalty - value) * weight).sum(1)

        grads = torch.autograd.grad(critic_loss.sum() + actor_loss.sum(), (actor, critic))
        limit = self.options.clip
        flat = torch.cat([clip_parts(g, s.lengths, limit) for g, s in zip(grads, self._shapes, strict=True)], 1)
        vectors = flat.cpu().numpy()
        losses = torch.stack([actor_loss, critic_loss, (q * weight).sum(1)], 1).tolist()
        return {
            unit: Gradient(vector, dict(zip(("actor_loss", "critic_loss", "q"), loss, strict=True)), self._parts)
            for unit, vector, loss in zip(units, vectors, losses, strict=True)
        }

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

    def _seen_by(self, units: Tensor, obs: Tensor, action: Tensor) -> Tensor:
        """What each unit's critic sees of everybody's obs (rows, .) and action (rows, .)."""
        everything = torch.cat([obs, action], dim=1)
        if self.all_central:
            return everything.expand(len(units), -1, -1)
        return self._take(everything, self.q_columns[units])

    def _own_weights(self, units: Tensor) -> Tensor:
        """The critics' first weights for each unit's own action: (units, outputs of the head, hidden)."""
        weight = torch.nn.functional.pad(self.critic_shape.layers(self.critic[units])[0][0], (0, 0, 0, 1))
        rows = self.own_rows[units].unsqueeze(2).expand(-1, -1, weight.shape[2])
        return weight.gather(1, rows)

    @cached_property
    def own_rows(self) -> Tensor:
        """Where each unit's own action stands among its critic's inputs; padding points past the end."""
        inputs = self.q_columns.shape[1]
        columns = self.heads.columns[:, 0] + self.spec.obs.width  # of obs and action side by side
        found = (self.q_columns.unsqueeze(1) == columns.unsqueeze(2)) & self.heads.used[:, 0].unsqueeze(2)
        place = torch.arange(inputs, device=self.device)
        return torch.where(found.any(2), (found * place).sum(2), inputs)

    def _target_action(self, next_obs: Tensor, batch: Batch, round: int) -> Tensor:
        every = torch.arange(len(self.units), device=self.device)
        out = self.actor_shape(self.target_actor, self._take(next_obs, self.obs_columns))
        noise = self._noise(self.units, len(next_obs), "target", round)
        return self.heads.join(self.heads.action(out, every, noise=noise, mask=self._mask(batch.next_mask, every)))

    def _mask(self, mask: Mapping[str, Array] | None, units: Tensor) -> Tensor | None:
        return None if mask is None else self.heads.spread(self._tensor(self.spec.action.join(mask).array), units)

    def _noise(self, units: Sequence[str], rows: int, purpose: str, round: int) -> Tensor | None:
        """Gumbel noise keyed by the agent whose action is drawn, so whoever computes it gets the same."""
        if self.heads.all_squashed:
            return None
        shape = (rows, self.heads.size)
        draws = [stream(self.seed, "update", round, purpose, unit).random(shape, np.float32) for unit in units]
        return self._tensor(gumbel(np.stack(draws)))

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
