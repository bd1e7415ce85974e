"""The command line: the only place that parses, prints and exits. One file a command.

Commands import what is heavy inside their functions, so that help and completion stay quick.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated

import typer

from marlctl._version import __version__
from marlctl.cli import bench, doctor, evaluate, inspect, plot, plugins, render, runs, train
from marlctl.cli.show import complain, say
from marlctl.errors import MarlctlError, StorageError

app = typer.Typer(
    name="marlctl",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Begin with [bold]marlctl train --algo maddpg --scenario simple_tag[/bold].",
)
app.command("train")(train.train)
app.command("eval")(evaluate.evaluate)
app.command("render")(render.render)
app.command("plot")(plot.plot)
app.add_typer(runs.app, name="runs")
app.add_typer(plugins.app, name="plugins")
app.command("inspect")(inspect.inspect)
app.add_typer(bench.app, name="bench")
app.command("doctor")(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"marlctl {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """One command for multi-agent reinforcement learning: train, eval, render, plot."""


def main() -> None:
    """Run a command; what goes wrong becomes one message and an exit code."""
    debug = "--debug" in sys.argv[1:]
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us; then nobody listens
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "hide")  # stdout is for results
    try:
        try:
            app(args=[argument for argument in sys.argv[1:] if argument != "--debug"])
        finally:
            sys.stdout.flush()  # a full or closed stdout is noticed here, not when Python ends
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # `| head` has seen enough
        sys.exit(0)
    except KeyboardInterrupt:
        say("stopped at once; the last checkpoint is what there is")
        sys.exit(130)
    except Exception as error:
        if debug:
            raise
        code, message = _verdict(error)
        complain(message)
        sys.exit(code)


def _verdict(error: Exception) -> tuple[int, str]:
    """The exit code of an error, and what to say of it."""
    if isinstance(error, MarlctlError):
        return error.exit_code, str(error)
    if isinstance(error, MemoryError):
        return 2, f"this needs more memory than there is ({error or 'no more is given'}); choose smaller sizes"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return StorageError.exit_code, "the disk is full; free some space"
    bug = f"a bug in marlctl: {type(error).__name__}: {error}"
    return 1, f"{bug}\nplease report it, with what the same command says with --debug"
