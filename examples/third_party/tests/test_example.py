"""What an author should know of a plugin before others use it."""

from pathlib import Path

import numpy as np
import pytest
from marlctl_example.rendezvous import Rendezvous
from pettingzoo.test import parallel_api_test

import marlctl
from marlctl.rundir import RunFolder


def learn(folder: Path, seed: int = 0) -> RunFolder:
    return marlctl.train("reinforce", "rendezvous", save_dir=folder, num_envs=8, num_episodes=2000, seed=seed)


def test_the_environment_keeps_pettingzoos_rules() -> None:
    parallel_api_test(Rendezvous().make(), num_cycles=100)


def test_neighbours_who_both_step_forward_pass_each_other() -> None:
    env = Rendezvous(size=2).make()
    env.reset(seed=0)
    left, right = ("player_0", "player_1") if env._at[0] == 0 else ("player_1", "player_0")
    _, reward, ended, _, _ = env.step({left: 2, right: 1})
    assert reward[left] == -0.1
    assert not ended[left]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_players_learn_to_meet(tmp_path: Path, seed: int) -> None:
    scores = marlctl.evaluate(learn(tmp_path, seed), episodes=200)
    assert scores.total > 1.8  # the best pair there is gets about 1.88, an untrained one -3


def test_the_same_seed_gives_the_same_numbers(tmp_path: Path) -> None:
    one, two = learn(tmp_path / "one"), learn(tmp_path / "two")
    assert one.metrics.read_bytes() == two.metrics.read_bytes()


def test_a_loaded_policy_acts(tmp_path: Path) -> None:
    policy = marlctl.load_policy(learn(tmp_path))
    see = np.eye(13, dtype=np.float32)
    far = policy.act({"player_0": see[6 + 4], "player_1": see[6 - 4]})
    assert far == {"player_0": 2, "player_1": 1}  # they walk towards each other
