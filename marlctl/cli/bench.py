"""`marlctl bench`: what this machine does with a scenario and an algorithm."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import Annotated, Any

import typer

from marlctl.cli import complete, show
from marlctl.cli import train_flags as flags
from marlctl.cli.flags import Json

app = typer.Typer(help="How fast things are on this machine.", no_args_is_help=True)

Scenario = Annotated[str, typer.Option("--scenario", "-s", help="Scenario.", autocompletion=complete.scenarios)]
Algo = Annotated[str, typer.Option("--algo", "-a", help="Algorithm.", autocompletion=complete.algorithms)]
Seconds = Annotated[float, typer.Option("--seconds", help="About how long to measure.", min=0.1, max=3600)]


@app.command("speed")
def measure_speed(
    scenario: Scenario = "simple_tag",
    algo: Algo = "maddpg",
    num_envs: flags.NumEnvs = None,
    threads: flags.Threads = None,
    set_: flags.Set = None,
    seconds: Seconds = 24.0,
    json: Json = False,
) -> None:
    """Measure environment steps, updates and training steps on this machine, in about half a minute.

    Nothing is kept. For example: marlctl bench speed --scenario simple_spread --num-envs 16
    """
    from marlctl import speed
    from marlctl.config import merge, parse_set
    from marlctl.training import Stopped

    run = {"scenario": scenario, "algo": algo, "num_envs": num_envs, "threads": threads, "steps": speed.FOREVER}
    run = {name: value for name, value in run.items() if value is not None}
    config = speed.smaller(merge({"run": run}, parse_set(set_ or [], scenario, algo)))
    show.say(f"measuring {algo} on {scenario} for about {seconds:.0f} s; other programs that run now slow it down")
    try:
        with redirect_stdout(sys.stderr):  # what a scenario prints is talk
            report = speed.measure(config, seconds)
    except Stopped as stopped:
        show.say("stopped; nothing was kept")
        raise typer.Exit(stopped.exit_code) from stopped
    if json:
        return show.as_json(report)
    _show(report)
    return None


# -- showing ------------------------------------------------------------------------------------


def _show(report: dict[str, Any]) -> None:
    rows = [
        [f"environment, {_copies(int(n))}, random actions", f"{rate:,.0f} steps/s"]
        for n, rate in report["environment_steps_a_second"].items()
    ]
    trained = report["training_steps_a_second"]
    copies = _copies(report["num_envs"])
    threads = show.count(report["threads"], "thread")
    if trained is None:
        rows.append([f"training, {copies}", "no update came in time"])
    else:
        rows += [
            [f"an update of every agent, {threads}", f"{report['update_ms']:.2f} ms"],
            [f"training, {copies}, {threads}", f"{trained:,.0f} steps/s"],
        ]
    show.table(["what", "speed"], rows, title=f"{report['algo']} on {report['scenario']}")
    parts = sorted(report["time"].items(), key=lambda part: -part[1])
    if parts:
        typer.echo("time of training: " + ", ".join(f"{name} {part:.0%}" for name, part in parts if part >= 0.005))


def _copies(n: int) -> str:
    return "1 copy" if n == 1 else f"{n:,} copies"
