import json
import re

import pytest

from marlctl.cli import show
from marlctl.storage.hdf5 import unpack
from marlctl.testing.toy import ToyGrid


def test_the_newest_run_is_scored_with_intervals(marlctl, run):
    result = json.loads(marlctl("eval", "--json", "--episodes", 30).out)
    low, high = result["total"]["ci95"]
    assert low <= result["total"]["mean"] <= high
    assert result["episodes"] == 30 and result["run"].endswith("toy_grid/toy/toy")
    assert result["total"]["mean"] == pytest.approx(sum(a["mean"] for a in result["agents"].values()))
    assert set(result["teams"]) == {"agent"}


def test_the_title_is_a_line_of_its_own(marlctl, run, monkeypatch):
    monkeypatch.setattr(show, "width", lambda: 50)
    title = marlctl("eval", "--episodes", 1).out.splitlines()[0]
    assert title.startswith("runs/toy_grid/toy/toy, 1 episode of ") and title.endswith(" steps")


def test_the_same_seed_gives_the_same_scores_and_another_does_not(marlctl, run):
    one, again, other = (marlctl("eval", "--json", "--seed", seed).out for seed in (1, 1, 2))
    assert one == again != other


def test_it_changes_nothing_in_the_run_unless_asked_for_a_benchmark(marlctl, files):
    before = files()
    marlctl("eval")
    assert files() == before
    marlctl("eval", "--benchmark", "--episodes", 3)
    new = set(files()) - set(before)
    assert new == {"benchmark/benchmark-last.h5", "benchmark/benchmark-last.json"}


def test_a_scenario_without_diagnostics_says_so_and_still_reports_returns(marlctl, run):
    said = marlctl("eval", "--benchmark", "--episodes", 3)
    assert said.code == 0 and "no diagnostics" in said.err and "in all" in said.out


def test_benchmark_iters_are_steps_to_the_end_of_an_episode(marlctl, run, tmp_path):
    said = marlctl("eval", "--benchmark", "--benchmark-iters", 100, "--benchmark-dir", tmp_path / "b", "--json")
    result = json.loads(said.out)
    saved = unpack((tmp_path / "b" / "benchmark-last.h5").read_bytes())
    assert saved["lengths"].sum() >= 100 > saved["lengths"][:-1].sum()
    assert len(saved["returns"]) == result["episodes"]


@pytest.mark.parametrize(
    ("at", "episodes", "line"),
    [
        (-99, 100, r"solved: yes, \S+ ≥ -99 over 100 episodes"),
        (99, 20, r"solved: no, \S+ < 99 over 20 episodes"),
        (-99, 5, "solved: cannot be told from 5 episodes; it takes a mean score of -99 over 20 episodes"),
    ],
)
def test_a_score_is_reported_with_its_interval_and_whether_it_is_enough(
    marlctl, scored_run, monkeypatch, at, episodes, line
):
    monkeypatch.setattr(ToyGrid, "solved_at", at)
    told = marlctl("eval", "--episodes", episodes).out.splitlines()
    assert re.fullmatch(line, told[-1])
    (row,) = [words for words in map(str.split, told) if words[:1] == ["score"]]
    mean, low, high = map(float, row[1:])
    assert low <= mean <= high


def test_a_game_without_a_score_may_be_solved_by_its_return(marlctl, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    marlctl("train", "--algo", "toy", "--scenario", "probe/matching", "--num-episodes", 2, "--quiet")
    assert re.search(r"^solved: no, \S+ < 9 over 100 episodes$", marlctl("eval").out, re.MULTILINE)
    assert "mean total return of 9 over 100" in marlctl("eval", "--episodes", 1).out
    assert json.loads(marlctl("eval", "--json").out)["solved"] is False


@pytest.mark.parametrize(
    ("flags", "code", "hint"),
    [
        (["nobody"], 2, "toy"),
        (["--which", "newest"], 2, "best, last"),
        (["--which", "123456"], 2, "123456"),
        (["--episodes", "0"], 2, "episodes"),
        (["--benchmark-iters", "5"], 2, "--benchmark"),
        (["--save-dir", "elsewhere"], 2, "elsewhere"),
    ],
)
def test_bad_input(flags, code, hint, marlctl, run):
    said = marlctl("eval", *flags)
    assert said.code == code and hint in said.err and "Traceback" not in said.err


def test_best_last_and_a_step_are_different_checkpoints(marlctl, run):
    steps = sorted(int(p.stem.partition("-")[2]) for p in (run.path / "checkpoints").glob("step-*.json"))
    assert all(marlctl("eval", "--which", which, "--episodes", 2).code == 0 for which in ("best", "last", steps[0]))


def test_a_damaged_checkpoint_is_exit_3_and_nothing_is_written(marlctl, run, files):
    for path in (run.path / "checkpoints").glob("*.h5"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    before = files()
    for command in (["eval"], ["render"], ["train", "--restore", "--num-episodes", "99"]):
        said = marlctl(*command)
        assert said.code == 3 and "Traceback" not in said.err
    assert {k: v for k, v in files().items() if k != ".lock"} == {k: v for k, v in before.items() if k != ".lock"}


def test_a_damaged_manifest_is_exit_3_and_nothing_is_removed(marlctl, run, files):
    for path in (run.path / "checkpoints").glob("*.json"):
        path.write_bytes(path.read_bytes()[:100])
    before = files()
    assert marlctl("train", "--restore", "--num-episodes", "99").code == 3
    assert {k: v for k, v in files().items() if k != ".lock"} == {k: v for k, v in before.items() if k != ".lock"}


def test_mpe_diagnostics_are_named_and_averaged(marlctl, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    marlctl("train", "--algo", "maddpg", "--scenario", "simple_spread", "--num-episodes", 2, "--quiet")
    result = json.loads(marlctl("eval", "--benchmark", "--episodes", 2, "--json").out)
    measures = result["diagnostics"]["min_distance"]["agent_0"]
    assert measures["per_episode"] == pytest.approx(25 * measures["per_step"])
    assert set(result["diagnostics"]) == {"reward", "collisions", "min_distance", "occupied_landmarks"}
