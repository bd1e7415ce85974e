"""Playing: seeds, returns, what is carried from step to step, and going on from a saved state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl.copies import make_batch
from marlctl.errors import DivergedError
from marlctl.plugins import environment
from marlctl.records import ActionSpec, Acts, AgentSpec, EnvSpec, Step
from marlctl.rollout import Player, load_rng, rng_state
from marlctl.seeding import episode_seed
from marlctl.storage.hdf5 import pack
from marlctl.testing.toy import Toy, ToyGrid

SPEC = EnvSpec(tuple(AgentSpec(name, name, 1, ActionSpec("discrete", (2,))) for name in ("a", "b")))


class Clock:
    """Copies whose episodes last as long as they are told, and pay each agent its number a step."""

    spec = SPEC

    def __init__(self, lengths):
        self.n, self.lengths, self.time = len(lengths), np.array(lengths), np.zeros(len(lengths), int)
        self.resets = [[] for _ in lengths]

    def reset(self, seeds):
        for copy, seed in enumerate(seeds):
            self.resets[copy].append(seed)
        return self._look(), None

    def _look(self):
        return SPEC.obs.joint(np.repeat(self.time[:, None], 2, 1).astype(np.float32))

    def step(self, action, seeds):
        self.time += 1
        final, ended = self._look(), self.time >= self.lengths
        for copy in np.flatnonzero(ended):
            self.resets[copy].append(seeds[copy])
        self.time[ended] = 0
        flags = {name: SPEC.scalar.zeros(self.n, dtype=bool) for name in ("terminated", "truncated")}
        alive = SPEC.scalar.joint(np.ones((self.n, 2), bool))
        reward = SPEC.scalar.joint(np.tile(np.array([1, 10], np.float32), (self.n, 1)))
        return Step(self._look(), reward, **flags, alive=alive, final_obs=final, ended=ended)


class Counting:
    """A policy that carries how often it has acted in this episode, and remembers what it was given."""

    plays = "greedy"

    def __init__(self, action=0.0):
        self.seen, self.action = [], action

    def act(self, obs, carry, *, rng, mode, mask=None):
        rows = len(next(iter(obs.values())))
        count = carry.get("count", np.zeros((rows, 2), np.int64))
        self.seen.append(count.copy())
        joint = SPEC.action.zeros(rows)
        joint["b"][:] = self.action
        return Acts(joint, {"count": count + 1})


def test_every_episode_of_every_copy_has_its_own_seed_in_order():
    env = Clock([2, 3])
    player = Player(env, Counting(), seed=5, mode="explore")
    for _ in range(6):
        player.step()
    assert env.resets[0] == [episode_seed(5, 0, k) for k in range(4)]
    assert env.resets[1] == [episode_seed(5, 1, k) for k in range(3)]


def test_returns_and_lengths_are_those_of_the_episode_that_ended():
    player = Player(Clock([2, 3]), Counting(), seed=5, mode="explore")
    ended = [player.step()[1] for _ in range(6)]
    assert [e.copies.tolist() for e in ended] == [[], [0], [1], [0], [], [0, 1]]
    assert ended[1].returns.tolist() == [[2, 20]]
    assert ended[2].returns.tolist() == [[3, 30]]
    assert ended[5].returns.tolist() == [[2, 20], [3, 30]]
    assert ended[5].lengths.tolist() == [2, 3]


def test_what_is_carried_is_zeroed_for_the_copies_that_ended_and_for_no_other():
    policy = Counting()
    player = Player(Clock([2, 3]), policy, seed=5, mode="explore")
    for _ in range(6):
        player.step()
    assert [seen[:, 0].tolist() for seen in policy.seen] == [[0, 0], [1, 1], [0, 2], [1, 0], [0, 1], [1, 2]]


def test_what_a_policy_gave_is_not_changed_behind_its_back():
    class Keeping(Counting):
        def act(self, *args, **kwargs):
            self.gave = super().act(*args, **kwargs)
            return self.gave

    policy = Keeping()
    player = Player(Clock([1]), policy, seed=0, mode="explore")
    player.step()
    assert policy.gave.carry["count"].tolist() == [[1, 1]]
    assert player.carry["count"].tolist() == [[0, 0]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_action_that_is_not_finite_stops_the_run_and_names_the_agent(value):
    player = Player(Clock([2]), Counting(value), seed=0, mode="explore")
    with pytest.raises(DivergedError, match="the action of b is not finite"):
        player.step()


def toy_player(seed, n=3, size=7):
    env = make_batch(ToyGrid(size=size), n)
    return Player(env, Toy().build(env.spec, seed=seed, device="cpu"), seed=seed, mode="explore")


def told(player, steps):
    """Everything that is seen, done and earned in so many steps."""
    found = []
    for _ in range(steps):
        played, ended = player.step()
        joints = (played.obs, played.mask, played.acts.action, played.step.reward, played.step.final_obs)
        found.append([joint.array.tobytes() for joint in joints] + [ended.returns.tobytes(), ended.lengths.tobytes()])
    return found


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), before=st.integers(0, 40))
def test_a_player_goes_on_bit_for_bit_from_a_saved_state(seed, before):
    player = toy_player(seed)
    told(player, before)
    state = player.state()
    packed = pack(state)
    later = told(player, 15)
    assert pack(state) == packed, "what is saved must not change with the player"
    other = toy_player(seed)
    told(other, 3)
    assert other.load(state)
    assert told(other, 15) == later
    assert pack(other.state()) == pack(player.state())


def test_an_environment_that_comes_back_different_is_noticed():
    player = toy_player(1)
    told(player, 5)
    other = toy_player(1, size=9)
    assert not other.load(player.state())


def test_a_player_does_not_touch_the_worlds_random_numbers():
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002 (it is the world's that is watched)
    told(toy_player(1), 10)
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002


def test_time_is_told_apart():
    player = toy_player(1)
    told(player, 5)
    assert set(player.time) == {"acting", "environment"}
    assert all(seconds > 0 for seconds in player.time.values())


@given(st.integers(0, 2**64), st.integers(0, 5))
def test_a_generators_state_is_a_plain_array(seed, draws):
    rng, other = (np.random.Generator(np.random.PCG64(s)) for s in (seed, 1))
    rng.integers(2**32 - 1, size=draws, dtype=np.uint32)  # an odd number leaves half a word behind
    saved = rng_state(rng)
    assert saved.dtype == np.uint64
    load_rng(other, saved)
    assert other.integers(2**32 - 1, size=5, dtype=np.uint32).tolist() == (
        rng.integers(2**32 - 1, size=5, dtype=np.uint32).tolist()
    )


def test_the_mode_and_the_mask_reach_the_policy():
    class Asking(Counting):
        def act(self, obs, carry, *, rng, mode, mask=None):
            self.told = (mode, mask)
            return Acts(env.spec.action.join({name: np.eye(3, dtype=np.float32)[[0]] for name in env.spec.names}))

    env = make_batch(environment("toy_grid")(), 1)
    policy = Asking()
    Player(env, policy, seed=0, mode="sample").step()
    assert policy.told[0] == "sample"
    assert policy.told[1]["agent_0"].dtype == bool
