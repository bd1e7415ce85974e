"""Learning curves: read from run folders, averaged over seeds, drawn.

curves = [read_curve(folder, "return.total") for folder in folders]
write_whole(path, draw(bands(curves), Look(y_label="episode return")))
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from io import BytesIO
from itertools import groupby
from textwrap import fill
from typing import Any, Literal

import numpy as np

from marlctl.errors import ConfigError, FileError
from marlctl.metrics import read
from marlctl.records import Array
from marlctl.rundir import RunFolder, is_run
from marlctl.seeding import stream

X = Literal["steps", "episodes", "time"]
Format = Literal["png", "svg", "pdf"]

_GRID = 500  # points of a curve that is drawn through several runs
_DRAWS = 2000  # of the bootstrap
_LINE = 40  # characters of a line in the legend
_NEAR, _SHOWN = 4, 12  # names of metrics that an error suggests, or lists where none is near


@dataclass(frozen=True)
class Curve:
    """One metric of one run."""

    scenario: str
    algo: str
    seed: int
    options: Mapping[str, Any]  # of the scenario, the algorithm and who plays: runs that differ are not averaged
    x: Array  # (rows,)
    y: Array  # (rows,)
    name: str = ""  # of the run


@dataclass(frozen=True)
class Band:
    """A metric averaged over seeds, with the 95 % interval of the mean."""

    label: str
    seeds: int
    x: Array  # (points,)
    mean: Array  # (points,)
    low: Array  # (points,)
    high: Array  # (points,)


# -- reading ------------------------------------------------------------------------------------


def read_curve(folder: RunFolder, metric: str, *, x: X = "steps", smooth: int = 1) -> Curve:
    """A metric of a run by its dotted name; `eval.` before it asks for the evaluations."""
    kind, name = ("eval", metric[5:]) if metric.startswith("eval.") else ("train", metric)
    rows = list(read(folder.metrics)) if folder.metrics.is_file() else []
    if not any("return" in row for row in rows):
        raise ConfigError(f"{folder.path} has no finished episodes yet")
    flat = [(row, dict(_flatten(row))) for row in rows if row.get("kind") == kind]
    found = [(row, values[name]) for row, values in flat if name in values]
    if not found:
        if kind == "eval" and not flat:
            raise ConfigError(f"{folder.path} was never evaluated")
        raise ConfigError(_no_metric(metric, metric_names(rows)))
    places = _places(folder, [row for row, _ in found], x)
    y = _smoothed(np.array([value for _, value in found], float), smooth)
    values = folder.values()
    run = values.get("run", {})
    options = {f"{owner}.{k}": v for owner in ("env", "algo") for k, v in values.get(owner, {}).items()}
    options |= {f"policy.{agents}": _who(folder, who) for agents, who in values.get("policy", {}).items()}
    scenario, algo, seed = str(run.get("scenario")), str(run.get("algo")), int(run.get("seed", 0))
    return Curve(scenario, algo, seed, options, places, y, folder.path.name)


def _who(folder: RunFolder, policy: str) -> str:
    """A policy that a run took from another one is called after that one, not after its place in the folder."""
    if not is_run(folder.path / policy):
        return policy
    values = RunFolder(folder.path / policy).values()
    return f"{values.get('run', {}).get('algo')} of {values.get('about', {}).get('created')}"


def metric_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every name that `read_curve` takes for a run with these rows."""
    prefix = {"train": "", "eval": "eval."}
    names = (prefix[row["kind"]] + name for row in rows if row.get("kind") in prefix for name, _ in _flatten(row))
    return list(dict.fromkeys(names))


