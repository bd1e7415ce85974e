import pytest

from marlctl import evaluate, train
from marlctl.testing.probes import PROBES


@pytest.mark.parametrize("game", sorted(PROBES.keys() - {"pointing"}))  # which has Box actions
@pytest.mark.parametrize("how", ["plain", "share", "previous_actions"])
def test_it_solves(game, how, tmp_path):
    options = {"algo.rollout": 10, "algo.actor_lr": 1e-3, **({} if how == "plain" else {f"algo.{how}": True})}
    run = train(
        "coma", f"probe/{game}", steps=20_000, num_envs=16, eval_every=0, save_dir=tmp_path, options=options, threads=1
    )
    assert evaluate(run, episodes=200).total >= PROBES[game].solved_at
