"""The twelve scenarios, each with the parameters that its MPE2 constructor has."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

from marlctl.options import option
from marlctl_mpe.scenario import Scenario, Speaking

LOCAL_RATIO = "weight of an agent's own reward; the shared one weighs the rest"
SUCCESS = "end the episode once the task is done"
NEIGHBOURS = "see only so many of the nearest other agents (none: all)"
LANDMARKS = "see only so many of the nearest landmarks (none: all)"
CURRICULUM = "begin with MPE2's easiest stage of the task"


@dataclass(frozen=True)
class Simple(Scenario):
    """One agent goes to one landmark; for trying things out."""

    name: ClassVar[str] = "simple"


@dataclass(frozen=True)
class SimpleAdversary(Scenario):
    """Physical deception: the agents cover the target without showing the adversary which one it is."""

    name: ClassVar[str] = "simple_adversary"
    diagnostics: ClassVar[tuple[str, ...]] = ("goal_distance", "target_reached")

    N: int = option(2, "good agents, and as many landmarks", low=1)
    num_agent_neighbors: int | None = option(None, NEIGHBOURS, low=1)
    num_landmark_neighbors: int | None = option(None, LANDMARKS, low=1)

    def _name(self, agent: str, data: Any) -> dict[str, float]:
        # A good agent has a squared distance for every landmark, and the target's last.
        # Covering is two landmark sizes, as in the scenario's own reward for being there.
        return _to_goal(data[-1] if isinstance(data, tuple) else data, within=0.16)


@dataclass(frozen=True)
class SimpleCrypto(Scenario):
    """Alice sends Bob a message under a shared key, and Eve listens."""

    name: ClassVar[str] = "simple_crypto"
    diagnostics: ClassVar[tuple[str, ...]] = ("reconstructed", "squared_error")

    def _name(self, agent: str, data: Any) -> dict[str, float]:
        if agent.startswith("alice"):
            return {}
        said, goal = data
        right = said.any() and said.argmax() == goal.argmax()
        return {"reconstructed": float(right), "squared_error": float(((said - goal) ** 2).sum())}


@dataclass(frozen=True)
class SimplePush(Scenario):
    """Keep-away: the adversary pushes the agent from a landmark that it has to guess."""

    name: ClassVar[str] = "simple_push"


@dataclass(frozen=True)
class SimpleReference(Speaking):
    """Each agent knows the other's landmark and has to tell it."""

    name: ClassVar[str] = "simple_reference"

    local_ratio: float = option(0.5, LOCAL_RATIO, low=0, high=1)


@dataclass(frozen=True)
class SimpleSpeakerListener(Scenario):
    """Cooperative communication: the speaker knows the landmark, only the listener can go there."""

    name: ClassVar[str] = "simple_speaker_listener"
    version: ClassVar[str] = "v4"
    diagnostics: ClassVar[tuple[str, ...]] = ("goal_distance", "target_reached")

    def _name(self, agent: str, data: Any) -> dict[str, float]:
        # The data is the reward, minus the squared distance; 0.1 is what simple_spread calls occupied.
        return _to_goal(-data, within=0.1) if agent.startswith("listener") else {}


@dataclass(frozen=True)
class SimpleSpread(Scenario):
    """Cooperative navigation: cover all landmarks without bumping into each other."""

    name: ClassVar[str] = "simple_spread"
    diagnostics: ClassVar[tuple[str, ...]] = ("reward", "collisions", "min_distance", "occupied_landmarks")

    N: int = option(3, "agents, and as many landmarks", low=1)
    local_ratio: float = option(0.5, LOCAL_RATIO, low=0, high=1)
    curriculum: bool = option(False, CURRICULUM + ": collisions cost nothing")
    terminate_on_success: bool = option(False, SUCCESS)
    num_agent_neighbors: int | None = option(None, NEIGHBOURS, low=1)
    num_landmark_neighbors: int | None = option(None, LANDMARKS, low=1)

    def _name(self, agent: str, data: Any) -> dict[str, float]:
        return dict(zip(self.diagnostics, map(float, data), strict=True))


@dataclass(frozen=True)
class SimpleTag(Scenario):
    """Predator and prey: slow adversaries hunt faster agents around obstacles."""

    name: ClassVar[str] = "simple_tag"
    diagnostics: ClassVar[tuple[str, ...]] = ("touches",)

    num_good: int = option(1, "prey", low=1)
    num_adversaries: int = option(3, "predators", low=1)
    num_obstacles: int = option(2, "obstacles", low=0)
    curriculum: bool = option(False, CURRICULUM + ": the prey is slow")
    terminate_on_success: bool = option(False, SUCCESS)
    num_agent_neighbors: int | None = option(None, NEIGHBOURS, low=1)
    num_landmark_neighbors: int | None = option(None, LANDMARKS, low=1)

    def _name(self, agent: str, data: Any) -> dict[str, float]:
        return {"touches": float(data)} if self.team(agent) == "adversary" else {}


@dataclass(frozen=True)
class SimpleWorldComm(Speaking):
    """Predator and prey with food, forests to hide in, and a leader who sees all and calls out."""

    name: ClassVar[str] = "simple_world_comm"
    diagnostics: ClassVar[tuple[str, ...]] = ("touches",)

    num_good: int = option(2, "prey", low=1)
    num_adversaries: int = option(4, "predators, the leader among them", low=1)
    num_obstacles: int = option(1, "obstacles", low=0)
    num_food: int = option(2, "places with food", low=1)
    num_forests: int = option(2, "forests", low=0)

    def _name(self, agent: str, data: Any) -> dict[str, float]:
        return {"touches": float(data)} if self.team(agent) == "adversary" else {}


@dataclass(frozen=True)
class SimpleFormation(Scenario):
    """The agents form a circle around a landmark."""

    name: ClassVar[str] = "simple_formation"
    version: ClassVar[str] = "v1"

    N: int = option(4, "agents", low=1)
    terminate_on_success: bool = option(False, SUCCESS)


@dataclass(frozen=True)
class SimpleLine(Scenario):
    """The agents form a line between two landmarks."""

    name: ClassVar[str] = "simple_line"
    version: ClassVar[str] = "v1"

    N: int = option(4, "agents", low=1)
    terminate_on_success: bool = option(False, SUCCESS)


@dataclass(frozen=True)
class CollectTreasure(Scenario):
    """Collectors bring treasures of several kinds to the deposits that take them."""

    name: ClassVar[str] = "collect_treasure"
    version: ClassVar[str] = "v1"
    diagnostics: ClassVar[tuple[str, ...]] = ("holding", "carriers", "treasures")

    num_collectors: int = option(6, "agents that collect", low=1)
    num_deposits: int = option(2, "agents that take treasures, one kind each", low=1, high=6)
    num_treasures: int = option(6, "treasures lying about at a time", low=1)

    def _name(self, agent: str, data: Any) -> dict[str, float]:
        first, treasures = data
        if agent.startswith("collector"):
            return {"holding": float(first is not None), "treasures": float(treasures)}
        return {"carriers": float(first), "treasures": float(treasures)}


def _to_goal(squared: float, *, within: float) -> dict[str, float]:
    """Distance to the target, and whether the agent covers it."""
    distance = sqrt(squared)
    return {"goal_distance": distance, "target_reached": float(distance < within)}
