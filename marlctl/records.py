"""What crosses a door: named, immutable records.

Data of several agents lies side by side in one array, so that a whole step or batch is one array a
field; a `Layout` knows which columns are whose, and a `Joint` reads them by agent name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Mode = Literal["explore", "sample", "greedy"]  # as in training, drawn from the policy, its best action


@dataclass(frozen=True)
class Layout:
    """Which columns of a side-by-side array belong to which agent."""

    columns: Mapping[str, slice | int]
    width: int

    @classmethod
    def of_sizes(cls, sizes: Mapping[str, int]) -> Layout:
        """Agents with `sizes` columns each."""
        columns: dict[str, slice | int] = {}
        start = 0
        for agent, size in sizes.items():
            columns[agent] = slice(start, start + size)
            start += size
        return cls(columns, start)

    @classmethod
    def of_scalars(cls, agents: tuple[str, ...]) -> Layout:
        """One number an agent."""
        return cls({agent: i for i, agent in enumerate(agents)}, len(agents))

    def only(self, agents: tuple[str, ...]) -> Layout:
        """The same for some of the agents."""
        if any(isinstance(place, int) for place in self.columns.values()):
            return Layout.of_scalars(agents)
        places = {agent: self.columns[agent] for agent in agents}
        return Layout.of_sizes({a: p.stop - p.start for a, p in places.items() if isinstance(p, slice)})

    def joint(self, array: Array) -> Joint:
        return Joint(array, self)

    def zeros(self, *shape: int, dtype: Any = np.float32) -> Joint:
        return Joint(np.zeros((*shape, self.width), dtype), self)

    def join(self, parts: Mapping[str, Array]) -> Joint:
        """The agents' own arrays side by side, as they are if they lie so; an agent that is missing gets zeros."""
        if isinstance(parts, Joint) and parts.layout is self:
            return parts
        first = next(iter(parts.values()))
        scalar = isinstance(next(iter(self.columns.values())), int)
        joint = self.zeros(*(first.shape if scalar else first.shape[:-1]), dtype=first.dtype)
        for agent, part in parts.items():
            joint.array[..., self.columns[agent]] = part
        return joint


@dataclass(frozen=True, eq=False)
class Joint(Mapping[str, Array]):
    """One array that holds every agent's data side by side, read by agent name (as views)."""

    array: Array  # (..., layout.width)
    layout: Layout

    def __getitem__(self, agent: str) -> Array:
        return self.array[..., self.layout.columns[agent]]

    def only(self, agents: tuple[str, ...]) -> Joint:
        """Some of the agents' data, side by side again."""
        return self.layout.only(agents).join({agent: self[agent] for agent in agents})

    def __iter__(self) -> Iterator[str]:
        return iter(self.layout.columns)

    def __len__(self) -> int:
        return len(self.layout.columns)


@dataclass(frozen=True)
class ActionSpec:
    """How an agent acts. An action is always a float vector of `size` numbers.

    Discrete actions are one-hot, one block for each of `parts` (a `Discrete(5)` has parts (5,), a
    `MultiDiscrete([3, 4])` has parts (3, 4)). Box actions are the numbers themselves, and `parts`
    says how the scenario divides them where it does (a move and a message).
    """

    kind: Literal["discrete", "box"]
    parts: tuple[int, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    first: tuple[int, ...] = ()  # the number of each part's first choice, where that is not 0

    @property
    def size(self) -> int:
        return sum(self.parts)


@dataclass(frozen=True)
class AgentSpec:
    """One agent: its name, its team, and what it sees and does."""

    name: str
    team: str
    obs_size: int
    action: ActionSpec


@dataclass(frozen=True)
class EnvSpec:
    """The agents of a scenario in their order, each with its own spaces."""

    agents: tuple[AgentSpec, ...]
    masked: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(agent.name for agent in self.agents)

    @property
    def teams(self) -> dict[str, tuple[str, ...]]:
        """Team name to its agents, in order of appearance."""
        teams: dict[str, tuple[str, ...]] = {}
        for agent in self.agents:
            teams[agent.team] = (*teams.get(agent.team, ()), agent.name)
        return teams

    def __getitem__(self, name: str) -> AgentSpec:
        for agent in self.agents:
            if agent.name == name:
                return agent
        raise KeyError(name)

    def only(self, names: tuple[str, ...]) -> EnvSpec:
        """The same scenario seen by some of its agents."""
        return EnvSpec(tuple(agent for agent in self.agents if agent.name in names), self.masked)

    @cached_property
    def obs(self) -> Layout:
        return Layout.of_sizes({agent.name: agent.obs_size for agent in self.agents})

    @cached_property
    def action(self) -> Layout:
        return Layout.of_sizes({agent.name: agent.action.size for agent in self.agents})

    @cached_property
    def scalar(self) -> Layout:
        return Layout.of_scalars(self.names)


@dataclass(frozen=True, eq=False)
class Step:
    """What one step of n copies gave. Copies whose episode ended have already begun the next one."""

    obs: Joint  # (n, ...) what the agents see now, after any reset
    reward: Joint  # (n,) by agent
    terminated: Joint  # (n,) by agent: a true end, nothing follows
    truncated: Joint  # (n,) by agent: cut short, the future goes on
    alive: Joint  # (n,) by agent: took part in this step
    final_obs: Joint  # (n, ...) what the step led to, before any reset
    ended: Array  # (n,) whether the copy's episode ended with this step
    mask: Joint | None = None  # (n, ...) actions allowed now, after any reset
    final_mask: Joint | None = None  # (n, ...) actions allowed where the step led to
    diagnostics: Mapping[str, Joint] = field(default_factory=dict)  # (n,) by agent, NaN where it has none
    everyone: Joint | None = None  # (n,) rewards of all, where some agents are no agents of this spec


@dataclass(frozen=True, eq=False)
class Acts:
    """A learner's answer to what its agents see."""

    action: Joint  # (n, ...)
    carry: Mapping[str, Array] = field(default_factory=dict)  # one row a copy; zeros at an episode's start
    extras: Mapping[str, Array] = field(default_factory=dict)  # kept beside the transition by a rollout


@dataclass(frozen=True, eq=False)
class Batch:
    """Joint transitions to learn from: (batch, ...) from a replay, (time, copies, ...) from a rollout."""

    obs: Joint
    action: Joint
    reward: Joint
    next_obs: Joint
    terminated: Joint
    truncated: Joint
    alive: Joint
    mask: Joint | None = None
    next_mask: Joint | None = None
    extras: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Gradient:
    """One unit's gradient as a flat vector, clipped and ready to apply."""

    vector: Array
    losses: Mapping[str, float]
    parts: Mapping[str, slice] = field(default_factory=dict)  # tensor name to its place in the vector


Metrics = Mapping[str, float]
State = Mapping[str, Any]  # nested mappings of arrays and plain numbers


@dataclass(frozen=True)
class Replay:
    """Learn off-policy: keep `capacity` joint transitions, draw batches from all of them."""

    capacity: int
    batch_size: int
    warmup: int  # transitions before the first update
    update_every: int  # environment steps an update


@dataclass(frozen=True)
class Rollout:
    """Learn on-policy: gather `steps` steps of every copy, make `updates` updates with them, and forget them.

    Every update gets the whole rollout; one that wants a part of it chooses by its round.
    """

    steps: int
    updates: int = 1
