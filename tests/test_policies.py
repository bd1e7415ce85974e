"""Random play, several policies in one game, worlds in which some do not learn, and policies read from runs."""

import json
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl import config as configs
from marlctl.copies import make_batch
from marlctl.errors import ConfigError, FileError
from marlctl.policies import Cast, Hosted, Random, load_saved, players, spec_from_note, spec_note
from marlctl.records import ActionSpec, Acts, AgentSpec, EnvSpec
from marlctl.rundir import RunFolder, create
from marlctl.storage.checkpoint import Checkpoints
from marlctl.storage.hdf5 import pack
from marlctl.testing.toy import Toy, ToyGrid
from marlctl.training import train

SPEC = EnvSpec(
    (
        AgentSpec("choose", "c", 2, ActionSpec("discrete", (4,), first=(1,))),
        AgentSpec("both", "b", 3, ActionSpec("discrete", (3, 2))),
        AgentSpec("box", "x", 1, ActionSpec("box", (2,), (-1.0, 0.0), (1.0, 5.0))),
        AgentSpec("endless", "x", 1, ActionSpec("box", (1,), (-np.inf,), (np.inf,))),
    )
)


def seen(spec, rows):
    return spec.obs.zeros(rows)


# -- random -----------------------------------------------------------------------------------------


def test_random_play_chooses_every_allowed_action_equally_often(rng):
    rows = 20_000
    mask = SPEC.action.joint(np.ones((rows, SPEC.action.width), bool))
    mask["choose"][:, 1] = False
    acts = Random(SPEC).act(seen(SPEC, rows), {}, rng=rng, mode="explore", mask=mask)
    chosen = acts.action["choose"]
    assert (chosen.sum(1) == 1).all()
    assert chosen[:, 1].sum() == 0
    assert np.abs(chosen.mean(0)[[0, 2, 3]] - 1 / 3).max() < 0.02
    move, message = acts.action["both"][:, :3], acts.action["both"][:, 3:]
    assert (move.sum(1) == 1).all()
    assert (message.sum(1) == 1).all()
    assert np.abs(move.mean(0) - 1 / 3).max() < 0.02
    assert np.abs(message.mean(0) - 1 / 2).max() < 0.02


def test_random_play_fills_a_box_and_stays_within_it(rng):
    acts = Random(SPEC).act(seen(SPEC, 20_000), {}, rng=rng, mode="greedy")
    box = acts.action["box"]
    assert (box >= [-1, 0]).all()
    assert (box <= [1, 5]).all()
    assert np.abs(box.mean(0) - [0, 2.5]).max() < 0.05
    assert np.abs(box.std(0) - np.array([2, 5]) / np.sqrt(12)).max() < 0.05
    assert np.isfinite(acts.action["endless"]).all()


def test_random_play_acts_for_those_it_is_asked_about(rng):
    acts = Random(SPEC).act({"choose": np.zeros((2, 2))}, {}, rng=rng, mode="explore")
    assert (acts.action["choose"].sum(1) == 1).all()
    assert not acts.action["both"].any()


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.data())
def test_random_play_never_takes_a_masked_action(seed, data):
    rows = 5
    mask = SPEC.action.joint(np.ones((rows, SPEC.action.width), bool))
    for row in range(rows):
        open_ = data.draw(st.sets(st.integers(0, 3), min_size=1))
        mask["choose"][row] = [i in open_ for i in range(4)]
    acts = Random(SPEC).act(seen(SPEC, rows), {}, rng=np.random.default_rng(seed), mode="explore", mask=mask)
    assert (mask["choose"] | (acts.action["choose"] == 0)).all()


# -- several in one game ----------------------------------------------------------------------------


