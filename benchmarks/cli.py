"""`python -m benchmarks`: run contestants, and write the report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from benchmarks import machine, table
from benchmarks.contestants import CONTESTANTS, PARTS, PEERS, choose
from benchmarks.records import BenchmarkError, append, read
from benchmarks.schedule import ROOT, Runner, jobs
from benchmarks.text import tables

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
)

Only = Annotated[list[str] | None, typer.Option("--only", help=f"Part to run, again for more: {', '.join(PARTS)}.")]
Peers = Annotated[
    list[str] | None, typer.Option("--peers", help=f"Peer to run, again for more, or none: {', '.join(PEERS)}.")
]
Rounds = Annotated[int, typer.Option("--rounds", min=1, max=100, help="Times everything is measured.")]
Cache = Annotated[Path, typer.Option("--cache", help="Folder for virtual environments and measurements.")]
Scale = Annotated[float, typer.Option("--scale", min=0.01, max=100, help="Measure shorter or longer; 0.2 for a look.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Put what was measured aside instead of going on with it.")]
Target = Annotated[Path, typer.Option("--to", help="Folder to write RESULTS.md, results.json and results.png to.")]
Source = Annotated[Path | None, typer.Argument(help="Measurements: .jsonl of `run`, or .json of a report.")]
CACHE, FOLDER = ROOT / ".benchmarks", ROOT / "benchmarks"
FILE = "measurements.jsonl"
BUSY = 0.5  # processes that want to run, beside us


@app.callback(invoke_without_command=True)
def everything(context: typer.Context) -> None:
    """Measure marlctl and its peers. Without a command: run everything, then write the report."""
    if context.invoked_subcommand is None:
        run()
        report()


@app.command()
def run(
    only: Only = None,
    peers: Peers = None,
    rounds: Rounds = 3,
    scale: Scale = 1.0,
    cache: Cache = CACHE,
    fresh: Fresh = False,
) -> None:
    """Measure; what was measured already is not measured again, so that an interrupted run goes on."""
    path = cache / (FILE if scale == 1 else f"quick-{FILE}")  # a quick look never counts as a measurement
    try:
        contestants = choose(only or None, peers or None)
        if fresh and path.exists():
            path.rename(_aside(path))
        here = machine.describe()
        results = read(path) if path.exists() else None
        if results and results.measurements and results.machine.get("cpu") != here["cpu"]:
            raise BenchmarkError(f"{path} was measured on another machine; --fresh puts it aside")
        todo = jobs(contestants, rounds, results.done if results else set())
        _say(f"{len(todo)} processes to run; measurements go to {path}")
        if machine.load() > BUSY:
            _say(f"this machine is busy (load {machine.load():.1f}); numbers will be lower than they could be")
        runner = Runner(cache, scale, _say)
        for number, job in enumerate(todo, 1):
            found = runner.run(job)
            append(path, here, found)
            values = [f"{m.value:,.1f} {m.unit}" if m.value is not None else f"failed: {m.error}" for m in found]
            threads = f", {job.threads} threads" if job.threads else ""
            name = f"{job.contestant.part}, {job.contestant.name}{threads}, round {job.round}"
            _say(f"{number}/{len(todo)} {name}: {'; '.join(values)}")
        if path.exists():
            table.show(tables(read(path)))
    except BenchmarkError as error:
        _fail(error)
    except KeyboardInterrupt:
        _say("stopped; the same command goes on")
        raise typer.Exit(130) from None


@app.command()
def report(source: Source = None, to: Target = FOLDER) -> None:
    """Write RESULTS.md, results.json and results.png from what was measured, and show the tables."""
    from benchmarks.report import write

    try:
        results = read(source or CACHE / FILE)
        if not to.is_dir():
            raise BenchmarkError(f"--to {to} is no folder")
        write(results, to)
    except BenchmarkError as error:
        _fail(error)
    table.show(tables(results))
    typer.echo(to / "RESULTS.md")


@app.command("list")
def list_() -> None:
    """Show who would be measured in which part."""
    for c in CONTESTANTS:
        typer.echo(f"{c.part:8}{c.name:24}{c.peer or ''}")


def _aside(path: Path) -> Path:
    numbered = (path.with_name(f"{path.stem}-{n}{path.suffix}") for n in range(1, 10_000))
    return next(other for other in numbered if not other.exists())


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _fail(error: BenchmarkError) -> NoReturn:
    _say(f"error: {error}")
    sys.exit(2)
