"""The scenarios of ma-gym, by its own names: `ma-gym/Combat-v0`, `ma-gym/PredatorPrey5x5-v0`, ...

ma-gym's code runs unchanged. Its options are the keywords of its own classes.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from marlctl.errors import ConfigError, PluginError
from marlctl.options import unknown

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

__all__ = ["NAMES", "family"]

VERSIONS = {
    "Checkers": 4,
    "Combat": 1,
    "Lumberjacks": 2,
    "PongDuel": 1,
    "PredatorPrey5x5": 4,
    "PredatorPrey7x7": 4,
    "Switch2": 4,
    "Switch4": 4,
    "TrafficJunction4": 2,
    "TrafficJunction10": 2,
}
NAMES = tuple(f"{name}-v{version}" for name, many in VERSIONS.items() for version in range(many))

B = TypeVar("B", bound="Bounded")


@dataclass(frozen=True)
class MaGym:
    """A scenario of ma-gym."""

    open_options: ClassVar[str] = "kwargs"
    name: ClassVar[str]
    takes: ClassVar[tuple[str, ...]]  # its keywords

    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.kwargs:
            if name not in self.takes:
                raise ConfigError(unknown(name, list(self.takes), what=f"option of {self.name}"))

    def make(self, *, render_mode: str | None = None) -> ParallelEnv[str, Any, Any]:
        from marlctl_magym.env import MaGymEnv  # noqa: PLC0415 (imports pettingzoo)

        try:
            return MaGymEnv(self.name, self.kwargs, render_mode)
        except (TypeError, ValueError, AssertionError) as error:
            given = dict(self.kwargs) or "its defaults"
            raise ConfigError(f"ma-gym/{self.name} cannot be made with {given}: {error}") from error

    def diagnose(self, agent: str, info: Mapping[str, Any]) -> dict[str, float]:
        """What ma-gym tells beside the rewards, as numbers."""
        return dict(info)


@dataclass(frozen=True)
class Bounded(MaGym):
    """One whose episodes have a step limit."""

    def __post_init__(self) -> None:
        super().__post_init__()
        steps = self.kwargs.get("max_steps", 1)
        if not isinstance(steps, int) or steps < 1:
            raise ConfigError(f"env.max_steps must be a whole number of at least 1, not {steps!r}")

    def with_length(self: B, steps: int) -> B:
        return replace(self, kwargs={**self.kwargs, "max_steps": steps})


@dataclass(frozen=True)
class Duel(MaGym):
    """One whose agents play against each other."""

    def team(self, agent: str) -> str:
        return agent


def family(name: str) -> type[MaGym]:
    """The scenario that ma-gym calls `name`."""
    if name not in NAMES:
        raise ConfigError(unknown(f"ma-gym/{name}", [f"ma-gym/{known}" for known in NAMES], what="scenario"))
    try:
        return _options_class(name)
    except ImportError as error:
        raise PluginError(
            f"ma-gym/{name} needs a package that is missing ({error}); install it: pip install 'marlctl[magym]'"
        ) from error


@cache
def _options_class(name: str) -> type[MaGym]:
    from marlctl_magym.cage import registered  # noqa: PLC0415 (imports ma-gym)

    takes = tuple(inspect.signature(registered()[name].game).parameters)
    base = Duel if name.startswith("PongDuel") else Bounded if "max_steps" in takes else MaGym
    members = {"name": name, "takes": takes, "__doc__": f"ma-gym's {name}.", "__module__": __name__}
    return type(name.replace("-", "_"), (base,), members)
