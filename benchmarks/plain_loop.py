"""What most people have today: MADDPG per agent in plain torch on stock mpe2, one environment.

Classic settings: simple_tag, 2x64 units, batch 1024, one update of every agent per 100 steps. A
baseline, written for this purpose.
"""

from __future__ import annotations

import numpy as np
import torch
from mpe2 import simple_tag_v3
from torch import nn

from benchmarks.child import Enough, Stopwatch, settings, tell

CAPACITY = 100_000
BATCH = 1024


def mlp(inputs, outputs):
    """Two hidden layers of 64."""
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs)
    )  # fmt: skip


def soft(logits):
    """A draw from the policy that a gradient passes through."""
    return torch.softmax(logits - torch.log(-torch.log(torch.rand_like(logits))), -1)


class Agents:
    """Networks, optimizers and memory, a list of each."""

    def __init__(self, obs_sizes, action_sizes, rng):
        self.rng, self.n = rng, len(obs_sizes)
        joint = sum(obs_sizes) + sum(action_sizes)
        self.pi, self.pi_target = ([mlp(o, a) for o, a in zip(obs_sizes, action_sizes, strict=True)] for _ in "12")
        self.q, self.q_target = ([mlp(joint, 1) for _ in obs_sizes] for _ in "12")
        for nets, targets in ((self.pi, self.pi_target), (self.q, self.q_target)):
            for net, target in zip(nets, targets, strict=True):
                target.load_state_dict(net.state_dict())
        self.pi_adam = [torch.optim.Adam(net.parameters(), lr=1e-2) for net in self.pi]
        self.q_adam = [torch.optim.Adam(net.parameters(), lr=1e-2) for net in self.q]
        # The memory begins full, so that the first update is like the last.
        self.obs, self.next_obs = (
            [rng.standard_normal((CAPACITY, size)).astype(np.float32) for size in obs_sizes] for _ in "12"
        )
        self.action = [rng.dirichlet(np.ones(size), CAPACITY).astype(np.float32) for size in action_sizes]
        self.reward = [rng.standard_normal(CAPACITY).astype(np.float32) for _ in obs_sizes]

    @torch.no_grad()
    def act(self, k, obs):
        return int(soft(self.pi[k](torch.from_numpy(obs).float()[None]))[0].argmax())

    def remember(self, row, k, obs, action, reward, next_obs):
        self.obs[k][row], self.next_obs[k][row], self.reward[k][row] = obs, next_obs, reward
        self.action[k][row] = 0
        self.action[k][row, action] = 1

    def update(self):
        for i in range(self.n):
            self.update_one(i, self.rng.integers(CAPACITY, size=BATCH))

    def update_one(self, i, rows):
        obs, next_obs, action = (
            [torch.from_numpy(x[rows]) for x in field] for field in (self.obs, self.next_obs, self.action)
        )
        with torch.no_grad():
            next_action = [soft(net(x)) for net, x in zip(self.pi_target, next_obs, strict=True)]
            goal = torch.from_numpy(self.reward[i][rows])[:, None]
            goal = goal + 0.95 * self.q_target[i](torch.cat(next_obs + next_action, 1))
        loss = (self.q[i](torch.cat(obs + action, 1)) - goal).square().mean()
        self.descend(loss, self.q[i], self.q_adam[i])
        logits = self.pi[i](obs[i])
        mine = [*action[:i], soft(logits), *action[i + 1 :]]
        loss = -self.q[i](torch.cat(obs + mine, 1)).mean() + 1e-3 * logits.square().mean()
        self.descend(loss, self.pi[i], self.pi_adam[i])
        with torch.no_grad():
            for net, target in ((self.pi[i], self.pi_target[i]), (self.q[i], self.q_target[i])):
                for slow, fast in zip(target.parameters(), net.parameters(), strict=True):
                    slow.mul_(0.99).add_(fast, alpha=0.01)

    @staticmethod
    def descend(loss, net, adam):
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        adam.step()


def main() -> None:
    """Play and learn until the time is over."""
    asked = settings()
    torch.set_num_threads(asked["threads"])
    torch.manual_seed(0)
    env = simple_tag_v3.parallel_env(max_cycles=25, continuous_actions=False)
    obs, _ = env.reset(seed=0)
    names = list(env.possible_agents)
    agents = Agents(
        [env.observation_space(name).shape[0] for name in names],
        [int(env.action_space(name).n) for name in names],
        np.random.default_rng(0),
    )
    watch = Stopwatch(warm=300, seconds=asked["seconds"])
    try:
        while True:
            action = {name: agents.act(k, obs[name]) for k, name in enumerate(names)}
            next_obs, reward, *_ = env.step(action)
            for k, name in enumerate(names):
                row = watch.steps % CAPACITY
                agents.remember(row, k, obs[name], action[name], reward[name], next_obs[name])
            obs = next_obs if env.agents else env.reset()[0]
            if watch.steps % 100 == 0:
                agents.update()
            watch.count(1)
    except Enough:
        tell(watch.rate, num_envs=1, **watch.facts)


if __name__ == "__main__":
    main()
