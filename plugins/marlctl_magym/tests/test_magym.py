"""ma-gym's scenarios: its own episodes, in PettingZoo's way."""

import random
from importlib.util import find_spec

import numpy as np
import pytest

from marlctl.copies import make_batch
from marlctl.errors import ConfigError
from marlctl.options import build
from marlctl.plugins import environment
from marlctl.testing.steps import assert_same_step
from marlctl_magym import NAMES, family

if find_spec("ma_gym") is None:
    pytest.skip("ma-gym is not installed", allow_module_level=True)

from marlctl_magym.cage import registered

EVERY = pytest.mark.parametrize("name", NAMES)


def chosen(env, rng):
    """One action of everybody who could act."""
    return {agent: int(rng.integers(env.action_space(agent).n)) for agent in env.possible_agents}


def episode(env, seed, actions_seed=0, longest=400):
    """Everything that an episode gave, step by step."""
    rng = np.random.default_rng(actions_seed)
    obs, _ = env.reset(seed=seed)
    steps = [(obs, {}, {}, {}, {}, {})]
    while env.agents and len(steps) < longest:
        actions = chosen(env, rng)
        steps.append((*env.step({agent: actions[agent] for agent in env.agents}), actions))
    return steps


def same(one, other):
    assert len(one) == len(other)
    for (obs, *rest), (other_obs, *other_rest) in zip(one, other, strict=True):
        assert {a: o.tobytes() for a, o in obs.items()} == {a: o.tobytes() for a, o in other_obs.items()}
        assert rest == other_rest


# -- the episodes -------------------------------------------------------------------------------


def test_every_scenario_that_ma_gym_registers_is_here():
    assert set(registered()) == set(NAMES)
    assert len(NAMES) == 28


@EVERY
def test_an_episode_is_ma_gyms_own(name):
    """Against its game with its step limit untouched."""
    given = episode(environment(f"ma-gym/{name}")().make(), seed=5)
    registration = registered()[name]
    game = registration.game(**registration.kwargs)
    game.seed(5)
    type(game).step.__globals__["random"] = random.Random(5)
    limit = getattr(game, "_max_steps", None)
    expected = game.reset()
    dones = [False] * game.n_agents
    for t, (obs, reward, ends, cuts, _, actions) in enumerate(given):
        if t:
            before = list(dones)
            expected, rewards, dones, _ = game.step(list(actions.values()))
            acting = [i for i, done in enumerate(before) if not done]
            assert list(reward.values()) == [rewards[i] for i in acting]
            assert [ends[a] or cuts[a] for a in ends] == [dones[i] for i in acting]
            assert not any(cuts.values()) or t == limit
        for agent, seen in obs.items():
            assert (seen == np.array(expected[int(agent.split("_")[1])], np.float32)).all()
    assert all(dones)


@EVERY
def test_what_is_seen_lies_in_its_space(name):
    env = family(name)().make()
    for seed in range(3):
        for obs, *_ in episode(env, seed, actions_seed=seed):
            assert all(env.observation_space(agent).contains(seen) for agent, seen in obs.items())


@EVERY
def test_a_seed_fixes_the_whole_episode_and_nobody_elses_numbers(name):
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002 (the user's generator is what this is about)
    before, numpys = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    env, twin = family(name)().make(), family(name)().make()
    first = episode(env, seed=2**31 - 1)
    episode(twin, seed=8, actions_seed=1)  # what was played before leaves no trace
    same(first, episode(twin, seed=2**31 - 1))
    assert random.getstate() == before
    assert np.random.get_state()[1].tolist() == numpys  # noqa: NPY002


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith(("Switch", "Checkers"))])
def test_another_seed_gives_another_episode(name):
    env = family(name)().make()
    with pytest.raises(AssertionError):
        same(episode(env, seed=1), episode(env, seed=2))


@EVERY
def test_two_games_side_by_side_do_not_share_their_chance(name):
    alone, other = family(name)().make(), family(name)().make()
    expected = episode(alone, seed=4, longest=30)
    rng = np.random.default_rng(0)
    obs, _ = alone.reset(seed=4)
    other.reset(seed=9)
    given = [(obs, {}, {}, {}, {}, {})]
    while alone.agents and len(given) < 30:
        actions = chosen(alone, rng)
        other.step({agent: actions[agent] for agent in other.agents})
        given.append((*alone.step({agent: actions[agent] for agent in alone.agents}), actions))
    same(expected, given)


# -- ends, limits, teams ------------------------------------------------------------------------


def test_an_end_in_the_last_step_of_the_time_is_still_an_end():
    env = family("PredatorPrey5x5-v2")({"max_steps": 5}).make()
    env.reset(seed=0)
    for _ in range(4):
        env.step(dict.fromkeys(env.agents, 4))
    game = env._game
    game._full_obs = [["0"] * 5 for _ in range(5)]
    game.agent_pos, game.prey_pos = {0: [2, 1], 1: [2, 3]}, {0: [2, 2]}
    game._full_obs[2][1:4] = ["A1", "P1", "A2"]
    _, reward, ends, cuts, infos = env.step(dict.fromkeys(env.agents, 4))
    assert reward == {"agent_0": pytest.approx(4.99), "agent_1": pytest.approx(4.99)}
    assert all(ends.values()) and not any(cuts.values())
    assert infos["agent_0"] == {"prey_alive": 0}


