"""Several multi-layer perceptrons of one shape, run as one batched product.

The parameters of a stack are one flat tensor, (units, size): an optimizer step, a target update or a
gradient that travels is then one array, whatever the layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from marlctl.records import Array

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "tanh": torch.tanh, "elu": F.elu}
Layers = Sequence[tuple[Tensor, Tensor]]  # weight (units, in, out) and bias (units, 1, out) of each
NARROW = 16  # columns of a product; below, BLAS is several times faster on its transpose


@dataclass(frozen=True)
class MLP:
    """The shape of a network: its layer sizes from input to output."""

    sizes: tuple[int, ...]
    activation: str = "relu"
    layer_norm: bool = False

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Tensor name to shape, in the order they lie in the flat vector."""
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, (wide, narrow) in enumerate(zip(self.sizes, self.sizes[1:], strict=False)):
            shapes[f"{layer}.weight"] = (wide, narrow)
            shapes[f"{layer}.bias"] = (narrow,)
        return shapes

    @cached_property
    def lengths(self) -> list[int]:
        return [prod(shape) for shape in self.shapes.values()]

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Tensor name to its place in the flat vector."""
        ends = np.cumsum(self.lengths).tolist()
        return {
            name: slice(end - length, end) for name, length, end in zip(self.shapes, self.lengths, ends, strict=True)
        }

    @property
    def size(self) -> int:
        return sum(self.lengths)

    def init(self, rng: np.random.Generator, *, inputs: int, outputs: int) -> Array:
        """Xavier-uniform weights and zero biases for a unit that uses so many of the inputs and outputs.

        What only pads the stack gets zeros, so a unit starts the same whatever it is stacked with.
        """
        last = len(self.sizes) - 2
        flat = []
        for layer, (wide, narrow) in enumerate(zip(self.sizes, self.sizes[1:], strict=False)):
            used = (inputs if layer == 0 else wide, outputs if layer == last else narrow)
            bound = sqrt(6 / sum(used))
            weight = np.zeros((wide, narrow), np.float32)
            weight[: used[0], : used[1]] = rng.uniform(-bound, bound, used)
            flat += [weight.ravel(), np.zeros(narrow, np.float32)]
        return np.concatenate(flat)

    def __call__(self, flat: Tensor, x: Tensor) -> Tensor:
        """(units, size) parameters and (units, rows, inputs) to (units, rows, outputs)."""
        layers = self.layers(flat)
        x = affine(x, *layers[0])
        for weight, bias in layers[1:]:
            if self.layer_norm:
                x = F.layer_norm(x, x.shape[-1:])
            x = affine(ACTIVATIONS[self.activation](x), weight, bias)
        return x

    def layers(self, flat: Tensor) -> Layers:
        """Weight (units, in, out) and bias (units, 1, out) of each layer."""
        parts = torch.split(flat, self.lengths, dim=1)
        return [
            (parts[2 * layer].view(-1, wide, narrow), parts[2 * layer + 1].unsqueeze(1))
            for layer, (wide, narrow) in enumerate(zip(self.sizes, self.sizes[1:], strict=False))
        ]


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x @ weight + bias, for every unit."""
    if weight.shape[2] < NARROW:
        return torch.baddbmm(bias.mT, weight.mT, x.mT).mT
    return torch.baddbmm(bias, x, weight)


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x @ weight, for every unit."""
    if x.shape[2] == 1:  # no work for BLAS
        return x * weight
    return torch.bmm(weight.mT, x.mT).mT if weight.shape[2] < NARROW else torch.bmm(x, weight)
