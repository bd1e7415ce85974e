"""Our Switch plays ma-gym's own episodes. MARLCTL_PARITY_EPISODES=1000 compares so many of each scenario."""

import os
from importlib.util import find_spec

import numpy as np
import pytest

from marlctl_switch import SCENARIOS

if find_spec("ma_gym") is None:
    pytest.skip("ma-gym is not installed", allow_module_level=True)

from marlctl_magym.cage import registered

EPISODES = int(os.environ.get("MARLCTL_PARITY_EPISODES", "60"))
EVERY = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
LIMIT = 50


def theirs(scenario):
    """ma-gym's own game, its step limit untouched."""
    registration = registered()[scenario.name]
    return registration.game(**registration.kwargs)


def chosen(rng, style, n_agents, side):
    """Random moves; some styles push the agents towards their homes, so that they meet and arrive."""
    moves = rng.integers(5, size=n_agents)
    if style:
        onwards = np.where(np.arange(n_agents) % 2 == 0, 3, 1)
        row = np.where(side > 0.4, 2, 0) if style == 2 else moves
        pushed = np.where(rng.random(n_agents) < 0.5, onwards, row)
        moves = np.where(rng.random(n_agents) < 0.7, pushed, moves)
    return moves.tolist()


@EVERY
def test_random_episodes_are_those_of_ma_gym(scenario, rng):
    ours, game = scenario().make(), theirs(scenario)
    arrivals = 0
    for episode in range(EPISODES):
        obs, _ = ours.reset()
        expected = game.reset()
        gone = set()
        for t in range(1, LIMIT + 1):
            for i, agent in enumerate(ours.agents):
                assert obs[agent].tobytes() == np.array(expected[int(agent[-1])], np.float32).tobytes(), i
            sides = np.array([pos[0] / 2 for pos in game.agent_pos.values()])
            actions = chosen(rng, episode % 3, scenario.n_agents, sides)
            acting = list(ours.agents)
            obs, reward, terminated, truncated, _ = ours.step({a: actions[int(a[-1])] for a in acting})
            expected, rewards, dones, _ = game.step(actions)
            assert reward == {a: rewards[int(a[-1])] for a in acting}
            assert all(rewards[int(a[-1])] == 0 for a in gone)
            assert {a: terminated[a] or truncated[a] for a in acting} == {a: dones[int(a[-1])] for a in acting}
            home = {a: game.agent_pos[int(a[-1])] == game.final_agent_pos[int(a[-1])] for a in acting}
            assert terminated == home  # the time limit is no end
            assert truncated == {a: t == LIMIT and not home[a] for a in acting}
            assert set(obs) == set(acting)
            for agent in acting:
                assert obs[agent].tobytes() == np.array(expected[int(agent[-1])], np.float32).tobytes()
            gone |= set(acting) - set(ours.agents)
            arrivals += sum(home.values())
            if not ours.agents:
                assert all(dones)
                break
        assert not ours.agents
    assert arrivals >= EPISODES / 20, "the episodes should have some arrivals"


@EVERY
def test_spaces_are_those_of_ma_gym(scenario):
    ours, game = scenario().make(), theirs(scenario)
    for i, agent in enumerate(ours.possible_agents):
        assert ours.observation_space(agent) == game.observation_space[i]
        assert ours.action_space(agent) == game.action_space[i]


def test_other_lengths_and_costs_are_those_of_ma_gym(rng):
    scenario = SCENARIOS[2]
    registration = registered()[scenario.name]
    ours = scenario(max_steps=7, step_cost=-0.25).make()
    game = registration.game(**{**registration.kwargs, "max_steps": 7, "step_cost": -0.25})
    ours.reset(), game.reset()
    for _ in range(7):
        actions = rng.integers(5, size=2).tolist()
        obs, reward, _, truncated, _ = ours.step(dict(zip(ours.agents, actions, strict=True)))
        expected, rewards, dones, _ = game.step(actions)
        assert list(reward.values()) == rewards
        assert list(truncated.values()) == dones
        assert (np.stack(list(obs.values())) == np.array(expected, np.float32)).all()
    assert all(dones)
