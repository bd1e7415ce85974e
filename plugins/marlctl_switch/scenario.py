"""What the eight Switch scenarios have in common: their options, and how one is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from marlctl.options import changed, option

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

    from marlctl.contracts import BatchedEnv

S = TypeVar("S", bound="Switch")


@dataclass(frozen=True)
class Switch:
    """A game of Switch. What its version fixes is no option; the rest has ma-gym's names and defaults."""

    name: ClassVar[str]
    n_agents: ClassVar[int]
    full_observable: ClassVar[bool]  # everybody sees what all see
    clock: ClassVar[bool]  # everybody sees how much time has passed
    good_copies: ClassVar[int] = 32

    max_steps: int = option(50, "steps in an episode", low=1)
    step_cost: float = option(-0.1, "reward of every step that does not lead home")
    _measured: bool = field(default=False, init=False, repr=False)

    def make(self, *, render_mode: str | None = None) -> ParallelEnv[str, Any, Any]:
        from marlctl_switch.parallel import SwitchEnv  # noqa: PLC0415 (imports pettingzoo)

        return SwitchEnv(self, render_mode)

    def make_batch(self, n: int) -> BatchedEnv:
        from marlctl_switch.batched import Batched  # noqa: PLC0415 (imports numpy)

        return Batched(self, n)

    def with_length(self: S, steps: int) -> S:
        return changed(self, max_steps=steps)

    def diagnostic(self: S) -> S:
        """The same scenario, whose steps tell what `diagnose` tells."""
        return changed(self, _measured=True)

    @property
    def measured(self) -> bool:
        """Whether steps tell the scenario's own measures."""
        return self._measured

    def diagnose(self, agent: str, info: Mapping[str, Any]) -> dict[str, float]:
        """Whether the agent came home, and one step; those of an episode say how long it took."""
        return dict(info)
