"""The scenarios of MPE2, the particle worlds that MADDPG was published with.

Importing this imports neither mpe2 nor numpy; a scenario's `make` does.
"""

from __future__ import annotations

from marlctl.errors import ConfigError
from marlctl.options import unknown
from marlctl_mpe.scenario import Scenario
from marlctl_mpe.scenarios import (
    CollectTreasure,
    Simple,
    SimpleAdversary,
    SimpleCrypto,
    SimpleFormation,
    SimpleLine,
    SimplePush,
    SimpleReference,
    SimpleSpeakerListener,
    SimpleSpread,
    SimpleTag,
    SimpleWorldComm,
)

SCENARIOS: tuple[type[Scenario], ...] = (
    CollectTreasure,
    Simple,
    SimpleAdversary,
    SimpleCrypto,
    SimpleFormation,
    SimpleLine,
    SimplePush,
    SimpleReference,
    SimpleSpeakerListener,
    SimpleSpread,
    SimpleTag,
    SimpleWorldComm,
)

__all__ = [
    "SCENARIOS",
    "CollectTreasure",
    "Simple",
    "SimpleAdversary",
    "SimpleCrypto",
    "SimpleFormation",
    "SimpleLine",
    "SimplePush",
    "SimpleReference",
    "SimpleSpeakerListener",
    "SimpleSpread",
    "SimpleTag",
    "SimpleWorldComm",
    "family",
]


def family(name: str) -> type[Scenario]:
    """The scenario called `name`, with or without its version: `simple_tag`, `simple_tag_v3`, `simple_tag-v3`."""
    plain = name.replace("-", "_")
    for scenario in SCENARIOS:
        if plain in (scenario.name, f"{scenario.name}_{scenario.version}"):
            return scenario
    known = [f"mpe/{scenario.name}_{scenario.version}" for scenario in SCENARIOS]
    raise ConfigError(unknown(f"mpe/{name}", known, what="scenario"))
