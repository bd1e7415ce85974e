"""The physics and the points: what a spectator with a ruler could check."""

import numpy as np
import pytest

from marlctl_tennis import rules
from marlctl_tennis.court import NOBODY, Court

STAY = np.zeros((2, 2, 1))
RACKET_X, RACKET_Y, RACKET_VX, RACKET_VY, BALL_X, BALL_Y, BALL_VX, BALL_VY = range(8)


def court(*, ball=(-7, 2, 0, 0), rackets=(-7, -7), last_hit=NOBODY):
    """One court with the ball and the rackets put somewhere."""
    one = Court(1)
    one.table[:2, :, 0] = [rackets, (rules.REST,) * 2]
    one.table[4:, 0, 0] = ball
    one.table[4:, 1, 0] = np.array(ball) * (-1, 1, -1, 1)
    one.last_hit[:] = last_hit
    one.look()
    return one


def acting(*runs_and_jumps):
    """(run, jump) of each player, as a court takes them."""
    return np.array(runs_and_jumps, float).T[:, :, None]


def rally(one, action=STAY, steps=100):
    """Play on until somebody misses; the points of all steps together."""
    over = np.zeros(2)
    for _ in range(steps):
        points = one.play(action)
        over += points.over[:, 0]
        if points.missed.any():
            return over.tolist(), points.missed[:, 0].tolist()
    return over.tolist(), [False, False]


def test_a_rally_begins_with_a_ball_at_rest_above_one_of_the_players():
    many = Court(2000)
    many.serve(np.arange(2000), range(2000))
    x, y, vx, vy, ball_x, ball_y, *ball_v = many.table
    assert (y == rules.REST).all() and not (vx.any() or vy.any() or np.any(ball_v))
    assert (ball_y == 6).all() and (ball_x[0] == -ball_x[1]).all()
    for places, (near, far) in ((-x, rules.START), (np.abs(ball_x), rules.DROP)):
        assert near <= places.min() < near + 0.1 and far - 0.1 < places.max() <= far
    assert 0.45 < (ball_x[0] < 0).mean() < 0.55
    assert (many.last_hit == NOBODY).all()


def test_a_ball_that_nobody_touches_falls_as_gravity_has_it():
    one = court(ball=(-4, 5, 0, 0))
    for _ in range(5):
        one.play(STAY)
    assert one.table[BALL_VY, 0, 0] == pytest.approx(-rules.GRAVITY * 0.5)
    assert one.table[BALL_Y, 0, 0] == pytest.approx(5 - rules.GRAVITY * 0.5**2 / 2, abs=0.06)
    for _ in range(3):
        one.play(STAY)
    assert one.table[BALL_VY].min() >= -rules.BALL_SPEED


@pytest.mark.parametrize("run", [1, -1, 0.5])
def test_a_racket_runs_ten_times_its_action_and_stops_at_the_net_and_at_the_wall(run):
    one = court(ball=(5, 6, 0, 0), rackets=(-7, -7))
    one.play(acting((run, -1), (0, -1)))
    assert one.table[RACKET_X, 0, 0] == pytest.approx(-7 + run)
    assert one.table[RACKET_VX, 0, 0] == pytest.approx(10 * run)
    assert one.table[RACKET_X, 1, 0] == -7
    for _ in range(8):
        one.play(acting((run, -1), (run, -1)))
    if abs(run) == 1:
        limit = rules.NEAREST if run > 0 else rules.REARMOST
        assert one.table[RACKET_X, :, 0] == pytest.approx([limit] * 2)
        assert one.table[RACKET_VX, :, 0] == pytest.approx([0, 0], abs=1e-9)  # it hits with the speed it has


def test_a_racket_jumps_only_from_the_ground_and_comes_down_again():
    one = court(ball=(5, 6, 0, 0))
    heights, speeds = [], []
    for step in range(14):
        one.play(acting((0, 1 if step in (0, 3) else -1), (0, 0)))
        heights.append(one.table[RACKET_Y, 0, 0])
        speeds.append(one.table[RACKET_VY, 0, 0])
    assert speeds[0] == pytest.approx(rules.JUMP - rules.GRAVITY * 0.1)
    assert speeds[3] == pytest.approx(rules.JUMP - rules.GRAVITY * 0.4)  # no second jump in the air
    assert max(heights) == pytest.approx(rules.REST + rules.JUMP**2 / (2 * rules.GRAVITY), abs=0.1)
    assert heights[-1] == rules.REST and speeds[-1] == 0
    assert one.table[RACKET_Y, 1, 0] == rules.REST


def test_a_bounce_keeps_the_speed_along_the_racket_and_part_of_that_across():
    one = court(ball=(-7, rules.REST + 0.4, 3, -5))
    one.play(STAY)
    normal, along = np.array(rules.NORMAL), np.array(rules.ALONG)
    after = one.table[BALL_VX:, 0, 0]
    assert one.last_hit[0] == 0
    # gravity works on it before and after; that is all that is not exact
    assert after @ along == pytest.approx(np.array([3, -5]) @ along, abs=1)
    assert after @ normal == pytest.approx(-rules.RESTITUTION * (np.array([3, -5]) @ normal), abs=1)


