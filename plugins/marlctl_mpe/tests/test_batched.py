"""The batched scenarios play MPE2's own episodes. MARLCTL_PARITY_EPISODES=500 compares so many of each."""

import os
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl.copies import Copies, make_batch
from marlctl.errors import ConfigError, DivergedError
from marlctl.options import build
from marlctl.testing.steps import assert_same_step
from marlctl_mpe import SCENARIOS, SimpleReference, SimpleSpread, SimpleTag, family

EPISODES = int(os.environ.get("MARLCTL_PARITY_EPISODES", "6"))
CLOSE = 1e-6
STYLES = ("inwards", "outwards", "seeking", "random")
LONG = {"max_cycles": 60}
OPTIONS = {  # beside the defaults
    "collect_treasure": [
        {"num_collectors": 9, "num_deposits": 3, "num_treasures": 4, **LONG},
        {"num_collectors": 1, "num_deposits": 1, "num_treasures": 1, **LONG},
        {"num_collectors": 5, "num_treasures": 40},  # one hand for two treasures
    ],
    "simple_adversary": [
        {"N": 1},
        {"N": 4, "num_agent_neighbors": 2, "num_landmark_neighbors": 1},
        {"num_agent_neighbors": 5, "num_landmark_neighbors": 4},
    ],
    "simple_formation": [{"N": 1, "terminate_on_success": True, **LONG}, {"N": 7}],
    "simple_line": [{"N": n, "terminate_on_success": True, **LONG} for n in (1, 2)] + [{"N": 7}],
    "simple_reference": [{"local_ratio": 0.2}],
    "simple_spread": [
        {"N": 1, "terminate_on_success": True, **LONG},
        {"N": 2, "curriculum": True, "terminate_on_success": True, **LONG},
        {"N": 8, "local_ratio": 0.9, **LONG},
        {"N": 4, "num_agent_neighbors": 2, "num_landmark_neighbors": 3},
        {"num_agent_neighbors": 4, "num_landmark_neighbors": 5},
    ],
    "simple_tag": [
        {"num_good": 3, "num_adversaries": 5, "num_obstacles": 4, **LONG},
        {"num_obstacles": 0, "curriculum": True, "terminate_on_success": True},
        {"num_good": 2, "num_agent_neighbors": 2, "num_landmark_neighbors": 1},
        {"num_agent_neighbors": 6, "num_landmark_neighbors": 3},
    ],
    "simple_world_comm": [
        {"num_good": 3, "num_adversaries": 1, "num_obstacles": 3, "num_food": 4, "num_forests": 4, **LONG},
        {"num_good": 1, "num_adversaries": 2, "num_obstacles": 0, "num_food": 1, "num_forests": 0},
    ],
}
KINDS = [{}, {"continuous_actions": True}, {"factored_actions": True}]
PLAYABLE = [
    (scenario, kind) for scenario in SCENARIOS for kind in KINDS if all(hasattr(scenario, name) for name in kind)
]
VARIANTS = [
    pytest.param(scenario, {**options, **kind}, id=f"{scenario.name}-{i}-{'-'.join(kind) or 'discrete'}")
    for scenario, kind in PLAYABLE
    for i, options in enumerate([{}, *OPTIONS.get(scenario.name, [])])
]
EVERY_VARIANT = pytest.mark.parametrize(("scenario", "options"), VARIANTS)
EVERY_KIND = pytest.mark.parametrize(("scenario", "options"), [v.values for v in VARIANTS if "-0-" in v.id])


def batched(scenario, n, *, diagnostics=False, **options):
    batch = make_batch(scenario(**options, backend="batched"), n, diagnostics=diagnostics)
    assert not isinstance(batch, Copies)
    return batch


def wanted(pos, n_agents, styles, rng):
    """Where everybody wants to go (2, agents, n), by the style of the copy."""
    targets = pos[:, n_agents:] if pos.shape[1] > n_agents else pos[:, :1]
    ways = {
        "inwards": lambda: -pos[:, :n_agents],  # all bump together in the middle
        "outwards": lambda: np.sin(np.arange(2 * n_agents)).reshape(2, n_agents, 1) + 0 * pos[:, :n_agents],
        "seeking": lambda: targets[:, np.arange(n_agents) % targets.shape[1]] - pos[:, :n_agents],
        "random": lambda: 10 * rng.normal(size=pos[:, :n_agents].shape),
    }
    heading = np.stack([ways[style]()[..., copy] for copy, style in enumerate(styles)], axis=-1)
    return heading + 0.1 * rng.normal(size=heading.shape)


def acting(batch, styles, rng):
    """One action of everybody; messages are random, and numbers may lie outside their bounds."""
    joint, copies = batch.spec.action.zeros(batch.n), np.arange(batch.n)
    heading = wanted(batch._world.pos, len(batch.spec.agents), styles, rng)
    for agent, (x, y) in zip(batch.spec.agents, heading.swapaxes(0, 1), strict=True):
        move = np.where(np.abs(x) > np.abs(y), np.where(x < 0, 1, 2), np.where(y < 0, 3, 4))
        move *= rng.random(batch.n) < 0.9
        own, parts = joint[agent.name], agent.action.parts
        if agent.action.kind == "box":
            own[:] = rng.uniform(-0.2, 0.7, own.shape)
            own[copies, move % own.shape[1]] += 0.5
            continue
        for start, size in zip(np.cumsum([0, *parts]), parts, strict=False):
            pick = rng.integers(size, size=batch.n)
            own[copies, start + (pick if size % 5 else pick - pick % 5 + move if start == 0 else pick)] = 1
    return joint


