"""What the MPE2 scenarios have in common: opening one, its teams, its actions and its own measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from marlctl.errors import ConfigError
from marlctl.options import changed, option

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

    from marlctl.contracts import BatchedEnv

ADVERSARIES = {"adversary", "leadadversary", "eve"}
NOT_MPE2 = {"backend", "factored_actions"}  # options of ours, not handed on

S = TypeVar("S", bound="Scenario")


@dataclass(frozen=True)
class Scenario:
    """A scenario of MPE2. Options are its own parameters, with its names and defaults."""

    name: ClassVar[str]
    version: ClassVar[str] = "v3"
    diagnostics: ClassVar[tuple[str, ...]] = ()  # what `diagnose` can tell

    max_cycles: int = option(25, "steps in an episode", low=1)
    continuous_actions: bool = option(False, "forces and messages as numbers in [0, 1] instead of one choice")
    dynamic_rescaling: bool = option(True, "draw everything smaller when the camera moves out")
    backend: Literal["batched", "mpe2"] = option("batched", "arrays of many copies, or MPE2 itself; the same numbers")
    _measured: bool = field(default=False, init=False, repr=False)

    def make(self, *, render_mode: str | None = None) -> ParallelEnv[str, Any, Any]:
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.init and f.name not in NOT_MPE2}
        module = import_module(f"mpe2.{self.name}_{self.version}")
        env: ParallelEnv[str, Any, Any] = module.parallel_env(
            **given, render_mode=render_mode, benchmark_data=self._measured
        )
        if render_mode != "human":
            # mpe2 quits pygame here, and with it the fonts of every other environment; without a window
            # there is nothing to close.
            env.unwrapped.close = lambda: None
        return env

    @property
    def good_copies(self) -> int:
        """In arrays more are hardly faster, and soon mean several updates between two steps."""
        return 1 if self.backend == "mpe2" else 32

    def make_batch(self, n: int) -> BatchedEnv | None:
        """n copies in arrays, unless MPE2 itself was asked for."""
        if self.backend == "mpe2":
            return None
        from marlctl_mpe.batched import batched  # noqa: PLC0415 (imports numpy)

        return batched(self, n)

    def team(self, agent: str) -> str:
        """Everybody plays together, except those who are named as somebody's opponent."""
        return "adversary" if agent.rpartition("_")[0] in ADVERSARIES else "agent"

    def action_parts(self, env: ParallelEnv[str, Any, Any]) -> dict[str, tuple[int, ...]]:
        """How a continuous action divides: five for moving, then the message."""
        world: Any = env.unwrapped.world
        return {
            agent.name: (() if not agent.movable else (2 * world.dim_p + 1,)) + (() if agent.silent else (world.dim_c,))
            for agent in world.agents
        }

    def with_length(self: S, steps: int) -> S:
        return changed(self, max_cycles=steps)

    def diagnostic(self: S) -> S:
        """The same scenario, whose infos carry what `diagnose` reads."""
        return changed(self, _measured=True)

    @property
    def measured(self) -> bool:
        """Whether steps tell the scenario's own measures."""
        return self._measured

    def diagnose(self, agent: str, info: Mapping[str, Any]) -> dict[str, float]:
        """MPE2's measures of one agent after one step, by name."""
        if not self.diagnostics or "benchmark_data" not in info:
            return {}
        return self._name(agent, info["benchmark_data"])

    def _name(self, agent: str, data: Any) -> dict[str, float]:
        raise NotImplementedError


@dataclass(frozen=True)
class Speaking(Scenario):
    """A scenario where one agent both moves and speaks in one step."""

    factored_actions: bool = option(False, "choose move and message apart, instead of one of all their pairs")

    def __post_init__(self) -> None:
        if self.factored_actions and self.continuous_actions:
            raise ConfigError("factored_actions is for discrete actions; continuous_actions are divided anyway")

    def make(self, *, render_mode: str | None = None) -> ParallelEnv[str, Any, Any]:
        env = super().make(render_mode=render_mode)
        if not self.factored_actions:
            return env
        from marlctl_mpe.factored import Factored  # noqa: PLC0415 (imports pettingzoo)

        return Factored(env, self.action_parts(env))
