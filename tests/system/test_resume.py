"""A resumed run is the uninterrupted one, bit for bit, wherever it was cut; and the test would notice if not."""

import numpy as np
import pytest

from marlctl.evaluation import Scores
from marlctl.metrics import read
from marlctl.storage.checkpoint import Checkpoints
from marlctl.wheel import Wheel

TOY = {"run": {"eval_every": 5}, "algo": {"warmup": 40, "capacity": 90, "update_every": 7}}
SMALL = {"warmup": 60, "batch_size": 16, "capacity": 150, "update_every": 10, "num_units": 8}
KINDS = {
    "toy": TOY,
    "toy, three copies": {**TOY, "run": {"num_envs": 3, "eval_every": 5}},
    "toy, on-policy": {"run": {"num_envs": 2, "max_episode_len": 2}, "algo": {"on_policy": True, "update_every": 9}},
    "toy, a random agent": {**TOY, "policy": {"agent_2": "random"}},
    "toy, time limit of our own": {**TOY, "run": {"max_episode_len": 5}},
    "toy, a score": {**TOY, "run": {"num_envs": 3, "eval_every": 5, "log_every": 4}},
    "maddpg": {
        "run": {"algo": "maddpg", "scenario": "simple_tag", "num_envs": 1, "eval_episodes": 2, "eval_every": 5},
        "algo": SMALL,
    },
    "maddpg, drifting noise": {
        "run": {"algo": "maddpg", "scenario": "simple_speaker_listener", "eval_episodes": 2, "num_envs": 2},
        "env": {"continuous_actions": True},
        "algo": {**SMALL, "noise": "ou", "noise_decay": 0.999},
    },
    "maddpg, Switch": {
        "run": {"algo": "maddpg", "scenario": "Switch2-v0", "num_envs": 2, "eval_episodes": 2, "eval_every": 5},
        "env": {"max_steps": 20},
        "algo": SMALL,
    },
    "maddpg, ma-gym": {
        "run": {"algo": "maddpg", "scenario": "ma-gym/TrafficJunction4-v0", "eval_episodes": 2, "eval_every": 5},
        "env": {"max_steps": 30},
        "algo": SMALL,
    },
    "maddpg, tennis": {
        "run": {"algo": "maddpg", "scenario": "tennis", "num_envs": 2, "eval_episodes": 2, "eval_every": 5},
        "env": {"max_cycles": 40},
        "algo": {**SMALL, "noise": "ou", "noise_decay": 0.999},
    },
    "coma, Switch": {
        "run": {"algo": "coma", "scenario": "Switch2-v0", "num_envs": 3, "eval_episodes": 2, "eval_every": 5},
        "env": {"max_steps": 20},
        "algo": {"rollout": 7, "num_units": 8, "target_every": 3},
    },
    "coma, on-policy, one actor, last actions and epsilon": {
        "run": {"algo": "coma", "scenario": "toy_grid", "num_envs": 2, "eval_episodes": 2, "eval_every": 5},
        "algo": {
            "rollout": 9,
            "num_units": 8,
            "target_every": 3,
            "share": True,
            "previous_actions": True,
            "epsilon": 0.5,
            "epsilon_updates": 15,
        },
    },
    "coma, ma-gym": {
        "run": {"algo": "coma", "scenario": "ma-gym/PredatorPrey5x5-v0", "eval_episodes": 2, "eval_every": 5},
        "env": {"max_steps": 20},
        "algo": {"rollout": 7, "num_units": 8},
    },
    "ddpg": {
        "run": {"algo": "ddpg", "scenario": "simple_adversary", "num_envs": 1, "eval_episodes": 2, "eval_every": 5},
        "algo": SMALL,
    },
}


@pytest.fixture(autouse=True)
def judged(request):
    """The kinds that have a score have it for the whole test."""
    if "a score" in request.node.name:
        request.getfixturevalue("scored")


def leaves(tree, path=()):
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


def everything(wheel):
    """Every number a run consists of: state, replay, best policy and metrics."""
    wheel.metrics.sync()
    found = {"/".join(path): np.asarray(value) for path, value in leaves(wheel.state())}
    if hasattr(wheel.memory, "rows"):
        rows = wheel.memory.rows(wheel.memory.oldest, wheel.memory.total)
        found |= {f"replay/{name}": rows for name, rows in rows.items()}
        found["replay total"] = np.asarray(wheel.memory.total)
    best = wheel.checkpoints.best()
    found["best"] = np.asarray([best.step, best.note["score"]] if best else [])
    found["metrics"] = np.frombuffer(wheel.folder.metrics.read_bytes(), np.uint8)
    return found


def differences(one, other):
    assert one.keys() == other.keys()
    return [name for name in one if not (one[name].shape == other[name].shape and (one[name] == other[name]).all())]


def turns(wheel, n):
    for _ in range(n):
        wheel.turn()


def whole(config, folder, silent, n):
    wheel = Wheel(config, folder, silent)
    wheel.open_logs()
    turns(wheel, n)
    found = everything(wheel)
    wheel.close()
    return found


def split(config, folder, silent, first, second):
    """Run, save, forget everything, restore in a new wheel, and run on."""
    wheel = Wheel(config, folder, silent)
    wheel.open_logs()
    turns(wheel, first)
    wheel.save()
    turns(wheel, 3)  # what happened after the save is lost with the process
    wheel.close()
    again = Wheel(config, folder, silent)
    notes = again.restore()
    turns(again, second)
    found = everything(again)
    again.close()
    assert notes.pop(0).startswith("continuing at episode")
    return found, notes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "first", [pytest.param(2, id="before the first update"), pytest.param(47, id="inside an episode"), 96, 130]
)
def test_a_resumed_run_equals_an_uninterrupted_one(kind, first, make_run, silent):
    total = 160
    config, folder = make_run("whole", KINDS[kind])
    expected = whole(config, folder, silent, total)
    config, folder = make_run("split", KINDS[kind])
    found, notes = split(config, folder, silent, first, total - first)
    assert differences(expected, found) == []
    assert notes == []


