"""The figure: training beside peers, environments by copies, and the rate by agents."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.records import Results
from benchmarks.summary import RATE_KEPT, Row, best, of_agents, rows

OURS, OTHERS = "#1f5fa8", ("#b0b0b0", "#7a9e7e", "#c08552", "#8d6a9f")


def draw(results: Results, path: Path) -> None:
    """Write it; what was not measured stays empty."""
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    training, envs, growth = figure.subplots(1, 3)
    _training(training, rows(results, "train"))
    _environments(envs, rows(results, "envs"))
    _agents(growth, of_agents(rows(results, "growth")))
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _training(axes: Axes, found: list[Row]) -> None:
    axes.set(title="training, steps/s (median, spread)")
    names = list(dict.fromkeys(row.contestant for row in found))
    measured = [(name, row.spread) for name in names if (row := best(found, name)) and row.spread]
    for place, (name, spread) in enumerate(reversed(measured)):
        reach = [[spread.middle - spread.low], [spread.high - spread.middle]]
        axes.barh(place, spread.middle, xerr=reach, color=OURS if name.startswith("marlctl") else OTHERS[0])
        axes.annotate(f"{spread.middle:,.0f}", (spread.high, place), (4, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(measured)), [name for name, _ in reversed(measured)])
    axes.margins(x=0.2)
    axes.locator_params(axis="x", nbins=4)


def _environments(axes: Axes, found: list[Row]) -> None:
    axes.set(title="environment, steps/s, random actions", xlabel="copies", xscale="log", yscale="log")
    names = list(dict.fromkeys(row.contestant for row in found if row.spread))
    for place, name in enumerate(names):
        color = OURS if name == "marlctl" else OTHERS[place % len(OTHERS)]
        for scenario, style in (("simple_tag", "-"), ("simple_spread", "--")):
            own = [r for r in found if r.contestant == name and r.setting.get("scenario") == scenario]
            points = sorted({int(r.setting["copies"]) for r in own})
            chosen = [best(own, name, scenario=scenario, copies=n) for n in points]
            middles = [row.spread.middle for row in chosen if row and row.spread]
            label = name if style == "-" else None
            axes.plot(points, middles, style, marker="o", markersize=4, color=color, label=label)
    if names:
        axes.legend(fontsize="small", title="– tag   -- spread", title_fontsize="small")


def _agents(axes: Axes, found: dict[int, Row]) -> None:
    axes.set(title="one update of simple_spread", xlabel="agents", ylabel="GFLOP/s", xscale="log")
    counts = sorted(found)
    axes.plot(counts, [found[n].facts["gflop_a_second"] for n in counts], marker="o", color=OURS)
    if 6 in found:
        level = RATE_KEPT * found[6].facts["gflop_a_second"]
        axes.axhline(level, linestyle=":", color=OTHERS[0], label=f"{RATE_KEPT} × the rate of 6")
        axes.legend(fontsize="small")
    axes.set_xticks(counts, [str(n) for n in counts])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
