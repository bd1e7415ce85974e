"""The yardstick: MADDPG or DDPG agent by agent in plain torch on stock mpe2, discrete actions, then an evaluation.

    python examples/reference_runs/plain_loop.py simple_spread --seed 0 --algo maddpg --actors spread.npz

prints one JSON line. It is what most people have: one environment, one network after the other. It uses nothing of
marlctl, so that it can judge it.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

LENGTH = 25  # steps of an episode
BATCH, UPDATE_EVERY, WARMUP, CAPACITY = 1024, 100, 25_600, 1_000_000
LR, GAMMA, TAU, CLIP, LOGIT_PENALTY = 1e-2, 0.95, 0.01, 0.5, 1e-3
EVAL_EPISODES = 1000


def make(scenario: str, **how: Any) -> Any:
    """MPE2's own environment."""
    version = {"simple_speaker_listener": "v4"}.get(scenario, "v3")
    return import_module(f"mpe2.{scenario}_{version}").parallel_env(max_cycles=LENGTH, **how)


def mlp(inputs: int, outputs: int) -> nn.Sequential:
    """Two hidden layers, as published."""
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs))


def gumbel(logits: Tensor) -> Tensor:
    """A soft choice, drawn."""
    return torch.softmax(logits - torch.log(-torch.log(torch.rand_like(logits).clamp_min(1e-9))), -1)


def hard(soft: Tensor) -> Tensor:
    """One choice forwards, the soft vector backwards."""
    one = torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, keepdim=True), 1.0)
    return one + soft - soft.detach()


