"""`marlctl eval`: how good a trained run is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from marlctl.cli import show
from marlctl.cli.flags import RUNS, Json, RunName, SaveDir, Which


def evaluate(
    run: RunName = None,
    episodes: Annotated[int, typer.Option("--episodes", min=1, help="Episodes to play.")] = 100,
    which: Which = "last",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the games that are played.")] = 0,
    deterministic: Annotated[
        bool | None,
        typer.Option(
            "--deterministic/--stochastic",
            help="Take the best action, or draw from the policy.",
            show_default="as the algorithm means it",
        ),
    ] = None,
    benchmark: Annotated[
        bool, typer.Option("--benchmark", help="Report and save the scenario's own diagnostics too.")
    ] = False,
    benchmark_iters: Annotated[
        int | None,
        typer.Option(
            "--benchmark-iters",
            min=1,
            help="Play so many steps, to the end of the episode, instead of --episodes.",
            show_default=False,
        ),
    ] = None,
    benchmark_dir: Annotated[
        Path | None,
        typer.Option("--benchmark-dir", help="Where --benchmark saves.", show_default="the run's own folder"),
    ] = None,
    save_dir: SaveDir = RUNS,
    json: Json = False,
) -> None:
    """Play a trained run's policy and report its returns."""
    from marlctl.errors import ConfigError
    from marlctl.evaluation import evaluate, save_scores
    from marlctl.rundir import find

    if not benchmark and (benchmark_iters or benchmark_dir):
        raise ConfigError("--benchmark-iters and --benchmark-dir go with --benchmark")
    folder = find(save_dir, run)
    mode = None if deterministic is None else "greedy" if deterministic else "sample"
    scores = evaluate(
        folder,
        episodes=None if benchmark_iters else episodes,
        steps=benchmark_iters or 0,
        which=which,
        seed=seed,
        mode=mode,  # type: ignore[arg-type]
        diagnostics=benchmark,
    )
    summary = {**scores.summary(), "run": str(folder.path)}
    written = save_scores(scores, summary, benchmark_dir or folder.path / "benchmark", which) if benchmark else []
    if json:
        return show.as_json({**summary, "files": [str(path) for path in written]})
    _tables(summary)
    if benchmark and not scores.diagnostics:
        show.say("this scenario has no diagnostics of its own; the returns above are all there is")
    for path in written:
        show.say(f"saved {path}")
    return None


def _tables(summary: dict[str, Any]) -> None:
    rows = [["in all", summary["total"]]]
    if len(summary["teams"]) > 1:
        rows += [[f"team {team}", value] for team, value in summary["teams"].items()]
    rows += [[agent, value] for agent, value in summary["agents"].items()]
    shown = [[name, f"{v['mean']:.3f}", f"{v['ci95'][0]:.3f}", f"{v['ci95'][1]:.3f}"] for name, v in rows]
    title = f"{summary['run']}, {show.count(summary['episodes'], 'episode')} of {summary['length']:.1f} steps"
    show.table(["return", "mean", "95 % from", "to"], shown, title=title)
    measures = [
        [name, agent, *(f"{values[how]:.3f}" for how in ("per_step", "per_episode", "final"))]
        for name, agents in summary.get("diagnostics", {}).items()
        for agent, values in agents.items()
    ]
    if measures:
        show.table(["diagnostic", "agent", "a step", "an episode", "at the end"], measures)
