"""From single measurements to medians, spreads and ratios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.records import Measurement, Results


@dataclass(frozen=True)
class Spread:
    """Several measurements of one thing."""

    middle: float
    low: float
    high: float
    rounds: int

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        return cls(median(values), min(values), max(values), len(values))


@dataclass(frozen=True)
class Row:
    """One contestant with one setting: its numbers, or why there are none."""

    part: str
    contestant: str
    threads: int | None
    setting: Mapping[str, Any]
    unit: str
    spread: Spread | None
    error: str | None
    facts: Mapping[str, float]  # medians of those facts that are numbers
    last: Measurement


@dataclass(frozen=True)
class Goal:
    """A goal: ours at least so many times as fast."""

    against: str
    ours: str
    peer: str
    least: float
    aim: float


GOALS = (
    Goal("a plain per-agent torch loop on mpe2, one environment", "marlctl simple_tag", "plain loop", 7, 12),
    Goal("AgileRL, one environment", "marlctl simple_tag", "AgileRL", 18, 30),
    Goal("BenchMARL on PettingZoo, 10 environments", "marlctl simple_tag", "BenchMARL PettingZoo", 16, 28),
    Goal("BenchMARL on VMAS, 100 environments", "marlctl simple_tag", "BenchMARL VMAS", 3, 5),
    Goal("XuanCe on `simple_spread`, 10 environments", "marlctl simple_spread", "XuanCe", 5, 8),
    Goal("a plain COMA on ma-gym's `Switch2-v0`, one environment", "marlctl COMA Switch2-v0", "plain COMA", 15, 30),
)
RATE_KEPT = 0.7  # of the floating-point rate with 6 agents, with 48
RING_MB = 608 * 1.1


def rows(results: Results, part: str) -> list[Row]:
    """The part's contestants in the order in which they were first measured."""
    groups: dict[tuple[Any, ...], list[Measurement]] = {}
    for m in results.measurements:
        if m.part == part:
            groups.setdefault((m.contestant, m.threads, *sorted(m.setting.items())), []).append(m)
    worked = {(m.contestant, m.threads) for m in results.measurements if m.part == part and m.error is None}
    return [
        _row(part, group)
        for group in groups.values()
        if group[0].error is None or (group[0].contestant, group[0].threads) not in worked
    ]


def _row(part: str, group: list[Measurement]) -> Row:
    last = group[-1]
    values = [m.value for m in group if m.value is not None]
    numbers = [name for name, fact in last.facts.items() if isinstance(fact, int | float)]
    return Row(
        part,
        last.contestant,
        last.threads,
        last.setting,
        last.unit,
        Spread.of(values) if values else None,
        last.error,
        {name: median(m.facts[name] for m in group) for name in numbers},
        last,
    )


def best(found: list[Row], contestant: str, **setting: Any) -> Row | None:
    """The contestant's row with the number of threads that suits it best."""
    own = [r for r in found if r.contestant == contestant and (not setting or dict(r.setting) == setting)]
    measured = [(r.spread.middle, i) for i, r in enumerate(own) if r.spread]
    return own[max(measured)[1]] if measured else (own[0] if own else None)


def ratio(ours: Row | None, peer: Row | None) -> Spread | None:
    """How many times as fast we are; the least is our slowest round beside the peer's fastest."""
    if not (ours and peer and ours.spread and peer.spread):
        return None
    a, b = ours.spread, peer.spread
    return Spread(a.middle / b.middle, a.low / b.high, a.high / b.low, min(a.rounds, b.rounds))


def of_agents(found: list[Row]) -> dict[int, Row]:
    """Growth with agents: their number to its row."""
    return {r.setting["agents"]: r for r in found if r.setting.get("what") == "agents" and r.spread}
