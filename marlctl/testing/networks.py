"""One network of a stack as plain torch has it, to write a learner's formulas out beside what it computes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from marlctl.nets import MLP

LAYERS = {"relu": nn.ReLU, "tanh": nn.Tanh, "elu": nn.ELU}


def as_torch(shape: MLP, flat: Tensor) -> nn.Sequential:
    """A network with its own copy of one unit's parameters (size,)."""
    layers: list[nn.Module] = []
    tensors = torch.split(flat.detach(), shape.lengths)
    for i, (wide, narrow) in enumerate(zip(shape.sizes, shape.sizes[1:], strict=False)):
        if i:
            if shape.layer_norm:
                layers.append(nn.LayerNorm(wide, elementwise_affine=False))
            layers.append(LAYERS[shape.activation]())
        linear = nn.Linear(wide, narrow)
        linear.weight = nn.Parameter(tensors[2 * i].view(wide, narrow).T.clone())
        linear.bias = nn.Parameter(tensors[2 * i + 1].clone())
        layers.append(linear)
    return nn.Sequential(*layers)
