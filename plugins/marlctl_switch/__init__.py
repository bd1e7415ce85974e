"""Switch: agents in two rooms, joined by a corridor for one, must each get to the other side.

The game is ma-gym's, with its names, numbers and order of moves; the code is our own, in arrays. Only
the step limit differs: it is a truncation for who is not home, not an end.

Importing this imports neither numpy nor pettingzoo; a scenario's `make` does.
"""

from __future__ import annotations

from dataclasses import dataclass

from marlctl_switch.scenario import Switch


@dataclass(frozen=True)
class Switch2V0(Switch):
    """Two agents swap sides through a corridor; each sees its own place."""

    name, n_agents, full_observable, clock = "Switch2-v0", 2, False, False


@dataclass(frozen=True)
class Switch2V1(Switch):
    """Two agents swap sides through a corridor; each sees the places of all."""

    name, n_agents, full_observable, clock = "Switch2-v1", 2, True, False


@dataclass(frozen=True)
class Switch2V2(Switch):
    """Two agents swap sides through a corridor; each sees its own place and the time."""

    name, n_agents, full_observable, clock = "Switch2-v2", 2, False, True


@dataclass(frozen=True)
class Switch2V3(Switch):
    """Two agents swap sides through a corridor; each sees the places of all and the time."""

    name, n_agents, full_observable, clock = "Switch2-v3", 2, True, True


@dataclass(frozen=True)
class Switch4V0(Switch):
    """Four agents swap sides through a corridor; each sees its own place."""

    name, n_agents, full_observable, clock = "Switch4-v0", 4, False, False


@dataclass(frozen=True)
class Switch4V1(Switch):
    """Four agents swap sides through a corridor; each sees the places of all."""

    name, n_agents, full_observable, clock = "Switch4-v1", 4, True, False


@dataclass(frozen=True)
class Switch4V2(Switch):
    """Four agents swap sides through a corridor; each sees its own place and the time."""

    name, n_agents, full_observable, clock = "Switch4-v2", 4, False, True


@dataclass(frozen=True)
class Switch4V3(Switch):
    """Four agents swap sides through a corridor; each sees the places of all and the time."""

    name, n_agents, full_observable, clock = "Switch4-v3", 4, True, True


SCENARIOS: tuple[type[Switch], ...] = (
    Switch2V0,
    Switch2V1,
    Switch2V2,
    Switch2V3,
    Switch4V0,
    Switch4V1,
    Switch4V2,
    Switch4V3,
)
