"""The MPE2 scenarios in arrays: n copies in one step, with MPE2's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from marlctl.errors import ConfigError
from marlctl_mpe.batched.adversary import AdversaryTask
from marlctl_mpe.batched.crypto import CryptoTask
from marlctl_mpe.batched.env import Batched
from marlctl_mpe.batched.push import PushTask
from marlctl_mpe.batched.reference import ReferenceTask
from marlctl_mpe.batched.shapes import FormationTask, LineTask
from marlctl_mpe.batched.simple import SimpleTask
from marlctl_mpe.batched.speaker_listener import SpeakerListenerTask
from marlctl_mpe.batched.spread import SpreadTask
from marlctl_mpe.batched.tag import TagTask
from marlctl_mpe.batched.task import Task
from marlctl_mpe.batched.treasure import TreasureTask
from marlctl_mpe.batched.world_comm import WorldCommTask
from marlctl_mpe.scenario import Scenario

__all__ = ["Batched", "batched"]

TASKS: Mapping[str, type[Task]] = {
    "collect_treasure": TreasureTask,
    "simple": SimpleTask,
    "simple_adversary": AdversaryTask,
    "simple_crypto": CryptoTask,
    "simple_formation": FormationTask,
    "simple_line": LineTask,
    "simple_push": PushTask,
    "simple_reference": ReferenceTask,
    "simple_speaker_listener": SpeakerListenerTask,
    "simple_spread": SpreadTask,
    "simple_tag": TagTask,
    "simple_world_comm": WorldCommTask,
}


def batched(scenario: Scenario, n: int) -> Batched:
    """n copies of the scenario; one that is not known here, with all its options, is an error."""
    if scenario.name not in TASKS:
        raise ConfigError(f"{scenario.name} has no batched form; choose env.backend=mpe2")
    task = TASKS[scenario.name]
    given = {f.name for f in fields(scenario) if f.init} - {f.name for f in fields(Scenario)}
    if strange := sorted(given - task.options):
        raise ConfigError(f"batched {scenario.name} does not know env.{strange[0]}; choose env.backend=mpe2")
    make: Callable[[Any, int], Task] = task
    return Batched(scenario, make(scenario, n), n)
