"""What the two scenarios of predators and prey have in common."""

from __future__ import annotations

from math import log

import numpy as np

from marlctl.records import Array
from marlctl_mpe.batched.world import Body

FURTHEST = 1 + log(10) / 2  # from here on, being outside costs no more


def predator(name: str, *, words: int = 0) -> Body:
    """One that is slow."""
    return Body(name, size=0.075, collides=True, accel=3.0, max_speed=1.0, words=words)


def prey(name: str, *, size: float, pace: float = 1.0) -> Body:
    """One that is fast, if its pace is 1."""
    return Body(name, size=size, collides=True, accel=4.0 * pace, max_speed=1.3 * pace)


def outside(pos: Array) -> Array:
    """What it costs to be at `pos` (2, ...): nothing up to 0.9, then a line up to 1, then a curve up to 10."""
    x = np.abs(pos)
    np.minimum(x, FURTHEST, out=x)
    curve = x * 2
    curve -= 2
    np.exp(curve, out=curve)
    x -= 0.9
    x *= 10
    # The curve is above the line before they meet, and below it afterwards.
    np.minimum(x, curve, out=x)
    np.maximum(x, 0, out=x)
    cost: Array = x[0] + x[1]
    return cost


def touches(touching: Array, n_agents: int) -> Array:
    """How many prey each predator touches (agents, n), NaN for the prey; from (predators, prey, n)."""
    count = np.full((n_agents, touching.shape[-1]), np.nan)
    count[: len(touching)] = touching.sum(1)
    return count
