"""Watching a run: a live view on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from marlctl.cli import show

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from marlctl.config import Config
    from marlctl.records import EnvSpec
    from marlctl.wheel import Progress


class Quiet:
    """Says nothing; the base of those that do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, error: object, *rest: object) -> None: ...
    def started(self, config: Config, spec: EnvSpec, notes: list[str]) -> None: ...
    def tick(self, progress: Callable[[], Progress]) -> None: ...
    def row(self, row: Mapping[str, Any]) -> None: ...
    def saved(self, step: int) -> None: ...

    def stopped(self, why: str, command: str) -> None:
        show.say(f"{why}\nto go on: {command}")


class Plain(Quiet):
    """One line now and then, for logs and pipes."""

    every = 10.0  # seconds between lines

    def started(self, config: Config, spec: EnvSpec, notes: list[str]) -> None:
        self._config, self._spec = config, spec
        run = config.run
        show.say(f"training {run.algo} on {run.scenario}, seed {run.seed}, in {self.folder}")
        for team, agents in spec.teams.items():
            show.say(f"team {team}: {', '.join(agents)}")
        for note in notes:
            show.say(note)
        self._next = monotonic() + 2

    def tick(self, progress: Callable[[], Progress]) -> None:
        if monotonic() >= self._next:
            self._next = monotonic() + self.every
            self._line(progress())

    def _line(self, p: Progress) -> None:
        total = p.row.get("return", {}).get("total")
        mean = "no finished row yet" if total is None else f"return {total:.2f}"
        left = remaining(self._config, p)
        show.say(f"{p.episodes:,} episodes, {p.steps:,} steps, {p.updates:,} updates: {mean}, {speed(p)}, {left} left")

    def row(self, row: Mapping[str, Any]) -> None:
        if row["kind"] == "eval":
            show.say(f"evaluation after {row['episode']:,} episodes: return {row['return']['total']:.2f}")

    def __exit__(self, error: object, *rest: object) -> None:
        if error is None:
            show.say(done(self.folder))


class Live(Plain):
    """The whole state of the run on one screen, four times a second."""

    every = 0.25

    def __enter__(self) -> Live:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._console = Console(stderr=True)
        self._live = RichLive(console=self._console, auto_refresh=False, transient=False)
        self._train: Mapping[str, Any] = {}
        self._eval: Mapping[str, Any] = {}
        self._saved: int | None = None
        self._shown = False
        return self

    def __exit__(self, error: object, *rest: object) -> None:
        if self._shown:
            self._live.stop()
        super().__exit__(error, *rest)

    def started(self, config: Config, spec: EnvSpec, notes: list[str]) -> None:
        super().started(config, spec, notes)
        self._next = 0.0
        self._live.start()
        self._shown = True

    def stopped(self, why: str, command: str) -> None:
        self._live.stop()  # or the view would be drawn over the message
        super().stopped(why, command)

    def row(self, row: Mapping[str, Any]) -> None:
        if row["kind"] == "eval":
            self._eval = row
        else:
            self._train = row

    def saved(self, step: int) -> None:
        self._saved = step

    def _line(self, p: Progress) -> None:
        self._live.update(self._screen(p), refresh=True)

    def _screen(self, p: Progress) -> RenderableType:
        from rich.columns import Columns
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        run = self._config.run
        total, done = (run.steps, p.steps) if run.steps else (run.num_episodes or 1, p.episodes)
        unit = "steps" if run.steps else "episodes"
        head = Text.assemble(
            (f"{run.algo} ", "bold"), "on ", (f"{run.scenario}", "bold"), f"  seed {run.seed}",
            ("" if self._saved is None else f"   saved at step {self._saved:,}", "dim"),
        )  # fmt: skip
        counts = Text(
            f"{done:,} of {total:,} {unit}   {p.steps:,} steps   {p.updates:,} updates   {speed(p)}   "
            f"{remaining(self._config, p)} left"
        )
        tables = Columns([self._returns(), self._losses(), self._times(p)], padding=(0, 4))
        bar = Table.grid(expand=True)  # a bar by itself does not end its line
        bar.add_row(ProgressBar(total=total, completed=min(done, total)))
        return Panel(Group(head, bar, counts, Text(), tables), title=show.clean(str(self.folder)), title_align="left")

    def _returns(self) -> RenderableType:
        table = _table("mean return", "training", "evaluation")
        rows: list[tuple[str, tuple[str, ...]]] = [("in all", ("total",))]
        if len(self._spec.teams) > 1:
            rows += [(f"team {team}", ("teams", team)) for team in self._spec.teams]
        rows += [(agent, ("agents", agent)) for agent in self._spec.names[:12]]
        for label, path in rows:
            table.add_row(show.clean(label), _value(self._train, path), _value(self._eval, path))
        return table

    def _losses(self) -> RenderableType:
        table = _table("loss", "mean")
        for name, value in list(self._train.get("loss", {}).items())[:16]:
            table.add_row(show.clean(name), f"{value:.4g}")
        if not self._train.get("loss"):
            table.add_row("before the first update", "")
        return table

    def _times(self, p: Progress) -> RenderableType:
        table = _table("time", "share", "")
        total = sum(p.time.values()) or 1.0
        for name, seconds in sorted(p.time.items(), key=lambda item: -item[1]):
            share = seconds / total
            table.add_row(name, f"{share:.0%}", "█" * round(share * 20))
        return table


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index and column else "left")
    return table


def _value(row: Mapping[str, Any], path: tuple[str, ...]) -> str:
    value: Any = row.get("return", {})
    for key in path:
        value = value.get(key, {})
    return f"{value:.2f}" if isinstance(value, float) else "-"


def speed(p: Progress) -> str:
    """Steps a second of this process."""
    return f"{p.steps_here / max(p.seconds, 1e-9):,.0f} steps/s"


def remaining(config: Config, p: Progress) -> str:
    """How long the run will go on, as it goes."""
    run = config.run
    done, total = (p.steps, run.steps) if run.steps else (p.episodes, run.num_episodes or 0)
    if not done or not p.steps_here:
        return "?"
    steps_left = p.steps * (total - done) / done
    seconds = int(max(0, steps_left) * p.seconds / p.steps_here)
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours}h {minutes:02}m" if hours else f"{minutes}m {seconds % 60:02}s"


def done(folder: Path) -> str:
    """What to type next."""
    return f"done: {folder}\n  marlctl eval {folder} --benchmark\n  marlctl render {folder}\n  marlctl plot {folder}"


def make_watch(folder: Path, *, quiet: bool) -> Quiet:
    """The view that fits where the output goes."""
    if quiet:
        return Quiet(folder)
    return Live(folder) if sys.stderr.isatty() else Plain(folder)
