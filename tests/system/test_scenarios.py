"""Every scenario on offer can be trained, evaluated with its diagnostics, and its policy loaded."""

import numpy as np
import pytest

from marlctl import evaluate, load_policy, train
from marlctl.metrics import read
from marlctl.plugins import Kind, installed

SCENARIOS = [plugin.name for plugin in installed(Kind.ENVIRONMENT) if plugin.entry.value.startswith("marlctl_mpe:")]
SMALL = {"algo.warmup": 40, "algo.batch_size": 16, "algo.update_every": 10, "algo.num_units": 8}


@pytest.mark.parametrize("scenario", [*SCENARIOS, "sisl/pursuit_v5"])
def test_it_trains(scenario, tmp_path):
    options = {**SMALL, "algo.capacity": 200}
    run = train("maddpg", scenario, steps=100, num_envs=2, max_episode_len=20, options=options, save_dir=tmp_path)
    rows = [row for row in read(run.metrics) if row["kind"] == "train"]
    assert rows[-1]["update"] >= 5 and all(np.isfinite(list(rows[-1]["loss"].values())))
    scores = evaluate(run, episodes=2, diagnostics=True)
    assert (scores.lengths == 20).all() and np.isfinite(scores.total)
    policy = load_policy(run)
    seen = {agent.name: np.zeros(agent.obs_size) for agent in policy.spec.agents}
    assert set(policy.act(seen)) == set(seen)


def test_there_are_twelve_of_mpe():
    assert len(SCENARIOS) == 12
