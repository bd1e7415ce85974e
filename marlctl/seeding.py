"""Randomness by name: every stream follows from the run's seed and what it is for.

No stream depends on the process, the order of calls or the number of workers, so whoever computes a
number gets the same one.
"""

from __future__ import annotations

import hashlib

import numpy as np


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