def difference(one, other):
    """The largest difference of two arrays; NaN is equal to NaN alone."""
    assert one.shape == other.shape
    assert one.dtype == other.dtype
    assert (np.isnan(one) == np.isnan(other)).all()
    return float(np.nan_to_num(np.abs(one.astype(float) - other)).max(initial=0))


def compare(ours, theirs):
    """The largest difference between two steps, by field; flags and names must be the same."""
    for name in ("terminated", "truncated", "alive"):
        assert (getattr(ours, name).array == getattr(theirs, name).array).all()
    assert (ours.ended == theirs.ended).all()
    assert ours.mask is None and ours.final_mask is None
    assert set(ours.diagnostics) == set(theirs.diagnostics)
    found = {
        name: difference(getattr(ours, name).array, getattr(theirs, name).array)
        for name in ("obs", "final_obs", "reward")
    }
    measured = [difference(ours.diagnostics[name].array, theirs.diagnostics[name].array) for name in theirs.diagnostics]
    return {**found, "diagnostics": max(measured, default=0.0)}


def play(batch, steps, rng, first=0):
    styles = [STYLES[copy % len(STYLES)] for copy in range(batch.n)]
    return [
        batch.step(acting(batch, styles, rng), [100 * (first + t) + copy for copy in range(batch.n)])
        for t in range(steps)
    ]


@EVERY_VARIANT
def test_episodes_are_those_of_mpe2(scenario, options, rng, record_property):
    n = 3
    ours = batched(scenario, n, diagnostics=True, **options)
    theirs = make_batch(scenario(**options, backend="mpe2"), n, diagnostics=True)
    assert isinstance(theirs, Copies)
    assert ours.spec == theirs.spec
    assert (ours.reset([11, 12, 13])[0].array == theirs.reset([11, 12, 13])[0].array).all()
    worst, ended, t, styles = dict.fromkeys(("obs", "final_obs", "reward", "diagnostics"), 0.0), 0, 0, [*STYLES[:n]]
    while ended < EPISODES:
        action, seeds = acting(ours, styles, rng), [1000 * t + copy for copy in range(n)]
        before = action.array.copy()
        step, expected = ours.step(action, seeds), theirs.step(action, seeds)
        assert (action.array == before).all()
        found = compare(step, expected)
        assert max(found.values()) < CLOSE, (t, found)
        assert (step.obs.array[step.ended] == expected.obs.array[step.ended]).all()  # it begins exactly as MPE2's
        worst = {name: max(worst[name], found[name]) for name in worst}
        for copy in np.flatnonzero(step.ended):
            styles[copy] = STYLES[(ended := ended + 1) % len(STYLES)]
        t += 1
    record_property("worst", str(worst))


def test_a_treasure_goes_to_the_first_of_those_who_reach_it_together():
    options = {"num_collectors": 3, "num_treasures": 2}
    ours = batched(family("collect_treasure"), 1, diagnostics=True, **options)
    theirs = make_batch(family("collect_treasure")(**options, backend="mpe2"), 1, diagnostics=True)
    ours.reset([3]), theirs.reset([3])
    state = ours.state()
    state["pos"][..., 0] = [[0.9, 0, 0.01, 0.5, -0.5, 0, -0.9], [0.9, 0.01, 0, 0.5, 0.5, 0, -0.9]]
    ours.load(state)
    for entity, place in zip(theirs._copies[0]._env.unwrapped.world.entities, state["pos"][..., 0].T, strict=True):
        entity.state.p_pos = place.copy()
    stay = ours.spec.action.join({name: np.eye(5, dtype=np.float32)[[0]] for name in ours.spec.names})
    for _ in range(3):
        step = ours.step(stay, [4])
        assert max(compare(step, theirs.step(stay, [4])).values()) < CLOSE
    assert [step.diagnostics["holding"][f"collector_{i}"][0] for i in range(3)] == [0, 1, 0]


@EVERY_VARIANT
def test_the_world_begins_as_that_of_mpe2(scenario, options):
    ours, theirs = batched(scenario, 2, **options), scenario(**options).make()
    ours.reset([5, 2**31 - 1])
    for copy, seed in enumerate([5, 2**31 - 1]):
        theirs.reset(seed=seed)
        places = np.array([entity.state.p_pos for entity in theirs.unwrapped.world.entities])
        assert (places == ours._world.pos[:, : len(places), copy].T).all()


