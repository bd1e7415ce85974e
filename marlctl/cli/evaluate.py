"""`marlctl eval`: how good a trained run is."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marlctl.cli import complete, show
from marlctl.cli.flags import RUNS, Deterministic, Json, SaveDir, Which, mode_of, parse_policies

if TYPE_CHECKING:
    from marlctl.rundir import RunFolder


def evaluate(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Run folder, or the name of a run; the newest when left out. Several with --cross.",
            show_default=False,
            autocompletion=complete.runs,
        ),
    ] = None,
    episodes: Annotated[int, typer.Option("--episodes", min=1, help="Episodes to play.")] = 100,
    which: Which = "last",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the games that are played.")] = 0,
    deterministic: Deterministic = None,
    agents: Annotated[
        list[str] | None,
        typer.Option(
            "--agents",
            help="Who plays whom: 'adversary*=RUN', or 'agent*=random'. May be given several times.",
            metavar="AGENTS=RUN",
            show_default=False,
        ),
    ] = None,
    cross: Annotated[
        bool, typer.Option("--cross", help="Let the first team of every run meet the others of every run.")
    ] = False,
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
    """Play a trained run's policy, or those of several runs in one game, and report the returns."""
    from marlctl.errors import ConfigError
    from marlctl.rundir import find

    if not benchmark and (benchmark_iters or benchmark_dir):
        raise ConfigError("--benchmark-iters and --benchmark-dir go with --benchmark")
    how: dict[str, Any] = {
        "episodes": None if benchmark_iters else episodes,
        "steps": benchmark_iters or 0,
        "which": which,
        "seed": seed,
        "mode": mode_of(deterministic),
        "diagnostics": benchmark,
    }
    if cross:
        if agents or benchmark_dir:
            raise ConfigError("--cross decides who plays whom and saves nothing: no --agents, no --benchmark-dir")
        return _cross([find(save_dir, name) for name in runs or []], how, json=json)
    guests = parse_policies(agents or [], save_dir, "--agents")
    named = runs or [who for who in guests.values() if who != "random"][:1]
    if len(named) > 1:
        raise ConfigError("several runs are named; --cross lets them meet, --agents says who plays whom")
    folder = find(save_dir, named[0] if named else None)
    return _one(folder, {**how, "agents": guests}, benchmark_dir or folder.path / "benchmark", json=json)


def _one(folder: RunFolder, how: dict[str, Any], benchmark_dir: Path, *, json: bool) -> None:
    from marlctl.evaluation import evaluate, save_scores

    with redirect_stdout(sys.stderr):  # what a scenario prints is talk
        scores = evaluate(folder, **how)
    summary = {**scores.summary(), "run": str(folder.path)}
    if how["agents"]:
        summary["played_by"] = how["agents"]
    written = save_scores(scores, summary, benchmark_dir, how["which"]) if how["diagnostics"] else []
    if json:
        return show.as_json({**summary, "files": [str(path) for path in written]})
    _tables(summary)
    if how["diagnostics"] and not scores.diagnostics:
        show.say("this scenario has no diagnostics of its own; the returns above are all there is")
    for path in written:
        show.say(f"saved {path}")
    return None


def _cross(runs: list[RunFolder], how: dict[str, Any], *, json: bool) -> None:
    from marlctl.crossplay import cross

    with redirect_stdout(sys.stderr):
        games = [(game.first.path.name, game.others.path.name, game.scores.summary()) for game in cross(runs, **how)]
    if json:
        return show.as_json({"games": [{"first": one, "others": other, **summary} for one, other, summary in games]})
    first, *rest = games[0][2]["teams"]
    scored = ["score"] if "score" in games[0][2] else []
    measures = list(games[0][2].get("diagnostics", {}))
    rows = [
        [
            one,
            other,
            *(f"{summary[name]['mean']:.3f}" for name in scored),
            *(f"{summary['teams'][team]['mean']:.3f}" for team in (first, *rest)),
            *(f"{_mean(summary['diagnostics'][name]):.3f}" for name in measures),
        ]
        for one, other, summary in games
    ]
    returns = [f"return of {team}" for team in (first, *rest)]
    episode = [f"{name} an episode" for name in measures]
    show.table([f"{first} by", f"{', '.join(rest)} by", *scored, *returns, *episode], rows)
    return None


def _mean(agents: dict[str, dict[str, float]]) -> float:
    return sum(values["per_episode"] for values in agents.values()) / len(agents)


def _solved(summary: dict[str, Any]) -> str:
    """Whether the task is solved, and the numbers that say so."""
    by, what = ("score", "score") if "score" in summary else ("total", "total return")
    at, over = f"{summary['solved_at']:g}", show.count(summary["solved_over"], "episode")
    mean, played = f"{summary[by]['mean']:.4g}", show.count(summary["episodes"], "episode")
    if summary["solved"] is None:
        return f"cannot be told from {played}; it takes a mean {what} of {at} over {over}"
    return f"yes, {mean} ≥ {at} over {played}" if summary["solved"] else f"no, {mean} < {at} over {played}"


def _tables(summary: dict[str, Any]) -> None:
    rows = [["score", summary["score"]]] if "score" in summary else []
    rows += [["return in all" if rows else "in all", summary["total"]]]
    if len(summary["teams"]) > 1:
        rows += [[f"team {team}", value] for team, value in summary["teams"].items()]
    rows += [[agent, value] for agent, value in summary["agents"].items()]
    shown = [[name, f"{v['mean']:.3f}", f"{v['ci95'][0]:.3f}", f"{v['ci95'][1]:.3f}"] for name, v in rows]
    title = f"{summary['run']}, {show.count(summary['episodes'], 'episode')} of {summary['length']:.1f} steps"
    show.table(["" if "score" in summary else "return", "mean", "95 % from", "to"], shown, title=title)
    if "solved" in summary:
        typer.echo(f"solved: {_solved(summary)}")
    measures = [
        [name, agent, *(f"{values[how]:.3f}" for how in ("per_step", "per_episode", "final"))]
        for name, agents in summary.get("diagnostics", {}).items()
        for agent, values in agents.items()
    ]
    if measures:
        show.table(["diagnostic", "agent", "a step", "an episode", "at the end"], measures)
