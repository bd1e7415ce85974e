"""Torch building blocks that algorithms share: stacked networks, action heads, a flat optimizer."""

from marlctl.nets.heads import Heads, gumbel
from marlctl.nets.mlp import MLP
from marlctl.nets.optim import Adam, clip_parts, polyak

__all__ = ["MLP", "Adam", "Heads", "clip_parts", "gumbel", "polyak"]
