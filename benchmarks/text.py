"""The tables that both the terminal and RESULTS.md show: a title, columns, and rows of text."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.records import Results
from benchmarks.summary import GOALS, RATE_KEPT, RING_MB, Row, Spread, best, of_agents, ratio, rows


@dataclass(frozen=True)
class Table:
    """What is shown."""

    title: str
    columns: tuple[str, ...]
    rows: list[list[str]]


def tables(results: Results) -> list[Table]:
    """Those of which something was measured."""
    makers = (goals, training, environments, agents, copies, memory, whole)
    return [table for table in (maker(results) for maker in makers) if table.rows]


def number(value: float) -> str:
    """Three figures that count, and no more."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(found: Spread | None) -> str:
    """The smallest and the largest."""
    return "" if found is None else f"{number(found.low)} to {number(found.high)}"


def _middle(row: Row) -> str:
    return number(row.spread.middle) if row.spread else f"failed: {row.error}"


def goals(results: Results) -> Table:
    """The table that is the goal."""
    found, lines = [*rows(results, "train"), *rows(results, "coma")], []
    for goal in GOALS:
        ours, peer = best(found, goal.ours), best(found, goal.peer)
        if ours is None and peer is None:
            continue
        got = ratio(ours, peer)
        verdict = "not measured" if got is None else "reached" if got.middle >= goal.least else "NOT reached"
        if got and got.middle >= goal.aim:
            verdict = "beyond the aim"
        told = f"{got.middle:.1f} ×" if got else "–"
        between = f"{got.low:.1f} to {got.high:.1f}" if got else ""
        lines.append([goal.against, f"{goal.least:g} ×", f"{goal.aim:g} ×", told, between, verdict])
    return Table(
        "Goals and what was measured", ("against", "at least", "aim for", "measured ratio", "spread", "verdict"), lines
    )


def training(results: Results) -> Table:
    """Every contestant with every number of threads."""
    lines = [
        [
            row.contestant,
            f"{row.facts['num_envs']:g}" if "num_envs" in row.facts else "–",
            _threads(row),
            _middle(row),
            spread(row.spread),
            str(row.spread.rounds if row.spread else 0),
            f"{row.facts['warm_up_seconds']:.1f}" if "warm_up_seconds" in row.facts else "",
            row.last.versions.get("torch", ""),
        ]
        for row in [*rows(results, "train"), *rows(results, "coma")]
    ]
    return Table(
        "Training, steps a second",
        ("contestant", "environments", "threads", "median", "spread", "rounds", "warm-up, s", "torch"),
        lines,
    )


def _threads(row: Row) -> str:
    return str(row.threads) if row.threads else f"{row.facts['threads']:g} (default)" if "threads" in row.facts else ""


def environments(results: Results) -> Table:
    """Scenario and number of copies against contestants, each with its best number of threads."""
    found = rows(results, "envs")
    settings = sorted({(str(r.setting["scenario"]), int(r.setting["copies"])) for r in found if r.setting})
    names = list(dict.fromkeys(r.contestant for r in found))
    lines = []
    for scenario, n in settings:
        cells = [best(found, name, scenario=scenario, copies=n) for name in names]
        lines.append([scenario, f"{n:,}", *(f"{_middle(r)} ({spread(r.spread)})" if r else "–" for r in cells)])
    return Table(
        "Environments, steps a second with random actions: median (spread)", ("scenario", "copies", *names), lines
    )


def agents(results: Results) -> Table:
    """One update of all agents of simple_spread."""
    found = of_agents(rows(results, "growth"))
    six = found.get(6)
    lines = []
    for n, row in sorted(found.items()):
        rate, least = row.facts["gflop_a_second"], row.facts["least_gflop_a_second"]
        beside = f"{rate / six.facts['gflop_a_second']:.2f}" if six else ""
        work = number(row.facts["mflop"])
        lines.append([str(n), work, _middle(row), spread(row.spread), f"{rate:.1f}", f"{least:.1f}", beside])
    return Table(
        f"Growth with agents: one update of simple_spread (at least {RATE_KEPT} × the rate of 6 with 48)",
        ("agents", "MFLOP", "ms", "spread", "GFLOP/s", "GFLOP/s without what is reused", "beside 6"),
        lines,
    )


def copies(results: Results) -> Table:
    """Training with more copies, and with more threads."""
    found = [r for r in rows(results, "growth") if r.setting.get("what") in ("copies", "threads")]
    lines = [
        [str(r.setting["what"]), str(r.setting[r.setting["what"]]), _middle(r), spread(r.spread), _update(r)]
        for r in found
    ]
    return Table(
        "Growth with copies and with threads: training simple_tag, steps a second",
        ("of", "number", "median", "spread", "ms an update"),
        lines,
    )


def _update(row: Row) -> str:
    return f"{row.facts['update_ms']:.2f}" if "update_ms" in row.facts else ""


def memory(results: Results) -> Table:
    """The ring, and what a save adds while it lasts."""
    limits = {"ring": f"{RING_MB:.0f}", "first save": "not as much again", "next save": "not as much again"}
    lines = [
        [
            str(r.setting.get("what", "")),
            _middle(r),
            spread(r.spread),
            limits.get(str(r.setting.get("what")), ""),
            f"{r.facts['seconds']:.2f}" if "seconds" in r.facts else "",
            number(r.facts["written_mb"]) if "written_mb" in r.facts else "",
        ]
        for r in rows(results, "memory")
    ]
    return Table(
        "Memory: a ring of a million transitions of simple_tag, and a save's own, MB",
        ("what", "MB", "spread", "allowed", "seconds", "MB written"),
        lines,
    )


def whole(results: Results) -> Table:
    """The whole default run."""
    lines = [[_middle(r), f"{r.facts.get('steps', 0):,.0f}"] for r in rows(results, "whole")]
    return Table("`marlctl train --algo maddpg --scenario simple_tag`, from start to end", ("seconds", "steps"), lines)
