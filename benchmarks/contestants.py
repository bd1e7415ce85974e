"""Who is measured, in which part, with which settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.records import BenchmarkError

PARTS = ("train", "coma", "envs", "growth", "memory", "whole")
COPIES = [1, 32, 256, 4096]


@dataclass(frozen=True)
class Contestant:
    """A module to run in a process of its own."""

    part: str
    name: str
    module: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    threads: tuple[int | None, ...] = (None,)  # each is tried; None leaves it to the contestant
    venv: str | None = None  # the peer's own; None is the one we run in
    peer: str | None = None  # what --peers calls it; None is ours and always there
    once: bool = False  # one round tells all


BOTH = (1, 2)
CONTESTANTS = (
    Contestant("train", "marlctl simple_tag", "ours.train", {"scenario": "simple_tag", "seconds": 18}),
    Contestant("train", "plain loop", "plain_loop", {"seconds": 8}, BOTH, peer="plain"),
    Contestant("train", "AgileRL", "peers.agilerl", {"seconds": 9}, BOTH, "agilerl", "agilerl"),
    Contestant(
        "train",
        "BenchMARL PettingZoo",
        "peers.benchmarl",
        {"seconds": 9, "backend": "pettingzoo", "envs": 10, "frames": 1_000},
        BOTH,
        "benchmarl",
        "benchmarl",
    ),
    Contestant(
        "train",
        "BenchMARL VMAS",
        "peers.benchmarl",
        {"seconds": 8, "backend": "vmas", "envs": 100, "frames": 10_000},
        BOTH,
        "benchmarl",
        "benchmarl",
    ),
    Contestant("train", "marlctl simple_spread", "ours.train", {"scenario": "simple_spread", "seconds": 18}),
    Contestant("train", "XuanCe", "peers.xuance", {"seconds": 8, "envs": 10}, BOTH, "xuance", "xuance"),
    Contestant(
        "coma",
        "marlctl COMA Switch2-v0",
        "ours.train",
        {"algo": "coma", "scenario": "Switch2-v0", "seconds": 8, "more": ["--num-episodes", "1000000"]},
    ),
    Contestant("coma", "plain COMA", "plain_coma", {"seconds": 8}, BOTH, peer="plain"),
    Contestant("envs", "marlctl", "ours.envs", {"seconds": 0.4, "copies": COPIES}),
    Contestant("envs", "mpe2", "peers.mpe2", {"seconds": 0.6}, peer="mpe2"),
    Contestant("envs", "VMAS", "peers.vmas", {"seconds": 0.4, "copies": COPIES}, BOTH, "benchmarl", "vmas"),
    Contestant("envs", "JaxMARL", "peers.jaxmarl", {"seconds": 0.4, "copies": COPIES}, (None,), "jaxmarl", "jaxmarl"),
    Contestant("growth", "agents", "ours.growth", {"seconds": 2.5, "agents": [3, 6, 12, 24, 48]}),
    Contestant("growth", "copies", "ours.growth", {"seconds": 1.5, "copies": [1, 4, 16, 64, 256]}),
    Contestant("growth", "threads", "ours.growth", {"seconds": 3, "thread_counts": [1, 2]}),
    Contestant("memory", "ring", "ours.memory", {"rows": 1_000_000}),
    Contestant("whole", "marlctl simple_tag", "ours.train", {"scenario": "simple_tag", "seconds": None}, once=True),
)
PEERS = tuple(dict.fromkeys(c.peer for c in CONTESTANTS if c.peer))


def choose(parts: Iterable[str] | None, peers: Iterable[str] | None) -> list[Contestant]:
    """Those of the parts that are asked for, ours and the peers that are asked for; None is all."""
    _known(parts, PARTS, "part")
    _known([peer for peer in peers or () if peer != "none"], PEERS, "peer")
    return [
        c
        for c in CONTESTANTS
        if (parts is None or c.part in parts) and (c.peer is None or peers is None or c.peer in peers)
    ]


def _known(names: Iterable[str] | None, there: tuple[str, ...], what: str) -> None:
    for name in names or ():
        if name not in there:
            raise BenchmarkError(f"no {what} {name!r}; there is {', '.join(there)}")
