"""From a network's outputs to actions, for every agent of a stack at once.

An agent's action has one or more parts (a move, a message). The stack's output is a block for each
part, padded to the longest, so agents with different actions share one product; `join` puts the
blocks where each agent's columns lie in the joint action.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from marlctl.nets.columns import take
from marlctl.records import ActionSpec, Array, Layout

CLOSED = -1e9  # a logit nobody chooses
Units = Tensor | slice  # which of them


class Heads:
    """The action heads of a stack of actors: one-hot, soft or squashed, as each agent's space asks."""

    def __init__(
        self, agents: Sequence[str], specs: Sequence[ActionSpec], layout: Layout, *, soft: bool, device: str
    ) -> None:
        self.parts = max(len(spec.parts) for spec in specs)
        self.longest = max(max(spec.parts) for spec in specs)
        self.size = self.parts * self.longest
        units = len(specs)
        used = np.zeros((units, self.parts, self.longest), bool)
        # Column `layout.width` does not exist in the joint action: padding is written there and cut off.
        columns = np.full((units, self.parts, self.longest), layout.width)
        low = np.zeros((units, 1, self.size), np.float32)
        high = np.ones((units, 1, self.size), np.float32)
        for u, (agent, spec) in enumerate(zip(agents, specs, strict=True)):
            place = layout.columns[agent]
            start = place.start if isinstance(place, slice) else place
            for p, length in enumerate(spec.parts):
                used[u, p, :length] = True
                columns[u, p, :length] = np.arange(start, start + length)
                start += length
            if spec.kind == "box":
                flat = used[u].ravel()
                low[u, 0, flat], high[u, 0, flat] = spec.low, spec.high
        self.width = layout.width
        self.used = torch.from_numpy(used.reshape(units, 1, self.size)).to(device)
        self.columns = torch.from_numpy(columns.reshape(units, 1, self.size)).to(device)
        self.low, self.high = torch.from_numpy(low).to(device), torch.from_numpy(high).to(device)
        squashed = [spec.kind == "box" and not soft for spec in specs]
        self.squashed = torch.tensor(squashed, device=device).view(-1, 1, 1)
        self.any_squashed, self.all_squashed = any(squashed), all(squashed)
        self.padded = not used.all()
        # Agents of one size that are all there: their blocks are the joint action as it lies.
        self.even = np.array_equal(columns.ravel(), np.arange(layout.width))
        self.share = self.used / self.used.sum(2, keepdim=True)  # of each output in a mean over those it uses
        self.soft = soft

    def outputs(self, unit: int) -> Array:
        """Which of the stack's outputs the unit uses."""
        return self.used[unit, 0].cpu().numpy()

    def action(self, out: Tensor, units: Units, *, noise: Tensor | None, mask: Tensor | None = None) -> Tensor:
        """Outputs (units, rows, size) to actions (units, rows, size), differentiable.

        `noise` is Gumbel noise that draws from the policy; without it the likeliest action is taken.
        Discrete actions are one-hot with the gradient of the softmax (straight through).
        """
        squashed = (
            self.low[units] + (self.high - self.low)[units] * (torch.tanh(out) + 1) / 2 if self.any_squashed else out
        )
        if self.all_squashed:
            return squashed
        choice = self._choice(out, units, noise, mask)
        return torch.where(self.squashed[units], squashed, choice) if self.any_squashed else choice

    def _choice(self, out: Tensor, units: Units, noise: Tensor | None, mask: Tensor | None) -> Tensor:
        blocks = self._blocks(out, units, noise, mask)
        if self.soft:
            return _softmax(blocks).flatten(-2)
        hard = torch.zeros_like(blocks).scatter_(-1, blocks.argmax(dim=-1, keepdim=True), 1.0)
        if torch.is_grad_enabled():
            soft = _softmax(blocks)
            hard = hard + (soft - soft.detach())
        return hard.flatten(-2)

    def _blocks(self, out: Tensor, units: Units, noise: Tensor | None, mask: Tensor | None) -> Tensor:
        """The logits, with noise, of each part: (units, rows, parts, longest)."""
        if self.padded or mask is not None:
            out = out.masked_fill(~self._open(units, mask), CLOSED)
        logits = (out if noise is None else out + noise).contiguous()
        return torch.unflatten(logits, -1, (self.parts, self.longest))

    def _open(self, units: Units, mask: Tensor | None) -> Tensor:
        """Which outputs may be chosen."""
        return self.used[units] if mask is None else self.used[units] & mask

    def back(
        self, gradient: Tensor, out: Tensor, units: Units, *, noise: Tensor | None, mask: Tensor | None = None
    ) -> Tensor:
        """From the gradient of what `action` gave to that of the outputs; what autograd would give."""
        squashed = gradient
        if self.any_squashed:
            squashed = gradient * (self.high - self.low)[units] * (1 - torch.tanh(out).square()) / 2
        if self.all_squashed:
            return squashed
        soft = _softmax(self._blocks(out, units, noise, mask)).flatten(-2)
        push = torch.unflatten(gradient * soft, -1, (self.parts, self.longest)).sum(-1)
        choice = soft * (gradient - push.repeat_interleave(self.longest, -1))
        if self.padded or mask is not None:
            choice = choice * self._open(units, mask)
        return torch.where(self.squashed[units], squashed, choice) if self.any_squashed else choice

    def join(self, action: Tensor) -> Tensor:
        """Every unit's action (units, rows, size) side by side: (rows, width)."""
        if self.even:
            return action.transpose(0, 1).flatten(1)
        rows = action.shape[1]
        joint = action.new_zeros(rows, self.width + 1)
        flat = self.columns.expand(-1, rows, -1).transpose(0, 1).flatten(1)
        return joint.scatter(1, flat, action.transpose(0, 1).flatten(1))[:, : self.width]

    def spread(self, joint: Tensor, units: Units) -> Tensor:
        """A joint array (rows, width) as each unit sees its own part: (units, rows, size)."""
        if self.even and isinstance(units, slice):
            return joint.view(len(joint), -1, self.size).transpose(0, 1)
        return take(joint, self.columns[units, 0])


def gumbel(uniform: Array) -> Array:
    """Gumbel noise from float32 numbers drawn from [0, 1), never infinite."""
    return -np.log(-np.log(np.maximum(uniform, np.float32(2**-25))))


def _softmax(blocks: Tensor) -> Tensor:
    """Over the last dimension. It is short and the rows are many, so torch is ten times faster along the rows."""
    return torch.softmax(blocks.movedim(1, -1).contiguous(), dim=-2).movedim(-1, 1)
