"""Measuring this machine: what the user set is measured, and nothing is left behind."""

import tempfile

from marlctl import speed
from marlctl.config import resolve


def test_what_the_user_sets_is_what_is_measured():
    run = {"run": {"algo": "maddpg", "scenario": "simple_tag"}}
    config = speed.smaller({**run, "algo": {"capacity": "5000"}})
    assert config.algo.capacity == 5000
    assert config.algo.warmup == speed.SMALLER["warmup"]
    assert speed.smaller({**run, "algo": {"warmup": "90000"}}).algo.warmup == 90000


def test_a_run_that_does_not_learn_in_time_has_no_training_speed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    config = resolve({"run": {"algo": "maddpg", "scenario": "toy_grid", "steps": 10**6}})
    result = speed.train_speed(config, 0.1, patience=0.0)
    assert result["training_steps_a_second"] is None
    assert list(tmp_path.iterdir()) == []


def test_one_copy_and_several_have_a_speed():
    config = resolve({"run": {"algo": "toy", "scenario": "toy_grid", "num_episodes": 5}})
    assert speed.env_speed(config, 1, 0.02) > 0
    assert speed.env_speed(config, 3, 0.02) > 0
