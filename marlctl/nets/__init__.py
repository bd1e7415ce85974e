"""Torch building blocks that algorithms share: stacked networks, action heads, a flat optimizer."""

from marlctl.nets.backward import Trace
from marlctl.nets.heads import Heads, Units, gumbel, take
from marlctl.nets.mlp import MLP, affine, product
from marlctl.nets.optim import Adam, clip_parts, polyak

__all__ = [
    "MLP",
    "Adam",
    "Heads",
    "Trace",
    "Units",
    "affine",
    "clip_parts",
    "gumbel",
    "polyak",
    "product",
    "take",
]
