"""The toy world and the probe games are sound environments, and each asks for the one thing it says."""

import warnings

import numpy as np
import pytest

from marlctl.copies import make_batch
from marlctl.errors import ConfigError
from marlctl.evaluation import play
from marlctl.plugins import environment
from marlctl.policies import Random
from marlctl.records import Acts
from marlctl.testing.probes import PROBES

with warnings.catch_warnings():  # PettingZoo's tests import games of its own in a way that it deprecates
    warnings.simplefilter("ignore")
    from pettingzoo.test import parallel_api_test, parallel_seed_test

GAMES = ["toy_grid", *(f"probe/{name}" for name in PROBES)]


@pytest.mark.parametrize("name", GAMES)
def test_every_game_passes_pettingzoos_own_test(name, capsys):
    parallel_api_test(environment(name)().make(), num_cycles=200)
    assert "Passed" in capsys.readouterr().out


@pytest.mark.parametrize("name", GAMES)
def test_the_same_seed_is_the_same_game(name):
    parallel_seed_test(environment(name)().make, num_cycles=60)


class Knowing:
    """Plays each probe as its author meant it to be played."""

    plays = "greedy"

    def __init__(self, spec, game):
        self.spec, self.game = spec, game

    def act(self, obs, carry, *, rng, mode, mask=None):
        rows = len(next(iter(obs.values())))
        joint = self.spec.action.zeros(rows)
        for name in obs:
            if self.game == "pointing":
                joint[name][:, 0] = obs[name][:, 0]
            else:
                best = mask[name] * [1, 2, 3] if self.game == "masked" else obs[name][:, :3]
                joint[name][np.arange(rows), best.argmax(1)] = 1
        return Acts(joint)


BEST = {"matching": 10, "delay": 2, "leaving": 6, "masked": 10, "pointing": 0}


@pytest.mark.parametrize("name", PROBES)
def test_who_knows_the_game_gets_the_best_return_and_who_plays_at_random_does_not_solve_it(name):
    probe = PROBES[name]()
    env = make_batch(probe, 8)
    knowing, random = (
        play(env, who, seed=1, mode="greedy", episodes=40).total for who in (Knowing(env.spec, name), Random(env.spec))
    )
    assert knowing == pytest.approx(BEST[name], abs=1e-4)
    assert random < probe.solved_at <= knowing


def test_one_agent_leaves_and_the_other_plays_on():
    env = PROBES["leaving"]().make()
    env.reset(seed=0)
    _, _, ended, cut, _ = env.step({"agent_0": 0, "agent_1": 0})
    assert ended == {"agent_0": False, "agent_1": True}
    assert not any(cut.values())
    assert env.agents == ["agent_0"]


def test_what_pays_in_the_delay_game_was_chosen_a_step_before():
    env = PROBES["delay"]().make()
    seen, _ = env.reset(seed=0)
    right = {agent: int(obs[:3].argmax()) for agent, obs in seen.items()}
    _, reward, ended, _, _ = env.step(right)
    assert set(reward.values()) == {0.0}
    assert not any(ended.values())
    _, reward, ended, _, _ = env.step(dict.fromkeys(right, 0))
    assert set(reward.values()) == {1.0}
    assert all(ended.values())


def test_a_forbidden_action_costs_more_than_all_others_pay():
    env = PROBES["masked"]().make()
    _, infos = env.reset(seed=0)
    closed = {agent: int(np.flatnonzero(info["action_mask"] == 0)[0]) for agent, info in infos.items()}
    _, reward, *_ = env.step(closed)
    assert set(reward.values()) == {-5.0}


def test_an_episode_is_as_long_as_it_is_said_to_be():
    env = make_batch(environment("probe/matching")(max_cycles=3), 2)
    scores = play(env, Random(env.spec), seed=0, mode="sample", episodes=4)
    assert scores.lengths.tolist() == [3] * 4


def test_a_probe_that_does_not_exist_is_explained():
    with pytest.raises(ConfigError, match="did you mean probe/matching"):
        environment("probe/macthing")


def test_the_toys_agents_arrive_leave_and_are_masked_at_the_walls():
    env = environment("toy_grid")(n_agents=2, size=3).make(render_mode="rgb_array")
    for seed in range(20):
        seen, infos = env.reset(seed=seed)
        for agent in env.agents:
            at = round(float(seen[agent][0]) * 2)
            assert infos[agent]["action_mask"].tolist() == [1, at > 0, at < 2]
        while env.agents:
            toward = {a: 0 if seen[a][0] == seen[a][1] else 1 if seen[a][0] > seen[a][1] else 2 for a in env.agents}
            seen, reward, ended, _, _ = env.step(toward)
            assert all((reward[a] == 1.0) == ended[a] for a in reward)
    assert env.render().shape == (40, 60, 3)
