"""What hand-written listeners earn in simple_speaker_listener: how much of a return is talk."""

from __future__ import annotations

import numpy as np

from marlctl.config import read_file, resolve
from marlctl.opening import make_env
from marlctl.records import Array
from marlctl.seeding import episode_seed
from reference.plan import run_file

AHEAD = 0.3  # seconds it looks ahead, so that it brakes in time
NEAR = 0.07  # closer than a step would bring it


def listener(*, told: bool, episodes: int) -> float:
    """The mean return of both agents: the listener knows its landmark, or goes to the middle of all three."""
    env = make_env(resolve(read_file(run_file("simple_speaker_listener-maddpg"))), episodes)
    seeds = [episode_seed(0, -2, copy) for copy in range(episodes)]
    obs, _ = env.reset(seeds)
    rows, total = np.arange(episodes), np.zeros(episodes)
    while True:
        seen = obs["listener_0"]  # its velocity, the landmarks from where it is, the message
        landmarks = seen[:, 2:8].reshape(-1, 3, 2)
        wish = landmarks[rows, obs["speaker_0"].argmax(1)] if told else landmarks.mean(1)
        action = env.spec.action.zeros(episodes)
        action["speaker_0"][:, 0] = 1
        action["listener_0"][rows, _towards(wish - AHEAD * seen[:, :2])] = 1
        step = env.step(action, seeds)
        total += step.reward.array.sum(1)
        obs = step.obs
        if step.ended.all():
            return float(total.mean())


def _towards(way: Array) -> Array:
    """The move along the axis with the longer way to go: 1 left, 2 right, 3 down, 4 up, 0 none."""
    axis = np.abs(way).argmax(1)
    far = way[np.arange(len(way)), axis]
    move: Array = np.where(np.abs(far) < NEAR, 0, 1 + 2 * axis + (far > 0))
    return move
