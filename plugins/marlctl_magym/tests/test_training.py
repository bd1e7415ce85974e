"""One scenario of every family trains."""

from importlib.util import find_spec

import pytest

from marlctl import train
from marlctl.metrics import read

if find_spec("ma_gym") is None:
    pytest.skip("ma-gym is not installed", allow_module_level=True)


@pytest.mark.parametrize(
    "name",
    [
        "Checkers-v0",
        "Combat-v0",
        "Lumberjacks-v0",
        "PongDuel-v0",
        "PredatorPrey5x5-v0",
        "PredatorPrey7x7-v0",
        "Switch2-v0",
        "TrafficJunction4-v0",
    ],
)
def test_a_scenario_of_every_family_trains_for_200_episodes(name, tmp_path):
    algo = {"warmup": 200, "batch_size": 32, "capacity": 2000, "update_every": 100, "num_units": 16}
    run = train(
        "maddpg",
        f"ma-gym/{name}",
        save_dir=tmp_path,
        options={f"algo.{option}": value for option, value in algo.items()},
        num_episodes=200,
        max_episode_len=8,
        num_envs=4,
        eval_every=100,
        eval_episodes=2,
    )
    rows = list(read(run.metrics))
    assert rows[-1]["episode"] >= 200
    assert any(row["kind"] == "eval" for row in rows)
    assert any("loss" in row for row in rows), "it should have learnt something"
