"""Which columns of the joint observation and action each agent's networks see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from marlctl.nets import Heads, Units, columns, take
from marlctl.records import EnvSpec


class Views:
    """An actor sees its own observation; a critic sees the observations and actions of those in `seen`.

    Units that see less than others are padded with zeros.
    """

    def __init__(self, spec: EnvSpec, seen: Mapping[str, Sequence[str]], heads: Heads, device: str) -> None:
        self._shared = all(len(names) == len(spec.agents) for names in seen.values())
        self._own = columns({name: [name] for name in seen}, (spec.obs,)).to(device)
        self._judged = columns(seen, (spec.obs, spec.action)).to(device)
        self.actor_inputs, self.critic_inputs = (ids.shape[1] for ids in (self._own, self._judged))
        self.actor_used = (self._own < spec.obs.width).sum(1).tolist()
        self.critic_used = (self._judged < spec.obs.width + spec.action.width).sum(1).tolist()
        self._action_rows = self._find(heads, spec.obs.width)

    def _find(self, heads: Heads, offset: int) -> Tensor:
        """Where each unit's own action stands among its critic's inputs; padding points past the end."""
        own = heads.columns[:, 0] + offset  # of obs and action side by side
        found = (self._judged.unsqueeze(1) == own.unsqueeze(2)) & heads.used[:, 0].unsqueeze(2)
        place = torch.arange(self.critic_inputs, device=found.device)
        return torch.where(found.any(2), (found * place).sum(2), self.critic_inputs)

    def own(self, obs: Tensor, units: Units) -> Tensor:
        """What the actors see: (units, rows, actor_inputs)."""
        return take(obs, self._own[units])

    def judged(self, obs: Tensor, action: Tensor, units: Units) -> Tensor:
        """What the critics see: (units, rows, critic_inputs)."""
        everything = torch.cat([obs, action], dim=1)
        columns = self._judged[units]
        return everything.expand(len(columns), -1, -1) if self._shared else take(everything, columns)

    def action_weights(self, first: Tensor, units: Units) -> Tensor:
        """Of the critics' first weights, those for each unit's own action: (units, outputs of the head, hidden)."""
        padded = torch.nn.functional.pad(first, (0, 0, 0, 1))
        return padded.gather(1, self._action_rows[units].unsqueeze(2).expand(-1, -1, first.shape[2]))
