"""Tennis for two, after the example of Unity's ML-Agents that many know from Udacity's course.

Importing this imports neither numpy nor pettingzoo; a scenario's `make` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from marlctl.options import changed, option
from marlctl_tennis.rules import LENGTH

if TYPE_CHECKING:
    from marlctl.records import Array
    from marlctl_tennis.batched import Batched
    from marlctl_tennis.single import TennisEnv


@dataclass(frozen=True)
class Tennis:
    """Two rackets keep a ball in play: 0.1 for every hit over the net, -0.01 for a mistake, which ends the rally."""

    good_copies: ClassVar[int] = 32
    solved_at: ClassVar[float] = 0.5  # mean score of 100 episodes

    max_cycles: int = option(LENGTH, "steps in an episode", low=1)
    _measured: bool = field(default=False, init=False, repr=False)

    def make(self, *, render_mode: str | None = None) -> TennisEnv:
        from marlctl_tennis.single import TennisEnv  # noqa: PLC0415 (imports pettingzoo)

        return TennisEnv(self.max_cycles, render_mode)

    def make_batch(self, n: int) -> Batched:
        from marlctl_tennis.batched import Batched  # noqa: PLC0415 (imports numpy)

        return Batched(n, self.max_cycles, measured=self._measured)

    def score(self, returns: Array) -> Any:
        """What the better player earned: (agents,) or (episodes, agents) to one number an episode."""
        return returns.max(axis=-1)

    def with_length(self, steps: int) -> Tennis:
        return changed(self, max_cycles=steps)

    def diagnostic(self) -> Tennis:
        return changed(self, _measured=True)

    def diagnose(self, agent: str, info: Mapping[str, Any]) -> dict[str, float]:
        """The hits over the net in a step (their sum is the rally's length), and whether the agent missed."""
        return {name: info[name] for name in ("rally", "misses") if name in info}
