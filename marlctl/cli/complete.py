"""Shell completion from installed metadata: no plugin and no torch is imported for it."""

from __future__ import annotations

from glob import escape as glob_escape


def algorithms(incomplete: str) -> list[str]:
    """Names of algorithms."""
    from marlctl.plugins import Kind, installed

    return [p.name for p in installed(Kind.ALGORITHM) if p.name.startswith(incomplete)]


def scenarios(incomplete: str) -> list[str]:
    """Names of scenarios, and of families with a slash."""
    from marlctl.plugins import Kind, installed

    names = [p.name for p in installed(Kind.ENVIRONMENT)] + [f"{p.name}/" for p in installed(Kind.FAMILY)]
    return [name for name in names if name.startswith(incomplete)]


def plugins(incomplete: str) -> list[str]:
    """Names that `plugins show` knows."""
    return algorithms(incomplete) + scenarios(incomplete)


def runs(incomplete: str) -> list[str]:
    """Names of runs in the usual place."""
    from pathlib import Path

    return sorted(path.parent.name for path in Path("runs").glob(f"*/*/{glob_escape(incomplete)}*/run.toml"))