def test_a_racket_that_runs_into_the_ball_hits_harder_than_one_that_stands():
    speeds = []
    for run in (0, 0.3):
        one = court(ball=(-6.8, -1.1, 0, -4))
        one.play(acting((run, 0), (0, 0)))
        speeds.append(one.table[BALL_VX, 0, 0])
    assert 0 < speeds[0] < speeds[1]


@pytest.mark.parametrize("action", [(1, -1), (0, 1), (1, 1)])
def test_a_falling_ball_flies_over_the_net_when_the_racket_goes_into_it(action):
    one = court(ball=(-6, -0.3, 0, -8.5), rackets=(-6.3, -7))
    one.play(acting(action, (0, 0)))
    assert rally(one, acting((0, -1), (-1, -1)))[0] == [1, 0]


@pytest.mark.parametrize(
    ("ball", "last_hit", "over", "at_fault"),
    [
        pytest.param((-3, 0, 0, 0), NOBODY, [0, 0], 0, id="on the floor, not returned by the first"),
        pytest.param((3, 0, 0, 0), NOBODY, [0, 0], 1, id="on the floor, not returned by the second"),
        pytest.param((-2, 0, 3, 3), 0, [1, 0], 1, id="over the net and on the other's floor"),
        pytest.param((-2, -1.4, 6, 0), 0, [0, 0], 0, id="into the net by the first"),
        pytest.param((2, -1.4, -6, 0), 1, [0, 0], 1, id="into the net by the second"),
        pytest.param((-2, -1.4, 9, 9), 0, [1, 0], 0, id="over the net and out"),
        pytest.param((-10, 1, -9, 2), 0, [0, 0], 0, id="backwards out of the own court"),
        pytest.param((2, -1.4, -9, 9), 1, [0, 1], 1, id="out by the second"),
    ],
)
def test_points_go_to_who_hit_it_over_and_the_fault_is_whose_it_was(ball, last_hit, over, at_fault):
    one = court(ball=ball, last_hit=last_hit, rackets=(-13, -13))
    found, missed = rally(one)
    assert found == over
    assert missed == [at_fault == 0, at_fault == 1]


def test_after_a_miss_nothing_moves_in_that_step_any_more():
    one = court(ball=(-3, rules.FLOOR + rules.BALL_RADIUS + 0.01, 0, -9))
    points = one.play(STAY)
    assert points.missed[:, 0].tolist() == [True, False]
    assert one.table[BALL_Y, 0, 0] == pytest.approx(rules.FLOOR + rules.BALL_RADIUS, abs=0.2)


@pytest.mark.parametrize("speed", [2.0, 5.0, 9.0])
@pytest.mark.parametrize("shift", np.linspace(0, 0.5, 7))
def test_no_ball_passes_through_a_racket_or_the_net(speed, shift):
    one = court(ball=(-7 + shift, 1.5 + shift, 0, -speed))
    for _ in range(12):
        one.play(acting((0, 1), (0, 0)))  # upwards into the falling ball: the fastest they meet
        if one.last_hit[0] == 0:
            break
    assert one.last_hit[0] == 0
    one = court(ball=(-2 + shift, -1.6, speed, 1), rackets=(-13, -13), last_hit=0)
    assert rally(one)[1] == [True, False]


def test_mirrored_play_is_the_same_play(rng):
    one, mirrored = Court(40), Court(40)
    one.serve(np.arange(40), range(40))
    mirrored.table[:] = one.table[:, ::-1]
    mirrored.look()
    for _ in range(60):
        action = rng.uniform(-1, 1, (2, 2, 40))
        points, reflected = one.play(action), mirrored.play(action[:, ::-1])
        assert (one.table == mirrored.table[:, ::-1]).all()
        assert (points.over == reflected.over[::-1]).all() and (points.missed == reflected.missed[::-1]).all()


def test_the_ball_is_the_same_for_both_players(rng):
    one = Court(40)
    one.serve(np.arange(40), range(40))
    for _ in range(60):
        one.play(rng.uniform(-1, 1, (2, 2, 40)))
        assert (one.table[[BALL_X, BALL_VX], 0] == -one.table[[BALL_X, BALL_VX], 1]).all()
        assert (one.table[[BALL_Y, BALL_VY], 0] == one.table[[BALL_Y, BALL_VY], 1]).all()


def test_nobody_can_keep_the_ball_for_themselves(rng):
    """Whatever a player does, every hit with the face sends the ball forwards: it cannot be balanced or dribbled."""
    n, longest = 2000, 0
    many = Court(n)
    many.serve(np.arange(n), range(n))
    action = rng.uniform(-1, 1, (2, 2, n))
    since, alive = np.zeros(n, int), np.ones(n, bool)
    for _ in range(150):
        changed = rng.random(n) < 0.3
        under = many.table[BALL_X] - many.table[RACKET_X] + rng.normal(-0.2, 0.3, (2, n))  # stays where it is
        action[0] = np.where(changed, rng.uniform(-1, 1, (2, n)), np.clip(under, -1, 1))
        action[1] = np.where(changed, rng.uniform(-1, 1, (2, n)), action[1])
        points = many.play(action)
        since = np.where(points.over.any(0), 0, since + 1)
        alive &= ~points.missed.any(0)
        longest = max(longest, int((since * alive).max()))
    assert longest < 40  # four seconds
