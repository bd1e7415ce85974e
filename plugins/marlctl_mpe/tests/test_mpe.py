"""The MPE2 scenarios: options, teams, actions, measures, and PettingZoo's own tests of them."""

import inspect
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marlctl.errors import ConfigError
from marlctl.options import build, describe
from marlctl_mpe import SCENARIOS, SimpleReference, SimpleSpread, SimpleTag, SimpleWorldComm, family
from marlctl_mpe.scenario import NOT_MPE2

# Importing pettingzoo.test itself uses what pettingzoo deprecates.
PETTINGZOO_TEST = pytest.mark.filterwarnings("ignore:The old environment creation API:DeprecationWarning")
EVERY = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
OTHER = {  # a value of every option that is not its default
    "max_cycles": 7,
    "continuous_actions": True,
    "dynamic_rescaling": False,
    "N": 5,
    "num_good": 3,
    "num_adversaries": 2,
    "num_obstacles": 0,
    "num_food": 4,
    "num_forests": 1,
    "local_ratio": 0.25,
    "curriculum": True,
    "terminate_on_success": True,
    "num_agent_neighbors": 1,
    "num_landmark_neighbors": 1,
    "num_collectors": 3,
    "num_deposits": 1,
    "num_treasures": 2,
}
VARIANTS = [
    *((scenario, {"continuous_actions": continuous}) for scenario in SCENARIOS for continuous in (False, True)),
    (SimpleReference, {"factored_actions": True}),
    (SimpleWorldComm, {"factored_actions": True}),
]
EVERY_VARIANT = pytest.mark.parametrize(
    ("scenario", "options"), VARIANTS, ids=lambda v: getattr(v, "name", "") or "-".join(k for k in v if v[k])
)


def placed(scenario, agents, landmarks=(), **options):
    """An open scenario with its agents and landmarks at these places, ready for one step that moves nobody."""
    env = scenario(**options).diagnostic().make()
    env.reset(seed=0)
    world = env.unwrapped.world
    for entity, place in [*zip(world.agents, agents, strict=False), *zip(world.landmarks, landmarks, strict=False)]:
        entity.state.p_pos = np.array(place, float)
    return env


def measured(env, scenario, actions=None):
    infos = env.step(actions or dict.fromkeys(env.agents, 0))[4]
    return {agent: scenario().diagnose(agent, info) for agent, info in infos.items()}


@EVERY
def test_the_options_are_what_mpe2_takes_with_its_defaults(scenario):
    module = import_module(f"mpe2.{scenario.name}_{scenario.version}")
    theirs = {name: p.default for name, p in inspect.signature(module.raw_env).parameters.items()}
    del theirs["render_mode"], theirs["benchmark_data"]
    ours = {o.name: o.default for o in describe(scenario) if o.name not in NOT_MPE2}
    assert ours == theirs
    assert all(o.help for o in describe(scenario))


@EVERY
def test_every_option_reaches_mpe2(scenario):
    options = {o.name: OTHER[o.name] for o in describe(scenario) if o.name not in NOT_MPE2}
    env = build(scenario, options, owner="env").make(render_mode="rgb_array")
    expected = {**options, "render_mode": "rgb_array", "benchmark_data": False}
    assert env.unwrapped._ezpickle_kwargs == expected


def test_importing_the_scenarios_imports_neither_mpe2_nor_numpy():
    code = "import marlctl_mpe, sys; print({'mpe2', 'numpy', 'pettingzoo', 'pygame'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("name", ["simple_tag", "simple_tag_v3", "simple_tag-v3"])
def test_a_version_may_be_left_out(name):
    assert family(name) is SimpleTag


@pytest.mark.parametrize(("name", "meant"), [("simple_tagg", "simple_tag_v3"), ("simple_tag_v2", "simple_tag_v3")])
def test_a_name_that_is_not_there_gets_a_suggestion(name, meant):
    with pytest.raises(ConfigError, match=f"did you mean mpe/.*{meant}"):
        family(name)


@pytest.mark.parametrize(
    ("scenario", "option", "value"),
    [
        ("simple_spread", "local_ratio", 1.5),
        ("simple_spread", "num_agent_neighbors", 0),
        ("simple_spread", "N", 0),
        ("simple_tag", "num_obstacles", -1),
        ("simple_tag", "max_cycles", 0),
        ("simple_world_comm", "num_food", 0),
        ("collect_treasure", "num_deposits", 7),
        ("simple", "benchmark_data", True),
        ("simple", "render_mode", "human"),
    ],
)
def test_a_wrong_option_is_refused_before_mpe2_sees_it(scenario, option, value):
    with pytest.raises(ConfigError, match=f"env.{option}"):
        build(family(scenario), {option: value}, owner="env")


