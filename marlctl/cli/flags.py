"""Flags and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marlctl.cli import complete

if TYPE_CHECKING:
    from marlctl.records import Mode

SaveDir = Annotated[Path, typer.Option("--save-dir", help="Folder the runs are kept in.")]
RunName = Annotated[
    str | None,
    typer.Argument(
        help="Run folder, or the name of a run; the newest when left out.",
        show_default=False,
        autocompletion=complete.runs,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Which = Annotated[str, typer.Option("--which", help="Checkpoint to use: best, last or a step.")]
Deterministic = Annotated[
    bool | None,
    typer.Option(
        "--deterministic/--stochastic",
        help="Take the best action, or draw from the policy.",
        show_default="as the algorithm means it",
    ),
]
RUNS = Path("runs")


def mode_of(deterministic: bool | None) -> Mode | None:
    """How a policy plays, where the user said."""
    return None if deterministic is None else "greedy" if deterministic else "sample"


def run_path(name: str | None, save_dir: Path, flag: str) -> str | None:
    """The folder of a run that a flag names, wherever we are."""
    if name is None:
        return None
    from marlctl.errors import ConfigError
    from marlctl.rundir import find

    try:
        return str(find(save_dir, name).path.resolve())
    except ConfigError as error:
        raise ConfigError(f"{flag}: {error}") from error


def parse_policies(pairs: list[str], save_dir: Path, flag: str) -> dict[str, str]:
    """`agent*=random` and `agent*=RUN` as agent pattern to "random" or a run folder."""
    from marlctl.errors import ConfigError

    policies = {}
    for pair in pairs:
        pattern, equals, who = pair.partition("=")
        if not (pattern and equals and who):
            raise ConfigError(f"{flag} {pair!r} must look like 'agent*=random' or 'agent*=RUN'")
        policies[pattern] = who if who == "random" else str(run_path(who, save_dir, f"{flag} {pair}"))
    return policies
