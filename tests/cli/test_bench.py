import json
import tempfile

import pytest

from marlctl.cli import bench

TOY = ("--algo", "toy", "--scenario", "toy_grid", "--seconds", "0.4")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder to be in, and another for what is temporary."""
    (tmp_path / "here").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


def left(place):
    return [path for folder in ("here", "temporary") for path in (place / folder).iterdir()]


def test_speed_tells_steps_updates_and_where_the_time_goes(marlctl, place):
    said = marlctl("bench", "speed", *TOY, "--num-envs", 3, "--threads", 1, "--json")
    assert said.code == 0, said.err
    report = json.loads(said.out)
    assert (report["algo"], report["scenario"], report["num_envs"], report["threads"]) == ("toy", "toy_grid", 3, 1)
    assert {"1", "3"} <= set(report["environment_steps_a_second"])
    assert all(rate > 0 for rate in report["environment_steps_a_second"].values())
    assert report["training_steps_a_second"] > 0
    assert report["update_ms"] > 0
    assert {"acting", "environment", "learning"} <= set(report["time"])
    assert 0 < sum(report["time"].values()) <= 1


def test_speed_shows_a_table_on_stdout_and_talks_on_stderr(marlctl, place):
    said = marlctl("bench", "speed", *TOY, "--num-envs", 2)
    assert said.out.startswith("toy on toy_grid\n")
    assert "training, 2 copies" in said.out
    assert "steps/s" in said.out and " ms" in said.out
    assert "time of training:" in said.out
    assert "measuring" in said.err and "measuring" not in said.out


def test_speed_leaves_nothing_behind(marlctl, place):
    assert marlctl("bench", "speed", *TOY).code == 0
    assert left(place) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--scenario", "simple_tagg"), "simple_tag"),
        (("--algo", "madpg"), "maddpg"),
        (("--num-envs", "-1"), "num_envs"),
        (("--num-envs", "many"), "num_envs"),
        (("--threads", "-1"), "threads"),
        (("--set", "algo.lrr=1"), "algo.lr"),
        (("--seconds", "0"), "seconds"),
        (("--seconds", "soon"), "seconds"),
        (("--nonsense",), "nonsense"),
    ],
)
def test_bad_input_is_a_usage_error_that_says_what_is_wrong_and_leaves_nothing(marlctl, place, arguments, told):
    said = marlctl("bench", "speed", *arguments)
    assert said.code == 2
    assert told in said.err
    assert said.out == ""
    assert left(place) == []


def test_a_run_that_did_not_learn_in_time_is_shown_as_such(capsys):
    named = {"algo": "maddpg", "scenario": "toy_grid", "num_envs": 1, "threads": 1, "environment_steps_a_second": {}}
    bench._show({**named, "training_steps_a_second": None, "update_ms": None, "time": {}})
    assert "no update came in time" in capsys.readouterr().out