def test_factored_actions_are_discrete():
    with pytest.raises(ConfigError, match="continuous_actions"):
        SimpleReference(factored_actions=True, continuous_actions=True)


@PETTINGZOO_TEST
@EVERY_VARIANT
def test_pettingzoo_finds_nothing_wrong(scenario, options):
    from pettingzoo.test import parallel_api_test

    parallel_api_test(scenario(**options).make(), num_cycles=60)


@PETTINGZOO_TEST
@EVERY_VARIANT
def test_the_same_seed_gives_the_same_episode(scenario, options):
    from pettingzoo.test import parallel_seed_test

    parallel_seed_test(scenario(**options).make, num_cycles=20)


@EVERY
def test_a_continuous_action_has_as_many_numbers_as_its_parts(scenario):
    env = scenario(continuous_actions=True).make()
    parts = scenario().action_parts(env)
    assert {a: sum(p) for a, p in parts.items()} == {a: env.action_space(a).shape[0] for a in env.possible_agents}


def test_who_moves_and_speaks_has_two_parts():
    assert SimpleReference().action_parts(SimpleReference().make()) == {"agent_0": (5, 10), "agent_1": (5, 10)}
    speaker_listener = family("simple_speaker_listener")()
    assert speaker_listener.action_parts(speaker_listener.make()) == {"speaker_0": (3,), "listener_0": (5,)}


@pytest.mark.parametrize(
    ("scenario", "opposed"),
    [
        ("simple", []),
        ("simple_adversary", ["adversary_0"]),
        ("simple_crypto", ["eve_0"]),
        ("simple_push", ["adversary_0"]),
        ("simple_reference", []),
        ("simple_speaker_listener", []),
        ("simple_tag", ["adversary_0", "adversary_1", "adversary_2"]),
        ("simple_world_comm", ["leadadversary_0", "adversary_0", "adversary_1", "adversary_2"]),
        ("collect_treasure", []),
    ],
)
def test_only_true_opponents_are_adversaries(scenario, opposed):
    scenario = family(scenario)()
    agents = scenario.make().possible_agents
    assert [agent for agent in agents if scenario.team(agent) == "adversary"] == opposed
    assert {scenario.team(agent) for agent in agents} <= {"adversary", "agent"}


@given(st.integers(0, 4), st.integers(0, 9))
def test_a_factored_action_is_the_same_move_and_message(move, message):
    joined, factored = SimpleReference().make(), SimpleReference(factored_actions=True).make()
    joined.reset(seed=3), factored.reset(seed=3)
    apart = np.array([move, message])
    one = joined.step(dict.fromkeys(joined.agents, move + 5 * message))
    two = factored.step(dict.fromkeys(factored.agents, apart))
    assert all((one[0][agent] == two[0][agent]).all() for agent in one[0])
    assert one[1:] == two[1:]
    assert apart.tolist() == [move, message]


def test_an_episode_has_the_length_it_was_given():
    env = SimpleTag().with_length(3).make()
    env.reset(seed=0)
    ends = [env.step(dict.fromkeys(env.possible_agents, 0))[2:4] for _ in range(3)]
    assert not any(ends[1][1].values())
    assert all(ends[2][1].values())
    assert not any(ends[2][0].values())
    assert env.agents == []


def test_success_ends_an_episode_where_that_is_asked_for():
    places = [(-0.5, 0), (0, 0.5), (0.5, 0)]
    env = placed(SimpleSpread, places, places, terminate_on_success=True)
    _, _, terminated, truncated, _ = env.step(dict.fromkeys(env.agents, 0))
    assert all(terminated.values())
    assert not any(truncated.values())


