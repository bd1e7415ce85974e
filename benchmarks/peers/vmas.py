"""VMAS: steps of n environments in torch, with random actions drawn before."""

from __future__ import annotations

import warnings

import torch
import vmas

from benchmarks.child import repeat, settings, tell

SCENARIOS = {"simple_tag": {"num_good_agents": 1, "num_adversaries": 3, "num_landmarks": 2}, "simple_spread": {}}


def main() -> None:
    """Step each scenario with each number of copies."""
    warnings.filterwarnings("ignore")
    asked = settings()
    torch.set_num_threads(asked["threads"])
    for scenario, options in SCENARIOS.items():
        for n in asked["copies"]:
            env = vmas.make_env(
                scenario, num_envs=n, device="cpu", continuous_actions=True, max_steps=None, seed=0, **options
            )
            actions = [[torch.rand(n, 2) * 2 - 1 for _ in env.agents] for _ in range(8)]
            env.reset()

            def block(env=env, actions=actions):
                for action in actions:
                    env.step(action)

            tell(repeat(block, 8 * n, asked["seconds"]), setting={"scenario": scenario, "copies": n})


if __name__ == "__main__":
    main()
