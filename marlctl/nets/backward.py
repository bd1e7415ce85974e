"""The way back through a stack of networks, derived by hand.

Autograd gives the same numbers (the tests hold one against the other) and takes half as long again: it
copies what these few products need not copy, and knows no faster shape for the narrow ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from marlctl.nets.mlp import ACTIVATIONS, MLP, Layers, affine, product

aten = torch.ops.aten

# The gradient before an activation, from the gradient after it and what came out of it.
SLOPES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "relu": lambda gradient, out: aten.threshold_backward(gradient, out, 0),
    "tanh": aten.tanh_backward,
    "elu": lambda gradient, out: aten.elu_backward(gradient, 1, 1, 1, True, out),
}


class Trace:
    """One pass from the first layer, before its activation, to the outputs, that can be walked back."""

    def __init__(self, shape: MLP, layers: Layers, first: Tensor) -> None:
        self.shape, self.layers = shape, layers
        self.norms: list[tuple[Tensor, Tensor, Tensor]] = []
        self.active: list[Tensor] = []  # what went into each layer after the first
        x = first
        for weight, bias in self.layers[1:]:
            if shape.layer_norm:
                normed, mean, scale = torch.native_layer_norm(x, x.shape[-1:], None, None, 1e-5)
                self.norms.append((x, mean, scale))
                x = normed
            self.active.append(ACTIVATIONS[shape.activation](x))
            x = affine(self.active[-1], weight, bias)
        self.out = x

    def back(self, gradient: Tensor) -> list[Tensor]:
        """From the outputs' gradient to that of what came out of each layer, first layer first."""
        gradients = [gradient]
        for layer in reversed(range(len(self.active))):
            weight = self.layers[layer + 1][0]
            gradient = SLOPES[self.shape.activation](product(gradient, weight.mT), self.active[layer])
            if self.shape.layer_norm:
                x, mean, scale = self.norms[layer]
                gradient = aten.native_layer_norm_backward(
                    gradient, x, x.shape[-1:], mean, scale, None, None, [True, False, False]
                )[0]
            gradients.insert(0, gradient)
        return gradients

    def parameters(self, x: Tensor, gradients: Sequence[Tensor]) -> Tensor:
        """The parameters' gradient, flat as they are, from the network's input and what `back` gave."""
        parts = []
        for into, gradient in zip((x, *self.active), gradients, strict=True):
            parts += [product(into.mT, gradient).flatten(1), gradient.sum(1)]
        return torch.cat(parts, dim=1)


class Pass(Trace):
    """A whole pass, from the input on."""

    def __init__(self, shape: MLP, flat: Tensor, x: Tensor) -> None:
        layers = shape.layers(flat)
        super().__init__(shape, layers, affine(x, *layers[0]))
        self.x = x

    def gradient(self, gradient: Tensor) -> Tensor:
        """The parameters' gradient, flat as they are, from that of the outputs."""
        return self.parameters(self.x, self.back(gradient))