@EVERY
def test_a_long_wild_episode_can_be_drawn_without_a_display(scenario, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setenv("SDL_VIDEODRIVER", "none-such")
    env = scenario(max_cycles=200, continuous_actions=True).make(render_mode="rgb_array")
    env.reset(seed=1)
    wild = {a: np.zeros(env.action_space(a).shape, np.float32) for a in env.agents}
    for i, action in enumerate(wild.values()):
        action[[-1, i % len(action)]] = 1  # everybody runs off, each in their own direction
    for step in range(200):
        env.step(wild)
        if step % 40 == 39:
            assert env.render().shape == (700, 700, 3)


def test_closing_one_environment_leaves_the_others_drawable():
    first, second = (SimpleReference().make(render_mode="rgb_array") for _ in range(2))
    first.reset(seed=0), second.reset(seed=0)
    second.step(dict.fromkeys(second.agents, 7))
    before = second.render()
    first.close()
    assert (second.render() == before).all()


def test_measuring_is_no_option_and_outlasts_a_new_length():
    assert SimpleSpread().diagnostic() != SimpleSpread()
    env = SimpleSpread().diagnostic().with_length(1).make()
    env.reset(seed=0)
    assert "benchmark_data" in env.step(dict.fromkeys(env.agents, 0))[4]["agent_0"]
    plain = SimpleSpread().make()
    plain.reset(seed=0)
    assert measured(plain, SimpleSpread) == {agent: {} for agent in plain.possible_agents}


@EVERY
def test_a_scenario_measures_what_it_announces(scenario):
    env = scenario().diagnostic().make()
    env.reset(seed=0)
    names = {name for found in measured(env, scenario).values() for name in found}
    assert names == set(scenario.diagnostics)


def test_spread_counts_collisions_distances_and_covered_landmarks():
    env = placed(SimpleSpread, [(0, 0), (0.2, 0), (0.9, 0.9)], [(0, 0.05), (0.2, 0.3), (0.9, 0.5)])
    found = measured(env, SimpleSpread)
    expected = {"reward": -1.75, "collisions": 1, "min_distance": 0.75, "occupied_landmarks": 1}
    assert found["agent_0"] == pytest.approx(expected)
    assert found["agent_2"] == pytest.approx({**expected, "collisions": 0, "reward": -0.75})


@pytest.mark.parametrize(("scenario", "predators"), [("simple_tag", 3), ("simple_world_comm", 4)])
def test_predators_count_the_prey_they_touch(scenario, predators):
    scenario = family(scenario)
    away = [(0.8, y) for y in (-0.8, -0.4, 0.4)]
    env = placed(scenario, [(0, 0), *away[: predators - 1], (0.1, 0)])
    found = measured(env, scenario)
    adversaries = [agent for agent in found if scenario().team(agent) == "adversary"]
    assert [found[agent]["touches"] for agent in adversaries] == [1, *[0] * (predators - 1)]
    assert found["agent_0"] == {}


def test_deception_tells_who_covers_the_target():
    scenario = family("simple_adversary")
    env = placed(scenario, [(0.3, 0.4), (0, 0.15), (0, -0.17)])
    env.unwrapped.world.agents[0].goal_a.state.p_pos = np.zeros(2)
    found = measured(env, scenario)
    assert found["adversary_0"] == pytest.approx({"goal_distance": 0.5, "target_reached": 0})
    assert found["agent_0"] == pytest.approx({"goal_distance": 0.15, "target_reached": 1})
    assert found["agent_1"] == pytest.approx({"goal_distance": 0.17, "target_reached": 0})


@pytest.mark.parametrize(("distance", "reached"), [(0.09, 1), (0.11, 0)])
def test_the_listener_is_measured_by_its_distance_to_the_goal(distance, reached):
    scenario = family("simple_speaker_listener")
    env = placed(scenario, [(0, 0), (0, 0)], [(distance, 0)] * 3)
    found = measured(env, scenario)
    assert found == {
        "speaker_0": {},
        "listener_0": pytest.approx({"goal_distance": distance, "target_reached": reached}),
    }


def test_crypto_tells_whether_the_message_was_reconstructed():
    scenario = family("simple_crypto")
    env = placed(scenario, [])
    right = int(env.unwrapped.world.agents[0].goal_a.color.argmax())
    found = measured(env, scenario, {"eve_0": 1 - right, "bob_0": right, "alice_0": 0})
    assert found["bob_0"] == {"reconstructed": 1, "squared_error": 0}
    assert found["eve_0"] == {"reconstructed": 0, "squared_error": 2}
    assert found["alice_0"] == {}


def test_treasure_hunters_tell_what_they_carry():
    scenario = family("collect_treasure")
    away = [(0.9, y / 10) for y in range(-4, 3)]
    env = placed(scenario, [(0, 0), *away], [(0, 0), *[(-0.9, y / 10) for y in range(5)]])
    kind = env.unwrapped.world.landmarks[0].type
    found = measured(env, scenario)
    assert [found[f"collector_{i}"]["holding"] for i in range(3)] == [1, 0, 0]
    assert found[f"deposit_{kind}"]["carriers"] == 1
    assert found[f"deposit_{1 - kind}"]["carriers"] == 0
    assert {f["treasures"] for f in found.values()} <= {5.0, 6.0}
