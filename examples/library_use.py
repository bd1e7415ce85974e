"""marlctl from Python: train, score, and use the policy somewhere else."""

from mpe2 import simple_spread_v3

import marlctl

if __name__ == "__main__":
    run = marlctl.train(
        "maddpg",
        "simple_spread",
        num_episodes=1500,
        num_envs=10,
        threads=1,
        options={"algo.lr": 5e-3, "algo.warmup": 5000, "algo.update_every": 50, "env.N": 2},
    )
    scores = marlctl.evaluate(run, episodes=50)
    print(f"{run.path}: mean return {scores.total:.2f}")

    # The policy needs only observations, so it can act wherever there are some.
    policy = marlctl.load_policy(run)
    env = simple_spread_v3.parallel_env(N=2)
    obs, _ = env.reset(seed=1)
    earned = 0.0
    while env.agents:
        obs, rewards, _, _, _ = env.step(policy.act(obs))
        earned += sum(rewards.values())
    print(f"one episode by hand: {earned:.2f}")
