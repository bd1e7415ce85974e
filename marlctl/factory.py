"""A scenario given as `package.module:factory`: the factory's parameters become its options."""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, make_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pettingzoo import AECEnv, ParallelEnv

from marlctl.episodes import guarded
from marlctl.errors import ConfigError, PluginError
from marlctl.options import unknown

M = TypeVar("M", bound="MadeBounded")


class Made:
    """Base of the options classes that `from_path` makes."""

    _path: ClassVar[str]
    _factory: ClassVar[Callable[..., Any]]
    _parameters: ClassVar[tuple[str, ...]]
    _rendered: ClassVar[bool]  # whether the factory takes a render_mode
    open_options: ClassVar[str | None]

    def make(self, *, render_mode: str | None = None) -> ParallelEnv[str, Any, Any]:
        given = {name: getattr(self, name) for name in self._parameters}
        if self.open_options:
            given.update(given.pop(self.open_options))
        if self._rendered or (render_mode and self.open_options):
            given["render_mode"] = render_mode
        with _importable_here():
            env = guarded(self._path, "make", lambda: self._factory(**given))
        if isinstance(env, AECEnv):
            raise ConfigError(
                f"{self._path} gives an environment that is played in turns (AEC); marlctl needs a ParallelEnv"
            )
        if not isinstance(env, ParallelEnv):
            raise ConfigError(f"{self._path} gives a {type(env).__name__}; it must give a PettingZoo ParallelEnv")
        return env


class MadeBounded(Made):
    """One whose factory takes the length of its episodes."""

    def with_length(self: M, steps: int) -> M:
        return replace(self, max_cycles=steps)  # type: ignore[type-var] # every class made of this is a dataclass


def from_path(path: str) -> type:
    """The options class of the factory at `path`: a function or class that gives a ParallelEnv."""
    factory = _find(path)
    parameters = _parameters(factory, path)
    offered = [p for p in parameters.values() if p.name != "render_mode" and p.kind is not p.VAR_POSITIONAL]
    opened = next((p.name for p in offered if p.kind is p.VAR_KEYWORD), None)
    base = MadeBounded if "max_cycles" in parameters else Made
    return make_dataclass(
        path.rpartition(":")[2].replace(".", "_"),
        [_field(p) for p in offered],
        bases=(base,),
        namespace={
            "_path": path,
            "_factory": staticmethod(factory),
            "_parameters": tuple(p.name for p in offered),
            "_rendered": "render_mode" in parameters,
            "open_options": opened,
            "__doc__": inspect.getdoc(factory) or f"The scenario {path}.",
        },
        frozen=True,
        kw_only=True,
    )


def _find(path: str) -> Callable[..., Any]:
    name, _, attribute = path.partition(":")
    if not all(part.isidentifier() for part in (*name.split("."), *attribute.split("."))):
        raise ConfigError(f"{path!r} does not name a factory; write it as package.module:factory")
    found: Any = _import(name, path)
    for part in attribute.split("."):
        if not hasattr(found, part):
            callables = [public for public, value in vars(found).items() if callable(value) and public[0] != "_"]
            raise ConfigError(unknown(part, callables, what=f"factory in {name}:"))
        found = getattr(found, part)
    if not callable(found):
        raise ConfigError(
            f"{path} is a {type(found).__name__}; it must be a function or class that gives a ParallelEnv"
        )
    return found  # type: ignore[no-any-return]


def _import(name: str, path: str) -> types.ModuleType:
    try:
        with _importable_here():
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{name}.".startswith(f"{missing}."):
            raise ConfigError(
                f"no module {missing!r} for the scenario {path}; is it installed, or in this folder?"
            ) from error
        raise PluginError(f"module {name!r} cannot be imported: {type(error).__name__}: {error}") from error


@contextmanager
def _importable_here() -> Iterator[None]:
    """Find modules of the current folder, as `python -m` does."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(here)


def _parameters(factory: Callable[..., Any], path: str) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(factory, eval_str=True).parameters
    except (NameError, AttributeError):  # types that only a type checker knows
        return inspect.signature(factory).parameters
    except ValueError as error:
        raise ConfigError(f"{path} does not tell its parameters; wrap it in a function that does") from error


def _field(parameter: inspect.Parameter) -> tuple[str, Any, Any]:
    kind = parameter.annotation if _is_plain(parameter.annotation) else Any
    if parameter.kind is parameter.VAR_KEYWORD:
        return parameter.name, dict[str, Any], field(default_factory=dict)
    if parameter.default is parameter.empty:
        return parameter.name, kind, field()
    if type(parameter.default).__hash__ is None:  # dataclasses take no list or dict as it stands
        return parameter.name, kind, field(default_factory=lambda: parameter.default)
    return parameter.name, kind, field(default=parameter.default)


def _is_plain(hint: Any) -> bool:
    """Whether options can read such a type from text."""
    if get_origin(hint) in (Union, types.UnionType):
        return all(_is_plain(part) for part in get_args(hint))
    if get_origin(hint) is tuple:
        return _is_plain(get_args(hint)[0])
    return hint in (bool, int, float, str, type(None)) or get_origin(hint) is Literal
