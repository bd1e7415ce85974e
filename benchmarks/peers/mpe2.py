"""mpe2 as it is: one environment, discrete actions drawn before."""

from __future__ import annotations

import warnings

import numpy as np
from mpe2 import simple_spread_v3, simple_tag_v3

from benchmarks.child import repeat, settings, tell


def main() -> None:
    """Step each scenario."""
    warnings.filterwarnings("ignore")
    asked = settings()
    rng = np.random.default_rng(0)
    for scenario, module in (("simple_tag", simple_tag_v3), ("simple_spread", simple_spread_v3)):
        env = module.parallel_env(max_cycles=25)
        env.reset(seed=0)
        actions = [{agent: int(rng.integers(5)) for agent in env.possible_agents} for _ in range(25)]

        def episode(env=env, actions=actions):
            env.reset()
            for action in actions:
                env.step(dict(action))

        tell(repeat(episode, 25, asked["seconds"]), setting={"scenario": scenario, "copies": 1})


if __name__ == "__main__":
    main()
