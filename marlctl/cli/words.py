"""How a run is doing, in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from marlctl.cli import show

if TYPE_CHECKING:
    from marlctl.config import Config
    from marlctl.wheel import Progress


def counts(p: Progress) -> list[str]:
    """How much was done."""
    return [show.count(p.episodes, "episode"), show.count(p.steps, "step"), show.count(p.updates, "update")]


def standing(p: Progress) -> list[str]:
    """How near the task is to being solved, where the scenario says what that is."""
    if p.standing is None:
        return []
    task, solved = p.standing.task, p.standing.solved
    note = f" (needed: {task.solved_at:g} over {task.solved_over:,})" if task.solved_at is not None else ""
    note = f" (solved at episode {solved:,})" if solved else note
    return [f"{task.measure} {p.standing.mean:.4g} over the last {show.count(p.standing.episodes, 'episode')}{note}"]


def shares(p: Progress) -> list[str]:
    """Where the time went, most first."""
    total = sum(p.time.values()) or 1.0
    return [f"{name} {seconds / total:.0%}" for name, seconds in sorted(p.time.items(), key=lambda item: -item[1])]


def speed(p: Progress) -> str:
    """Steps a second of this process."""
    return f"{p.steps_here / max(p.seconds, 1e-9):,.0f} steps/s"


def remaining(config: Config, p: Progress, before: Progress | None = None) -> str:
    """How long the run will go on, as it goes since `before`."""
    run = config.run
    done, total = (p.steps, run.steps) if run.steps else (p.episodes, run.num_episodes or 0)
    steps, seconds = (
        (p.steps_here - before.steps_here, p.seconds - before.seconds) if before else (p.steps_here, p.seconds)
    )
    if not done or steps <= 0:
        return "?"
    steps_left = p.steps * (total - done) / done
    left = int(max(0, steps_left) * seconds / steps)
    hours, minutes = divmod(left // 60, 60)
    return f"{hours}h {minutes:02}m" if hours else f"{minutes}m {left % 60:02}s"


def done(folder: Path) -> str:
    """What to type next."""
    return f"done: {folder}\n  marlctl eval {folder} --benchmark\n  marlctl render {folder}\n  marlctl plot {folder}"
