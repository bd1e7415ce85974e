"""Records: whose columns are whose, by name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marlctl.records import ActionSpec, AgentSpec, EnvSpec, Layout

sizes = st.dictionaries(st.text("abcxyz_0123", min_size=1), st.integers(1, 5), min_size=1, max_size=6)


def env_spec(masked=False):
    return EnvSpec(
        (
            AgentSpec("wolf_0", "wolf", 4, ActionSpec("discrete", (3, 2))),
            AgentSpec("sheep_0", "sheep", 2, ActionSpec("box", (2,), (-1.0, -1.0), (1.0, 1.0))),
            AgentSpec("wolf_1", "wolf", 3, ActionSpec("discrete", (3,))),
        ),
        masked,
    )


@given(sizes, st.integers(1, 4))
def test_what_is_joined_is_read_back_by_name(sizes, rows):
    layout = Layout.of_sizes(sizes)
    parts = {agent: np.random.default_rng(i).random((rows, size)) for i, (agent, size) in enumerate(sizes.items())}
    joint = layout.join(parts)
    assert joint.array.shape == (rows, sum(sizes.values()))
    assert list(joint) == list(sizes)
    assert len(joint) == len(sizes)
    for agent, part in parts.items():
        assert np.array_equal(joint[agent], part)


@given(sizes, st.data())
def test_some_agents_side_by_side_again_are_the_same_numbers(sizes, data):
    layout = Layout.of_sizes(sizes)
    joint = layout.joint(np.arange(2 * layout.width, dtype=np.float32).reshape(2, -1))
    some = tuple(data.draw(st.lists(st.sampled_from(list(sizes)), unique=True, min_size=1)))
    fewer = joint.only(some)
    assert tuple(fewer) == some
    assert fewer.array.shape[1] == sum(sizes[agent] for agent in some)
    for agent in some:
        assert np.array_equal(fewer[agent], joint[agent])


def test_agents_are_read_as_views_so_writing_by_name_writes_the_joint_array():
    joint = env_spec().obs.zeros(2)
    joint["sheep_0"][:] = 5
    assert joint.array.sum() == 20


def test_an_agent_that_is_missing_gets_zeros():
    joint = env_spec().obs.join({"wolf_1": np.ones((2, 3), np.float32)})
    assert joint["wolf_0"].tolist() == [[0] * 4] * 2
    assert joint["wolf_1"].all()


@pytest.mark.parametrize("dtype", [bool, np.float32, np.int64])
def test_joining_and_choosing_keep_the_type(dtype):
    scalar = env_spec().scalar
    joint = scalar.join({name: np.ones(3, dtype) for name in env_spec().names})
    assert joint.array.dtype == joint.only(("wolf_1", "wolf_0")).array.dtype == dtype


def test_one_number_an_agent_is_read_without_a_column():
    joint = env_spec().scalar.joint(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert joint["sheep_0"].tolist() == [2.0, 5.0]
    assert joint.only(("wolf_1", "sheep_0")).array.tolist() == [[3.0, 2.0], [6.0, 5.0]]


def test_rollouts_have_a_time_before_the_copies():
    joint = env_spec().obs.zeros(5, 2)
    assert joint["wolf_0"].shape == (5, 2, 4)


def test_teams_are_in_order_of_appearance():
    assert env_spec().teams == {"wolf": ("wolf_0", "wolf_1"), "sheep": ("sheep_0",)}
    assert list(env_spec().teams) == ["wolf", "sheep"]


def test_a_spec_of_some_agents_keeps_the_games_order_and_its_masks():
    some = env_spec(masked=True).only(("wolf_1", "wolf_0"))
    assert some.names == ("wolf_0", "wolf_1")
    assert some.masked
    assert some.obs.width == 7


def test_an_action_is_as_long_as_its_parts():
    assert env_spec()["wolf_0"].action.size == 5
    assert env_spec().action.width == 10


def test_specs_are_equal_by_what_they_say():
    assert env_spec() == env_spec()
    assert env_spec() != env_spec(masked=True)
    assert hash(env_spec()) == hash(env_spec())