def test_cars_that_arrive_leave_and_the_others_are_cut_by_the_time_limit():
    env = family("TrafficJunction4-v0")({"max_steps": 20}).make()
    env.reset(seed=1)
    left, last = [], {}
    while env.agents:
        acting = list(env.agents)
        _, _, ends, cuts, _ = env.step({a: int(a == "agent_3") for a in acting})  # the fourth stands on the brake
        left += [a for a in acting if ends[a]]
        last = cuts
    assert set(left) == {"agent_0", "agent_1", "agent_2"}
    assert last == {"agent_3": True}


def test_a_length_reaches_the_clock_that_agents_see():
    env = family("Checkers-v2")().with_length(4).make()
    env.reset(seed=0)
    seen = [env.step(dict.fromkeys(env.agents, 4))[0]["agent_0"][-1] for _ in range(4)]
    assert seen == [0.25, 0.5, 0.75, 1.0]
    assert env.agents == []
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_the_core_limits_the_one_that_has_no_limit():
    scenario = family("PongDuel-v0")()
    assert not hasattr(scenario, "with_length")
    batch = make_batch(scenario, 1, length=3)
    batch.reset([0])
    assert [batch.step(batch.spec.action.zeros(1), [1]).ended[0] for _ in range(3)] == [False, False, True]


@EVERY
def test_everybody_is_one_team_but_in_the_duel(name):
    spec = make_batch(family(name)(), 1).spec
    assert len(spec.teams) == (2 if name == "PongDuel-v0" else 1)


def test_measures_are_numbers_by_name():
    expected = {
        "Checkers-v0": {"food_count_lemon", "food_count_apple"},
        "Combat-v0": {"health"},
        "PongDuel-v0": {"rounds"},
        "PredatorPrey7x7-v0": {"prey_alive"},
        "TrafficJunction4-v0": {"step_collisions"},
        "Lumberjacks-v0": set(),
    }
    for name, measures in expected.items():
        batch = make_batch(family(name)(), 2, diagnostics=True)
        batch.reset([0, 1])
        step = batch.step(batch.spec.action.zeros(2), [2, 3])
        assert set(step.diagnostics) == measures
        assert all(np.isfinite(joint.array).all() for joint in step.diagnostics.values())


# -- PettingZoo, pictures, copies ---------------------------------------------------------------


@EVERY
def test_pettingzoo_finds_nothing_wrong_with_it(name, pettingzoo_tests):
    pettingzoo_tests(family(name)().make, steps=120)


@EVERY
def test_every_step_has_a_picture(name):
    env = family(name)().make(render_mode="rgb_array")
    env.reset(seed=0)
    rng, pictures = np.random.default_rng(0), [env.render()]
    for _ in range(5):
        env.step(chosen(env, rng))
        pictures.append(env.render())
    assert all(p.dtype == np.uint8 and p.shape == pictures[0].shape and p.flags.writeable for p in pictures)
    assert any((p != pictures[0]).any() for p in pictures)
    assert family(name)().make().render() is None


@EVERY
def test_a_loaded_state_goes_on_bit_for_bit(name, rng):
    whole, resumed = (make_batch(family(name)(), 2) for _ in range(2))
    whole.reset([1, 2])
    resumed.reset([3, 4])

    def acting():
        return whole.spec.action.joint(rng.random((2, whole.spec.action.width), np.float32))

    for t in range(60):
        step = whole.step(acting(), [10 + t, 90 + t])
    obs, _ = resumed.load(whole.state())
    assert obs.array.tobytes() == step.obs.array.tobytes()
    for t in range(20):
        action = acting()
        assert_same_step(whole.step(action, [t, 50 + t]), resumed.step(action, [t, 50 + t]))


# -- what it refuses ----------------------------------------------------------------------------


@pytest.mark.parametrize("strange", [5, -1, 1.5, None])
def test_an_action_outside_its_space_is_refused_by_name(strange):
    env = family("Switch2-v0")().make()
    env.reset(seed=0)
    with pytest.raises(ConfigError, match=r"action of agent_1 is .*Discrete\(5\)"):
        env.step({"agent_0": 0, "agent_1": strange})
    with pytest.raises(ConfigError, match="no action for agent_1"):
        env.step({"agent_0": 0})


def test_keywords_reach_the_game():
    scenario = build(family("PredatorPrey5x5-v0"), {"n_agents": "3", "grid_shape": "[6, 7]"}, owner="env")
    env = scenario.make()
    assert len(env.possible_agents) == 3
    assert env._game._grid_shape == [6, 7]
    assert len(episode(env, seed=0)) > 1


def test_a_keyword_it_does_not_take_gets_a_suggestion():
    with pytest.raises(ConfigError, match="no option of Combat-v0 'n_agent'; did you mean n_agents"):
        build(family("Combat-v0"), {"n_agent": 3}, owner="env")


@pytest.mark.parametrize("steps", [0, -3, 2.5])
def test_an_episode_has_at_least_one_step(steps):
    with pytest.raises(ConfigError, match=r"env\.max_steps must be a whole number of at least 1"):
        build(family("Switch2-v0"), {"max_steps": steps}, owner="env")


def test_a_value_it_refuses_is_the_users_to_mend():
    with pytest.raises(ConfigError, match=r"TrafficJunction4-v0 cannot be made with.*n_max should be"):
        build(family("TrafficJunction4-v0"), {"n_max": 11}, owner="env").make()


@pytest.mark.parametrize(("name", "meant"), [("Combat", "Combat-v0"), ("predatorprey5x5-v0", "PredatorPrey5x5-v0")])
def test_a_name_that_is_not_there_gets_a_suggestion(name, meant):
    with pytest.raises(ConfigError, match=f"did you mean .*ma-gym/{meant}"):
        environment(f"ma-gym/{name}")
