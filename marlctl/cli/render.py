"""`marlctl render`: watch a trained run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marlctl.cli import show
from marlctl.cli.flags import RUNS, Deterministic, RunName, SaveDir, Which, mode_of


def render(
    run: RunName = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A .gif, or a folder for PNG frames.", show_default="in the run folder"),
    ] = None,
    episodes: Annotated[int, typer.Option("--episodes", min=1, help="Episodes to play.")] = 3,
    fps: Annotated[
        float | None,
        typer.Option("--fps", min=0.1, max=50, help="Steps shown a second.", show_default="the scenario's own, or 10"),
    ] = None,
    which: Which = "last",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the games that are played.")] = 0,
    deterministic: Deterministic = None,
    width: Annotated[int, typer.Option("--width", min=16, max=4096, help="Pixels a picture is wide at most.")] = 400,
    human: Annotated[bool, typer.Option("--human", "--display", help="Show a window; nothing is written.")] = False,
    save_dir: SaveDir = RUNS,
) -> None:
    """Play a trained run's policy as a GIF, as PNG frames or in a window."""
    _quiet(human)
    from marlctl import rendering
    from marlctl.errors import ConfigError
    from marlctl.rundir import find

    mode = mode_of(deterministic)
    if human and out:
        raise ConfigError("--human shows a window and writes nothing; leave out --out or --human")
    if human:
        rendering.check_display()
    if out:
        rendering.check_target(out)
    folder = find(save_dir, run)
    if human:
        rendering.watch(folder, episodes=episodes, which=which, seed=seed, mode=mode, fps=fps)
        return
    film = rendering.film(folder, episodes=episodes, which=which, seed=seed, mode=mode, width=width)
    path = out or folder.path / "renders" / f"{'' if which.isdecimal() else which + '-'}step-{film.step}.gif"
    rendering.save(film, path, fps)
    steps, games = show.count(len(film.frames), "step"), show.count(episodes, "episode")
    show.say(f"{steps} in {games}, mean return {film.scores.total:.3f}")
    typer.echo(path)


def _quiet(human: bool) -> None:
    """Keep pygame's greeting off stdout, and a headless film away from screens that are not there."""
    import os

    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if not human:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
