"""Watching a run: a live view on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from marlctl.cli import show, words

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
    _progress: Callable[[], Progress] | None = None
    _before: Progress | None = None  # the last that was seen before learning began

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
        self._progress = progress
        if monotonic() >= self._next:
            self._next = monotonic() + self.every
            self._line(progress())

    def _line(self, p: Progress) -> None:
        total = p.row.get("return", {}).get("total")
        means = ["no finished row yet" if total is None else f"return {total:.2f}", *words.standing(p)]
        show.say(f"{', '.join(words.counts(p))}: {', '.join([*means, words.speed(p), self._left(p)])}")

    def _left(self, p: Progress) -> str:
        """How long it will still take; nobody can tell before there was learning, which slows it down."""
        if not p.updates:
            self._before = p
            return "before learning"
        return f"{words.remaining(self._config, p, self._before)} left"

    def row(self, row: Mapping[str, Any]) -> None:
        if row["kind"] == "eval":
            told = show.count(row["episode"], "episode")
            score = f", score {row['score']:.3f}" if "score" in row else ""
            show.say(f"evaluation after {told}: return {row['return']['total']:.2f}{score}")
        elif row["kind"] == "solved":
            mean = f"mean {row['by']} {row['mean']:.4g} of the last {show.count(row['over'], 'episode')}"
            show.say(f"solved at episode {row['episode']:,}: {mean}")

    def stopped(self, why: str, command: str) -> None:
        self._end()
        super().stopped(why, command)

    def __exit__(self, error: object, *rest: object) -> None:
        if error is None:
            self._end()
            show.say(words.done(self.folder))

    def _end(self) -> None:
        if self._progress:
            p = self._progress()
            for line in words.standing(p):
                show.say(line)
            show.say(f"time: {', '.join(words.shares(p))}")


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
        return self

    def __exit__(self, error: object, *rest: object) -> None:
        super().__exit__(error, *rest)
        self._live.stop()  # once more does nothing

    def started(self, config: Config, spec: EnvSpec, notes: list[str]) -> None:
        super().started(config, spec, notes)
        self._next = 0.0
        self._live.start()

    def _end(self) -> None:
        """The last state of all, with the checkpoint that was just written; then the screen is free for messages."""
        if self._progress:
            self._line(self._progress())
        self._live.stop()

    def row(self, row: Mapping[str, Any]) -> None:
        if row["kind"] == "eval":
            self._eval = row
        elif row["kind"] == "train":
            self._train = row

    def saved(self, step: int) -> None:
        self._saved = step

    def _line(self, p: Progress) -> None:
        self._live.update(self._screen(p), refresh=True)

    # -- the screen -----------------------------------------------------------------------------

    def _screen(self, p: Progress) -> RenderableType:
        """A panel that the terminal has room for, with a margin: `^C` must not begin a line that we do not know of."""
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        width, height = self._console.width - 5, self._console.height - 1
        run, inner = self._config.run, width - 4
        total, so_far = (run.steps, p.steps) if run.steps else (run.num_episodes or 1, p.episodes)
        saved = "" if self._saved is None else f"   saved at step {self._saved:,}"
        head = show.clean(f"{run.algo} on {run.scenario}  seed {run.seed}{saved}")
        goal = f"{so_far:,} of {show.count(total, 'step' if run.steps else 'episode')}"
        facts = _lines([goal, *words.counts(p)[1:], words.speed(p), self._left(p), *words.standing(p)], inner)
        bar = Table.grid(expand=True)  # a bar by itself does not end its line
        bar.add_row(ProgressBar(total=total, completed=min(so_far, total)))
        body = self._tables(p, inner, height - 5 - len(facts))
        top: list[RenderableType] = [Text(show.cut(head, inner), style="bold"), bar, *map(Text, facts), Text()]
        path = show.clean(str(self.folder))
        title = Text(path if len(path) <= width - 6 else f"…{path[7 - width :]}")  # a longer one would widen the panel
        return Panel(Group(*top, body), title=title, title_align="left", width=width)

    def _tables(self, p: Progress, width: int, height: int) -> RenderableType:
        """How well the agents do and where the time goes: side by side, or the times in a line where it is narrow."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        if width < _WIDE:
            lines = _lines(["time:", *words.shares(p)], width)[: max(0, height - 6)]
            return Group(self._agents(p, width, height - len(lines)), *map(Text, lines))
        both = Table.grid(padding=(0, 4))
        both.add_row(self._agents(p, width - _TIMES - 4, height), self._times(p))
        return both

    def _agents(self, p: Progress, width: int, height: int) -> RenderableType:
        """A row an agent, with its returns and its losses; what there is no room for is counted."""
        from rich.console import Group
        from rich.text import Text

        losses, kinds = _by_unit(self._train.get("loss", {}))
        names = [*self._rows(), *(unit for unit in losses if unit not in self._spec.names)]
        room = max(0, (width - min(_LABEL, max(map(len, names))) - 2 * _NUMBER) // _NUMBER)
        table = _table("", "return", "evaluation", *(kind.replace("_", " ") for kind in kinds[:room]))
        shown = names if len(names) <= height - 3 else names[: max(1, height - 3)]
        for name in shown:
            returns = [_value(row, self._rows().get(name, ())) for row in self._both]
            numbers = [f"{losses[name][k]:.4g}" if k in losses.get(name, {}) else "" for k in kinds[:room]]
            table.add_row(show.cut(show.clean(name), _LABEL), *returns, *numbers)
        missing = [f"{len(names) - len(shown)} more agents"] if len(shown) < len(names) else []
        missing += [f"{len(kinds) - room} more losses each"] if len(kinds) > room else []
        note = f"and {', '.join(missing)}" if missing else ""
        if not kinds:
            note = "losses: " + ("no row yet" if p.updates else "before the first update")
        return Group(table, Text(show.cut(note, width), style="dim")) if note else table

    @property
    def _both(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return self._train, self._eval

    def _rows(self) -> dict[str, tuple[str, ...]]:
        """What has a score or a return, and where in a row of metrics that is."""
        score = {"score": ("score",)} if "score" in self._train else {}
        teams = self._spec.teams if len(self._spec.teams) > 1 else ()
        rows = {"in all": ("return", "total"), **{f"team {team}": ("return", "teams", team) for team in teams}}
        return {**score, **rows, **{agent: ("return", "agents", agent) for agent in self._spec.names}}

    def _times(self, p: Progress) -> RenderableType:
        table = _table("time", "share", "")
        total = sum(p.time.values()) or 1.0
        for name, seconds in sorted(p.time.items(), key=lambda item: -item[1]):
            share = seconds / total
            table.add_row(name, f"{share:.0%}", "█" * round(share * 20))
        return table


_WIDE = 100  # columns that have room for two tables
_TIMES = 45  # columns of the table of times
_NUMBER = 13  # columns of a number, with what is around it
_LABEL = 20  # characters of an agent's name


def _by_unit(losses: Mapping[str, float]) -> tuple[dict[str, dict[str, float]], list[str]]:
    """`agent_0.critic_loss` and so on as a table: what each unit has, and the kinds there are."""
    table: dict[str, dict[str, float]] = {}
    for name, value in losses.items():
        unit, _, kind = name.rpartition(".")
        table.setdefault(unit, {})[kind] = value
    return table, list(dict.fromkeys(kind for row in table.values() for kind in row))


def _lines(facts: list[str], width: int) -> list[str]:
    """Facts with gaps between them, in as many lines as it takes."""
    lines = [facts[0]]
    for fact in facts[1:]:
        if len(lines[-1]) + 3 + len(fact) <= width:
            lines[-1] += f"   {fact}"
        else:
            lines.append(fact)
    return lines


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index and column else "left", no_wrap=True)
    return table


def _value(row: Mapping[str, Any], path: tuple[str, ...]) -> str:
    value: Any = row
    for key in path:
        value = value.get(key, {})
    return f"{value:.2f}" if isinstance(value, float) else "-" if path else ""


def make_watch(folder: Path, *, quiet: bool) -> Quiet:
    """The view that fits where the output goes."""
    if quiet:
        return Quiet(folder)
    return Live(folder) if sys.stderr.isatty() else Plain(folder)
