"""`marlctl doctor`: what is installed, and whether it works."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from marlctl.cli import show
from marlctl.cli.flags import Json

if TYPE_CHECKING:
    from marlctl.plugins import Plugin

PACKAGES = ("marlctl", "torch", "numpy", "pettingzoo", "gymnasium", "mpe2", "h5py", "matplotlib", "pillow", "typer")
_SECONDS = 120  # a plugin may take to be imported
# A plugin is imported in a process of its own: it may crash, hang, or print whatever it likes.
_TRIAL = """
import os, sys
os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"
from marlctl import plugins
from marlctl.errors import MarlctlError
kind, name, package = sys.argv[1:]
chosen = [p for p in plugins.installed(plugins.Kind(kind)) if (p.name, p.package) == (name, package)]
try:
    plugins.load(chosen[0])
except MarlctlError as error:
    cause = error.__cause__
    missing = (cause.name or "").partition(".")[0] if isinstance(cause, ModuleNotFoundError) else ""
    if not missing or missing == chosen[0].entry.value.partition(":")[0].partition(".")[0]:
        sys.exit(str(error))
    others = {"PIL": "pillow", "cv2": "opencv-python", "sklearn": "scikit-learn", "yaml": "pyyaml"}
    sys.exit(
        f"plugin {name!r} of {chosen[0].origin} needs the module {missing!r}, which is missing; "
        f"install what it needs, probably with `pip install {others.get(missing, missing.replace('_', '-'))}`"
    )
"""


def doctor(json: Json = False) -> None:
    """Check this installation: versions, extras, plugins and the machine."""
    report = {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "core": _core(),
        "extras": _extras(),
        "plugins": _plugins(),
        "machine": _machine(),
    }
    if json:
        show.as_json(report)
    else:
        _show(report)
    if report["core"]:
        raise typer.Exit(1)


# -- looking ------------------------------------------------------------------------------------


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _core() -> list[str]:
    """What keeps marlctl itself from working."""
    problems = [f"{package} is missing" for package in _missing("marlctl", "")]
    why = _fails(["-c", "import marlctl.training, marlctl.plotting, marlctl.rendering, torch"])
    return problems + ([f"marlctl cannot be imported: {why}"] if why else [])


def _missing(package: str, extra: str) -> list[str]:
    """What `package[extra]` asks for and is not there; with no extra, what the package itself does."""
    from packaging.requirements import Requirement

    missing: list[str] = []
    for need in map(Requirement, metadata.requires(package) or []):
        always = need.marker is None or need.marker.evaluate({"extra": ""})
        if always is not (extra == "") or not (always or (need.marker and need.marker.evaluate({"extra": extra}))):
            continue
        found = _version(need.name)
        if found is None or not need.specifier.contains(found, prereleases=True):
            missing.append(f"{need.name}{need.specifier}")
        else:
            missing += [more for inner in sorted(need.extras) for more in _missing(need.name, inner)]
    return missing


def _extras() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in metadata.metadata("marlctl").get_all("Provides-Extra") or []:
        missing = _missing("marlctl", name)
        found[name] = {"missing": missing, "install": f"pip install 'marlctl[{name}]'" if missing else None}
    return found


def _plugins() -> list[dict[str, Any]]:
    from marlctl.plugins import Kind, installed

    every = [plugin for kind in Kind for plugin in installed(kind)]
    modules = {(p.package, p.entry.value.partition(":")[0]): p for p in every}
    # One import tells whether a module works at all; only where it does not are its plugins tried one by one.
    ill = {place for place, plugin in modules.items() if _try(plugin)}
    return [
        {"kind": p.kind.word, "name": p.name, "package": p.package, "version": p.version, "problem": problem}
        for p in every
        for problem in [_try(p) if (p.package, p.entry.value.partition(":")[0]) in ill else None]
    ]


def _try(plugin: Plugin) -> str | None:
    return _fails(["-c", _TRIAL, plugin.kind.value, plugin.name, plugin.package])


def _fails(arguments: list[str]) -> str | None:
    """The last thing a process said before it failed, or None."""
    try:
        child = subprocess.run([sys.executable, *arguments], capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it took more than {_SECONDS} s"
    if child.returncode == 0:
        return None
    lines = child.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"its process ended with {child.returncode}"


def _machine() -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "system": platform.platform(),
        "cores": cores,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "memory_free_bytes": _free(),
        **_torch(),
        "folder": str(Path.cwd()),
        "folder_writable": os.access(".", os.W_OK | os.X_OK),
    }


def _free() -> int | None:
    try:
        from marlctl.opening import free_memory
    except (ImportError, OSError):  # a core that cannot work is told of elsewhere
        return None
    return free_memory()


def _torch() -> dict[str, Any]:
    try:
        import torch
    except (ImportError, OSError):
        return {"torch_threads": None, "gpu": None}
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"torch_threads": torch.get_num_threads(), "gpu": gpu}


# -- showing ------------------------------------------------------------------------------------


def _show(report: dict[str, Any]) -> None:
    machine = report["machine"]
    free = "" if machine["memory_free_bytes"] is None else f", {show.size(machine['memory_free_bytes'])} free"
    show.facts(
        {
            "python": report["python"],
            **{name: version or "missing" for name, version in report["packages"].items()},
            "system": machine["system"],
            "cores": machine["cores"],
            "memory": f"{show.size(machine['memory_bytes'])}{free}",
            "torch threads": machine["torch_threads"],
            "gpu": machine["gpu"] or "none",
            "folder": f"{machine['folder']} ({'can' if machine['folder_writable'] else 'CANNOT'} be written)",
        }
    )
    extras = [[name, _lack(name, extra["missing"]), extra["install"] or ""] for name, extra in report["extras"].items()]
    show.table(["extra", "state", "to get it"], extras)
    show.table(["plugin", "package", "state", "names"], _plugin_rows(report))
    for plugin in report["plugins"]:
        if plugin["problem"]:
            show.say(plugin["problem"])
    for problem in report["core"]:
        show.complain(problem)
    typer.echo(_verdict(report))


def _plugin_rows(report: dict[str, Any]) -> list[list[str]]:
    """Plugins of one package in one state share a row."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for p in report["plugins"]:
        extra = report["extras"].get(p["name"].replace("-", ""), {})  # an extra bears the name of what it serves
        state = "BROKEN" if p["problem"] else extra.get("install") or "works"
        rows.setdefault((p["kind"], f"{p['package']} {p['version']}", state), []).append(p["name"])
    return [[*key, ", ".join(names)] for key, names in rows.items()]


def _verdict(report: dict[str, Any]) -> str:
    if report["core"]:
        return "marlctl cannot work; install it again: pip install --force-reinstall marlctl"
    ill = sum(plugin["problem"] is not None for plugin in report["plugins"])
    return "marlctl works" + {0: "", 1: "; 1 plugin does not"}.get(ill, f"; {ill} plugins do not")


def _lack(name: str, missing: list[str]) -> str:
    if missing and name == "test":
        return "not there, and only needed to develop marlctl"
    return f"missing: {', '.join(missing)}" if missing else "there"
