"""The scenario: what players see and earn, how well some play, PettingZoo's own tests, and its pictures."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from marlctl.copies import Copies
from marlctl.errors import ConfigError, DivergedError
from marlctl_tennis import Tennis, rules
from marlctl_tennis.games import NAMES

READY, REACH = -7.0, 1.5  # where to wait for the ball, and how near it must be to jump


def follow(obs):
    """A player that knows where the ball comes down, runs there, and jumps: (n, 48) seen to (n, 4) done."""
    newest = obs.reshape(len(obs), 2, rules.FRAMES, 8)[:, :, -1]
    x, y, _, _, ball_x, ball_y, ball_vx, ball_vy = np.moveaxis(newest, 2, 0)
    height = np.maximum(ball_y - rules.REST, 0)
    time = (ball_vy + np.sqrt(ball_vy**2 + 2 * rules.GRAVITY * height)) / rules.GRAVITY
    comes = (ball_x < 0) | (ball_vx < 0)
    run = np.clip(np.where(comes, ball_x + ball_vx * time, READY) - x, -1, 1)
    near = (ball_x < 0) & (ball_y - y < REACH) & (np.abs(ball_x - x) < REACH)
    return np.stack([run, np.where(near, 1, -1)], axis=2).reshape(len(obs), 4).astype(np.float32)


def scores(policy, episodes):
    """The score of one episode in each of so many copies."""
    env = Tennis().make_batch(episodes)
    obs, _ = env.reset(range(episodes))
    earned, playing = np.zeros((episodes, 2)), np.ones(episodes, bool)
    while playing.any():
        step = env.step(env.spec.action.joint(policy(obs.array)), range(episodes))
        earned[playing] += step.reward.array[playing]
        playing &= ~step.ended
        obs = step.obs
    return Tennis().score(earned)


def actions(env, joint):
    return dict(zip(env.possible_agents, np.split(np.asarray(joint, np.float32), 2), strict=True))


# -- how well some play --------------------------------------------------------------------------


def test_random_play_scores_next_to_nothing(rng):
    found = scores(lambda obs: rng.uniform(-1, 1, (len(obs), 4)).astype(np.float32), 1000)
    assert 0 < found.mean() <= 0.02  # 0.008; who has never hit a ball over the net could not learn to
    assert found.max() <= 0.4


def test_who_does_nothing_scores_nothing():
    assert (scores(lambda obs: np.zeros((len(obs), 4), np.float32), 100) == 0).all()


def test_who_follows_the_ball_keeps_it_in_play_to_the_end():
    """2.6 is also what good players of the Unity build are reported to reach in 1000 steps."""
    found = scores(follow, 40)
    assert found.min() > 2.5 and found.max() < 2.8


# -- what players see and earn -------------------------------------------------------------------


def test_the_first_observation_is_one_frame_after_two_of_zeros():
    obs, _ = Tennis().make().reset(seed=4)
    first, second = obs.values()
    for seen in (first, second):
        assert seen.shape == (24,) and seen.dtype == np.float32 and not seen[:16].any()
        x, y, vx, vy, ball_x, ball_y, ball_vx, ball_vy = seen[16:]
        assert -8 <= x <= -6 and y == -1.5 and ball_y == 6 and 4 <= abs(ball_x) <= 11
        assert not any((vx, vy, ball_vx, ball_vy))
    assert first[20] == -second[20]


def test_older_frames_move_to_the_front_and_the_newest_is_last(rng):
    env = Tennis().make()
    obs, _ = env.reset(seed=4)
    for _ in range(5):
        before, (obs, *_) = obs, env.step(actions(env, rng.uniform(-1, 1, 4)))
        for name in NAMES:
            assert (obs[name][:16] == before[name][8:]).all()
            assert (obs[name][16:] != before[name][16:]).any()


def test_a_miss_ends_the_episode_of_both_and_costs_only_who_is_at_fault():
    env = Tennis().make()
    obs, _ = env.reset(seed=0)
    while env.agents:
        obs, reward, terminated, truncated, info = env.step(actions(env, np.zeros(4)))
    at_fault = "player_0" if obs["player_0"][20] < 0 else "player_1"
    assert {name: round(r, 6) for name, r in reward.items()} == {n: -0.01 if n == at_fault else 0 for n in NAMES}
    assert all(terminated.values()) and not any(truncated.values())
    assert {name: own["misses"] for name, own in info.items()} == {n: float(n == at_fault) for n in NAMES}


def test_a_hit_over_the_net_earns_a_tenth_for_who_hit_it():
    env = Tennis().make()
    obs, _ = env.reset(seed=0)
    began = "player_0" if obs["player_0"][20] < 0 else "player_1"
    while not any((reward := env.step(actions(env, follow(np.concatenate([*obs.values()])[None])[0])))[1].values()):
        obs = reward[0]
    assert {name: round(r, 6) for name, r in reward[1].items()} == {n: 0.1 if n == began else 0 for n in NAMES}
    assert reward[4][NAMES[0]]["rally"] == reward[4][NAMES[1]]["rally"] == 1


def test_the_time_limit_is_a_truncation():
    env = Tennis().with_length(4).make()
    env.reset(seed=0)
    for _ in range(4):
        *_, terminated, truncated, _ = env.step(actions(env, np.zeros(4)))
    assert all(truncated.values()) and not any(terminated.values()) and not env.agents
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_the_score_is_that_of_the_better_player():
    assert Tennis().score(np.array([0.1, 0.3])) == 0.3
    assert Tennis().score(np.array([[0.1, 0.3], [0.0, -0.01]])).tolist() == [0.3, 0.0]
    assert Tennis.solved_at == 0.5


def test_everything_seen_is_in_the_observation_space(rng):
    env = Tennis().make()
    for seed in range(20):
        obs, _ = env.reset(seed=seed)
        while env.agents:
            obs, *_ = env.step(actions(env, rng.choice([-1, 1], 4)))
            assert all(env.observation_space(name).contains(seen) for name, seen in obs.items())


# -- actions that are none -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "error", "words"),
    [
        ([np.nan, 0], DivergedError, "action of player_1 is not finite"),
        ([0, -np.inf], DivergedError, "action of player_1 is not finite"),
        ([0.5, 1.25], ConfigError, r"action of player_1 is \[0.5, 1.25\].*\[-1, 1\]"),
    ],
)
def test_an_action_outside_its_space_is_refused_by_name(action, error, words):
    env, batch = Tennis().make(), Tennis().make_batch(2)
    env.reset(seed=0), batch.reset([0, 1])
    with pytest.raises(error, match=words):
        env.step({"player_0": np.zeros(2), "player_1": np.array(action)})
    joint = batch.spec.action.zeros(2)
    joint["player_1"][1] = action
    with pytest.raises(error, match=words):
        batch.step(joint, [2, 3])


@pytest.mark.parametrize("action", [np.zeros(3), 0.5, None, "up", np.zeros((1, 2)), np.zeros(2, complex)])
def test_what_is_not_two_numbers_is_refused_by_name(action):
    env = Tennis().make()
    env.reset(seed=0)
    with pytest.raises(ConfigError, match=r"action of player_1 is .*must be 2 numbers"):
        env.step({"player_0": np.zeros(2), "player_1": action})
    with pytest.raises(ConfigError, match="no action for player_1"):
        env.step({"player_0": np.zeros(2)})


def test_a_rounding_error_is_no_reason_to_refuse_an_action():
    env = Tennis().make()
    env.reset(seed=0)
    env.step({name: np.full(2, np.nextafter(np.float32(1), np.float32(2))) for name in NAMES})


# -- PettingZoo and pictures ---------------------------------------------------------------------


def test_it_passes_pettingzoos_own_tests(pettingzoo_tests):
    pettingzoo_tests(Tennis().make, steps=300)


def test_a_reset_without_a_seed_goes_on_from_the_last_one():
    env, twin = Tennis().make(), Tennis().make()
    runs = []
    for one in (env, twin):
        one.reset(seed=5)
        runs.append([one.reset()[0]["player_0"] for _ in range(2)])
    assert (np.array(runs[0]) == np.array(runs[1])).all() and (runs[0][0] != runs[0][1]).any()


def test_a_picture_shows_the_game_and_drawing_changes_nothing(rng):
    env, blind = Tennis().make(render_mode="rgb_array"), Tennis().make()
    env.reset(seed=1), blind.reset(seed=1)
    pictures = [env.render()]
    for _ in range(5):
        joint = rng.uniform(-1, 1, 4)
        seen, unseen = (one.step(actions(one, joint))[0] for one in (env, blind))
        pictures.append(env.render())
        assert all((seen[name] == unseen[name]).all() for name in NAMES)
    assert all(p.shape == (360, 640, 3) and p.dtype == np.uint8 for p in pictures)
    assert all((one != other).any() for one, other in pairwise(pictures))
    assert blind.render() is None


def test_the_last_picture_is_of_the_game_that_ended():
    env = Tennis().make(render_mode="rgb_array")
    env.reset(seed=1)
    begin = env.render()
    while env.agents:
        env.step(actions(env, np.zeros(4)))
    assert (env.render() != begin).any()


def test_naming_the_scenario_imports_no_numpy():
    code = (
        "import sys, marlctl_tennis; marlctl_tennis.Tennis(); sys.exit('numpy' in sys.modules or 'PIL' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_both_forms_have_one_spec():
    assert Tennis().make_batch(1).spec == Copies(Tennis(), 1).spec
