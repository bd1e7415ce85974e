import json
import sys

import pytest


@pytest.fixture
def duel(marlctl, tmp_path, monkeypatch):
    """Two short runs of a scenario with two teams."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("a", 0), ("b", 1)):
        flags = ("--num-episodes", 3, "--seed", seed, "--exp-name", name, "--num-units", 8, "--eval-every", 0)
        assert marlctl("train", "--algo", "maddpg", "--scenario", "simple_tag", *flags).code == 0
    return marlctl


def scores(marlctl, *flags):
    said = marlctl("eval", *flags, "--episodes", 3, "--json")
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_policies_of_several_runs_play_in_one_game(duel):
    alone = {name: scores(duel, name)["teams"] for name in ("a", "b")}
    mixed = scores(duel, "--agents", "adversary*=a", "--agents", "agent*=b")
    assert mixed["teams"] not in alone.values()
    assert scores(duel, "--agents", "adversary*=a", "--agents", "agent*=a")["teams"] == alone["a"]
    assert scores(duel, "b", "--agents", "adversary*=a")["teams"] == mixed["teams"]
    assert "played_by" in mixed
    assert scores(duel, "a", "--agents", "agent*=random")["teams"] != alone["a"]


def test_cross_makes_the_whole_table_and_its_diagonal_is_each_run_alone(duel):
    games = scores(duel, "--cross", "a", "b", "--benchmark")["games"]
    assert [(game["first"], game["others"]) for game in games] == [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]
    assert games[0]["teams"] == scores(duel, "a")["teams"] and games[3]["teams"] == scores(duel, "b")["teams"]
    assert games[1]["teams"] == scores(duel, "--agents", "adversary*=a", "--agents", "agent*=b")["teams"]
    shown = duel("eval", "--cross", "a", "b", "--benchmark", "--episodes", 2).out
    assert "adversary by" in shown and "touches an episode" in shown


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        (["a", "b"], "--cross"),
        (["--cross"], "needs runs"),
        (["--cross", "a", "--agents", "agent*=b"], "--cross"),
        (["--agents", "agent*"], "must look like"),
        (["--agents", "prey*=a"], "no agent is called so"),
        (["--agents", "agent*=nobody"], "nobody"),
    ],
)
def test_bad_input(duel, flags, hint):
    said = duel("eval", *flags)
    assert said.code == 2 and hint in said.err


def test_a_scenario_with_one_team_has_nobody_to_cross(marlctl, run):
    said = marlctl("eval", "--cross", "toy")
    assert said.code == 2 and "--agents" in said.err


def test_what_a_scenario_prints_does_not_reach_stdout(marlctl, run, monkeypatch):
    from marlctl.testing.toy import Grid

    step = Grid.step
    monkeypatch.setattr(Grid, "step", lambda self, actions: sys.stdout.write("noise") and step(self, actions))
    said = marlctl("eval", "--json", "--episodes", 1)
    assert json.loads(said.out)["episodes"] == 1 and "noise" in said.err
