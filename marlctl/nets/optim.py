"""Optimizer, clipping and target update on the flat (units, size) tensors of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from marlctl.records import Array, State


def clip_parts(flat: Array, lengths: Sequence[int], limit: float) -> Array:
    """Scale each tensor of each unit to at most `limit` in L2 norm, as the original does (not the whole).

    In numpy, which adds up the parts of an array in one call; torch would take one for each.
    """
    if limit == 0:
        return flat
    starts = np.cumsum([0, *lengths[:-1]])
    with np.errstate(over="ignore", invalid="ignore"):  # what has diverged is told by who applies it
        norms = np.sqrt(np.add.reduceat(np.square(flat), starts, axis=1))
        scale = (limit / np.maximum(norms, limit)).astype(flat.dtype)
        clipped: Array = flat * np.repeat(scale, lengths, axis=1)
    return clipped


def polyak(target: Tensor, online: Tensor, tau: float) -> None:
    """Move the target a little towards the online parameters."""
    target.lerp_(online, tau)


@dataclass
class Adam:
    """Adam with the usual constants, over every unit at once."""

    flat: Tensor
    lr: float

    def __post_init__(self) -> None:
        self.mean = torch.zeros_like(self.flat)
        self.square = torch.zeros_like(self.flat)
        self.steps = 0

    def step(self, gradient: Tensor) -> None:
        self.steps += 1
        self.mean.lerp_(gradient, 0.1)
        self.square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        correction = (1 - 0.999**self.steps) ** 0.5
        rate = self.lr / (1 - 0.9**self.steps)
        self.flat.addcdiv_(self.mean, self.square.sqrt().div_(correction).add_(1e-8), value=-rate)

    def state(self) -> State:
        moments = {"mean": self.mean, "square": self.square}
        return {**{name: moment.cpu().numpy().copy() for name, moment in moments.items()}, "steps": self.steps}

    def load(self, state: State) -> None:
        self.mean.copy_(torch.from_numpy(state["mean"]))
        self.square.copy_(torch.from_numpy(state["square"]))
        self.steps = int(state["steps"])