class Constant:
    """Always takes one action, and carries how often it has acted; remembers how it was asked."""

    def __init__(self, spec, choice, plays="greedy"):
        self.spec, self.choice, self.plays, self.asked = spec, choice, plays, []

    def act(self, obs, carry, *, rng, mode, mask=None):
        rows = len(next(iter(obs.values())))
        self.asked.append((tuple(obs), mode, None if mask is None else tuple(mask)))
        joint = self.spec.action.zeros(rows)
        for name in obs:
            joint[name][:, self.choice] = 1
        return Acts(joint, {"count": carry.get("count", np.zeros(rows)) + self.choice + 1})


def line(n):
    return EnvSpec(tuple(AgentSpec(f"agent_{i}", "agent", 1, ActionSpec("discrete", (30,))) for i in range(n)))


def test_each_policy_plays_its_own_agents_all_of_them_in_one_call(rng):
    spec = line(3)
    one, two = Constant(spec, 1), Constant(spec, 2, plays="sample")
    cast = Cast(spec, {"agent_0": one, "agent_1": two, "agent_2": one})
    acts = cast.act(seen(spec, 2), {}, rng=rng, mode="explore", mask=spec.action.zeros(2))
    assert [acts.action[name].argmax(1).tolist() for name in spec.names] == [[1, 1], [2, 2], [1, 1]]
    both = ("agent_0", "agent_2")
    assert one.asked == [(both, "greedy", both)]
    assert two.asked == [(("agent_1",), "sample", ("agent_1",))]


def test_each_plays_as_it_is_meant_to_unless_told_otherwise(rng):
    spec = line(1)
    policy = Constant(spec, 1)
    Cast(spec, {"agent_0": policy}, override="sample").act(seen(spec, 1), {}, rng=rng, mode="explore")
    assert policy.asked[0][1] == "sample"


@pytest.mark.parametrize("n", [2, 12])
def test_each_policy_gets_back_what_it_carried_and_nothing_of_another(n, rng):
    spec = line(n)
    cast = Cast(spec, {name: Constant(spec, i) for i, name in enumerate(spec.names)})
    carry = {}
    for _ in range(3):
        carry = cast.act(seen(spec, 2), carry, rng=rng, mode="greedy").carry
    assert sorted(rows[0] for rows in carry.values()) == [3 * (i + 1) for i in range(n)]


# -- worlds in which some do not learn --------------------------------------------------------------


class Walker:
    """Walks right while it may, then stays; every third step of an episode it rests."""

    plays = "greedy"

    def __init__(self, spec):
        self.spec = spec

    def act(self, obs, carry, *, rng, mode, mask=None):
        rows = len(next(iter(obs.values())))
        count = carry.get("count", np.zeros(rows, np.int64)) + 1
        joint = self.spec.action.zeros(rows)
        for name in obs:
            walks = mask[name][:, 2] & (count % 3 > 0)
            joint[name][np.arange(rows), np.where(walks, 2, 0)] = 1
        return Acts(joint, {"count": count})


def hosted(seed=1, n=3):
    env = make_batch(ToyGrid(max_cycles=5), n)
    walker = Walker(env.spec)
    return Hosted(env, {"agent_0": walker, "agent_2": walker}, seed=seed)


def chosen(spec, n, rng):
    return spec.action.joint(np.eye(3, dtype=np.float32)[rng.integers(3, size=n)])


def test_a_hosted_game_is_the_whole_game_with_the_fixed_agents_actions(rng):
    some, whole = hosted(), make_batch(ToyGrid(max_cycles=5), 3)
    walker, carry = Walker(whole.spec), {}
    assert some.spec.names == ("agent_1",)
    obs, mask = whole.reset([1, 2, 3])
    own_obs, own_mask = some.reset([1, 2, 3])
    ends = 0
    for turn in range(40):
        assert np.array_equal(own_obs["agent_1"], obs["agent_1"])
        assert np.array_equal(own_mask["agent_1"], mask["agent_1"])
        mine = chosen(some.spec, 3, rng)
        fixed = walker.act({a: obs[a] for a in ("agent_0", "agent_2")}, carry, rng=rng, mode="greedy", mask=mask)
        fixed.action["agent_1"][:] = mine["agent_1"]
        seeds = [100 * turn + copy for copy in range(3)]
        step, own = whole.step(fixed.action, seeds), some.step(mine, seeds)
        carry = {"count": np.where(step.ended, 0, fixed.carry["count"])}
        for name in ("reward", "terminated", "truncated", "alive", "final_obs", "final_mask"):
            assert tuple(getattr(own, name)) == ("agent_1",)
            assert np.array_equal(getattr(own, name)["agent_1"], getattr(step, name)["agent_1"])
        assert np.array_equal(own.ended, step.ended)
        obs, mask, own_obs, own_mask = step.obs, step.mask, own.obs, own.mask
        ends += step.ended.sum()
    assert ends > 10


