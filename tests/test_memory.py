"""Memory: a ring against a list, the ratio of updates to steps, and rollouts in time order."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from marlctl.memory import Recent, Ring, fields, make_memory, row_bytes
from marlctl.records import ActionSpec, Acts, AgentSpec, EnvSpec, Replay, Rollout, Step


def spec(masked=False):
    agents = (
        AgentSpec("a", "a", 3, ActionSpec("discrete", (2,))),
        AgentSpec("b", "b", 1, ActionSpec("box", (2,), (-1.0, -1.0), (1.0, 1.0))),
    )
    return EnvSpec(agents, masked)


FLAGS = ("terminated", "truncated", "alive")


def numbered(first, n, env=None, ended=False):
    """n joint transitions in which every number tells which transition it belongs to."""
    env = env or spec()
    k = np.arange(first, first + n)[:, None]

    def filled(layout, field, dtype=np.float32):
        rows = 1000 * k + 10 * field + np.arange(layout.width)
        return layout.joint((rows % 3 == 0) if dtype is bool else rows.astype(dtype))

    mask = filled(env.action, 7, bool) if env.masked else None
    step = Step(
        filled(env.obs, 1),
        filled(env.scalar, 2),
        terminated=filled(env.scalar, 3, bool),
        truncated=filled(env.scalar, 4, bool),
        alive=filled(env.scalar, 5, bool),
        final_obs=filled(env.obs, 6),
        ended=np.full(n, ended),
        mask=mask,
        final_mask=filled(env.action, 8, bool) if env.masked else None,
    )
    return filled(env.obs, 9), mask, Acts(filled(env.action, 0)), step


def expected(first, n, env=None):
    obs, mask, acts, step = numbered(first, n, env)
    rows = {
        "obs": obs.array,
        "action": acts.action.array,
        "reward": step.reward.array,
        "next_obs": step.final_obs.array,
        **{flag: getattr(step, flag).array for flag in FLAGS},
    }
    return rows if mask is None else {**rows, "mask": mask.array, "next_mask": step.final_mask.array}


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


class RingAgainstList(RuleBasedStateMachine):
    """A ring holds the last `capacity` transitions, whole and in order, whatever is done with it."""

    @initialize(capacity=st.integers(1, 12), batch=st.integers(1, 8))
    def begin(self, capacity, batch):
        self.kind = Replay(capacity, batch, warmup=1, update_every=1)
        self.ring, self.added, self.round = Ring(self.kind, spec(), seed=3), 0, 0

    @rule(n=st.integers(1, 30))
    def add(self, n):
        self.ring.add(*numbered(self.added, n))
        self.added += n

    @rule(data=st.data())
    def read(self, data):
        start = data.draw(st.integers(self.ring.oldest, self.ring.total))
        stop = data.draw(st.integers(start, self.ring.total))
        assert same(self.ring.rows(start, stop), expected(start, stop - start))

    @precondition(lambda self: self.added > 0)
    @rule()
    def draw(self):
        batch = self.ring.batch(self.round)
        again = self.ring.batch(self.round)
        self.round += 1
        which = (batch.obs.array[:, 0] // 1000).astype(int)
        assert len(which) == self.kind.batch_size
        assert ((which >= self.added - len(self.ring)) & (which < self.added)).all()
        for i, k in enumerate(which):  # no transition is torn
            row = expected(int(k), 1)
            assert all(np.array_equal(getattr(batch, name).array[i], row[name][0]) for name in row)
        assert np.array_equal(batch.obs.array, again.obs.array)

    @rule(data=st.data())
    def save_and_load_in_pieces(self, data):
        edges = data.draw(st.lists(st.integers(self.ring.oldest, self.ring.total), max_size=3))
        edges = sorted({self.ring.oldest, *edges, self.ring.total})
        fresh = Ring(self.kind, spec(), seed=3)
        for start, stop in pairwise(edges):
            fresh.fill(start, self.ring.rows(start, stop))
        assert (fresh.total, len(fresh)) == (self.ring.total, len(self.ring))
        self.ring = fresh

    @invariant()
    def holds_the_newest(self):
        if hasattr(self, "ring"):
            assert self.ring.total == self.added
            assert len(self.ring) == min(self.added, self.kind.capacity)
            assert same(self.ring.rows(self.ring.oldest, self.ring.total), expected(self.ring.oldest, len(self.ring)))


RingAgainstList.TestCase.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
TestRingAgainstList = RingAgainstList.TestCase


def test_a_full_ring_drops_the_oldest():
    ring = Ring(Replay(5, 2, 1, 1), spec(), seed=0)
    ring.add(*numbered(0, 7))
    assert (ring.oldest, ring.total, len(ring)) == (2, 7, 5)


def test_every_transition_held_is_drawn_as_often_as_any_other():
    ring = Ring(Replay(10, 1000, 1, 1), spec(), seed=0)
    ring.add(*numbered(0, 14))
    which = np.concatenate([ring.batch(round).obs.array[:, 0] // 1000 for round in range(20)])
    counts = np.bincount(which.astype(int), minlength=14)
    assert (counts[:4] == 0).all()
    assert abs(counts[4:] - 2000).max() < 5 * np.sqrt(2000)


def test_batches_follow_from_seed_and_round_alone():
    rings = [Ring(Replay(50, 20, 1, 1), spec(), seed) for seed in (1, 1, 2)]
    for ring in rings:
        ring.add(*numbered(0, 50))
    rings[0].batch(0)  # drawing leaves no trace
    drawn = [ring.batch(5).obs.array for ring in rings]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert not np.array_equal(drawn[0], rings[0].batch(6).obs.array)


def test_a_batch_is_a_copy():
    ring = Ring(Replay(4, 4, 1, 1), spec(), seed=0)
    ring.add(*numbered(0, 4))
    ring.batch(0).obs.array[:] = -1
    assert same(ring.rows(0, 4), expected(0, 4))


@given(n=st.integers(1, 40), every=st.integers(1, 50), warmup=st.integers(1, 300), turns=st.integers(1, 100))
def test_updates_and_steps_stay_in_their_ratio_for_any_number_of_copies(n, every, warmup, turns):
    ring = Ring(Replay(3, 1, warmup, every), spec(), seed=0)
    updates, steps, silent = 0, 0, 0
    for _ in range(turns):
        ring.total += n
        updates += ring.due(steps, steps + n)
        steps += n
        if steps < warmup:
            silent = steps
    assert updates == steps // every - silent // every


@pytest.mark.parametrize("masked", [False, True])
def test_masks_are_kept_where_the_scenario_has_them(masked):
    env = spec(masked)
    assert ("mask" in fields(env)) == masked
    for memory in (Ring(Replay(6, 6, 1, 1), env, seed=0), Recent(Rollout(3), env, 2)):
        for first in (0, 2, 4):
            memory.add(*numbered(first, 2, env))
        batch = memory.batch(0)
        assert (batch.mask is not None) == masked
        if masked:
            assert batch.mask.array.dtype == batch.next_mask.array.dtype == bool
    ring = Ring(Replay(6, 6, 1, 1), env, seed=0)
    ring.add(*numbered(0, 6, env))
    assert same(ring.rows(0, 6), expected(0, 6, env))


@pytest.mark.parametrize("masked", [False, True])
def test_a_ring_takes_the_bytes_it_was_said_to_take(masked):
    env = spec(masked)
    ring = Ring(Replay(100, 1, 1, 1), env, seed=0)
    assert ring.nbytes == 100 * row_bytes(env)
    kinds = {name: array.dtype for name, array in ring.rows(0, 1).items()}
    assert {kinds[name] for name in ("obs", "action", "reward", "next_obs")} == {np.dtype(np.float32)}
    assert {kinds[name] for name in FLAGS} == {np.dtype(bool)}
    assert row_bytes(env) == 4 * (4 + 4 + 2 + 4) + 3 * 2 + (8 if masked else 0)


def test_the_memory_is_the_one_the_algorithm_asked_for():
    assert isinstance(make_memory(Replay(5, 1, 1, 1), spec(), 2, 0), Ring)
    assert isinstance(make_memory(Rollout(5), spec(), 2, 0), Recent)


# -- rollouts ---------------------------------------------------------------------------------------


def gathered(recent, first, turns, n=2):
    for turn in range(first, first + turns):
        obs, mask, acts, step = numbered(turn * n, n)
        extras = {"value": np.arange(turn * n, turn * n + n, dtype=np.float64)}
        recent.add(obs, mask, Acts(acts.action, {}, extras), step)


def test_a_rollout_is_learnt_from_in_time_order_and_then_forgotten():
    recent = Recent(Rollout(3, updates=4), spec(), 2)
    gathered(recent, 0, 2)
    assert recent.due(2, 4) == 0
    gathered(recent, 2, 1)
    assert recent.due(4, 6) == 4
    batch = recent.batch(0)
    assert np.array_equal(recent.batch(1).obs.array, batch.obs.array)
    assert (batch.obs.array[:, :, 0] // 1000).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert batch.extras["value"].tolist() == [[0, 1], [2, 3], [4, 5]]
    gathered(recent, 3, 1)
    assert recent.due(6, 8) == 0
    gathered(recent, 4, 2)
    assert (recent.batch(1).obs.array[:, :, 0] // 1000).tolist() == [[6, 7], [8, 9], [10, 11]]


def test_where_the_gathering_cuts_an_episode_that_is_a_truncation():
    recent = Recent(Rollout(3), spec(), 2)
    gathered(recent, 0, 3)
    batch = recent.batch(0)
    raw = [expected(2 * t, 2) for t in range(3)]
    for t in range(2):
        assert np.array_equal(batch.truncated.array[t], raw[t]["truncated"])
    last = raw[2]
    assert (batch.truncated.array[2] | last["terminated"]).all()
    assert np.array_equal(batch.terminated.array[2], last["terminated"])
    assert not (batch.truncated.array[2] & last["terminated"] & ~last["truncated"]).any()


def learnt(recent, first, turns):
    """The batches that come of these turns."""
    batches = []
    for turn in range(first, first + turns):
        gathered(recent, turn, 1)
        batches += [recent.batch(0) for _ in range(recent.due(0, 0))]
    return batches


@pytest.mark.parametrize("before", range(8))
def test_a_rollout_goes_on_where_it_was_saved(before):
    whole, first, second = (Recent(Rollout(3), spec(), 2) for _ in range(3))
    expected_batches = learnt(whole, 0, 9)
    batches = learnt(first, 0, before)
    state = first.state()
    gathered(first, 50, 1)  # what is saved stays as it was
    second.load(state)
    batches += learnt(second, before, 9 - before)
    assert len(batches) == len(expected_batches) == 3
    for one, other in zip(expected_batches, batches, strict=True):
        for name in expected(0, 1):
            assert np.array_equal(getattr(one, name).array, getattr(other, name).array)
        assert np.array_equal(one.extras["value"], other.extras["value"])


def test_a_batch_of_a_rollout_is_a_copy():
    recent = Recent(Rollout(2), spec(), 2)
    gathered(recent, 0, 2)
    batch = recent.batch(0)
    before = batch.obs.array.copy()
    gathered(recent, 7, 2)
    assert np.array_equal(batch.obs.array, before)
