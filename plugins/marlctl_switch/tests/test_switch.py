"""Switch by itself: its rules, both forms, its picture, and what it refuses."""

import subprocess
import sys
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl.copies import Copies, make_batch
from marlctl.errors import ConfigError, DivergedError
from marlctl.options import build
from marlctl.plugins import environment
from marlctl.testing.steps import assert_same_step
from marlctl_switch import SCENARIOS, Switch2V0, Switch2V1, Switch4V3

EVERY = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
DOWN, LEFT, UP, RIGHT, STAY = range(5)
FIELDS = ("obs", "reward", "terminated", "truncated", "alive", "final_obs")


def acting(batch, rng):
    """Random moves, more often than not towards home."""
    agents = len(batch.spec.agents)
    onwards = np.where(np.arange(agents) % 2 == 0, RIGHT, LEFT)
    moves = np.where(rng.random((batch.n, agents)) < 0.4, onwards, rng.integers(5, size=(batch.n, agents)))
    return batch.spec.action.joint(np.eye(5, dtype=np.float32)[moves].reshape(batch.n, -1))


def play(batch, steps, rng):
    return [batch.step(acting(batch, rng), range(batch.n)) for _ in range(steps)]


def walk(env, *paths):
    """Everybody along a path of their own; what the last step gave."""
    for moves in zip(*paths, strict=True):
        given = env.step({a: m for a, m in zip(env.possible_agents, moves, strict=True) if a in env.agents})
    return given


# -- the rules ----------------------------------------------------------------------------------


def test_the_best_game_of_two_is_worth_8_point_3():
    env = Switch2V0().make()
    env.reset(seed=1)
    first = [DOWN, *[RIGHT] * 5, UP, *[STAY] * 5]  # home after 7 steps
    second = [STAY] * 5 + [DOWN, *[LEFT] * 5, UP]  # waits until the corridor is free: after 12
    total = 0.0
    for moves in zip(first, second, strict=True):
        _, reward, *_ = env.step({a: m for a, m in zip(env.possible_agents, moves, strict=True) if a in env.agents})
        total += sum(reward.values())
    assert not env.agents
    assert total == pytest.approx(8.3)


def test_walls_edges_and_others_stop_a_move():
    env = Switch2V0().make()
    start, _ = env.reset()
    obs = walk(env, [UP, RIGHT], [RIGHT, RIGHT])[0]
    assert (obs["agent_0"] == start["agent_0"]).all()  # the edge, then a wall
    assert obs["agent_1"].tolist() == pytest.approx([0, 1])
    env.reset()
    obs = walk(env, [DOWN, RIGHT, RIGHT, RIGHT], [DOWN, LEFT, LEFT, LEFT])[0]
    assert obs["agent_0"][1] == pytest.approx(0.5)  # they stand face to face
    assert obs["agent_1"][1] == pytest.approx(0.67)


def test_agents_move_one_after_the_other():
    """The second may step where the first has just been, not the other way round."""
    env = Switch2V0().make()
    env.reset()
    walk(env, [DOWN, RIGHT, RIGHT], [DOWN, LEFT, LEFT])  # side by side in the corridor
    before = env.state().reshape(2, 2)[:, 1]
    after = walk(env, [LEFT], [LEFT])[0]
    assert after["agent_1"][1] < before[1]
    env.reset()
    walk(env, [DOWN, RIGHT, RIGHT], [DOWN, LEFT, LEFT])
    before = env.state().reshape(2, 2)[:, 1]
    after = walk(env, [RIGHT], [RIGHT])[0]
    assert after["agent_0"][1] == before[0]  # when it was its turn the other had not moved yet
    assert after["agent_1"][1] > before[1]


def test_who_is_home_leaves_and_is_still_seen_by_the_others():
    env = Switch2V1().make()
    env.reset()
    obs, reward, terminated, truncated, infos = walk(env, [DOWN, *[RIGHT] * 5, UP], [STAY] * 7)
    assert reward == {"agent_0": 5, "agent_1": -0.1}
    assert terminated == {"agent_0": True, "agent_1": False}
    assert not any(truncated.values())
    assert infos["agent_0"] == {"home": 1, "steps": 1}
    assert env.agents == ["agent_1"]
    obs, reward, *_ = env.step({"agent_1": STAY})
    assert set(obs) == set(reward) == {"agent_1"}
    assert obs["agent_1"][:2].tolist() == [0, 1]


def test_the_time_limit_is_a_truncation():
    env = Switch2V0(max_steps=3).make()
    env.reset()
    _, _, terminated, truncated, _ = walk(env, [STAY] * 3, [STAY] * 3)
    assert not any(terminated.values())
    assert all(truncated.values())
    assert env.agents == []
    assert env.step({}) == ({}, {}, {}, {}, {})


# -- both forms ---------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("length", [50, 9])
def test_copies_in_arrays_are_copies_of_the_single_game(scenario, length, rng):
    ours = make_batch(scenario(), 5, length=length, diagnostics=True)
    single = Copies(scenario(max_steps=length), 5, diagnostics=True)
    assert not isinstance(ours, Copies)
    assert ours.spec == single.spec
    assert ours.reset(range(5))[0].array.tobytes() == single.reset(range(5))[0].array.tobytes()
    gone = 0
    for _ in range(160):
        action = acting(ours, rng)
        step = ours.step(action, range(5))
        assert_same_step(step, single.step(action, range(5)))
        gone += int((~step.alive.array).sum())
    assert gone or length == 9, "somebody should have been home while others played on"


