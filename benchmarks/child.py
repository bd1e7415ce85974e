"""What a contestant has in common with the others: it gets its settings, and tells results on stdout.

Only the standard library is used here: contestants run in environments of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

MARK = "RESULT "


def settings() -> dict[str, Any]:
    """What the schedule asked for: `seconds` to measure, `threads`, and what the contestant knows."""
    return dict(json.loads(sys.argv[1]))


def tell(value: float, unit: str = "steps/s", setting: dict[str, Any] | None = None, **facts: Any) -> None:
    """Hand over one result; `setting` tells it from the others of this process, `facts` explain it."""
    print(MARK + json.dumps({"value": value, "unit": unit, "setting": setting or {}, "facts": facts}), flush=True)


class Enough(Exception):
    """Raised inside a library's own loop once the time is over."""


class Stopwatch:
    """Steps a second once a loop is warm: `count` is called after every step, or after so many."""

    def __init__(self, warm: int, seconds: float) -> None:
        self.warm, self.seconds = warm, seconds
        self.steps = 0
        self.started = perf_counter()
        self.begin: tuple[int, float] | None = None
        self.end = (0, 0.0)

    def count(self, steps: int) -> None:
        self.steps += steps
        now = perf_counter()
        if self.begin is None:
            if self.steps >= self.warm:
                self.begin = self.steps, now
            return
        self.end = self.steps, now
        if now - self.begin[1] >= self.seconds:
            raise Enough

    @property
    def rate(self) -> float:
        if self.begin is None or self.end[1] == 0.0:
            raise RuntimeError("the loop ended before it was warm")
        return (self.end[0] - self.begin[0]) / (self.end[1] - self.begin[1])

    @property
    def facts(self) -> dict[str, Any]:
        """How much was measured, and what came before it, which is not."""
        begin = self.begin or (0, self.started)
        steps = max(0, self.end[0] - begin[0])  # there is no end before the first step that counts
        return {"steps": steps, "warm_up_seconds": round(begin[1] - self.started, 2)}


def repeat(action: Callable[[], object], steps: int, seconds: float, *, warm: int = 1) -> float:
    """Steps a second of an action that makes so many, over about that long."""
    for _ in range(warm):
        action()
    begin, times = perf_counter(), 0
    while (now := perf_counter()) - begin < seconds or times == 0:
        action()
        times += 1
    return steps * times / (now - begin)
