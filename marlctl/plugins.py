"""Finding and loading plugins: by name, through installed entry points, one at a time.

Listing reads package metadata and imports nothing. Loading goes through stevedore, which is handed
the one entry point we found: its own cache can be stale, and of two plugins with one name it would
pick one silently.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from typing import Any, cast

from marlctl.errors import ConfigError, MarlctlError, PluginError
from marlctl.options import unknown


class Kind(Enum):
    """The groups plugins come in."""

    ALGORITHM = "marlctl.algorithms"
    ENVIRONMENT = "marlctl.environments"
    FAMILY = "marlctl.environment_families"
    SCHEME = "marlctl.coding_schemes"

    @property
    def word(self) -> str:
        return {"FAMILY": "scenario family", "SCHEME": "coding scheme"}.get(self.name, self.name.lower())


@dataclass(frozen=True)
class Plugin:
    """A plugin as its package's metadata announces it; nothing of it has been imported."""

    kind: Kind
    name: str
    package: str
    version: str
    entry: EntryPoint

    @property
    def origin(self) -> str:
        return f"{self.package} {self.version}"


def installed(kind: Kind) -> tuple[Plugin, ...]:
    """Every plugin of a kind, by name, from installed metadata."""
    found = {}
    for entry in _entries(kind.value):
        dist = entry.dist
        package, version = (dist.name or "?", dist.version or "?") if dist else ("?", "?")
        # One distribution can be seen twice when its folder is on the path twice.
        found[entry.name, package, entry.value] = Plugin(kind, entry.name, package, version, entry)
    return tuple(sorted(found.values(), key=lambda plugin: (plugin.name, plugin.package)))


def _entries(group: str) -> list[EntryPoint]:
    try:
        return list(entry_points(group=group))
    except (TypeError, ValueError, OSError):  # one package's file is damaged; the others are still there
        return [entry for dist in distributions() for entry in _whole(dist) if entry.group == group]


def _whole(dist: Distribution) -> list[EntryPoint]:
    try:
        return list(dist.entry_points)
    except (TypeError, ValueError, OSError):
        return []


def find(kind: Kind, name: str) -> Plugin:
    """The one plugin of this name; `package:name` chooses between two."""
    package, _, short = name.rpartition(":")
    plugins = installed(kind)
    hits = [p for p in plugins if p.name == short and package in ("", p.package)]
    if not hits:
        raise ConfigError(unknown(name, sorted({p.name for p in plugins}), what=kind.word))
    if len(hits) > 1:
        owners = " and ".join(p.origin for p in hits)
        choices = " or ".join(f"{p.package}:{p.name}" for p in hits)
        count = {2: "two"}.get(len(hits), len(hits))
        raise PluginError(f"{count} plugins are called {short!r}: {owners}; uninstall one, or say which: {choices}")
    return hits[0]


def load(plugin: Plugin) -> Any:
    """Import one plugin; whatever goes wrong in it becomes one PluginError."""
    from stevedore.driver import DriverManager  # noqa: PLC0415 (listing must not pay for it)

    class OneDriver(DriverManager[Any]):
        def list_entry_points(self) -> list[EntryPoint]:
            return [plugin.entry]

    try:
        with redirect_stdout(sys.stderr):  # stdout is for results
            return OneDriver(plugin.kind.value, plugin.name, on_load_failure_callback=_reraise).driver
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(
            f"plugin {plugin.name!r} of {plugin.origin} cannot be loaded: {type(error).__name__}: {error}; "
            f"repair it with `pip install --force-reinstall {plugin.package}` or remove it with "
            f"`pip uninstall {plugin.package}`"
        ) from error


def owner(plugin: type) -> str:
    """Package and version a plugin's class came with."""
    package = plugin.__module__.partition(".")[0]
    for kind in Kind:
        for known in installed(kind):
            if known.entry.module.partition(".")[0] == package:
                return known.origin
    return f"module {plugin.__module__}"


def _reraise(_manager: Any, _entry: EntryPoint, error: BaseException) -> None:
    raise error


def algorithm(name: str) -> type:
    """The options class of an algorithm."""
    return _checked(find(Kind.ALGORITHM, name), "build")


def scheme(name: str) -> type:
    """The options class of a coding scheme."""
    return _checked(find(Kind.SCHEME, name), "matrix")


def environment(scenario: str) -> type:
    """The options class of a scenario: `simple_tag`, `simple_tag_v3`, `mpe/simple_tag` or `module:factory`."""
    known = installed(Kind.ENVIRONMENT)
    packages = {p.package for p in (*known, *installed(Kind.FAMILY))}
    head, colon, _ = scenario.partition(":")
    if colon and head not in packages:
        from marlctl.factory import from_path  # noqa: PLC0415 (imports the user's module)

        return from_path(scenario)
    family, slash, rest = scenario.partition("/")
    if slash:
        return _from_family(find(Kind.FAMILY, family), rest)
    names = {p.name for p in known}
    package, colon, short = scenario.rpartition(":")
    plain, version = _without_version(short)
    if short in names or plain not in names:
        return _checked(find(Kind.ENVIRONMENT, scenario), "make")
    loaded = _checked(find(Kind.ENVIRONMENT, f"{package}{colon}{plain}"), "make")
    offered = getattr(loaded, "version", None)
    if version != offered:
        has = f"{plain}_{offered}" if offered else "no numbered versions"
        raise ConfigError(f"no scenario {scenario!r}; installed is {has}")
    return loaded


def _without_version(name: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.+?)[_-](v\d+)", name)
    return (match[1].replace("-", "_"), match[2]) if match else (name, "")


def _from_family(plugin: Plugin, name: str) -> type:
    family = cast("Callable[[str], type]", load(plugin))
    try:
        with redirect_stdout(sys.stderr):
            scenario = family(name)
    except (MarlctlError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise PluginError(
            f"{plugin.name}/{name} of {plugin.origin} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    return _fitting(plugin, scenario, "make")


def _checked(plugin: Plugin, method: str) -> type:
    return _fitting(plugin, load(plugin), method)


def _fitting(plugin: Plugin, loaded: Any, method: str) -> type:
    if not (isinstance(loaded, type) and hasattr(loaded, "__dataclass_fields__") and hasattr(loaded, method)):
        raise PluginError(
            f"plugin {plugin.name!r} of {plugin.origin} is not what a {plugin.kind.word} must be: "
            f"a dataclass with a method `{method}`"
        )
    return loaded