def _no_metric(name: str, known: Sequence[str]) -> str:
    """That there is no such metric, and which are near: as a whole, or in a part such as `return`."""

    def nearness(other: str) -> float:
        parts = other.split(".")
        texts = [".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)]
        return max(SequenceMatcher(None, name, text).ratio() for text in texts)

    near = sorted((other for other in known if nearness(other) >= 0.6), key=nearness, reverse=True)[:_NEAR]
    if near:
        return f"no metric {name!r}; did you mean {', '.join(near)}?"
    rest = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"no metric {name!r}; there is {', '.join(known[:_SHOWN])}{rest}"


def _flatten(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and name not in ("step", "episode"):
            yield prefix + name, value


def _places(folder: RunFolder, rows: Sequence[Mapping[str, Any]], x: X) -> Array:
    try:
        if x != "time":
            return np.array([row["step" if x == "steps" else "episode"] for row in rows], float)
        times = _times(folder)
        steps = [(row["step"], row["kind"]) for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{folder.path} holds rows that marlctl did not write: {error!r}") from error
    lost = [step for step, kind in steps if (step, kind) not in times]
    if lost:
        raise ConfigError(f"{folder.timings} does not say when step {lost[0]} was; use --x steps")
    return np.array([times[place] for place in steps])


def _times(folder: RunFolder) -> dict[tuple[int, str], float]:
    """Seconds of work until a row was written; every process that continued the run began again at 0."""
    times: dict[tuple[int, str], float] = {}
    before = last = 0.0
    process = None
    for row in read(folder.timings):
        if row["seconds"] < last or row.get("began") != process:
            before += last
        last, process = row["seconds"], row.get("began")
        times[row["step"], row["kind"]] = before + last
    return times


def _smoothed(y: Array, window: int) -> Array:
    """The mean of each row and the `window - 1` before it, as far as there are that many."""
    return np.array([y[max(0, stop - window) : stop].mean() for stop in range(1, len(y) + 1)])


# -- averaging ----------------------------------------------------------------------------------


def one_a_seed(curves: Sequence[Curve]) -> list[Curve]:
    """Without runs that repeat a seed, which would make the mean look surer than it is; the last one counts."""
    return list({(_group(curve), curve.seed): curve for curve in curves}.values())


def bands(curves: Sequence[Curve]) -> list[Band]:
    """One band for each algorithm, scenario and choice of options."""
    ordered = sorted(one_a_seed(curves), key=_group)
    groups = [list(group) for _, group in groupby(ordered, key=_group)]
    labelled = sorted(zip(_labels(groups), groups, strict=True), key=lambda pair: pair[0])
    return [_band(label, group) for label, group in labelled]


def _group(curve: Curve) -> tuple[str, str, str]:
    return curve.scenario, curve.algo, json.dumps(curve.options, sort_keys=True, default=str)


def _labels(groups: Sequence[Sequence[Curve]]) -> list[str]:
    """What tells each group from the others, in as few words as do: the algorithm, then options or the run's name."""
    several = len({group[0].scenario for group in groups}) > 1
    labels = []
    for group in groups:
        one = group[0]
        words = [one.algo, one.scenario] if several else [one.algo]
        alike = [other for other in groups if (other[0].scenario, other[0].algo) == (one.scenario, one.algo)]
        labels.append(", ".join(words + (_difference(group, alike) if len(alike) > 1 else [])))
    return [
        f"{label}, {group[0].name}" if labels.count(label) > 1 and group[0].name else label
        for label, group in zip(labels, groups, strict=True)
    ]


def _difference(group: Sequence[Curve], alike: Sequence[Sequence[Curve]]) -> list[str]:
    """The options in which a group differs from those like it, or the name of its only run where that is shorter."""
    options = [other[0].options for other in alike]
    differing = [
        name
        for name in sorted({name for each in options for name in each})
        if any(each.get(name) != options[0].get(name) for each in options)
    ]
    words = {id(each): _words(each, differing) for each in options}
    names = [other[0].name for other in alike]
    own = group[0]
    unique = own.name and names.count(own.name) == 1
    long = any(len(", ".join(each)) > _LINE for each in words.values())
    return [own.name] if long and unique and len(group) == 1 else words[id(own.options)]


def _words(options: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Options as a user sets them; one that the run does not have, such as a --policy, is not spoken of."""
    return [f"{name.partition('.')[2]}={_value(options[name])}" for name in names if name in options]


def _value(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LINE // 2 else f"{text[: _LINE // 2 - 1]}…"


def _band(label: str, curves: Sequence[Curve]) -> Band:
    start, stop = max(c.x[0] for c in curves), min(c.x[-1] for c in curves)
    if start > stop:
        raise ConfigError(f"the runs of {label} have no part in common: one ends before another begins")
    grid = np.unique(np.concatenate([c.x for c in curves]))
    grid = grid[(grid >= start) & (grid <= stop)]
    if len(grid) > _GRID and len(curves) > 1:
        grid = np.linspace(start, stop, _GRID)
    values = np.stack([np.interp(grid, c.x, c.y) for c in curves])  # (seeds, points)
    low, high = _interval(values)
    return Band(label, len(curves), grid, values.mean(0), low, high)


def _interval(values: Array) -> tuple[Array, Array]:
    """The 95 % bootstrap interval of the mean over seeds."""
    seeds, mean = len(values), values.mean(0)
    if seeds == 1:
        return mean, mean
    picks = stream(0, "bootstrap").multinomial(seeds, np.full(seeds, 1 / seeds), size=_DRAWS)  # (draws, seeds)
    low, high = np.percentile(picks @ values / seeds, [2.5, 97.5], axis=0)
    return np.minimum(low, mean), np.maximum(high, mean)


# -- drawing ------------------------------------------------------------------------------------

# Okabe and Ito's colours, which the colour-blind can tell apart, the pale ones last.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#555555")
_DASHES = ("-", "--", ":", "-.")
_UNITS = ((2 * 3600, 3600, "hours"), (120, 60, "minutes"), (0, 1, "seconds"))


@dataclass(frozen=True)
class Look:
    """What stands around the curves."""

    y_label: str = "episode return"
    x: X = "steps"
    title: str | None = None
    goal: float | None = None  # where the task counts as solved


def y_label(metric: str) -> str:
    """A metric's name as an axis says it."""
    bare = metric.removeprefix("eval.")
    what = bare.removeprefix("loss.").replace(".", " ").replace("_loss", " loss")
    if bare.startswith("return."):
        _, _, who = bare.removeprefix("return.").partition(".")
        what = f"episode return of {who}" if who else "episode return"
    elif bare == "length":
        what = "episode length"
    return f"evaluation: {what}" if bare != metric else what


def draw(bands: Sequence[Band], look: Look, format: Format = "png") -> bytes:
    """The figure as a file's bytes; the same bands give the same bytes."""
    import matplotlib  # noqa: PLC0415 (slow to load)

    # Names of runs are text, whatever they hold: no $formula$.
    with matplotlib.rc_context(
        {"svg.hashsalt": "marlctl", "pdf.fonttype": 42, "font.size": 10, "text.parse_math": False}
    ):
        image = BytesIO()
        stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[format]
        figure(bands, look).savefig(image, format=format, dpi=200, metadata=stamp)
    return image.getvalue()


def figure(bands: Sequence[Band], look: Look) -> Any:
    """The curves as a matplotlib Figure."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (slow to load)

    # A Figure of its own, not pyplot's: no window system is touched, and no setting of the user's.
    drawn = Figure(figsize=(6.4, 3.9), layout="constrained")
    axes = drawn.add_subplot()
    scale, unit = _unit(bands, look.x)
    for number, band in enumerate(bands):
        _draw_band(axes, band, number, scale)
    if look.goal is not None:
        axes.axhline(look.goal, color="#888888", linestyle=":", linewidth=1.2, label=f"solved at {look.goal:g}")
    axes.set_xlabel(unit)
    axes.set_ylabel(look.y_label)
    if look.title:
        axes.set_title(fill(look.title, 60), loc="left", fontsize=11, pad=10)
    _dress(axes)
    _explain(drawn, axes)
    return drawn


def _unit(bands: Sequence[Band], x: X) -> tuple[float, str]:
    if x != "time":
        return 1.0, {"steps": "environment steps", "episodes": "episodes"}[x]
    longest = max(band.x[-1] for band in bands)
    _, scale, word = next(unit for unit in _UNITS if longest >= unit[0])
    return 1.0 / scale, f"time ({word})"


def _draw_band(axes: Any, band: Band, number: int, scale: float) -> None:
    colour = _COLOURS[number % len(_COLOURS)]
    dash = _DASHES[number // len(_COLOURS) % len(_DASHES)]
    seeds = "1\xa0seed" if band.seeds == 1 else f"{band.seeds}\xa0seeds"  # stays on one line
    dot = "o" if len(band.x) == 1 else None
    x = band.x * scale
    label = fill(f"{band.label} ({seeds})", _LINE, break_on_hyphens=False).replace("\xa0", " ")
    axes.plot(x, band.mean, color=colour, linestyle=dash, linewidth=1.6, marker=dot, label=label)
    if band.seeds > 1:
        axes.fill_between(x, band.low, band.high, color=colour, alpha=0.18, linewidth=0)


def _dress(axes: Any) -> None:
    """A light grid, open sides, short numbers."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator  # noqa: PLC0415

    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#888888")
    axes.tick_params(color="#888888", labelcolor="#333333")
    axes.grid(color="#E6E6E6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)
    axes.set_xlim(left=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        if max(map(abs, axis.get_view_interval())) >= 1000:
            axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _explain(figure: Any, axes: Any) -> None:
    """A legend where the curves leave room if it is small, else below the axes, for which the figure grows."""
    legend = axes.legend(frameon=False, loc="best")
    room, taken = axes.get_window_extent(), legend.get_window_extent()
    if taken.width <= 0.6 * room.width and taken.height <= 0.35 * room.height:
        return
    legend.remove()
    width, height = figure.get_size_inches()
    for columns in (3, 2, 1):
        legend = figure.legend(frameon=False, loc="outside lower center", ncols=columns, fontsize=9)
        taken = legend.get_window_extent()
        if taken.width <= width * figure.dpi or columns == 1:
            break
        legend.remove()
    figure.set_size_inches(width, height + taken.height / figure.dpi)


def short(number: float) -> str:
    """A number with its thousands and millions abbreviated."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.4g}{letter}".replace("-", "\N{MINUS SIGN}")
    return f"{number:.4g}".replace("-", "\N{MINUS SIGN}")
