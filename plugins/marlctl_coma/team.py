"""One team's networks and what they see: an actor for each member, or one for all, and a critic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from marlctl.nets import MLP, Adam, Heads, Units, columns, take
from marlctl.nets.heads import CLOSED
from marlctl.records import EnvSpec
from marlctl.seeding import stream

if TYPE_CHECKING:
    from marlctl_coma import COMA

ALL = slice(None)


@dataclass(frozen=True)
class Sight:
    """What the agents see at many moments, as tensors (rows, ...) with the agents side by side."""

    obs: Tensor
    previous: Tensor | None = None  # what each did before, where that is shown to them
    mask: Tensor | None = None  # what each may do, where that is limited

    def with_previous(self, x: Tensor) -> Tensor:
        return x if self.previous is None else torch.cat([x, self.previous], dim=1)


@dataclass(frozen=True)
class Moments:
    """What the agents saw and did, and who of them was there."""

    sight: Sight
    action: Tensor
    alive: Tensor


class Team:
    """Actors over the members' own observations; a critic that tells the worth of each action of one of them.

    The critic sees all observations, who is still there, everybody else's action, and whose action it is
    to judge: not that action itself, or it could not say what another would have been worth.
    """

    def __init__(self, options: COMA, spec: EnvSpec, members: tuple[str, ...], *, seed: int, device: str) -> None:
        self.options, self.members = options, members
        self.places = torch.tensor([spec.names.index(member) for member in members], device=device)
        self.heads = Heads(members, [spec[m].action for m in members], spec.action, soft=False, device=device)
        self._ids = torch.eye(len(members), device=device).unsqueeze(1)  # (members, 1, members)
        layouts = (spec.obs, spec.action) if options.previous_actions else (spec.obs,)
        self._own = columns({member: [member] for member in members}, layouts).to(device)
        self._others = torch.ones(len(members), 1, spec.action.width, device=device)
        for i, member in enumerate(members):
            self._others[i, :, spec.action.columns[member]] = 0
        seen = (self._own < sum(layout.width for layout in layouts)).sum(1) + options.share * len(members)
        judged = sum(layout.width for layout in (*layouts, spec.action, spec.scalar)) + len(members)
        hidden, how = (options.num_units,) * options.num_layers, (options.activation, options.layer_norm)
        self.actor_shape = MLP((int(seen.max()), *hidden, self.heads.size), *how)
        self.critic_shape = MLP((judged, *hidden, self.heads.size), *how)
        starts = [
            self.actor_shape.init(
                stream(seed, "init", "actor", member), inputs=inputs, outputs=spec[member].action.size
            )
            for member, inputs in zip(members[:1] if options.share else members, seen.tolist(), strict=False)
        ]
        self.actor = torch.from_numpy(np.stack(starts)).to(device)
        start = self.critic_shape.init(stream(seed, "init", "critic", *members), inputs=judged, outputs=self.heads.size)
        self.critic = torch.from_numpy(start[None]).to(device)
        self.target = self.critic.clone()
        self.actor_adam = Adam(self.actor, options.actor_lr)
        self.critic_adam = Adam(self.critic, options.critic_lr)

    def seen(self, sight: Sight, who: Units) -> Tensor:
        """What the members' actors see: (members, rows, inputs), all in one row of networks where they share one."""
        x = take(sight.with_previous(sight.obs), self._own[who])
        if not self.options.share:
            return x
        return torch.cat([x, self._ids[who].expand(-1, x.shape[1], -1)], dim=2).flatten(0, 1)[None]

    def judged(self, now: Moments, who: Units) -> Tensor:
        """What the critic sees of each member: (1, members x rows, inputs)."""
        ids, common = self._ids[who], now.sight.with_previous(torch.cat([now.sight.obs, now.alive], dim=1))
        others = now.action * self._others[who]
        x = torch.cat([common.expand(len(ids), -1, -1), others, ids.expand(-1, len(common), -1)], dim=2)
        return x.flatten(0, 1)[None]

    def policy(self, out: Tensor, sight: Sight, who: Units, epsilon: float) -> tuple[Tensor, Tensor]:
        """From the actors' outputs, the softmax and what is drawn from, a part `epsilon` of which is uniform."""
        open_, out = self.heads.used[who], self.by_member(out, who)
        if sight.mask is not None:
            open_ = open_ & self.heads.spread(sight.mask, who)
        if self.heads.padded or sight.mask is not None:
            out = out.masked_fill(~open_, CLOSED)
        soft = torch.softmax(out, dim=2)
        if epsilon == 0:
            return soft, soft
        return soft, (1 - epsilon) * soft + epsilon * open_ / open_.sum(2, keepdim=True)

    def act(self, sight: Sight, epsilon: float) -> Tensor:
        """The probabilities of all members' actions: (members, rows, actions)."""
        return self.policy(self.actor_shape(self.actor, self.seen(sight, ALL)), sight, ALL, epsilon)[1]

    def worth(self, critic: Tensor, now: Moments) -> Tensor:
        """What each action of a member is worth, given what the others do: (members, rows, actions)."""
        return self.by_member(self.critic_shape(critic, self.judged(now, ALL)), ALL)

    def by_member(self, out: Tensor, who: Units) -> Tensor:
        """Outputs of networks that members may share as (members, rows, outputs)."""
        return out.reshape(len(self._ids[who]), -1, self.heads.size)
