"""BenchMARL's MADDPG through its own experiment, on VMAS or on PettingZoo."""

from __future__ import annotations

import logging
import tempfile
import warnings

import torch
from benchmarl.algorithms import MaddpgConfig
from benchmarl.environments import PettingZooTask, VmasTask
from benchmarl.experiment import Callback, Experiment, ExperimentConfig
from benchmarl.models.mlp import MlpConfig

from benchmarks.child import Enough, Stopwatch, settings, tell

FOREVER = 1_000_000


class Count(Callback):
    """Counts an iteration when the last group of agents has learnt."""

    def __init__(self, watch, frames):
        super().__init__()
        self.watch, self.frames, self.trained = watch, frames, 0

    def on_train_end(self, training_td, group):
        self.trained += 1
        if self.trained % len(self.experiment.group_map) == 0:
            self.watch.count(self.frames)


def task_of(backend):
    """simple_tag with three that chase one, in episodes of 25 steps."""
    if backend == "vmas":
        task = VmasTask.SIMPLE_TAG.get_from_yaml()
        task.config["max_steps"] = 25
        task.config |= {"num_good_agents": 1, "num_adversaries": 3, "num_landmarks": 2}
    else:
        task = PettingZooTask.SIMPLE_TAG.get_from_yaml()
        task.config |= {"max_cycles": 25, "num_good": 1, "num_adversaries": 3, "num_obstacles": 2}
    return task


def config_of(envs, frames):
    """The classic cadence: an update of every agent for each 100 frames."""
    config = ExperimentConfig.get_from_yaml()
    config.loggers, config.evaluation, config.render, config.create_json = [], False, False, False
    config.save_folder = tempfile.mkdtemp(dir=".")
    config.share_policy_params = False
    config.gamma, config.lr, config.polyak_tau = 0.95, 1e-2, 0.01
    config.max_n_iters, config.max_n_frames = FOREVER, None
    config.off_policy_collected_frames_per_batch = frames
    config.off_policy_n_envs_per_worker = envs
    config.off_policy_n_optimizer_steps = frames // 100
    config.off_policy_train_batch_size = 1024
    config.off_policy_memory_size = 1_000_000
    return config


def main() -> None:
    """Run an experiment until the time is over."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    asked = settings()
    torch.set_num_threads(asked["threads"])
    algorithm = MaddpgConfig.get_from_yaml()
    algorithm.share_param_critic = False
    model = MlpConfig(num_cells=[64, 64], layer_class=torch.nn.Linear, activation_class=torch.nn.ReLU)
    frames = asked["frames"]
    watch = Stopwatch(warm=max(1_300, frames), seconds=asked["seconds"])
    experiment = Experiment(
        task=task_of(asked["backend"]),
        algorithm_config=algorithm,
        model_config=model,
        critic_model_config=model,
        seed=0,
        config=config_of(asked["envs"], frames),
        callbacks=[Count(watch, frames)],
    )
    groups = {name: len(agents) for name, agents in experiment.group_map.items()}
    try:
        experiment.run()
    except Enough:
        tell(watch.rate, num_envs=asked["envs"], groups=groups, frames_an_iteration=frames, **watch.facts)


if __name__ == "__main__":
    main()
