"""`marlctl plugins`: what is installed, and which options it has."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from marlctl.cli import complete, show
from marlctl.cli.flags import Json

app = typer.Typer(help="Algorithms, scenarios and coding schemes that are installed.", no_args_is_help=True)


@app.command("list")
def list_(json: Json = False) -> None:
    """List every plugin; nothing of them is imported."""
    from marlctl.plugins import Kind, installed

    found = [
        {"kind": kind.word, "name": p.name, "package": p.package, "version": p.version, "entry": p.entry.value}
        for kind in Kind
        for p in installed(kind)
    ]
    clashes = {
        (f["kind"], f["name"])
        for i, f in enumerate(found)
        for g in found[:i]
        if (f["kind"], f["name"]) == (g["kind"], g["name"])
    }
    if json:
        return show.as_json({"plugins": found})
    rows = [[f["kind"], f["name"], f"{f['package']} {f['version']}"] for f in found]
    show.table(["kind", "name", "package"], rows)
    for kind, name in sorted(clashes):
        show.say(f"two plugins are called {name!r} ({kind}); say which with package:{name}")
    return None


@app.command("show")
def show_(
    name: Annotated[
        str, typer.Argument(help="An algorithm, a scenario or a coding scheme.", autocompletion=complete.plugins)
    ],
    json: Json = False,
) -> None:
    """Show a plugin's options with their types, defaults and meaning."""
    from marlctl.options import describe, type_name

    if names := _family(name):
        return _show_family(name, names, json)
    plugin = _load(name)
    options = describe(plugin)
    takes = getattr(plugin, "takes", None)  # what an environment accepts that gets its options as they are
    doc = (plugin.__doc__ or "").strip().partition("\n")[0]
    if json:
        listed = [
            {
                "name": o.name,
                "type": type_name(o.type),
                "default": _default(o.default),
                "allowed": o.allowed,
                "help": o.help,
            }
            for o in options
        ]
        return show.as_json({"name": name, "help": doc, "options": listed, "takes": takes and list(takes)})
    show.say(doc)
    rows = [[o.name, str(_default(o.default)), o.allowed, o.help] for o in options]
    if rows:
        show.table(["option", "default", "allowed", "meaning"], rows)
    if getattr(plugin, "open_options", None):
        show.say("options are passed on to the environment as they are: --set env.NAME=VALUE")
        typer.echo("\n".join(takes or ()), nl=bool(takes))
    elif not rows:
        show.say("it has no options")
    return None


def _family(name: str) -> list[str]:
    """The scenarios of the family of that name; a family that is asked for what cannot be says what it has."""
    from marlctl import plugins
    from marlctl.errors import ConfigError

    if name not in {p.name for p in plugins.installed(plugins.Kind.FAMILY)}:
        return []
    try:
        plugins.environment(f"{name}/{'?' * 99}")
    except ConfigError as error:
        return re.findall(rf"\b{re.escape(name)}/[\w.-]*\w", str(error)) or [f"{name}/NAME"]
    return [f"{name}/NAME"]


def _show_family(name: str, names: list[str], json: bool) -> None:
    if json:
        return show.as_json({"name": name, "kind": "scenario family", "scenarios": names})
    show.say(f"{name} is a family of scenarios; `marlctl plugins show {names[0]}` shows one of them")
    typer.echo("\n".join(names))
    return None


def _default(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value if isinstance(value, bool | int | float | str) else None


def _load(name: str) -> type:
    from marlctl import plugins
    from marlctl.errors import ConfigError
    from marlctl.options import unknown

    short = name.rpartition(":")[2]
    names = {kind: {p.name for p in plugins.installed(kind)} for kind in plugins.Kind}
    if short in names[plugins.Kind.ALGORITHM]:
        return plugins.algorithm(name)
    if short in names[plugins.Kind.SCHEME]:
        return plugins.scheme(name)
    try:
        return plugins.environment(name)
    except ConfigError:
        if "/" in name or ":" in name:
            raise
        everything = sorted(set().union(*names.values()) - names[plugins.Kind.FAMILY])
        raise ConfigError(unknown(name, everything, what="plugin")) from None