@pytest.mark.parametrize("before", [0, 1, 7, 20])
def test_a_hosted_game_goes_on_bit_for_bit_from_a_saved_state(before, rng):
    def playing(env, steps):
        own = np.random.default_rng(3)
        return [pack(vars_of(env.step(chosen(env.spec, 3, own), [5 * t + c for c in range(3)]))) for t in range(steps)]

    def vars_of(step):
        return {"obs": step.obs.array, "reward": step.reward.array, "mask": step.mask.array, "ended": step.ended}

    env = make_batch(ToyGrid(max_cycles=5), 3)
    one = Hosted(env, {"agent_0": Random(env.spec), "agent_2": Walker(env.spec)}, seed=4)
    one.reset([1, 2, 3])
    playing(one, before)
    state = one.state()
    later = playing(one, 12)
    env = make_batch(ToyGrid(max_cycles=5), 3)
    other = Hosted(env, {"agent_0": Random(env.spec), "agent_2": Walker(env.spec)}, seed=9)
    other.reset([7, 8, 9])
    playing(other, 4)
    other.load(state)
    assert playing(other, 12) == later


def test_somebody_must_learn():
    env = make_batch(ToyGrid(), 1)
    with pytest.raises(ConfigError, match="leaves no agent that learns"):
        Hosted(env, dict.fromkeys(env.spec.names, Random(env.spec)), seed=0)


# -- policies of runs -------------------------------------------------------------------------------


def test_a_spec_goes_through_json_and_back():
    assert spec_from_note(json.loads(json.dumps(spec_note(SPEC), allow_nan=False))) == SPEC


@pytest.mark.parametrize("note", [None, {}, {"agents": 3}, {"agents": [{}], "masked": False}, {"agents": ["x"]}, []])
def test_a_note_without_agents_is_a_bad_file(note):
    with pytest.raises(FileError, match="does not say who its agents are"):
        spec_from_note(note)


def test_a_policy_is_read_as_last_as_best_and_by_its_step(toy_run):
    last = load_saved(toy_run)
    assert last.manifest.kind == "full"
    assert last.spec.names == ("agent_0", "agent_1", "agent_2")
    best = load_saved(toy_run, "best")
    assert best.manifest.kind == "policy"
    step = load_saved(toy_run, str(last.manifest.step))
    assert pack(step.learner.state()) == pack(last.learner.state())


@pytest.mark.parametrize("which", ["first", "", "-1", "1.5", "9" * 300, "\N{ARABIC-INDIC DIGIT THREE}", "../x"])
def test_a_policy_that_cannot_be_is_a_usage_error(toy_run, which):
    with pytest.raises(ConfigError, match="must be best, last or the step of a checkpoint"):
        load_saved(toy_run, which)


def test_a_step_that_was_never_saved_is_told_with_those_that_were(toy_run):
    with pytest.raises((ConfigError, FileError), match=str(load_saved(toy_run).manifest.step)):
        load_saved(toy_run, "3")


def test_a_run_that_was_never_evaluated_has_no_best_policy(make_run, silent):
    config, folder = make_run("blind", {"run": {"eval_every": 0, "num_episodes": 3}})
    train(config, folder, silent)
    with pytest.raises(ConfigError, match="has no best policy yet"):
        load_saved(folder, "best")


