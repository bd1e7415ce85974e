import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marlctl_coma.returns import lambda_returns

REWARD = np.array([[1.0], [2.0], [4.0]])
VALUE = np.array([[10.0], [20.0], [30.0]])
NEVER = np.zeros((3, 1), bool)
LAST = np.array([[False], [False], [True]])


def goals(trace, over=NEVER, cut=LAST, after=40.0):
    return lambda_returns(
        REWARD, VALUE, over=over, cut=cut, after=np.full((3, 1), after), discount=0.5, trace=trace
    ).ravel()


def test_with_lambda_0_each_goal_is_one_reward_and_the_next_guess():
    assert goals(0).tolist() == [1 + 0.5 * 20, 2 + 0.5 * 30, 4 + 0.5 * 40]


def test_with_lambda_1_each_goal_is_all_rewards_to_the_end_of_what_is_known():
    last = 4 + 0.5 * 40
    assert goals(1).tolist() == [1 + 0.5 * (2 + 0.5 * last), 2 + 0.5 * last, last]


def test_in_between_is_the_mix_of_both():
    last = 4 + 0.5 * 40
    middle = 2 + 0.5 * (0.2 * 30 + 0.8 * last)
    assert goals(0.8).tolist() == pytest.approx([1 + 0.5 * (0.2 * 20 + 0.8 * middle), middle, last])


@pytest.mark.parametrize("trace", [0, 0.8, 1])
def test_nothing_follows_an_end(trace):
    assert goals(trace, over=LAST)[2] == 4
    middle = np.array([[False], [True], [False]])
    assert goals(trace, over=middle)[1] == 2, "what comes later is another episode"


def test_a_cut_inside_is_followed_by_the_guess_of_what_would_have_been():
    middle = np.array([[False], [True], [True]])
    assert goals(1, cut=middle)[1] == 2 + 0.5 * 40


@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_a_critic_that_is_right_already_is_told_what_it_said(seed, trace):
    """Guesses that agree with the rewards are a fixed point whatever lambda is."""
    rng = np.random.default_rng(seed)
    reward, over = rng.normal(size=(7, 3)), rng.random((7, 3)) < 0.3
    over[-1] = True
    value = np.zeros((8, 3))
    for t in reversed(range(7)):
        value[t] = reward[t] + 0.9 * np.where(over[t], 0, value[t + 1])
    found = lambda_returns(
        reward, value[:7], over=over, cut=~over & False, after=np.zeros((7, 3)), discount=0.9, trace=trace
    )
    np.testing.assert_allclose(found, value[:7], atol=1e-12)
