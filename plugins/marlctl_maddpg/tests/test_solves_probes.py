import pytest

from marlctl import evaluate, train
from marlctl.testing.probes import PROBES

QUICK = {"algo.warmup": 200, "algo.batch_size": 128, "algo.update_every": 4, "algo.num_units": 32}


@pytest.mark.parametrize("game", PROBES)
@pytest.mark.parametrize("algo", ["maddpg", "ddpg"])
def test_it_solves(algo, game, tmp_path):
    run = train(
        algo, f"probe/{game}", steps=6000, num_envs=4, eval_every=0, save_dir=tmp_path, options=QUICK, threads=1
    )
    assert evaluate(run, episodes=200).total >= PROBES[game].solved_at