@EVERY
def test_n_copies_are_n_single_ones(scenario, rng):
    together, singles = make_batch(scenario(), 3), [make_batch(scenario(), 1) for _ in range(3)]
    together.reset([7, 8, 9])
    for single in singles:
        single.reset([0])
    for _ in range(120):
        action = acting(together, rng)
        step = together.step(action, [1, 2, 3])
        for copy, single in enumerate(singles):
            alone = single.step(single.spec.action.joint(action.array[[copy]]), [4])
            for name in FIELDS:
                assert getattr(alone, name).array[0].tobytes() == getattr(step, name).array[copy].tobytes()


@EVERY
@settings(max_examples=5, deadline=None)
@given(before=st.integers(0, 60), seed=st.integers(0, 2**31 - 1))
def test_a_loaded_state_goes_on_bit_for_bit(scenario, before, seed):
    whole, resumed = (make_batch(scenario(), 3, diagnostics=True) for _ in range(2))
    first, _ = whole.reset([1, 2, 3])
    resumed.reset([4, 5, 6])
    steps = play(whole, before, np.random.default_rng(seed))
    obs, mask = resumed.load(whole.state())
    assert mask is None
    assert obs.array.tobytes() == (steps[-1].obs if steps else first).array.tobytes()
    futures = [play(batch, 60, np.random.default_rng(1)) for batch in (whole, resumed)]
    for one, other in zip(*futures, strict=True):
        assert_same_step(one, other)


def test_a_state_of_other_copies_is_refused():
    batch, more = make_batch(Switch2V0(), 2), make_batch(Switch2V0(), 3)
    four = make_batch(Switch4V3(), 2)
    for other in (more, four):
        with pytest.raises(ConfigError, match="not of 2 copies of Switch2-v0"):
            batch.load(other.state())


@EVERY
def test_what_a_step_gave_is_never_written_to_again(scenario, rng):
    batch = make_batch(scenario(), 2, length=12, diagnostics=True)
    batch.reset([0, 1])
    state = batch.state()
    as_saved, steps, then = deepcopy(state), [], []
    for _ in range(30):
        steps += play(batch, 1, rng)
        then += [deepcopy(steps[-1])]
    for step, as_it_was in zip(steps, then, strict=True):
        assert_same_step(step, as_it_was)
    assert all((state[name] == as_saved[name]).all() for name in state)


def test_preferences_stand_for_the_choice_they_prefer(rng):
    ours, single = make_batch(Switch4V3(), 2), Copies(Switch4V3(), 2)
    ours.reset([0, 1]), single.reset([0, 1])
    for _ in range(60):
        action = ours.spec.action.joint(rng.normal(size=(2, 20)).astype(np.float32))
        assert_same_step(ours.step(action, [2, 3]), single.step(action, [2, 3]))


def test_measures_come_only_when_asked_for(rng):
    batch = make_batch(Switch2V0(), 1)
    batch.reset([0])
    assert not play(batch, 1, rng)[0].diagnostics


# -- what it refuses ----------------------------------------------------------------------------


@pytest.mark.parametrize("strange", [np.nan, np.inf])
def test_an_action_that_is_not_finite_is_refused_by_name(strange):
    batch = make_batch(Switch2V0(), 2)
    batch.reset([0, 1])
    action = batch.spec.action.zeros(2)
    action["agent_1"][1, 2] = strange
    with pytest.raises(DivergedError, match="action of agent_1 is not finite"):
        batch.step(action, [2, 3])
    env = Switch2V0().make()
    env.reset()
    with pytest.raises(DivergedError, match="action of agent_1 is not finite"):
        env.step({"agent_0": 0, "agent_1": strange})


@pytest.mark.parametrize("strange", [5, -1, 1.5, "up", None, [0, 1], True])
def test_an_action_outside_its_space_is_refused_by_name(strange):
    env = Switch2V0().make()
    env.reset()
    before = env.state()
    with pytest.raises(ConfigError, match=r"action of agent_1 is .*from 0 to 4"):
        env.step({"agent_0": RIGHT, "agent_1": strange})
    assert (env.state() == before).all()


def test_an_action_that_is_missing_is_named():
    env = Switch2V0().make()
    env.reset()
    with pytest.raises(ConfigError, match="no action for agent_1"):
        env.step({"agent_0": STAY})


def test_an_option_it_does_not_have_gets_a_suggestion():
    with pytest.raises(ConfigError, match=r"did you mean env\.max_steps"):
        build(Switch2V0, {"max_step": 3}, owner="env")
    with pytest.raises(ConfigError, match="at least 1"):
        build(Switch2V0, {"max_steps": 0}, owner="env")


# -- names, pictures, PettingZoo ----------------------------------------------------------------


@EVERY
def test_every_scenario_is_found_by_ma_gyms_name(scenario):
    assert environment(scenario.name) is scenario


def test_a_version_that_is_not_there_gets_a_suggestion():
    with pytest.raises(ConfigError, match="Switch2-v"):
        environment("Switch2-v7")


def test_importing_it_needs_no_numpy_and_no_pettingzoo():
    code = "import sys, marlctl_switch; print(*{'numpy', 'pettingzoo', 'PIL', 'pygame'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == ""


@EVERY
def test_pettingzoo_finds_nothing_wrong_with_it(scenario, pettingzoo_tests):
    pettingzoo_tests(scenario().make, steps=200)


@EVERY
def test_the_picture_shows_where_everybody_is(scenario):
    env = scenario().make(render_mode="rgb_array")
    env.reset()
    before = env.render()
    assert before.shape == (3 * 64, 7 * 64, 3)
    env.step(dict.fromkeys(env.agents, STAY))
    assert (env.render() == before).all()
    env.step(dict.fromkeys(env.agents, DOWN))
    assert (env.render() != before).any()
    assert scenario().make().render() is None
