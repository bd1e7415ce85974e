"""Between gymnasium's spaces and the float vectors that learners see and give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from gymnasium import spaces

from marlctl.errors import ConfigError, PluginError
from marlctl.records import ActionSpec, Array


@dataclass(frozen=True)
class Sight:
    """How an observation becomes `size` numbers."""

    size: int
    encode: Callable[[Any], Array]
    masked: bool = False  # the observation carries the mask of allowed actions


@dataclass(frozen=True)
class Moves:
    """How rows of numbers become actions of the environment, one a row."""

    spec: ActionSpec
    decode: Callable[[Array], Array]  # (n, spec.size) to n actions; the rows are not changed


def sight(agent: str, space: Any) -> Sight:
    """How to read what `agent` sees."""
    if isinstance(space, spaces.Dict) and {"observation", "action_mask"} <= set(space.keys()):
        inner = sight(agent, space["observation"])
        return Sight(inner.size, lambda seen: inner.encode(seen["observation"]), masked=True)
    if isinstance(space, spaces.Box):
        return Sight(int(np.prod(space.shape)), lambda seen: np.asarray(seen, np.float32).reshape(-1))
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return Sight(spaces.flatdim(space), lambda seen: np.asarray(spaces.flatten(space, seen), np.float32))
    raise ConfigError(
        f"{agent} observes {space}; marlctl reads Box, Discrete, MultiDiscrete and MultiBinary spaces, "
        "and Dict spaces of observation and action_mask"
    )


def moves(agent: str, space: Any, parts: tuple[int, ...] | None = None) -> Moves:
    """How `agent` acts; `parts` is how the scenario divides a Box action."""
    if isinstance(space, spaces.Box):
        return _box(agent, space, parts)
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        spec = ActionSpec("discrete", (int(space.n),), first=(start,) if start else ())
        return Moves(spec, lambda rows: rows.argmax(axis=1) + start)
    if isinstance(space, spaces.MultiDiscrete):
        sizes = tuple(int(size) for size in space.nvec.ravel())
        return _choices(sizes, space, np.asarray(space.start))
    if isinstance(space, spaces.MultiBinary):
        return _choices((2,) * int(np.prod(space.shape)), space, np.zeros(space.shape, space.dtype))
    raise ConfigError(f"{agent} acts in {space}; marlctl knows Discrete, MultiDiscrete, MultiBinary and Box spaces")


def _choices(sizes: tuple[int, ...], space: Any, start: Array) -> Moves:
    blocks = [slice(*edges) for edges in pairwise(accumulate(sizes, initial=0))]

    def decode(rows: Array) -> Array:
        chosen = np.stack([rows[:, block].argmax(axis=1) for block in blocks], axis=1)
        return (chosen.reshape(-1, *space.shape) + start).astype(space.dtype)

    first = tuple(int(number) for number in np.broadcast_to(start, space.shape).ravel())
    return Moves(ActionSpec("discrete", sizes, first=first if any(first) else ()), decode)


def _box(agent: str, space: Any, parts: tuple[int, ...] | None) -> Moves:
    low, high = space.low.ravel(), space.high.ravel()
    parts = parts or (low.size,)
    if sum(parts) != low.size:
        raise PluginError(f"the action of {agent} has {low.size} numbers, but action_parts divides it into {parts}")
    whole = np.issubdtype(space.dtype, np.integer)

    def decode(rows: Array) -> Array:
        clipped = np.clip(rows, low, high)
        return (np.rint(clipped) if whole else clipped).astype(space.dtype).reshape(-1, *space.shape)

    return Moves(ActionSpec("box", parts, tuple(low.tolist()), tuple(high.tolist())), decode)
