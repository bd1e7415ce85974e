"""PettingZoo's own environments, by the names of its registry: `sisl/pursuit_v5`, `butterfly/pistonball`, ...

Each family is a function from a name to a class of options; the options are the keywords that the
environment takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from marlctl.errors import ConfigError, PluginError
from marlctl.options import unknown

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

__all__ = ["atari", "butterfly", "classic", "sisl"]

B = TypeVar("B", bound="Bounded")


@dataclass(frozen=True)
class Registered:
    """An environment of PettingZoo's registry."""

    open_options: ClassVar[str] = "kwargs"
    id: ClassVar[str]
    takes: ClassVar[tuple[str, ...] | None]  # its keywords; None where its code does not tell

    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.kwargs:
            if self.takes is not None and name not in self.takes:
                raise ConfigError(unknown(name, list(self.takes), what=f"option of {self.id}"))

    def make(self, *, render_mode: str | None = None) -> ParallelEnv[str, Any, Any]:
        import pettingzoo  # noqa: PLC0415 (listing plugins must not pay for it)

        given = {**self.kwargs, **({"render_mode": render_mode} if render_mode else {})}
        try:
            env: ParallelEnv[str, Any, Any] = pettingzoo.make("parallel", self.id, **given)
        except (TypeError, ValueError, AssertionError) as error:
            raise ConfigError(f"{self.id} cannot be made with {given or 'its defaults'}: {error}") from error
        return env


@dataclass(frozen=True)
class Bounded(Registered):
    """One that takes the length of its episodes."""

    def with_length(self: B, steps: int) -> B:
        return replace(self, kwargs={**self.kwargs, "max_cycles": steps})


def atari(name: str) -> type[Registered]:
    """Atari games for several players."""
    return _registered("atari", name, "pip install 'pettingzoo[atari]'")


def butterfly(name: str) -> type[Registered]:
    """Cooperative games on a screen."""
    return _registered("butterfly", name, "pip install 'pettingzoo[butterfly]'")


def classic(name: str) -> type[Registered]:
    """Board and card games; the few of them where all act at once."""
    return _registered("classic", name, "pip install 'pettingzoo[classic]'")


def sisl(name: str) -> type[Registered]:
    """Cooperative benchmarks of the Stanford Intelligent Systems Laboratory."""
    return _registered("sisl", name, "pip install 'marlctl[sisl]'")


def _registered(family: str, name: str, remedy: str) -> type[Registered]:
    found = _find(family, name)
    try:
        return _options_class(found.id, found.entry_point.partition(":")[0])
    except ImportError as error:
        raise PluginError(f"{found.id} needs a package that is missing ({error}); install it: {remedy}") from error


@cache
def _options_class(id: str, module: str) -> type[Registered]:
    takes = _keywords(import_module(module))
    base = Bounded if takes and "max_cycles" in takes else Registered
    name = id.rpartition("/")[2].replace("-", "_")
    return type(name, (base,), {"id": id, "takes": takes, "__doc__": f"PettingZoo's {id}."})


def _find(family: str, name: str) -> Any:
    """The registry's entry; without a version the newest."""
    import pettingzoo  # noqa: PLC0415
    from pettingzoo.env_registry.exceptions import PettingZooRegistryError  # noqa: PLC0415

    try:
        return pettingzoo.spec("parallel", f"{family}/{name}")
    except PettingZooRegistryError:
        pass
    try:
        turns = pettingzoo.spec("aec", f"{family}/{name}")
    except PettingZooRegistryError:
        known = [s.id.replace("-v", "_v") for s in pettingzoo.parallel_registry.values() if s.namespace == family]
        raise ConfigError(unknown(f"{family}/{name}", known, what="scenario")) from None
    raise ConfigError(f"{turns.id} is played in turns; marlctl plays environments where all agents act at once")


def _keywords(module: Any) -> tuple[str, ...] | None:
    """What the environment takes, where the signature of its innermost class lists it."""
    for inner in (getattr(module, "_env", None), getattr(module, "raw_env", None)):
        if inner is not None:
            parameters = inspect.signature(inner).parameters
            if all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters.values()):
                return tuple(name for name in parameters if name != "render_mode")
    return None