def test_a_run_that_is_cut_is_solved_at_the_same_episode(scored, make_run, silent):
    """Cut in every turn around the one that solves it."""
    config, folder = make_run("whole", KINDS["toy, a score"])
    expected = whole(config, folder, silent, 160)
    (solved,) = [row for row in read(folder.metrics) if row["kind"] == "solved"]
    turn = solved["step"] // 3
    for first in range(turn - 2, turn + 2):
        config, folder = make_run(f"split{first}", KINDS["toy, a score"])
        found, _ = split(config, folder, silent, first, 160 - first)
        assert differences(expected, found) == [], f"cut after turn {first}"


@pytest.mark.parametrize("kind", ["toy", "maddpg"])
def test_it_may_be_cut_at_the_rings_wrap_and_right_after_an_evaluation(kind, make_run, silent):
    """Finds the turns at which these happen, and cuts there and one turn to either side."""
    total = 160
    config, folder = make_run("whole", KINDS[kind])
    wheel = Wheel(config, folder, silent)
    wheel.open_logs()
    wraps, judged = [], []
    for turn in range(1, total + 1):
        seen = len([row for row in silent.rows if row["kind"] == "eval"])
        wheel.turn()
        if wheel.memory.total % config.algo.capacity == 0:
            wraps.append(turn)
        if len([row for row in silent.rows if row["kind"] == "eval"]) > seen:
            judged.append(turn)
    expected = everything(wheel)
    wheel.close()
    assert wraps and judged
    for first in (wraps[0] - 1, wraps[0], wraps[0] + 1, judged[0]):
        config, folder = make_run(f"split{first}", KINDS[kind])
        found, _ = split(config, folder, silent, first, total - first)
        assert differences(expected, found) == [], f"cut after turn {first}"


@pytest.mark.parametrize(
    "kind",
    [
        "toy, three copies",
        "toy, on-policy",
        "toy, a random agent",
        "toy, a score",
        "maddpg, drifting noise",
        "coma, on-policy, one actor, last actions and epsilon",
    ],
)
def test_leaving_out_any_saved_part_is_noticed(kind, make_run, silent, monkeypatch):
    """The power of the test above: each part in turn is replaced by what a new run begins with."""
    first = 47
    total = 50 if "on-policy" in kind else 90  # before the rollout in hand is learnt from and forgotten
    monkeypatch.setattr(Scores, "of", lambda self, who: 0.0)  # the first evaluation is the best for ever
    config, folder = make_run("whole", KINDS[kind])
    expected = whole(config, folder, silent, total)
    config, folder = make_run("fresh", KINDS[kind])
    fresh = Wheel(config, folder, silent)
    begin = dict(leaves(fresh.state()))
    fresh.close()
    read_state = Checkpoints.read_state
    config, folder = make_run("probe", KINDS[kind])
    wheel = Wheel(config, folder, silent)
    wheel.open_logs()
    turns(wheel, first)
    parts = [path for path, value in leaves(wheel.state()) if not _same(value, begin.get(path))]
    wheel.close()
    parts = [part for part in parts if part != ("counters", "judged")]  # matters only at the very end: the next test
    assert len(parts) >= 15
    unnoticed = []
    for number, part in enumerate(parts):

        def forgetful(self, manifest, part=part):
            state = read_state(self, manifest)
            inner = state
            for name in part[:-1]:
                inner = inner[name]
            inner[part[-1]] = begin.get(part, np.zeros_like(inner[part[-1]]))
            return state

        monkeypatch.setattr(Checkpoints, "read_state", forgetful)
        config, folder = make_run(f"split{number}", KINDS[kind])
        try:
            found, notes = split(config, folder, silent, first, total - first)
        except Exception:  # noqa: BLE001 (refusing to go on is noticing)
            continue
        finally:
            monkeypatch.setattr(Checkpoints, "read_state", read_state)
        if expected.keys() == found.keys() and not differences(expected, found) and not notes:
            unnoticed.append("/".join(part))
    assert unnoticed == []


def _same(value, other):
    return (
        other is not None
        and np.shape(value) == np.shape(other)
        and bool(np.all(np.asarray(value) == np.asarray(other)))
    )


def test_a_run_cut_between_its_last_save_and_its_last_row_ends_the_same(make_run, silent):
    """Once with an evaluation in the last turn and once without."""
    for episodes in (20, 23):
        values = {"run": {"num_episodes": episodes, "eval_every": 20, "log_every": 7}}
        files = []
        for cut in (False, True):
            config, folder = make_run(f"{episodes}{cut}", values)
            wheel = Wheel(config, folder, silent)
            wheel.open_logs()
            while not wheel.done:
                wheel.turn()
            if cut:
                wheel.save()
                wheel.close()
                wheel = Wheel(config, folder, silent)
                wheel.restore()
            wheel.finish()
            wheel.close()
            files.append(folder.metrics.read_bytes())
        assert files[0] == files[1]


@pytest.mark.parametrize("kind", ["toy", "maddpg"])
def test_replay_rows_that_are_lost_are_noticed(kind, make_run, silent, monkeypatch):
    config, folder = make_run("whole", KINDS[kind])
    expected = whole(config, folder, silent, 120)
    monkeypatch.setattr(
        "marlctl.memory.Ring.fill", lambda self, start, rows: setattr(self, "total", start + len(rows["obs"]))
    )
    config, folder = make_run("split", KINDS[kind])
    found, _ = split(config, folder, silent, 80, 40)
    assert differences(expected, found)
