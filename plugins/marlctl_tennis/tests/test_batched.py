"""n games in arrays are n games: the same numbers, whatever happens beside them."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl.copies import Copies, make_batch
from marlctl.errors import ConfigError
from marlctl.testing.steps import assert_same_step
from marlctl_tennis import Tennis


def acting(env, rng):
    """Half of the players run after the ball, so that there are rallies, and all of them jump about."""
    joint = rng.uniform(-1, 1, (env.n, 4)).astype(np.float32)
    seen = env._games.frames[:, :, -1]
    joint[: env.n // 2, ::2] = np.clip(seen[: env.n // 2, :, 4] - seen[: env.n // 2, :, 0], -1, 1)
    return env.spec.action.joint(joint)


def play(env, steps, rng, first=0):
    return [env.step(acting(env, rng), [100 * (first + t) + c for c in range(env.n)]) for t in range(steps)]


def test_n_games_together_are_n_single_ones(rng):
    """Against PettingZoo's form, stepped and reset one by one by the core."""
    scenario = Tennis(max_cycles=60)
    together, apart = make_batch(scenario, 12, diagnostics=True), Copies(scenario, 12, diagnostics=True)
    assert (together.reset(range(12))[0].array == apart.reset(range(12))[0].array).all()
    ended = cut = over = 0
    for t in range(250):
        action, seeds = acting(together, rng), [100 * t + c for c in range(12)]
        step = together.step(action, seeds)
        assert_same_step(step, apart.step(action, seeds))
        ended, cut = ended + step.terminated.array[:, 0].sum(), cut + step.truncated.array[:, 0].sum()
        over += (step.reward.array > 0).sum()
    assert ended > 50 and cut > 3 and over > 30  # all that can happen did


@settings(max_examples=20)
@given(before=st.integers(0, 60), seed=st.integers(0, 2**31 - 1))
def test_a_loaded_state_goes_on_bit_for_bit(before, seed):
    whole, resumed = (Tennis(max_cycles=30).make_batch(4) for _ in range(2))
    whole.reset([seed, seed // 2, seed // 3, 5]), resumed.reset([1, 2, 3, 4])
    steps = play(whole, before, np.random.default_rng(seed))
    obs, _ = resumed.load(whole.state())
    if steps:
        assert obs.array.tobytes() == steps[-1].obs.array.tobytes()
    futures = [play(env, 40, np.random.default_rng(1), before) for env in (whole, resumed)]
    for one, other in zip(*futures, strict=True):
        assert_same_step(one, other)
    assert all((resumed.state()[name] == array).all() for name, array in whole.state().items())


def test_the_same_seeds_are_the_same_games_and_others_are_not(rng):
    one, other = Tennis().make_batch(2), Tennis().make_batch(2)
    assert (one.reset([3, 4])[0].array == other.reset([3, 4])[0].array).all()
    again = other.reset([4, 3])[0].array
    assert (one.reset([3, 4])[0].array == again[::-1]).all() and (again[0] != again[1]).any()


def test_a_state_stays_what_it_was_while_play_goes_on(rng):
    env = Tennis().make_batch(3)
    env.reset([0, 1, 2])
    state = env.state()
    before = {name: array.copy() for name, array in state.items()}
    play(env, 30, rng)
    assert all((state[name] == array).all() for name, array in before.items())


def test_what_a_step_gave_is_never_written_to_again(rng):
    env = Tennis(max_cycles=9).diagnostic().make_batch(3)
    env.reset([0, 1, 2])
    steps, then = [], []
    for t in range(25):
        steps += play(env, 1, rng, first=t)
        then += [deepcopy(steps[-1])]
    for step, as_it_was in zip(steps, then, strict=True):
        assert_same_step(step, as_it_was)


def test_a_state_of_other_copies_is_refused():
    two, three = Tennis().make_batch(2), Tennis().make_batch(3)
    with pytest.raises(ConfigError, match="2 games of tennis"):
        two.load(three.state())


def test_measures_come_only_when_asked_for_and_add_up(rng):
    env = Tennis().make_batch(8)
    env.reset(range(8))
    assert not play(env, 1, rng)[0].diagnostics
    env = make_batch(Tennis(), 8, diagnostics=True)
    env.reset(range(8))
    for step in play(env, 200, rng):
        rally, misses = (step.diagnostics[name].array for name in ("rally", "misses"))
        points = 0.1 * (step.reward.array > 0) - 0.01 * misses
        np.testing.assert_allclose(step.reward.array, points, atol=1e-6)
        assert (rally.sum(1) == 2 * (step.reward.array > 0).sum(1)).all()
        assert (misses.sum(1) == step.terminated.array[:, 0]).all()