@EVERY_KIND
def test_n_copies_are_n_single_ones(scenario, options, rng):
    together = batched(scenario, 3, max_cycles=6, **options)
    singles = [batched(scenario, 1, max_cycles=6, **options) for _ in range(3)]
    together.reset([7, 8, 9])
    for copy, single in enumerate(singles):
        single.reset([7 + copy])
    for t in range(14):
        action = acting(together, STYLES[:3], rng)
        step = together.step(action, [10 * t, 10 * t + 1, 10 * t + 2])
        for copy, single in enumerate(singles):
            alone = single.step(single.spec.action.joint(action.array[[copy]]), [10 * t + copy])
            for name in ("obs", "final_obs", "reward", "truncated"):
                assert getattr(alone, name).array[0].tobytes() == getattr(step, name).array[copy].tobytes()


@EVERY_KIND
@settings(max_examples=5, deadline=None)
@given(before=st.integers(0, 14), seed=st.integers(0, 2**31 - 1))
def test_a_loaded_state_goes_on_bit_for_bit(scenario, options, before, seed):
    whole, resumed = (batched(scenario, 3, max_cycles=6, **options) for _ in range(2))
    whole.reset([seed, seed // 2, seed // 3])
    resumed.reset([1, 2, 3])
    steps = play(whole, before, np.random.default_rng(seed))
    obs, _ = resumed.load(whole.state())
    if steps:
        assert obs.array.tobytes() == steps[-1].obs.array.tobytes()
    futures = [play(batch, 8, np.random.default_rng(1), before) for batch in (whole, resumed)]
    for one, other in zip(*futures, strict=True):
        assert_same_step(one, other)
    assert all((resumed.state()[name] == array).all() for name, array in whole.state().items())


def test_a_state_stays_what_it_was_while_play_goes_on(rng):
    batch = batched(family("collect_treasure"), 2)
    batch.reset([0, 1])
    state = batch.state()
    before = {name: array.copy() for name, array in state.items()}
    play(batch, 30, rng)
    assert all((state[name] == array).all() for name, array in before.items())


def test_a_state_of_other_copies_or_of_mpe2_is_refused():
    batch, more = batched(SimpleTag, 2), batched(SimpleTag, 3)
    theirs = make_batch(SimpleTag(backend="mpe2"), 2)
    more.reset([0, 1, 2]), theirs.reset([0, 1])
    for state in (more.state(), theirs.state()):
        with pytest.raises(ConfigError, match=r"env\.backend=mpe2"):
            batch.load(state)


@EVERY_KIND
def test_what_a_step_gave_is_never_written_to_again(scenario, options, rng):
    batch = batched(scenario, 2, diagnostics=True, max_cycles=5, **options)
    batch.reset([0, 1])
    steps, then = [], []
    for t in range(12):
        steps += play(batch, 1, rng, first=t)
        then += [deepcopy(steps[-1])]
    for step, as_it_was in zip(steps, then, strict=True):
        assert_same_step(step, as_it_was)


@pytest.mark.parametrize("options", [{}, {"factored_actions": True}])
def test_preferences_stand_for_the_choice_they_prefer(options, rng):
    ours, theirs = (make_batch(SimpleReference(**options, backend=backend), 2) for backend in ("batched", "mpe2"))
    ours.reset([0, 1]), theirs.reset([0, 1])
    for _ in range(10):
        action = ours.spec.action.joint(rng.random((2, ours.spec.action.width), np.float32))
        assert max(compare(ours.step(action, [2, 3]), theirs.step(action, [2, 3])).values()) < CLOSE


@pytest.mark.parametrize("strange", [np.nan, np.inf])
@pytest.mark.parametrize("continuous", [False, True])
def test_an_action_that_is_not_finite_is_refused_by_name(strange, continuous):
    batch = batched(SimpleTag, 2, continuous_actions=continuous)
    batch.reset([0, 1])
    action = batch.spec.action.zeros(2)
    action["adversary_1"][1, 2] = strange
    with pytest.raises(DivergedError, match="action of adversary_1"):
        batch.step(action, [2, 3])


def test_a_world_that_is_not_finite_is_noticed():
    batch = batched(SimpleSpread, 2)
    batch.reset([0, 1])
    state = batch.state()
    state["vel"][0, 1, 0] = np.nan
    with pytest.raises(DivergedError, match="observation of agent_1"):
        batch.load(state)


def test_an_option_that_the_arrays_do_not_know_is_refused():
    @dataclass(frozen=True)
    class Windy(SimpleTag):
        wind: float = 0.5

    with pytest.raises(ConfigError, match=r"env\.wind.*env\.backend=mpe2"):
        Windy(backend="batched").make_batch(2)
    assert Windy(backend="mpe2").make_batch(2) is None


def test_a_scenario_without_a_batched_form_says_so():
    @dataclass(frozen=True)
    class Another(SimpleTag):
        name = "simple_other"

    with pytest.raises(ConfigError, match=r"simple_other.*env\.backend=mpe2"):
        Another(backend="batched").make_batch(2)


def test_the_backend_is_one_of_two():
    with pytest.raises(ConfigError, match=r"env\.backend.*batched, mpe2"):
        build(SimpleTag, {"backend": "jax"}, owner="env")


def test_measures_come_only_when_asked_for(rng):
    batch = batched(SimpleTag, 1)
    batch.reset([0])
    assert not play(batch, 1, rng)[0].diagnostics
