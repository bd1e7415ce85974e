"""Judging a policy: the same games for any number of copies, honest intervals, and what is told of them."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl import evaluation
from marlctl.copies import make_batch
from marlctl.errors import ConfigError, StorageError
from marlctl.evaluation import Scores, evaluate, interval, play, save_scores
from marlctl.policies import Random, load_saved
from marlctl.records import ActionSpec, AgentSpec, EnvSpec
from marlctl.seeding import episode_seed
from marlctl.storage.hdf5 import unpack
from marlctl.testing.toy import Grid, Toy, ToyGrid

SPEC = EnvSpec(
    tuple(
        AgentSpec(name, team, 1, ActionSpec("discrete", (2,)))
        for name, team in (("wolf_0", "wolf"), ("wolf_1", "wolf"), ("sheep_0", "sheep"))
    )
)


def toy_scores(n, seed=0, scenario=None, **how):
    env = make_batch(scenario or ToyGrid(), n, diagnostics=scenario is not None)
    learner = Toy().build(env.spec, seed=3, device="cpu")
    return play(env, learner, seed=seed, mode="greedy", **how)


# -- games ------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 20), episodes=st.integers(1, 25), seed=st.integers(0, 99))
def test_episode_i_is_the_same_game_for_any_number_of_copies(n, episodes, seed):
    one, many = toy_scores(1, seed, episodes=episodes), toy_scores(n, seed, episodes=episodes)
    assert one.returns.shape == (episodes, 3)
    assert np.array_equal(one.returns, many.returns)
    assert np.array_equal(one.lengths, many.lengths)


@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 20), steps=st.integers(1, 300))
def test_so_many_steps_end_with_the_first_episode_that_reaches_them(n, steps):
    scores = toy_scores(n, steps=steps)
    assert scores.lengths.sum() >= steps
    assert scores.lengths[:-1].sum() < steps
    assert np.array_equal(scores.returns, toy_scores(1, steps=steps).returns)


@pytest.mark.parametrize("copies", [1, 3, 16])
def test_a_runs_score_does_not_depend_on_the_number_of_copies(toy_run, monkeypatch, copies):
    expected = evaluate(toy_run, episodes=10).returns
    monkeypatch.setattr(evaluation, "COPIES", copies)
    assert np.array_equal(evaluate(toy_run, episodes=10).returns, expected)


def test_games_follow_from_the_seed(toy_run):
    first, again, other = (evaluate(toy_run, episodes=10, seed=seed).returns for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_evaluating_changes_no_file_of_the_run(toy_run):
    def files():
        return {path: path.read_bytes() for path in toy_run.path.rglob("*") if path.is_file()}

    before = files()
    evaluate(toy_run, episodes=5)
    evaluate(toy_run, episodes=5, which="best")
    assert files() == before


@pytest.mark.parametrize(
    "how", [{"episodes": 0}, {"episodes": -1}, {"episodes": None}, {"episodes": None, "steps": -5}]
)
def test_no_games_cannot_be_judged(toy_run, how):
    with pytest.raises(ConfigError, match="at least 1 episode"):
        evaluate(toy_run, **how)


def test_a_trained_policy_beats_the_one_it_began_as(toy_run):
    config = toy_run.config()
    env = make_batch(config.env, 8)
    fresh = config.algo.build(env.spec, seed=config.run.seed, device="cpu")
    trained = load_saved(toy_run).learner
    before, after = (play(env, who, seed=0, mode="greedy", episodes=60).total for who in (fresh, trained))
    assert after > before


def test_a_policy_can_be_drawn_from_instead(toy_run):
    greedy, drawn = evaluate(toy_run, episodes=20), evaluate(toy_run, episodes=20, mode="sample")
    assert not np.array_equal(greedy.returns, drawn.returns)


class Endless(Grid):
    """The grid, where nobody ever arrives in every third game."""

    def reset(self, seed=None, options=None):
        seen, infos = super().reset(seed, options)
        self.max_cycles = 10**9 if seed % 3 == 0 else 4
        if seed % 3 == 0:
            self._goal = dict.fromkeys(self.agents, -1)
        return seen, infos


@dataclass(frozen=True)
class EndlessGrid(ToyGrid):
    def make(self, *, render_mode=None):
        return Endless(self.n_agents, self.size, self.max_cycles)


@pytest.mark.parametrize("n", [1, 3, 8])
def test_a_game_without_end_counts_as_it_stands_and_no_more_games_than_asked_for_are_counted(monkeypatch, n):
    monkeypatch.setattr(evaluation, "PATIENCE", 50)
    scores = toy_scores(n, scenario=EndlessGrid(), episodes=8)
    assert 1 <= len(scores.returns) <= 8
    assert scores.lengths.max() == 50
    calm = [episode_seed(0, -2, i) % 3 > 0 for i in range(len(scores.lengths))]
    assert all(length <= 4 for length, ends in zip(scores.lengths, calm, strict=True) if ends)


# -- numbers ----------------------------------------------------------------------------------------


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says(rng):
    covered = 0
    for trial in range(200):
        found = interval(rng.normal(3, 2, 40), seed=trial, draws=400)
        covered += found["ci95"][0] <= 3 <= found["ci95"][1]
    assert 180 <= covered <= 199


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
@settings(max_examples=30)
def test_the_interval_lies_within_the_data(values):
    found = interval(np.array(values), draws=100)
    low, high = found["ci95"]
    slack = 1e-6 * max(1, max(map(abs, values)))
    assert min(values) - slack <= low <= high <= max(values) + slack


def test_one_episode_has_an_interval_of_no_width():
    assert interval(np.array([2.5])) == {"mean": 2.5, "ci95": [2.5, 2.5]}


def test_the_summary_has_means_and_intervals_in_all_by_team_and_by_agent():
    returns = np.array([[1.0, 2.0, -4.0], [3.0, 2.0, -6.0]])
    summary = Scores(SPEC, returns, np.array([10, 20]), {}).summary()
    assert list(summary) == ["total", "teams", "agents", "episodes", "length"]
    assert summary["total"]["mean"] == -1.0
    assert summary["teams"]["wolf"]["mean"] == 4.0
    assert summary["teams"]["sheep"]["mean"] == -5.0
    assert {name: agent["mean"] for name, agent in summary["agents"].items()} == {
        "wolf_0": 2.0,
        "wolf_1": 2.0,
        "sheep_0": -5.0,
    }
    assert summary["episodes"] == 2
    assert summary["length"] == 15.0
    low, high = summary["total"]["ci95"]
    assert low <= -1.0 <= high
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_a_team_is_judged_by_the_sum_of_its_agents():
    scores = Scores(SPEC, np.array([[1.0, 2.0, -4.0]]), np.array([10]), {})
    assert (scores.of("total"), scores.of("wolf"), scores.of("sheep")) == (-1.0, 3.0, -4.0)


# -- diagnostics ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured(ToyGrid):
    """The grid, in which two agents tell how long they are there; they leave when they arrive."""

    def diagnose(self, agent, info):
        return {"steps": 1.0} if agent != "agent_2" else {}


def test_diagnostics_of_agents_that_leave_early_are_numbers_and_those_who_have_none_are_left_out():
    scores = toy_scores(4, scenario=Measured(), episodes=12)
    steps = scores.diagnostics["steps"]
    assert (steps["per_episode"][:, :2] >= 1).all()
    assert (steps["per_episode"][:, :2] <= scores.lengths[:, None]).all()
    assert (steps["per_episode"][:, :2] < scores.lengths[:, None]).any()
    assert np.isnan(steps["per_episode"][:, 2]).all()
    assert (steps["final"][:, :2] == 1).all()
    told = json.loads(json.dumps(scores.summary(), allow_nan=False))["diagnostics"]["steps"]
    assert set(told) == {"agent_0", "agent_1"}
    assert told["agent_0"]["final"] == 1


def test_diagnostics_are_the_same_for_any_number_of_copies():
    one, many = (toy_scores(n, scenario=Measured(), episodes=9).diagnostics["steps"] for n in (1, 4))
    for how in ("per_step", "per_episode", "final"):
        assert np.array_equal(one[how], many[how], equal_nan=True)


def test_every_episodes_numbers_are_kept_beside_the_summary(toy_run, tmp_path):
    scores = evaluate(toy_run, episodes=5)
    summary = scores.summary()
    data, text = save_scores(scores, summary, tmp_path / "eval", "last")
    assert json.loads(text.read_text()) == summary
    kept = unpack(data.read_bytes())
    assert np.array_equal(kept["returns"], scores.returns)
    assert np.array_equal(kept["lengths"], scores.lengths)


def test_scores_that_cannot_be_kept_are_a_storage_error(toy_run, tmp_path):
    (tmp_path / "eval").write_text("")
    with pytest.raises(StorageError):
        save_scores(evaluate(toy_run, episodes=1), {}, tmp_path / "eval", "last")


def test_an_episode_that_never_ends_counts_as_it_stands(monkeypatch):
    monkeypatch.setattr(evaluation, "PATIENCE", 40)
    env = make_batch(ToyGrid(size=1000, max_cycles=10**9), 2)
    scores = evaluation.play(env, Random(env.spec), seed=0, mode="sample", episodes=5)
    assert scores.lengths.tolist() == [40, 40]