def test_a_run_without_a_checkpoint_is_a_bad_file(make_run):
    _, folder = make_run("empty")
    with pytest.raises(FileError, match="no checkpoint"):
        load_saved(folder)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"learner": {}},
        {"learner": 3},
        {"learner": {"w": {f"agent_{i}": np.zeros((2, 2)) for i in range(3)}, "speed": {}}},
        {"learner": {"w": {f"agent_{i}": 5 for i in range(3)}, "speed": {}}},
    ],
)
def test_a_checkpoint_of_another_shape_is_a_bad_file(toy_run, tmp_path, state):
    folder = RunFolder(tmp_path / "copy")
    shutil.copytree(toy_run.path, folder.path)
    note = load_saved(folder).manifest.note
    Checkpoints(folder.path).save(10**6, state, note)
    with pytest.raises(FileError, match="the checkpoint of step 1000000 does not fit this algorithm"):
        load_saved(folder)


def test_where_the_last_checkpoint_is_damaged_nobody_plays_an_older_one_unasked(toy_run, tmp_path):
    folder = RunFolder(tmp_path / "copy")
    shutil.copytree(toy_run.path, folder.path)
    good = load_saved(folder).manifest
    checkpoints = Checkpoints(folder.path)
    checkpoints.save(10**6, checkpoints.read_state(good), good.note)
    newest = folder.path / checkpoints.newest(replay=False)[0].state.name
    newest.write_bytes(newest.read_bytes()[:-1] + b"!")
    with pytest.raises(FileError, match=f"--which {good.step} plays the checkpoint before it"):
        load_saved(folder)
    assert load_saved(folder, str(good.step)).manifest.step == good.step


def test_agents_of_one_run_share_one_policy(toy_run):
    spec = load_saved(toy_run).spec
    found = players({"agent_0": str(toy_run.path), "agent_1": "random", "agent_2": str(toy_run.path)}, spec)
    assert found["agent_0"] is found["agent_2"]
    assert isinstance(found["agent_1"], Random)


@pytest.mark.parametrize("source", ["nowhere", "", "x" * 300, "a\0b", "/etc/passwd", "Random"])
def test_a_source_that_is_neither_random_nor_a_run_is_explained(source, toy_run):
    with pytest.raises(ConfigError, match="neither `random` nor a run folder"):
        players({"agent_0": source}, load_saved(toy_run).spec)


def test_an_agent_the_run_never_taught_is_refused(toy_run):
    spec = make_batch(ToyGrid(n_agents=4), 1).spec
    with pytest.raises(ConfigError, match="never learnt to play agent_3; it plays agent_0, agent_1, agent_2"):
        players({"agent_3": str(toy_run.path)}, spec)


def test_an_agent_with_other_eyes_is_refused(toy_run):
    theirs = EnvSpec((AgentSpec("agent_0", "agent", 5, ActionSpec("discrete", (3,))),))
    with pytest.raises(ConfigError, match="sees or does something else here"):
        players({"agent_0": str(toy_run.path)}, theirs)


def test_a_saved_policy_plays_among_learners_and_stays_as_it_is(toy_run, tmp_path, silent):
    values = {"run": {"algo": "toy", "scenario": "toy_grid", "num_episodes": 20, "eval_every": 10}}
    config = configs.resolve({**values, "policy": {"agent_0": str(toy_run.path), "agent_1": "random"}})
    folder = create(tmp_path, config, "guest")
    train(config, folder, silent)
    saved = load_saved(folder)
    assert saved.spec.names == ("agent_2",)
    assert set(silent.rows[-1]["return"]["agents"]) == {"agent_0", "agent_1", "agent_2"}
    assert set(saved.learner.weights()) == {"agent_2"}
    assert isinstance(saved.learner, type(Toy().build(saved.spec, seed=0, device="cpu")))
