"""The example that hooks up a Unity build: refused kindly without mlagents_envs, played with a pretended one."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from marlctl.copies import make_batch
from marlctl.errors import ConfigError
from marlctl.plugins import environment

EXAMPLES = Path(__file__).parents[3] / "examples"


class PretendedUnity:
    """Speaks as much of ML-Agents' low-level interface as the example uses; an episode has three steps."""

    def __init__(self, file_name, worker_id, no_graphics, side_channels):
        self.opened = SimpleNamespace(file_name=file_name, worker_id=worker_id, no_graphics=no_graphics)
        spec = SimpleNamespace(
            observation_specs=[SimpleNamespace(shape=(24,))], action_spec=SimpleNamespace(continuous_size=2)
        )
        self.behavior_specs = {"Tennis?team=1": spec, "Tennis?team=0": spec}
        self.numbers, self.time, self.done, self.closed = [0, 1], 0, {}, False
        self.cut = "long" in file_name

    def reset(self):
        self.numbers, self.time = [n + 2 for n in self.numbers], 0  # new ones in every episode

    def set_action_for_agent(self, behavior, number, action):
        self.done[behavior, number] = action.continuous

    def step(self):
        self.time += 1

    def get_steps(self, behavior):
        team = int(behavior[-1])
        rows = {
            "agent_id": np.array([self.numbers[team]]),
            "obs": [np.full((1, 24), 10 * self.time + team, np.float32)],
            "reward": np.array([0.1 * team], np.float32),
        }
        nobody = {"agent_id": np.array([], int), "obs": [np.zeros((0, 24))], "reward": np.zeros(0)}
        goes_on, over = (nobody, rows) if self.time == 3 else (rows, nobody)
        return SimpleNamespace(**goes_on), SimpleNamespace(**over, interrupted=np.full(1, self.cut))

    def close(self):
        self.closed = True


@pytest.fixture
def examples(monkeypatch):
    """In the folder of the examples, as a user would be."""
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.delitem(sys.modules, "unity_tennis", raising=False)
    yield
    sys.modules.pop("unity_tennis", None)


@pytest.fixture
def unity(monkeypatch):
    opened = []

    def module(name, **contents):
        made = ModuleType(name)
        made.__dict__.update(contents)
        monkeypatch.setitem(sys.modules, name, made)

    def start(**how):
        opened.append(PretendedUnity(**how))
        return opened[-1]

    channel = SimpleNamespace(set_configuration_parameters=lambda time_scale: None)
    module("mlagents_envs")
    module("mlagents_envs.environment", UnityEnvironment=start)
    module("mlagents_envs.base_env", ActionTuple=lambda continuous: SimpleNamespace(continuous=continuous))
    module("mlagents_envs.side_channel")
    module("mlagents_envs.side_channel.engine_configuration_channel", EngineConfigurationChannel=lambda: channel)
    return opened


def test_without_mlagents_envs_the_refusal_says_what_to_do(examples, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlagents_envs", None)
    scenario = environment("unity_tennis:tennis")(build="Tennis.x86_64")
    with pytest.raises(ConfigError, match=r"needs mlagents_envs.*Python 3.10.*--scenario tennis"):
        scenario.make()


def test_two_agents_of_a_build_play_under_names_of_ours(examples, unity):
    env = make_batch(environment("unity_tennis:tennis")(build="Tennis.x86_64"), 2)
    assert env.spec.names == ("player_0", "player_1")
    assert [agent.obs_size for agent in env.spec.agents] == [24, 24]
    assert env.spec["player_0"].action.low == (-1, -1)
    assert len({one.opened.worker_id for one in unity}) == 2 and unity[0].opened.no_graphics
    obs, _ = env.reset([0, 1])
    assert (obs["player_0"] == 0).all() and (obs["player_1"] == 1).all()
    action = env.spec.action.join({"player_0": np.full((2, 2), 0.5), "player_1": np.full((2, 2), -0.25)})
    steps = [env.step(action, [0, 1]) for _ in range(3)]
    assert (unity[0].done["Tennis?team=0", unity[0].numbers[0] - 2] == 0.5).all()
    assert (unity[0].done["Tennis?team=1", unity[0].numbers[1] - 2] == -0.25).all()
    assert [step.ended.tolist() for step in steps] == [[False] * 2, [False] * 2, [True] * 2]
    assert steps[-1].terminated.array.all() and not steps[-1].truncated.array.any()
    assert steps[-1].reward["player_1"][0] == pytest.approx(0.1) and not steps[-1].reward["player_0"].any()
    assert (steps[-1].final_obs["player_1"] == 31).all() and (steps[-1].obs["player_1"] == 1).all()
    env.close()
    assert all(one.closed for one in unity)


@pytest.mark.parametrize(("build", "length"), [("long.x86_64", 1000), ("Tennis.x86_64", 2)])
def test_an_episode_that_unity_or_the_clock_cuts_short_is_truncated(examples, unity, build, length):
    env = environment("unity_tennis:tennis")(build=build).with_length(length).make()
    env.reset()
    while env.agents:
        *_, terminated, truncated, _ = env.step({name: np.zeros(2) for name in env.possible_agents})
    assert all(truncated.values()) and not any(terminated.values())


def test_a_build_with_other_agents_is_refused(examples, unity, monkeypatch):
    monkeypatch.setattr(
        PretendedUnity, "get_steps", lambda self, behavior: (SimpleNamespace(agent_id=np.arange(16)), None)
    )
    with pytest.raises(ConfigError, match="32 agents"):
        environment("unity_tennis:tennis")(build="Tennis.x86_64").make()
