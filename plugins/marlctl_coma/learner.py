"""The maths of COMA, for one team after the other (mostly there is one).

    Q(s, u_-i, .)  the critic: what each action of agent i is worth, given what the others do
    advantage      Q(s, u) - sum_a pi_i(a) Q(s, u_-i, a)
    actor i:      -mean log pi_i(u_i) advantage - c entropy(pi_i)
    critic:        mean (Q(s, u) - y)^2,   y = r + gamma ((1 - lambda) Q'(s', u') + lambda y')

r is the team's reward, the sum of its members'. Means are over the steps an agent takes part in. All
members' Q(s, u) guess the same number, so y takes their mean. Where a rollout or a time limit cuts an
episode, y ends in what the target critic expects of an action drawn anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from marlctl.nets import MLP, Pass, Units, clip_parts, gumbel
from marlctl.records import Acts, Array, Batch, EnvSpec, Gradient, Joint, Metrics, Mode, State
from marlctl.seeding import stream
from marlctl_coma.returns import lambda_returns
from marlctl_coma.team import ALL, Moments, Sight, Team

if TYPE_CHECKING:
    from marlctl_coma import COMA

NETWORKS = ("actor", "critic", "target")
TINY = 1e-30  # what cannot be chosen has a probability of 0, whose logarithm must still be a number


class COMALearner:
    """The teams of a scenario; what is learnt apart is each actor and each team's critic."""

    plays: Mode = "sample"

    def __init__(self, options: COMA, spec: EnvSpec, *, seed: int, device: str) -> None:
        self.options, self.spec, self.seed, self.device = options, spec, seed, device
        self.updates = 0
        self.teams = {
            name: Team(options, spec, members, seed=seed, device=device) for name, members in spec.teams.items()
        }
        self.actors: dict[str, tuple[Team, int]] = {}  # unit to its team and its place in the stack
        self.critics: dict[str, Team] = {}
        for name, team in self.teams.items():
            prefix = "" if len(self.teams) == 1 else f"{name}_"
            names = (f"{prefix}actor",) if options.share else team.members
            self.actors |= {unit: (team, place) for place, unit in enumerate(names)}
            self.critics[f"{prefix}critic"] = team
        self.units = (*self.actors, *self.critics)
        sizes = [agent.action.size for agent in spec.agents]
        self._whose = torch.arange(len(sizes), device=device).repeat_interleave(torch.tensor(sizes, device=device))

    def epsilon(self, round: int) -> float:
        """The part of actions drawn uniformly in training."""
        begin, end = self.options.epsilon, self.options.epsilon_end
        return begin + (end - begin) * min(1.0, round / self.options.epsilon_updates)

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
        seen = self.spec.obs.join(obs).array
        allowed = None if mask is None else self.spec.action.join(mask).array
        if not self.options.previous_actions:
            return Acts(self._action(self._sight(seen, None, allowed), mode, rng))
        previous = carry.get("previous", np.zeros((len(seen), self.spec.action.width), np.float32))
        action = self._action(self._sight(seen, previous, allowed), mode, rng)
        return Acts(action, carry={"previous": action.array}, extras={"previous": previous})

    def _action(self, sight: Sight, mode: Mode, rng: np.random.Generator) -> Joint:
        epsilon = self.epsilon(self.updates) if mode == "explore" else 0.0
        joint = self._draw(self._chances(sight, epsilon), None if mode == "greedy" else rng)
        return self.spec.action.joint(joint.cpu().numpy())

    def _sight(self, obs: Array, previous: Array | None, mask: Array | None) -> Sight:
        """The same of one moment or many: (rows, width), or (time, copies, width) made rows."""
        return Sight(
            self._rows(obs),
            None if previous is None else self._rows(previous),
            None if mask is None else self._rows(mask).bool(),
        )

    def _rows(self, array: Array) -> Tensor:
        flat = np.ascontiguousarray(array.reshape(-1, array.shape[-1]), np.float32)
        return torch.from_numpy(flat).to(self.device)

    def _chances(self, sight: Sight, epsilon: float) -> list[Tensor]:
        """Team by team, the probabilities of its members' actions: (members, rows, actions)."""
        return [team.act(sight, epsilon) for team in self.teams.values()]

    def _draw(self, chances: Sequence[Tensor], rng: np.random.Generator | None) -> Tensor:
        """Everybody's action, drawn or the likeliest, one-hot side by side: (rows, width)."""
        joint = chances[0].new_zeros(chances[0].shape[1], self.spec.action.width)
        for team, policy in zip(self.teams.values(), chances, strict=True):
            noise = None if rng is None else self._rows(gumbel(rng.random(policy.shape, np.float32))).view_as(policy)
            joint += team.heads.join(team.heads.action(policy.log(), ALL, noise=noise))
        return joint

    # -- learning -------------------------------------------------------------------------------

    @torch.no_grad()
    def gradients(self, units: Sequence[str], batch: Batch, round: int) -> dict[str, Gradient]:
        found: dict[str, Gradient] = {}
        now = self._moments(batch)
        for critic, team in self.critics.items():
            actors = [unit for unit in units if unit in self.actors and self.actors[unit][0] is team]
            if not (actors or critic in units):
                continue
            trace = Pass(team.critic_shape, team.critic, team.judged(now, ALL))
            worth = team.by_member(trace.out, ALL)
            if actors:
                found |= self._actor_gradients(team, actors, now, worth, round)
            if critic in units:
                goal = self._rows(self._goal(team, batch, now, round)[..., None]).view(-1)
                found[critic] = self._critic_gradient(team, now, trace, worth, goal)
        return {unit: found[unit] for unit in units}

    def _actor_gradients(
        self, team: Team, units: Sequence[str], now: Moments, worth: Tensor, round: int
    ) -> dict[str, Gradient]:
        stack = [self.actors[unit][1] for unit in units]
        who: Units = ALL if self.options.share else torch.tensor(stack, device=self.device)
        taken, here = team.heads.spread(now.action, who), now.alive.T[team.places[who]]
        # Each actor's mean is over the steps it was there for, the shared one's over those of all.
        weight = here / here.view(len(stack), -1).sum(1).clamp(min=1).view(-1, 1)
        trace = Pass(team.actor_shape, team.actor[stack], team.seen(now.sight, who))
        soft, policy = team.policy(trace.out, now.sight, who, epsilon := self.epsilon(round))
        log_policy = policy.clamp(min=TINY).log()
        advantage = ((taken - policy) * worth[who]).sum(2)
        entropy = -(policy * log_policy).sum(2)
        gain = advantage * (taken * log_policy).sum(2) + self.options.entropy * entropy
        # The slope of the gain by the probabilities, and from there through the softmax to the actors' outputs.
        pull = advantage.unsqueeze(2) * taken / policy.clamp(min=TINY) - self.options.entropy * (log_policy + 1)
        slope = (1 - epsilon) * soft * (pull - (soft * pull).sum(2, keepdim=True)) * weight.unsqueeze(2)
        gradient = trace.gradient(-slope.view_as(trace.out))
        figures = torch.stack([-gain, entropy, advantage.abs()], dim=2) * weight.unsqueeze(2)
        means = figures.view(len(stack), -1, 3).sum(1)
        names = ("actor_loss", "entropy", "advantage")
        return dict(zip(units, self._pack(team.actor_shape, gradient, names, means), strict=True))

    def _critic_gradient(self, team: Team, now: Moments, trace: Pass, worth: Tensor, goal: Tensor) -> Gradient:
        taken, here = team.heads.spread(now.action, ALL), now.alive.T[team.places]
        weight = here / here.sum().clamp(min=1)
        q = (worth * taken).sum(2)
        slope = (2 * (q - goal) * weight).unsqueeze(2) * taken
        gradient = trace.gradient(slope.view_as(trace.out))
        means = (torch.stack([(q - goal).square(), q], dim=2) * weight.unsqueeze(2)).sum((0, 1))
        return self._pack(team.critic_shape, gradient, ("critic_loss", "q"), means[None])[0]

    def _goal(self, team: Team, batch: Batch, now: Moments, round: int) -> Array:
        """What the critic should have said of each step: (time, copies)."""
        here, ends, stops, reward = (
            np.stack([field[name] for name in team.members])  # (members, time, copies)
            for field in (batch.alive, batch.terminated, batch.truncated, batch.reward)
        )
        q = (team.worth(team.target, now) * team.heads.spread(now.action, ALL)).sum(2)
        cut = (here & stops).any(0)
        after = np.zeros(cut.shape, np.float32)
        after[cut] = self._expected(team, batch, cut, round)
        return lambda_returns(
            reward.sum(0),
            _mean(q.cpu().numpy().reshape(here.shape), here),
            over=~(here & ~ends).any(0),
            cut=cut,
            after=after,
            discount=self.options.gamma,
            trace=self.options.td_lambda,
        )

    def _expected(self, team: Team, batch: Batch, cut: Array, round: int) -> Array:
        """What the target critic expects after the steps that are `cut`: (steps,)."""
        goes_on = batch.alive.array[cut] & ~batch.terminated.array[cut]
        previous = batch.action.array[cut] if self.options.previous_actions else None
        mask = None if batch.next_mask is None else batch.next_mask.array[cut]
        sight = self._sight(batch.next_obs.array[cut], previous, mask)
        chances = self._chances(sight, self.epsilon(round))
        drawn = self._draw(chances, stream(self.seed, "update", round, "after"))
        own = chances[list(self.teams.values()).index(team)]
        expected = (own * team.worth(team.target, self._moment(sight, drawn, goes_on))).sum(2)
        return _mean(expected.cpu().numpy(), goes_on.T[team.places.cpu().numpy()])

    def _moments(self, batch: Batch) -> Moments:
        """The steps of a rollout one after the other."""
        previous = batch.extras["previous"] if self.options.previous_actions else None
        mask = None if batch.mask is None else batch.mask.array
        sight = self._sight(batch.obs.array, previous, mask)
        return self._moment(sight, self._rows(batch.action.array), batch.alive.array)

    def _moment(self, sight: Sight, action: Tensor, alive: Array) -> Moments:
        """What agents that have left are said to do means nothing, and is taken out."""
        there = self._rows(alive)
        return Moments(sight, action * there[:, self._whose], there)

    def _pack(self, shape: MLP, gradient: Tensor, names: Sequence[str], figures: Tensor) -> list[Gradient]:
        vectors = clip_parts(gradient.cpu().numpy(), [shape.size], self.options.clip)
        numbers = figures.tolist()
        return [
            Gradient(vector, dict(zip(names, row, strict=True)), shape.parts)
            for vector, row in zip(vectors, numbers, strict=True)
        ]

    @torch.no_grad()
    def apply(self, gradients: Mapping[str, Gradient]) -> Metrics:
        self.updates += 1
        norms: dict[str, float] = {}
        for unit, team in self.critics.items():
            team.critic_adam.step(torch.from_numpy(gradients[unit].vector)[None].to(self.device))
            if self.updates % self.options.target_every == 0:
                team.target.copy_(team.critic)
            actors = [name for name, (its_team, _) in self.actors.items() if its_team is team]
            stack = np.stack([gradients[name].vector for name in actors])
            team.actor_adam.step(torch.from_numpy(stack).to(self.device))
            norms |= {f"{unit}.norm": float(team.critic.norm())}
            norms |= dict(zip((f"{name}.norm" for name in actors), team.actor.norm(dim=1).tolist(), strict=True))
        return norms

    # -- keeping --------------------------------------------------------------------------------

    def weights(self) -> State:
        return {
            name: {network: getattr(team, network).cpu().numpy().copy() for network in NETWORKS}
            for name, team in self.teams.items()
        }

    def load_weights(self, weights: State) -> None:
        for name, team in self.teams.items():
            for network in NETWORKS:
                getattr(team, network).copy_(torch.from_numpy(weights[name][network]))

    def state(self) -> State:
        adams = {
            name: {"actor": team.actor_adam.state(), "critic": team.critic_adam.state()}
            for name, team in self.teams.items()
        }
        return {"weights": self.weights(), "adams": adams, "updates": self.updates}

    def load(self, state: State) -> None:
        self.load_weights(state["weights"])
        for name, team in self.teams.items():
            team.actor_adam.load(state["adams"][name]["actor"])
            team.critic_adam.load(state["adams"][name]["critic"])
        self.updates = int(state["updates"])


def _mean(values: Array, here: Array) -> Array:
    """Over the members that are there; 0 where none is."""
    mean: Array = (values * here).sum(0) / np.maximum(here.sum(0), 1)
    return mean.astype(np.float32)
