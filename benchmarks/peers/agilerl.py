"""AgileRL's MADDPG through its own training function, one environment of mpe2."""

from __future__ import annotations

import warnings

import torch
from agilerl.algorithms import MADDPG
from agilerl.components.replay_buffer import ReplayBuffer
from agilerl.training.train_multi_agent_off_policy import train_multi_agent_off_policy
from mpe2 import simple_tag_v3

from benchmarks.child import Enough, Stopwatch, settings, tell

FOREVER = 10_000_000


def main() -> None:
    """Train until the time is over."""
    warnings.filterwarnings("ignore")
    asked = settings()
    torch.set_num_threads(asked["threads"])
    env = simple_tag_v3.parallel_env(max_cycles=25, continuous_actions=True)
    env.reset(seed=0)
    names = list(env.possible_agents)
    learner = MADDPG(
        [env.observation_space(name) for name in names],
        [env.action_space(name) for name in names],
        agent_ids=names,
        vect_noise_dim=1,
        batch_size=1024,
        lr_actor=0.01,
        lr_critic=0.01,
        learn_step=100,
        gamma=0.95,
        tau=0.01,
        net_config={"encoder_config": {"hidden_size": [64]}, "head_config": {"hidden_size": [64]}},
    )
    watch, updates = Stopwatch(warm=1_300, seconds=asked["seconds"]), [0]
    step, learn = env.step, learner.learn

    def counted_step(action):
        result = step(action)
        watch.count(1)
        return result

    def counted_learn(*arguments, **named):
        updates[0] += watch.begin is not None
        return learn(*arguments, **named)

    env.step, learner.learn = counted_step, counted_learn
    try:
        train_multi_agent_off_policy(
            env, "simple_tag", "MADDPG", [learner], ReplayBuffer(1_000_000), max_steps=FOREVER, evo_steps=FOREVER,
            eval_steps=1, eval_loop=1, verbose=False,
        )  # fmt: skip
    except Enough:
        tell(watch.rate, num_envs=1, updates=updates[0], **watch.facts)


if __name__ == "__main__":
    main()
