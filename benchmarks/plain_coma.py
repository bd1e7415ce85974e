"""COMA as one would first write it: one Switch of ma-gym, an actor an agent, an update every ten episodes.

Networks of 64-64 units, raw integers as the critic's input, TD(0), one pass for each agent in turn: the
cadence and the sizes of the notebook that our COMA set out from. A baseline, written for this purpose.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from benchmarks.child import Enough, Stopwatch, settings, tell
from marlctl.plugins import environment

EPISODES = 10  # an update
GAMMA = 0.99


def mlp(inputs, outputs):
    """Two hidden layers of 64."""
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs)
    )  # fmt: skip


class Agents:
    """Networks and optimizers, and lists of what happened since the last update."""

    def __init__(self, n, obs_size, actions):
        self.n = n
        self.pi = [mlp(obs_size, actions) for _ in range(n)]
        self.q, self.q_target = (mlp(1 + n * obs_size + n, actions) for _ in "12")
        self.q_target.load_state_dict(self.q.state_dict())
        self.pi_adam = [torch.optim.Adam(net.parameters(), lr=1e-4) for net in self.pi]
        self.q_adam = torch.optim.Adam(self.q.parameters(), lr=5e-3)
        self.updates = 0
        self.forget()

    def forget(self):
        self.obs, self.action, self.policy, self.reward, self.done = [], [], [], [], []

    def act(self, obs):
        policy = [torch.softmax(net(torch.tensor(seen)), -1) for net, seen in zip(self.pi, obs, strict=True)]
        action = [int(torch.multinomial(p.detach(), 1)) for p in policy]
        self.obs.append(np.concatenate(obs))
        self.action.append(action)
        self.policy.append(policy)
        return action

    def update(self):
        obs, action = torch.tensor(np.stack(self.obs)), torch.tensor(self.action)
        reward, done = torch.tensor(self.reward), torch.tensor(self.done, dtype=torch.float32)
        for i in range(self.n):
            seen = torch.cat([torch.full((len(obs), 1), float(i)), obs, action.float()], 1)
            policy, taken = torch.stack([p[i] for p in self.policy]), action[:, i : i + 1]
            with torch.no_grad():
                worth = self.q_target(seen)
                q = worth.gather(1, taken)[:, 0]
                goal = reward[:, i] + GAMMA * (1 - done[:, i]) * torch.cat([q[1:], q[:1]])
            advantage = q - (policy.detach() * worth).sum(1)
            self.descend(-(advantage * policy.gather(1, taken)[:, 0].log()).mean(), self.pi[i], self.pi_adam[i])
            loss = (self.q(seen).gather(1, taken)[:, 0] - goal).square().mean()
            self.descend(loss, self.q, self.q_adam)
        self.updates += 1
        if self.updates % 10 == 0:
            self.q_target.load_state_dict(self.q.state_dict())
        self.forget()

    @staticmethod
    def descend(loss, net, adam):
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5)
        adam.step()


def main() -> None:
    """Play and learn until the time is over."""
    asked = settings()
    torch.set_num_threads(asked["threads"])
    torch.manual_seed(0)
    env = environment("ma-gym/Switch2-v0")().make()
    names = list(env.possible_agents)
    agents = Agents(len(names), 2, 5)
    watch = Stopwatch(warm=1000, seconds=asked["seconds"])
    episodes, begun = 0, 0
    try:
        while True:
            seen, _ = env.reset(seed=episodes)
            nothing = np.zeros(2, np.float32)
            while env.agents:
                action = agents.act([np.asarray(seen.get(name, nothing), np.float32) for name in names])
                chosen = {name: action[names.index(name)] for name in env.agents}
                seen, reward, ends, stops, _ = env.step(chosen)
                agents.reward.append([float(reward.get(name, 0)) for name in names])
                agents.done.append([ends.get(name, True) or stops.get(name, True) for name in names])
                watch.count(1)
            episodes += 1
            begun += watch.begin is None
            if episodes % EPISODES == 0:
                agents.update()
    except Enough:
        tell(watch.rate, num_envs=1, episodes=episodes - begun, **watch.facts)


if __name__ == "__main__":
    main()
