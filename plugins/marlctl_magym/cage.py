"""Importing ma-gym without gym.

ma-gym was written for a gym that is no longer maintained and that today's Pythons and numpys break. It
uses little of it, so while it is imported a small stand-in for gym, built on gymnasium, takes gym's
place. Afterwards `sys.modules` is as it was: whoever imports gym or ma-gym gets the real ones.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnasium
import numpy as np

from marlctl import seeding
from marlctl.records import Array


@dataclass(frozen=True)
class Registration:
    """What ma-gym hands to gym's `register`."""

    game: Callable[..., Any]
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@cache
def registered() -> dict[str, Registration]:
    """Every scenario that ma-gym registers, by its name."""
    entries: dict[str, tuple[str, Mapping[str, Any]]] = {}

    def register(id: str, entry_point: str, kwargs: Mapping[str, Any] | None = None) -> None:
        entries[id] = entry_point, kwargs or {}

    with _in_place_of_gym(_stand_in(register)):
        import_module("ma_gym")
        return {name: Registration(_load(entry), kwargs) for name, (entry, kwargs) in entries.items()}


def _load(entry_point: str) -> Callable[..., Any]:
    module, _, name = entry_point.partition(":")
    game: Callable[..., Any] = getattr(import_module(module), name)
    return game


@contextmanager
def _in_place_of_gym(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    before = _gyms()
    for name, module in before.items():
        if module is not None:  # None means: not to be imported
            del sys.modules[name]
    sys.modules.update(modules)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its documentation has backslashes that Python warns of
            yield
    finally:
        for name in _gyms():
            del sys.modules[name]
        sys.modules.update(before)


def _gyms() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ("gym", "ma_gym")}


def _stand_in(register: Callable[..., None]) -> dict[str, ModuleType]:
    """All of gym that ma-gym uses."""
    contents: dict[str, dict[str, Any]] = {
        "gym": {"Env": gymnasium.Env},
        "gym.spaces": {"Box": _box, "Discrete": gymnasium.spaces.Discrete, "space": gymnasium.spaces.space},
        "gym.envs": {"registry": SimpleNamespace(all=list)},  # of gym's own environments: none
        "gym.envs.registration": {"register": register},
        "gym.utils": {},
        "gym.utils.seeding": {"np_random": _np_random, "hash_seed": seeding.key},
    }
    modules = {name: ModuleType(name) for name in contents}
    for name, content in contents.items():
        vars(modules[name]).update(content)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, modules[name])
    return modules


def _box(low: Array, high: Array) -> gymnasium.spaces.Box:
    """Single precision, as with gym, but without a warning about bounds that are given in double."""
    return gymnasium.spaces.Box(low.astype(np.float32), high.astype(np.float32))


def _np_random(seed: int | None = None) -> tuple[np.random.RandomState, int | None]:
    """A generator of the old kind: the new one has no `randint`."""
    return np.random.RandomState(np.random.MT19937(seed)), seed
