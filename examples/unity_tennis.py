"""A Unity build as a scenario: two agents of ML-Agents behind one function that marlctl can be pointed at.

In this folder, with a build of the tennis scene and an environment that has mlagents_envs:

    marlctl train --algo maddpg --scenario unity_tennis:tennis --set env.build=Tennis.x86_64 --num-envs 1

mlagents_envs pins an old Python and old packages (its 1.x wants Python 3.10 at the newest), so marlctl does not
depend on it; `--scenario tennis` is the same game without Unity. ML-Agents has a PettingZoo wrapper too, but its 1.x
declares continuous actions as whole numbers, so this uses the interface underneath.

Unity draws its own random numbers: such a run is not repeatable to the bit, and resuming says so.
"""

from __future__ import annotations

from importlib import import_module
from itertools import count
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from marlctl.errors import ConfigError, PluginError
from marlctl.records import Array

MODULES = ("base_env", "environment", "side_channel.engine_configuration_channel")

_workers = count()  # every open build listens on a port of its own


def tennis(build: str, max_cycles: int = 1000, graphics: bool = False, time_scale: float = 20.0) -> UnityPlayers:
    """Two agents of the Unity build at `build`."""
    try:
        base, environment, engine = (import_module(f"mlagents_envs.{name}") for name in MODULES)
    except ImportError as error:
        raise ConfigError(
            f"a Unity build needs mlagents_envs, which cannot be imported ({error}). It wants an older Python: make "
            "an environment with Python 3.10 and `pip install mlagents-envs` there, or use --scenario tennis"
        ) from error
    clock = engine.EngineConfigurationChannel()
    unity = environment.UnityEnvironment(
        file_name=build, worker_id=next(_workers), no_graphics=not graphics, side_channels=[clock]
    )
    clock.set_configuration_parameters(time_scale=time_scale)
    return UnityPlayers(unity, base.ActionTuple, max_cycles)


class UnityPlayers(ParallelEnv[str, Array, Array]):  # type: ignore[misc]
    """The agents of a build, called player_0 and player_1 in the order of their teams.

    Unity gives an agent a new number in every episode, so the names are ours.
    """

    metadata = {"name": "unity_tennis_v0", "render_modes": []}  # noqa: RUF012 (PettingZoo's own form)
    render_mode = None

    def __init__(self, unity: Any, action_tuple: Any, max_cycles: int) -> None:
        self._unity, self._action_tuple, self._max_cycles = unity, action_tuple, max_cycles
        self.possible_agents = ["player_0", "player_1"]
        self.agents: list[str] = []
        self._unity.reset()
        self._who = self._find()
        specs = [unity.behavior_specs[behavior] for behavior, _ in self._who]
        self._sight = spaces.Box(-np.inf, np.inf, specs[0].observation_specs[0].shape, np.float32)
        self._acts = spaces.Box(-1, 1, (specs[0].action_spec.continuous_size,), np.float32)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._sight

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._acts

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, dict[str, Any]]]:
        """Begin an episode; the seed is Unity's own affair."""
        self._unity.reset()
        self._who, self._time = self._find(), 0
        self.agents = list(self.possible_agents)
        obs = {name: self._look(who)[0] for name, who in zip(self.agents, self._who, strict=True)}
        return obs, {name: {} for name in self.agents}

    def step(
        self, actions: dict[str, Array]
    ) -> tuple[dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        for name, (behavior, number) in zip(self.possible_agents, self._who, strict=True):
            action = self._action_tuple(continuous=np.asarray(actions[name], np.float32)[None])
            self._unity.set_action_for_agent(behavior, number, action)
        self._unity.step()
        self._time += 1
        seen = {name: self._look(who) for name, who in zip(self.possible_agents, self._who, strict=True)}
        terminated = {name: ended for name, (_, _, ended, _) in seen.items()}
        late = self._time >= self._max_cycles
        truncated = {name: (cut or late) and not terminated[name] for name, (_, _, _, cut) in seen.items()}
        if any(terminated.values()) or any(truncated.values()):
            self.agents = []  # a rally is over for both
        return (
            {name: obs for name, (obs, *_) in seen.items()},
            {name: reward for name, (_, reward, *_) in seen.items()},
            terminated,
            truncated,
            {name: {} for name in seen},
        )

    def close(self) -> None:
        self._unity.close()

    def _find(self) -> list[tuple[str, int]]:
        """Behavior and number of both agents in this episode."""
        found = [
            (behavior, int(number))
            for behavior in sorted(self._unity.behavior_specs)
            for number in sorted(self._unity.get_steps(behavior)[0].agent_id)
        ]
        if len(found) != len(self.possible_agents):
            raise ConfigError(f"this build has {len(found)} agents; tennis needs a scene with one court and 2")
        return found

    def _look(self, who: tuple[str, int]) -> tuple[Array, float, bool, bool]:
        """What an agent sees and earned, whether its episode ended, and whether Unity cut it short."""
        behavior, number = who
        goes_on, over = self._unity.get_steps(behavior)
        for steps in (over, goes_on):
            if number in steps.agent_id:
                row = list(steps.agent_id).index(number)
                cut = steps is over and bool(over.interrupted[row])
                return np.asarray(steps.obs[0][row]), float(steps.reward[row]), steps is over and not cut, cut
        raise PluginError(f"{behavior} of the Unity build did not ask agent {number} for a decision in this step")
