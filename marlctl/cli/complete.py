"""Shell completion from installed metadata: no plugin and no torch is imported for it."""

from __future__ import annotations


def algorithms(incomplete: str) -> list[str]:
    """Names of algorithms."""
    from marlctl.plugins import Kind, installed

    return [p.name for p in installed(Kind.ALGORITHM) if p.name.startswith(incomplete)]


def scenarios(incomplete: str) -> list[str]:
    """Names of scenarios, and of families with a slash."""
    from marlctl.plugins import Kind, installed

    names = [p.name for p in installed(Kind.ENVIRONMENT)] + [f"{p.name}/" for p in installed(Kind.FAMILY)]
    return [name for name in names if name.startswith(incomplete)]


def runs(incomplete: str) -> list[str]:
    """Names of runs in the usual place."""
    from marlctl.cli.flags import RUNS
    from marlctl.rundir import find_all

    return [run.path.name for run in find_all(RUNS) if run.path.name.startswith(incomplete)]
