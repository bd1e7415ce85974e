"""`marlctl plot`: learning curves of one run or of many."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marlctl.cli import show
from marlctl.cli.flags import RUNS, SaveDir

if TYPE_CHECKING:
    from marlctl.plotting import Curve
    from marlctl.rundir import RunFolder


class X(str, Enum):
    """What runs along the bottom."""

    steps = "steps"
    episodes = "episodes"
    time = "time"


class Format(str, Enum):
    """What a figure can be saved as."""

    png = "png"
    svg = "svg"
    pdf = "pdf"


Runs = Annotated[
    list[str] | None,
    typer.Argument(help="Run folders or names, or folders of runs; the newest when left out.", show_default=False),
]


def plot(
    runs: Runs = None,
    metric: Annotated[str, typer.Option("--metric", help="What to draw, as metrics.jsonl calls it.")] = "return.total",
    evals: Annotated[bool, typer.Option("--eval", help="Draw the evaluations instead of training.")] = False,
    x: Annotated[X, typer.Option("--x", help="What runs along the bottom.")] = X.steps,
    smooth: Annotated[int, typer.Option("--smooth", min=1, help="Average over so many rows.")] = 1,
    title: Annotated[str | None, typer.Option("--title", help="A line above the figure.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write.", show_default=False)] = None,
    format: Annotated[Format | None, typer.Option("--format", help="Kind of file.", show_default="png")] = None,
    plots_dir: Annotated[
        Path | None,
        typer.Option("--plots-dir", help="Folder to write to.", show_default="the run's plots, or learning_curves"),
    ] = None,
    save_dir: SaveDir = RUNS,
) -> None:
    """Draw learning curves; several runs are averaged over their seeds, with 95 % bands."""
    from marlctl import plotting
    from marlctl.storage.files import write_whole

    name = f"eval.{metric}" if evals and not metric.startswith("eval.") else metric
    folders = _find(save_dir, runs or [])
    curves = _read(folders, name, x, smooth)
    path, kind = _target(out, format, plots_dir or _folder(folders), _stem(curves, name, x))
    if len(plotting.one_a_seed(curves)) < len(curves):
        show.say("some runs repeat the seed of another with the same options; the newest of each counts")
    look = plotting.Look(plotting.y_label(name), x.value, title or _title(curves), _goal(folders, name))
    data = plotting.draw(plotting.bands(curves), look, kind.value)
    _make(path.parent)
    write_whole(path, data)
    typer.echo(path)


def _find(save_dir: Path, names: list[str]) -> list[RunFolder]:
    """The runs that are named, oldest first and each once; a folder that is no run stands for all below it."""
    from marlctl.rundir import RUN_FILE, RunFolder, find, is_run

    if not names:
        return [find(save_dir)]
    found: dict[Path, RunFolder] = {}
    for name in names:
        below = [] if is_run(Path(name)) else [path.parent for path in Path(name).glob(f"**/{RUN_FILE}")]
        runs = [path for path in below if ".old-" not in path.name and not set(path.parents) & set(below)]
        for folder in [RunFolder(path) for path in runs] or [find(save_dir, name)]:
            found[folder.path.resolve()] = folder
    return sorted(found.values(), key=lambda folder: folder.created)


def _read(folders: list[RunFolder], metric: str, x: X, smooth: int) -> list[Curve]:
    """Their curves; a run that has none, not having begun say, is left out as long as others have one."""
    from marlctl.errors import ConfigError
    from marlctl.plotting import read_curve

    curves, reasons = [], []
    for folder in folders:
        try:
            curves.append(read_curve(folder, metric, x=x.value, smooth=smooth))
        except ConfigError as error:
            reasons.append(error)
    if not curves:
        raise reasons[0]
    for reason in reasons:
        show.say(f"left out: {reason}")
    return curves


def _folder(folders: list[RunFolder]) -> Path:
    return folders[0].path / "plots" if len(folders) == 1 else Path("learning_curves")


def _stem(curves: list[Curve], metric: str, x: X) -> str:
    scenarios = sorted({curve.scenario for curve in curves})
    words = [*([] if len(curves) == 1 else scenarios), metric, *([] if x is X.steps else [x.value])]
    return re.sub(r"[^\w+=]+", "-", "-".join(words))[:150]


def _title(curves: list[Curve]) -> str | None:
    """The scenario, where it is one; otherwise the legend tells them apart."""
    scenarios = {curve.scenario for curve in curves}
    return scenarios.pop() if len(scenarios) == 1 else None


def _goal(folders: list[RunFolder], metric: str) -> float | None:
    """The score at which the runs' task is solved, where it is one task and its plugin is there to say so."""
    from marlctl.errors import MarlctlError

    if metric.removeprefix("eval.") != "score":
        return None
    try:
        goals = {getattr(folder.config().env, "solved_at", None) for folder in folders}
    except MarlctlError:
        return None
    return goals.pop() if len(goals) == 1 else None


def _target(out: Path | None, format: Format | None, folder: Path, stem: str) -> tuple[Path, Format]:
    """Where to write, and what: the file's ending decides unless --format does."""
    from marlctl.errors import ConfigError

    if out is None:
        kind = format or Format.png
        return folder / f"{stem}.{kind.value}", kind
    ending = out.suffix.lower().removeprefix(".")
    if format is not None and ending in ("", format.value):
        return out, format
    if ending not in list(Format):
        raise ConfigError(f"--out {out} must end with .png, .svg or .pdf")
    if format is not None:
        raise ConfigError(f"--out {out} and --format {format.value} ask for two kinds of file")
    return out, Format(ending)


def _make(folder: Path) -> None:
    from marlctl.errors import StorageError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {folder}: {error.strerror}") from error