def descend(net: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step of one network, its gradient clipped."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(net.parameters(), CLIP)
    optimizer.step()


class Memory:
    """A ring of joint transitions."""

    def __init__(self, capacity: int, obs: list[int], actions: list[int]) -> None:
        self.capacity, self.size = capacity, 0
        self.starts = np.cumsum([0, *actions])
        self.cuts = np.cumsum(obs)[:-1].tolist(), np.cumsum(actions)[:-1].tolist()
        self.obs, self.next_obs = (np.zeros((capacity, sum(obs)), np.float32) for _ in range(2))
        self.action = np.zeros((capacity, sum(actions)), np.float32)
        self.reward = np.zeros((capacity, len(obs)), np.float32)

    def add(self, step: int, obs: list[Any], chosen: list[int], reward: list[float], next_obs: list[Any]) -> None:
        row = step % self.capacity
        self.obs[row], self.next_obs[row] = np.concatenate(obs), np.concatenate(next_obs)
        self.reward[row] = reward
        self.action[row] = 0
        self.action[row, self.starts[:-1] + chosen] = 1
        self.size = min(step + 1, self.capacity)

    def draw(self, rows: Any, agent: int) -> tuple[list[Tensor], list[Tensor], Tensor, list[Tensor]]:
        """Everybody's observations and actions, the agent's rewards, everybody's next observations."""
        obs_cut, action_cut = self.cuts
        obs, next_obs = (
            list(torch.tensor_split(torch.from_numpy(a[rows]), obs_cut, 1)) for a in (self.obs, self.next_obs)
        )
        action = list(torch.tensor_split(torch.from_numpy(self.action[rows]), action_cut, 1))
        return obs, action, torch.from_numpy(self.reward[rows, agent])[:, None], next_obs


class Loop:
    """Agents that play, remember and learn."""

    def __init__(self, scenario: str, episodes: int, seed: int, algo: str) -> None:
        torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.env, self.episodes, self.local = make(scenario), episodes, algo == "ddpg"
        self.env.reset(seed=seed)
        self.agents = list(self.env.possible_agents)
        obs = [self.env.observation_space(a).shape[0] for a in self.agents]
        actions = [int(self.env.action_space(a).n) for a in self.agents]
        seen = [o + a if self.local else sum(obs) + sum(actions) for o, a in zip(obs, actions, strict=True)]
        self.actors, self.target_actors = ([mlp(o, a) for o, a in zip(obs, actions, strict=True)] for _ in range(2))
        self.critics, self.target_critics = ([mlp(size, 1) for size in seen] for _ in range(2))
        for net, target in self._pairs():
            target.load_state_dict(net.state_dict())
        self.actor_steps, self.critic_steps = (
            [torch.optim.Adam(net.parameters(), lr=LR) for net in nets] for nets in (self.actors, self.critics)
        )
        self.memory = Memory(min(CAPACITY, episodes * LENGTH), obs, actions)

    def _pairs(self) -> list[tuple[nn.Sequential, nn.Sequential]]:
        return list(zip([*self.actors, *self.critics], [*self.target_actors, *self.target_critics], strict=True))

    def _joint(self, i: int, obs: list[Tensor], action: list[Tensor]) -> Tensor:
        return torch.cat([obs[i], action[i]], 1) if self.local else torch.cat([*obs, *action], 1)

    def update(self) -> None:
        """One step of every agent in turn; the later ones see the targets of those before."""
        for i in range(len(self.agents)):
            rows = self.rng.integers(self.memory.size, size=BATCH)
            obs, action, reward, next_obs = self.memory.draw(rows, i)
            with torch.no_grad():
                next_action = [hard(gumbel(net(x))) for net, x in zip(self.target_actors, next_obs, strict=True)]
                goal = reward + GAMMA * self.target_critics[i](self._joint(i, next_obs, next_action))
            loss = (self.critics[i](self._joint(i, obs, action)) - goal).square().mean()
            descend(self.critics[i], self.critic_steps[i], loss)
            logits = self.actors[i](obs[i])
            mine = [*action[:i], hard(gumbel(logits)), *action[i + 1 :]]
            loss = -self.critics[i](self._joint(i, obs, mine)).mean() + LOGIT_PENALTY * logits.square().mean()
            descend(self.actors[i], self.actor_steps[i], loss)
            self._follow(self.actors[i], self.target_actors[i])
            self._follow(self.critics[i], self.target_critics[i])

    @staticmethod
    @torch.no_grad()
    def _follow(net: nn.Module, target: nn.Module) -> None:
        for there, here in zip(target.parameters(), net.parameters(), strict=True):
            there.mul_(1 - TAU).add_(here, alpha=TAU)

    @torch.no_grad()
    def act(self, obs: dict[str, Any], *, explore: bool) -> dict[str, int]:
        chosen = {}
        for net, agent in zip(self.actors, self.agents, strict=True):
            logits = net(torch.from_numpy(np.asarray(obs[agent], np.float32))[None])[0]
            chosen[agent] = int((gumbel(logits) if explore else logits).argmax())
        return chosen

    def train(self) -> list[float]:
        """Learn; the return of all agents together, one number for 1 000 episodes."""
        step, returns = 0, []
        for _ in range(self.episodes):
            obs, _ = self.env.reset()
            total = 0.0
            while self.env.agents:
                chosen = self.act(obs, explore=True)
                following, reward, *_ = self.env.step(chosen)
                row = [[each[a] for a in self.agents] for each in (obs, chosen, reward, following)]
                self.memory.add(step, *row)
                total += sum(row[2])
                obs, step = following, step + 1
                if step % UPDATE_EVERY == 0 and step >= WARMUP:
                    self.update()
            returns.append(total)
        return [float(np.mean(returns[i : i + 1000])) for i in range(0, len(returns) - 999, 1000)]

    def evaluate(self, scenario: str, *, explore: bool) -> dict[str, Any]:
        """Mean returns of fresh episodes, by agent and in all."""
        env, scores = make(scenario), []
        for episode in range(EVAL_EPISODES):
            obs, _ = env.reset(seed=1_000_000 + episode)
            total = np.zeros(len(self.agents))
            while env.agents:
                obs, reward, *_ = env.step(self.act(obs, explore=explore))
                total += [reward[a] for a in self.agents]
            scores.append(total)
        return {"mean": np.mean(scores, 0).round(2).tolist(), "total": round(float(np.mean(np.sum(scores, 1))), 2)}

    def keep(self, path: Path) -> None:
        """The actors, as plain arrays called '<agent>.<layer>.weight' and '.bias'."""
        arrays = {
            f"{agent}.{name}": value.detach().numpy()
            for agent, net in zip(self.agents, self.actors, strict=True)
            for name, value in net.named_parameters()
        }
        with path.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]


def main() -> None:
    """Train, evaluate, and print one line."""
    parser = argparse.ArgumentParser(description="MADDPG or DDPG in plain torch on stock mpe2: a yardstick.")
    parser.add_argument("scenario")
    parser.add_argument("--episodes", type=int, default=25_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--algo", choices=["maddpg", "ddpg"], default="maddpg")
    parser.add_argument("--actors", type=Path, help="keep the actors in this .npz")
    given = parser.parse_args()
    torch.set_num_threads(1)
    loop = Loop(given.scenario, given.episodes, given.seed, given.algo)
    start = time.time()
    curve = loop.train()
    seconds = round(time.time() - start)
    if given.actors:
        loop.keep(given.actors)
    line = {
        "scenario": given.scenario,
        "algo": given.algo,
        "seed": given.seed,
        "episodes": given.episodes,
        "seconds": seconds,
        "curve_total": [round(value, 1) for value in curve[::4]],
        "greedy": loop.evaluate(given.scenario, explore=False),
        "sampled": loop.evaluate(given.scenario, explore=True),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
