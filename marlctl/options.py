"""Options are the fields of a frozen dataclass: described, read from text, checked, and built here.

A plain field works; `option` adds the help text and the allowed range::

    @dataclass(frozen=True)
    class MADDPG:
        gamma: float = option(0.95, "discount of future rewards", low=0, high=1)
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import sys
import types
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from marlctl.errors import ConfigError, PluginError

P = TypeVar("P")


def option(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
) -> Any:
    """A dataclass field with a help text and bounds (`low` and `high` allowed themselves, `above` not)."""
    bounds = {"low": low, "high": high, "above": above}
    return dataclasses.field(default=default, metadata={"help": help, **bounds})


def changed(plugin: P, **fields: Any) -> P:
    """The same plugin but for these fields, which need not be options.

    `dataclasses.replace` would forget what was set in fields with `init=False`.
    """
    twin = copy(plugin)
    twin.__dict__.update(fields)
    return twin


@dataclass(frozen=True)
class Option:
    """One option as a user sees it."""

    name: str
    type: Any
    default: Any
    help: str
    bounds: Mapping[str, float]

    @property
    def allowed(self) -> str:
        """What may stand here, in words."""
        words = {"low": "at least", "above": "above", "high": "at most"}
        limits = [f"{words[name]} {bound:g}" for name, bound in self.bounds.items()]
        return " ".join([type_name(self.type), " and ".join(limits)]).strip(" ,")


def describe(plugin: type) -> tuple[Option, ...]:
    """The options of a plugin, in the order its author wrote them."""
    try:
        hints = get_type_hints(plugin)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise PluginError(
            f"{plugin.__module__}.{plugin.__qualname__} has an option of unknown type: {error}"
        ) from error
    open_field = getattr(plugin, "open_options", None)
    return tuple(
        Option(
            f.name,
            hints[f.name],
            f.default,
            f.metadata.get("help", ""),
            {k: f.metadata[k] for k in ("low", "above", "high") if f.metadata.get(k) is not None},
        )
        for f in dataclasses.fields(plugin)
        if f.init and f.name != open_field
    )


def build(plugin: type, values: Mapping[str, Any], *, owner: str) -> Any:
    """Make the plugin with these options, each of its declared type and in its range."""
    known = {o.name: o for o in describe(plugin)}
    open_field: str | None = getattr(plugin, "open_options", None)
    given: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in values.items():
        if name in known:
            given[name] = convert(value, known[name], where=f"{owner}.{name}")
        elif open_field:
            extra[name] = convert(value, Option(name, Any, None, "", {}), where=f"{owner}.{name}")
        else:
            raise ConfigError(unknown(f"{owner}.{name}", [f"{owner}.{k}" for k in known], what="option"))
    if extra:
        given[str(open_field)] = extra
    try:
        return plugin(**given)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{owner}: {error}") from error


def unknown(name: str, known: list[str], *, what: str) -> str:
    """One line that says the name is not known and which ones are near, or which there are."""
    near = get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f"no {what} {name!r}; did you mean {', '.join(near)}?"
    return f"no {what} {name!r}; there is {', '.join(sorted(known)) or 'none'}"


def convert(value: Any, option: Option, *, where: str) -> Any:
    """`value` as the option's type, or a ConfigError that says what is allowed."""
    try:
        result = _as_type(value, option.type)
    except (ValueError, OverflowError):
        raise ConfigError(f"{where} is {_shown(value)}; it must be {option.allowed}") from None
    for number in result if isinstance(result, tuple) else (result,):
        if isinstance(number, int | float) and not isinstance(number, bool) and not _within(number, option.bounds):
            raise ConfigError(f"{where} is {_shown(value)}; it must be {option.allowed}")
    return result


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python does not print whole numbers of thousands of digits
        return "a huge number"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _within(number: float, bounds: Mapping[str, float]) -> bool:
    return (
        -sys.float_info.max <= number <= sys.float_info.max  # not NaN, not infinite, no whole number beyond floats
        and number >= bounds.get("low", -math.inf)
        and number > bounds.get("above", -math.inf)
        and number <= bounds.get("high", math.inf)
    )


def _as_type(value: Any, kind: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return _as_any(value)
    if origin in (Union, types.UnionType):
        return _as_union(value, arguments)
    if origin is Literal:
        if str(value) in map(str, arguments):
            return next(a for a in arguments if str(a) == str(value))
        raise ValueError
    if origin is tuple:
        if not isinstance(value, str | list | tuple):
            raise ValueError
        parts = [p for p in value.strip("[]()").split(",") if p.strip()] if isinstance(value, str) else value
        return tuple(_as_type(p.strip() if isinstance(p, str) else p, arguments[0]) for p in parts)
    return _as_plain(value, kind)


def _as_any(value: Any) -> Any:
    if isinstance(value, str):
        return literal(value)
    if value is None or is_plain(value):
        return value
    raise ValueError


def is_plain(value: Any) -> bool:
    """Whether a run file can hold such a value."""
    if isinstance(value, list | tuple):
        return all(is_plain(part) for part in value)
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and is_plain(part) for name, part in value.items())
    return isinstance(value, bool | int | float | str | datetime.date | datetime.time)


def _as_union(value: Any, kinds: tuple[Any, ...]) -> Any:
    if type(None) in kinds and (value is None or value in ("none", "None", "")):
        return None
    for kind in kinds:
        if kind is not type(None):
            try:
                return _as_type(value, kind)
            except (ValueError, OverflowError):
                continue
    raise ValueError


def _as_plain(value: Any, kind: type) -> Any:
    if kind is bool:
        words = {
            "true": True,
            "yes": True,
            "on": True,
            "1": True,
            "false": False,
            "no": False,
            "off": False,
            "0": False,
        }
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in words:
            return words[value.lower()]
        raise ValueError
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError
    if kind is int:
        number = float(value)
        if not number.is_integer():
            raise ValueError
        return int(value) if not isinstance(value, float) and "e" not in str(value).lower() else int(number)
    if kind is str and not isinstance(value, str):
        raise ValueError
    return kind(value)


def literal(text: str) -> Any:
    """Text as the number, truth value or list it looks like, else as it stands."""
    for kind in (int, float, bool):
        try:
            return _as_plain(text, kind)
        except (ValueError, OverflowError):
            continue
    if text.startswith("[") and text.endswith("]"):
        return [literal(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    return None if text in ("none", "None") else text


def type_name(kind: Any) -> str:
    """A type as a user would say it."""
    names = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "text",
        type(None): "none",
        Any: "a value",
    }
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(type_name(a) for a in arguments)
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is tuple:
        return f"a list, each {type_name(arguments[0])},"
    return names.get(kind, getattr(kind, "__name__", str(kind)))
