"""Randomness by name: every stream follows from the run's seed and what it is for.

No stream depends on the process, the order of calls or the number of workers, so whoever computes a
number gets the same one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from marlctl.records import Array


def key(seed: int, *words: int | str) -> int:
    """A 128-bit number that follows from `seed` and `words` and from nothing else."""
    text = "\0".join((str(seed), *(str(word) for word in words)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")


def stream(seed: int, *words: int | str) -> np.random.Generator:
    """A generator of its own for this purpose."""
    return np.random.Generator(np.random.Philox(key=key(seed, *words)))


def episode_seed(seed: int, copy: int, episode: int) -> int:
    """The seed an environment copy is reset with at the start of an episode.

    It fits 31 bits because some environments hand it on to generators that take no more.
    """
    return key(seed, "episode", copy, episode) & 0x7FFFFFFF


def rng_state(rng: np.random.Generator) -> Array:
    """A PCG64 generator's state as an array, for a checkpoint."""
    state = rng.bit_generator.state
    inner: Mapping[str, int] = state["state"]
    halves = [half for number in (inner["state"], inner["inc"]) for half in (number & (2**64 - 1), number >> 64)]
    return np.array([*halves, state["has_uint32"], state["uinteger"]], np.uint64)


def load_rng(rng: np.random.Generator, saved: Array) -> None:
    """Put a generator where `rng_state` was taken."""
    a, b, c, d, has, last = (int(x) for x in saved)
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": a | b << 64, "inc": c | d << 64},
        "has_uint32": has,
        "uinteger": last,
    }
