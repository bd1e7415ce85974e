"""Torch building blocks that algorithms share: stacked networks, action heads, a flat optimizer."""

from marlctl.nets.backward import Pass, Trace
from marlctl.nets.columns import columns, take
from marlctl.nets.heads import Heads, Units, gumbel
from marlctl.nets.mlp import MLP, affine, product
from marlctl.nets.optim import Adam, clip_parts, polyak

__all__ = [
    "MLP",
    "Adam",
    "Heads",
    "Pass",
    "Trace",
    "Units",
    "affine",
    "clip_parts",
    "columns",
    "gumbel",
    "polyak",
    "product",
    "take",
]
