"""A task's own judgement: one number an episode, solved at the episode at which it was, and bad scores told of."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marlctl.config import continued, merge, resolve
from marlctl.errors import ConfigError, PluginError
from marlctl.evaluation import evaluate
from marlctl.metrics import read
from marlctl.opening import rehearse
from marlctl.policies import load_saved
from marlctl.scoring import Judge, Task, task_of
from marlctl.storage.hdf5 import pack, unpack
from marlctl.testing.probes import PROBES
from marlctl.testing.toy import ToyGrid
from marlctl.training import train

TOY = {"run": {"algo": "toy", "scenario": "toy_grid", "num_episodes": 5}}


class Best:
    """A task of two agents, judged by the better one."""

    def score(self, returns):
        return returns.max(-1)


def judge(solved_at=0.5, over=3):
    return Judge(Task(Best(), True, solved_at, over))


def episodes(scores):
    return np.array([[score, score - 1] for score in scores]).reshape(-1, 2)


# -- training ---------------------------------------------------------------------------------------


def test_a_task_is_solved_at_the_episode_at_which_the_mean_of_the_last_ones_gets_there():
    judged = judge()
    assert judged.add(episodes([0.0, 0.6, 0.3]), 0) is None
    assert judged.add(episodes([0.5, 0.7, 0.9, 0.0]), 3) == {"episode": 5, "mean": 0.5, "by": "score", "over": 3}
    assert judged.add(episodes([1.0, 1.0, 1.0]), 7) is None, "it is told once"
    assert judged.standing().solved == 5


def test_fewer_episodes_than_the_mean_is_over_solve_nothing():
    judged = judge()
    assert judged.add(episodes([1.0, 1.0]), 0) is None
    assert judged.standing().episodes == 2 and judged.standing().solved == 0
    assert judged.add(episodes([1.0]), 2)["episode"] == 3


scores = st.lists(st.floats(-2, 2), max_size=20)


@given(scores, scores, st.integers(1, 6))
def test_a_judge_saved_and_loaded_goes_on_as_if_nothing_had_been(before, after, over):
    whole, first, second = (judge(over=over) for _ in range(3))
    for one in (whole, first):
        one.add(episodes(before), 0)
    second.load(unpack(pack(first.state())))
    found = [one.add(episodes(after), len(before)) for one in (whole, second)]
    assert found[0] == found[1]
    assert whole.standing() is second.standing() is None or whole.standing().mean == second.standing().mean
    assert whole.row() == second.row()


@pytest.fixture
def trained(make_run, silent):
    def run(name="one", values=None):
        config, folder = make_run(name, values)
        train(config, folder, silent)
        return folder

    return run


def test_rows_hold_the_mean_score_of_their_episodes(scored, trained):
    folder = trained(values={"run": {"log_every": 1, "eval_every": 20, "eval_episodes": 1}})
    rows = list(read(folder.metrics))
    assert {"train", "eval", "solved"} == {row["kind"] for row in rows}
    for row in rows:
        if row["kind"] != "solved":
            assert row["score"] == pytest.approx(max(row["return"]["agents"].values()))
    several = trained("two", {"run": {"log_every": 4, "eval_every": 0}})
    singles = [row["score"] for row in rows if row["kind"] == "train"]
    found = [row["score"] for row in read(several.metrics) if row["kind"] == "train"]
    assert found == pytest.approx(np.reshape(singles, (-1, 4)).mean(1))


def test_the_row_that_says_solved_is_true(scored, trained, monkeypatch):
    at, over = 0.95, 5
    monkeypatch.setattr(ToyGrid, "solved_at", at)
    monkeypatch.setattr(ToyGrid, "solved_over", over)
    rows = list(read(trained(values={"run": {"log_every": 1}}).metrics))
    played = [row["score"] for row in rows if row["kind"] == "train"]
    means = {end: np.mean(played[end - over : end]) for end in range(over, len(played) + 1)}
    first = next(end for end, mean in means.items() if mean >= at)
    (solved,) = [row for row in rows if row["kind"] == "solved"]
    assert solved["episode"] == first > over
    assert solved["mean"] == pytest.approx(means[first])
    assert (solved["by"], solved["over"]) == ("score", over)


def test_a_scenario_that_judges_nothing_has_the_rows_and_checkpoints_it_had(trained, toy_run):
    assert all("score" not in row and row["kind"] != "solved" for row in read(toy_run.metrics))
    assert "score" not in (toy_run.path / "run.toml").read_text()
    assert "score" not in evaluate(toy_run, episodes=2).summary()
    assert "solved" not in evaluate(toy_run, episodes=2).summary()
    assert task_of(ToyGrid(), 3) is None


def test_without_a_score_solved_means_the_total_return(trained, monkeypatch):
    monkeypatch.setattr(PROBES["matching"], "solved_at", 6.0)  # of 10, while it explores
    folder = trained(values={"run": {"scenario": "probe/matching", "num_episodes": 300}})
    assert all("score" not in row for row in read(folder.metrics))
    (solved,) = [row for row in read(folder.metrics) if row["kind"] == "solved"]
    assert solved["by"] == "total return" and solved["mean"] >= 6
    summary = evaluate(folder, episodes=100).summary()
    assert summary["solved"] is True and summary["solved_at"] == 6.0 and "score" not in summary


# -- evaluation -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "played", "told"), [(-99.0, 20, True), (99.0, 20, False), (-99.0, 19, None)])
def test_an_evaluation_says_whether_the_task_is_solved_if_it_has_the_episodes(
    scored, trained, monkeypatch, at, played, told
):
    monkeypatch.setattr(ToyGrid, "solved_at", at)
    result = evaluate(trained(values={"run": {"num_episodes": 3}}), episodes=played)
    summary = json.loads(json.dumps(result.summary()))
    assert summary["solved"] is told
    assert summary["score"]["mean"] == pytest.approx(result.returns.max(1).mean()) == result.score
    low, high = summary["score"]["ci95"]
    assert low <= result.score <= high


def test_a_scenarios_own_score_decides_what_is_best_unless_told_otherwise(scored, trained):
    often = {"eval_every": 4, "eval_episodes": 3}
    folder = trained(values={"run": often})
    best = max(row["score"] for row in read(folder.metrics) if row["kind"] == "eval")
    assert folder.config().run.best_by == "score"
    assert load_saved(folder, "best").manifest.note["score"] == best
    other = trained("two", {"run": {**often, "best_by": "total"}})
    most = max(row["return"]["total"] for row in read(other.metrics) if row["kind"] == "eval")
    assert load_saved(other, "best").manifest.note["score"] == pytest.approx(most)


def test_a_run_begun_when_the_scenario_had_no_score_keeps_what_it_was_judged_by(toy_run, scored):
    assert continued(toy_run.values(), {}).run.best_by == "total"


def test_a_run_begun_when_the_scenario_had_no_score_goes_on_with_one(make_run, silent, request):
    config, folder = make_run()
    train(config, folder, silent)
    request.getfixturevalue("scored")
    train(continued(folder.values(), {"run": {"num_episodes": 100}}), folder, silent, restore=True)
    (solved,) = [row for row in read(folder.metrics) if row["kind"] == "solved"]
    assert solved["episode"] >= 60 + 20, "what was played before was not judged"


def test_best_by_score_needs_a_score():
    with pytest.raises(ConfigError, match="'score' must be total or a team: agent"):
        rehearse(resolve(merge(TOY, {"run": {"best_by": "score"}})))


def test_what_could_have_been_meant_names_the_score_where_there_is_one(scored):
    with pytest.raises(ConfigError, match="must be score, total or a team: agent"):
        rehearse(resolve(merge(TOY, {"run": {"best_by": "wolves"}})))


# -- scores that cannot be used ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "says"),
    [
        (lambda self, returns: 1 / 0, "failed in its score: ZeroDivisionError"),
        (lambda self, returns: float(returns.max()), r"one finite number an episode.*gave numbers of shape \(\)"),
        (lambda self, returns: returns.max(0), r"returns of shape \(4, 3\) .*gave numbers of shape \(3,\)"),
        (lambda self, returns: returns, r"gave numbers of shape \(4, 3\)"),
        (lambda self, returns: returns.sum(-1) * np.nan, "gave what is not finite"),
        (lambda self, returns: "good", "failed in its score: ValueError"),
        (lambda self: 0, "failed in its score: TypeError"),
    ],
)
def test_a_score_that_cannot_be_used_is_told_before_the_first_step(monkeypatch, score, says):
    monkeypatch.setattr(ToyGrid, "score", score, raising=False)
    with pytest.raises(PluginError, match=says) as told:
        rehearse(resolve(TOY))
    assert "ToyGrid of marlctl" in str(told.value)


@pytest.mark.parametrize(
    ("name", "value"), [("solved_at", "high"), ("solved_at", float("nan")), ("solved_over", 0), ("solved_over", 1.5)]
)
def test_a_goal_that_is_no_number_is_told_before_the_first_step(scored, monkeypatch, name, value):
    monkeypatch.setattr(ToyGrid, name, value)
    with pytest.raises(PluginError, match=r"ToyGrid of marlctl .*solved_at must be a number and solved_over a number"):
        rehearse(resolve(TOY))


def test_a_score_cannot_change_the_returns_it_judges(monkeypatch):
    def greedy(self, returns):
        returns += 100
        return returns.max(-1)

    monkeypatch.setattr(ToyGrid, "score", greedy, raising=False)
    returns = np.zeros((2, 3))
    assert task_of(ToyGrid(), 3).judge(returns).tolist() == [100.0, 100.0]
    assert not returns.any()


def test_an_option_called_score_is_no_score():
    class Odd:
        score = 3.0

    assert task_of(Odd(), 2) is None
