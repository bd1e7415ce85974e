"""XuanCe's MADDPG on PettingZoo's simple_spread, several environments in one process."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import Namespace
from pathlib import Path

import torch
import xuance
import yaml
from xuance.environment import make_envs
from xuance.torch.agents import MADDPG_Agents

from benchmarks.child import Enough, Stopwatch, settings, tell

STEPS = 500  # of all environments together, between two looks at the clock


def config_of(envs):
    """The configuration that XuanCe ships for this scenario, at the classic cadence."""
    folder = Path(xuance.__file__).parent / "configs"
    values = {}
    for path in (folder / "basic.yaml", folder / "maddpg/mpe/simple_spread_v3.yaml"):
        values |= yaml.safe_load(path.read_text()) if path.exists() else {}
    values |= {
        "parallels": envs, "buffer_size": 1_000_000, "batch_size": 1024, "tau": 0.01,
        "learning_rate_actor": 0.01, "learning_rate_critic": 0.01, "training_frequency": 100, "start_training": 1_100,
        "use_parameter_sharing": False, "activation": "relu", "device": "cpu", "running_steps": 10_000_000,
        "render_mode": "rgb_array",
    }  # fmt: skip
    values.setdefault("n_epochs", 1)
    return Namespace(**values)


def main() -> None:
    """Train until the time is over."""
    warnings.filterwarnings("ignore")
    asked = settings()
    torch.set_num_threads(asked["threads"])
    config = config_of(asked["envs"])
    envs = make_envs(config)
    envs.reset()
    agents = MADDPG_Agents(config=config, envs=envs)
    watch, updates, train = Stopwatch(warm=1_500, seconds=asked["seconds"]), [0], agents.train_epochs

    def counted(*arguments, **named):
        updates[0] += watch.begin is not None
        return train(*arguments, **named)

    agents.train_epochs = counted
    try:
        while True:
            agents.train(STEPS // asked["envs"])
            watch.count(STEPS // asked["envs"] * asked["envs"])
    except Enough:
        tell(watch.rate, num_envs=asked["envs"], updates=updates[0], **watch.facts)
        sys.stdout.flush()
        os._exit(0)  # its threads do not end by themselves


if __name__ == "__main__":
    main()
