"""A run in motion: what the seed decides, what leaves no trace, when it stops, and what it leaves behind."""

import itertools
import json
import math
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl import config as configs
from marlctl import opening, plugins
from marlctl.config import merge, resolve
from marlctl.errors import ConfigError, DivergedError, FileError
from marlctl.evaluation import evaluate
from marlctl.finite import check_gradients, check_metrics
from marlctl.metrics import read
from marlctl.opening import check_room, free_memory, memory_kind, rehearse
from marlctl.policies import load_saved
from marlctl.records import Gradient, Replay, Rollout
from marlctl.rundir import create
from marlctl.seeding import key
from marlctl.storage.checkpoint import Checkpoints
from marlctl.testing import toy as toys
from marlctl.testing.toy import Toy, ToyLearner
from marlctl.training import train

SMALL = {
    "run": {"num_episodes": 40, "eval_every": 10, "eval_episodes": 4, "save_rate": 10, "log_every": 5},
    "algo": {"warmup": 40, "capacity": 100, "update_every": 7, "batch_size": 8},
}


@pytest.fixture
def trained(make_run, silent):
    """Train with these values changed; the run folder."""

    def run(name, values=None):
        config, folder = make_run(name, merge(SMALL, values or {}))
        train(config, folder, silent)
        return folder

    return run


def rows(folder, kind):
    return [row for row in read(folder.metrics) if row["kind"] == kind]


def last_state(folder):
    """Every number of the last checkpoint, replay and all, by the digests of its files."""
    manifest, _ = Checkpoints(folder.path).newest()
    return manifest.step, manifest.state.sha256


# -- the seed decides everything --------------------------------------------------------------------

VARIANTS = {
    "replay": {},
    "three copies": {"run": {"num_envs": 3}},
    "on-policy": {"algo": {"on_policy": True}},
    "a random agent": {"policy": {"agent_1": "random"}},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(trained, variant):
    values = VARIANTS[variant]
    one, again = (trained(name, values) for name in ("one", "again"))
    assert one.metrics.read_bytes() == again.metrics.read_bytes()
    assert last_state(one) == last_state(again)
    other = trained("other", merge(values, {"run": {"seed": 1}}))
    assert other.metrics.read_bytes() != one.metrics.read_bytes()


def test_pythons_hash_seed_and_the_folder_do_not_matter(trained, tmp_path):
    expected = trained("here", {"policy": {"agent_1": "random"}}).metrics.read_bytes()
    code = f"""if True:
        import marlctl, sys
        run = marlctl.train("toy", "toy_grid", name="x", save_dir=sys.argv[1], policy={{"agent_1": "random"}},
            options={{f"algo.{{k}}": v for k, v in {SMALL["algo"]!r}.items()}}, **{SMALL["run"]!r})
        sys.stdout.buffer.write(run.metrics.read_bytes())
    """
    for hash_seed in ("0", "77"):
        place = tmp_path / f"there {hash_seed}"
        found = subprocess.run(
            [sys.executable, "-c", code, str(place)],
            env={"PYTHONHASHSEED": hash_seed, "LANG": "C"},
            capture_output=True,
            check=True,
        )
        assert found.stdout == expected


def test_the_worlds_random_numbers_are_neither_used_nor_changed(trained):
    np.random.seed(1)  # noqa: NPY002 (it is the world's that is watched)
    one = trained("one")
    after = np.random.random()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert np.random.random() == after  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert trained("two").metrics.read_bytes() == one.metrics.read_bytes()


def test_metrics_hold_no_times_and_timings_lie_beside_them(trained):
    folder = trained("one")
    assert "seconds" not in folder.metrics.read_text()
    timings = list(read(folder.timings))
    assert [(t["step"], t["kind"]) for t in timings] == [(r["step"], r["kind"]) for r in read(folder.metrics)]
    assert all(t["seconds"] >= 0 and t["environment"] > 0 for t in timings)


# -- what leaves no trace ---------------------------------------------------------------------------


@pytest.mark.parametrize("every", [0, 3, 40])
def test_evaluating_more_or_less_often_changes_nothing_but_the_evaluations(trained, every):
    usual, other = trained("usual"), trained("other", {"run": {"eval_every": every}})
    assert rows(usual, "train") == rows(other, "train")
    assert len(rows(usual, "eval")) != len(rows(other, "eval"))
    usual_state, other_state = (Checkpoints(f.path).read_state(Checkpoints(f.path).newest()[0]) for f in (usual, other))
    for name, w in usual_state["learner"]["w"].items():
        assert np.array_equal(w, other_state["learner"]["w"][name])


@pytest.mark.parametrize("values", [{"save_rate": 1}, {"save_rate": 1000}, {"keep": 5}, {"save_replay": False}])
def test_saving_more_or_less_often_changes_nothing(trained, values):
    usual, other = trained("usual"), trained("other", {"run": values})
    assert usual.metrics.read_bytes() == other.metrics.read_bytes()
    assert load_saved(usual, "best").manifest.state.sha256 == load_saved(other, "best").manifest.state.sha256


def test_a_run_continued_for_longer_is_the_long_run(trained, make_run, silent):
    expected = trained("long", {"run": {"num_episodes": 70}})
    short = trained("short")
    config = configs.continued(short.values(), {"run": {"num_episodes": 70}})
    train(config, short, silent, restore=True)
    assert short.metrics.read_bytes() == expected.metrics.read_bytes()
    assert short.config().run.num_episodes == 70


def test_a_checkpoint_of_another_configuration_is_refused(trained, silent):
    folder = trained("one")
    other = resolve(merge(folder.config().values, {"algo": {"lr": 0.7}}))
    with pytest.raises(FileError, match=r"of another run than run\.toml describes"):
        train(other, folder, silent, restore=True)


def test_a_run_that_kept_no_replay_says_that_it_cannot_go_on(trained, silent):
    folder = trained("one", {"run": {"save_replay": False}})
    with pytest.raises(ConfigError, match="--init-from can"):
        train(folder.config(), folder, silent, restore=True)


# -- when it stops, and what it leaves --------------------------------------------------------------


@pytest.mark.parametrize("num_envs", [1, 3])
def test_a_budget_in_episodes_is_spent_and_hardly_more(trained, num_envs):
    last = list(read(trained("one", {"run": {"num_envs": num_envs}}).metrics))[-1]
    assert 40 <= last["episode"] < 40 + num_envs


@pytest.mark.parametrize("num_envs", [1, 3])
def test_a_budget_in_steps_is_spent_and_hardly_more(make_run, silent, num_envs):
    values = {k: v for k, v in SMALL["run"].items() if k != "num_episodes"}
    run = {"algo": "toy", "scenario": "toy_grid", "steps": 200, "num_envs": num_envs, **values}
    config = resolve({"run": run})
    folder = create(make_run("x")[1].path.parents[2], config, "steps")
    train(config, folder, silent)
    last = list(read(folder.metrics))[-1]
    assert 200 <= last["step"] < 200 + num_envs


def test_rows_come_when_they_are_due(trained):
    folder = trained("one")
    assert [row["episode"] for row in rows(folder, "train")] == list(range(5, 41, 5))
    assert [row["episode"] for row in rows(folder, "eval")] == [10, 20, 30, 40]
    for row in rows(folder, "train"):
        assert row["return"]["total"] == pytest.approx(sum(row["return"]["agents"].values()))
        assert row["return"]["total"] == pytest.approx(sum(row["return"]["teams"].values()))
    assert set(rows(folder, "train")[-1]["loss"]) == {f"agent_{i}.loss" for i in range(3)}


def test_the_end_has_a_row_an_evaluation_and_a_checkpoint_even_when_none_is_due(trained, silent):
    folder = trained("one", {"run": {"num_episodes": 7, "log_every": 5, "eval_every": 100, "save_rate": 100}})
    assert [row["episode"] for row in rows(folder, "train")] == [5, 7]
    assert [row["episode"] for row in rows(folder, "eval")] == [7]
    assert silent.saves == [0, rows(folder, "eval")[-1]["step"]]


def test_an_end_that_falls_on_a_due_row_is_told_once(trained):
    folder = trained("one", {"run": {"num_episodes": 10, "log_every": 5, "eval_every": 10, "save_rate": 10}})
    assert [row["episode"] for row in rows(folder, "train")] == [5, 10]
    assert [row["episode"] for row in rows(folder, "eval")] == [10]


def test_a_run_that_never_evaluates_has_no_evaluations(trained):
    assert rows(trained("one", {"run": {"eval_every": 0}}), "eval") == []


def test_the_mean_of_all_rows_is_the_mean_of_all_episodes(trained):
    every, some = (trained(f"{n}", {"run": {"log_every": n}}) for n in (1, 8))
    singles = [row["return"]["total"] for row in rows(every, "train")]
    for i, row in enumerate(rows(some, "train")):
        assert row["return"]["total"] == pytest.approx(np.mean(singles[8 * i : 8 * i + 8]))


def test_only_so_many_checkpoints_are_kept(trained):
    folder = trained("one", {"run": {"keep": 3, "save_rate": 2}})
    assert len(list((folder.path / "checkpoints").glob("step-*.json"))) == 3
    assert len(list((folder.path / "checkpoints").glob("best-*.json"))) <= 2


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_best_policy_is_the_one_with_the_best_evaluation(trained, seed):
    folder = trained("one", {"run": {"seed": seed, "eval_every": 4, "eval_episodes": 3}})
    scores = {row["step"]: row["return"]["total"] for row in rows(folder, "eval")}
    best = load_saved(folder, "best")
    assert pytest.approx(best.manifest.note["score"]) == max(scores.values()) == scores[best.manifest.step]
    again = evaluate(folder, which="best", episodes=3, seed=key(seed, "evaluation") & (2**63 - 1))
    assert again.total == best.manifest.note["score"]


def test_what_is_best_can_be_decided_by_a_team(trained):
    folder = trained("one", {"run": {"eval_every": 4, "num_adversaries": 1, "best_by": "adversary"}})
    scores = [row["return"]["teams"]["adversary"] for row in rows(folder, "eval")]
    assert load_saved(folder, "best").manifest.note["score"] == pytest.approx(max(scores))
    with pytest.raises(ConfigError, match="must be total or a team: agent"):
        trained("two", {"run": {"best_by": "wolves"}})


def test_updates_keep_their_ratio_to_steps_for_any_number_of_copies(trained):
    for n in (1, 4):
        last = list(read(trained(f"{n}", {"run": {"num_envs": n}}).metrics))[-1]
        silent_steps = (math.ceil(40 / n) - 1) * n  # the last count of steps below the warm-up
        assert last["update"] == last["step"] // 7 - silent_steps // 7


def test_a_run_can_be_watched(make_run, silent):
    config, folder = make_run("one", SMALL)
    seen = []
    silent.tick = lambda progress: seen.append(progress())
    train(config, folder, silent)
    assert [p.steps for p in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].episodes == 40
    assert silent.rows == list(read(folder.metrics))
    assert set(seen[-1].time) == {"acting", "environment", "sampling", "learning", "evaluation", "saving"}


@pytest.mark.parametrize("algo", [{"warmup": 1000}, {"on_policy": True, "update_every": 1000}])
def test_a_budget_too_short_to_learn_is_told(algo, make_run, silent):
    config, folder = make_run("one", {"run": {"num_episodes": 2}, "algo": algo})
    train(config, folder, silent)
    assert any("nothing will be learnt" in note for note in silent.notes)


@pytest.mark.parametrize(("threads", "load", "told"), [(2, 99.0, True), (1, 99.0, False), (2, 0.0, False)])
def test_who_trains_with_several_threads_on_a_busy_machine_is_told(threads, load, told, make_run, silent, monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (load, load, load))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    config, folder = make_run("busy", {"run": {"threads": threads, "num_episodes": 1}})
    train(config, folder, silent)
    assert any("--threads 1 may well be faster" in note for note in silent.notes) == told


# -- numbers that are not finite --------------------------------------------------------------------

bad_numbers = st.sampled_from([math.nan, math.inf, -math.inf])


@given(bad_numbers, st.integers(0, 5))
def test_a_gradient_that_is_not_finite_names_its_unit_and_tensor(bad, place):
    vector = np.zeros(6)
    good = Gradient(vector.copy(), {"loss": 1.0}, {"actor": slice(0, 2), "critic": slice(2, 6)})
    check_gradients({"agent_0": good})
    vector[place] = bad
    tensor = "actor" if place < 2 else "critic"
    with pytest.raises(DivergedError, match=rf"the gradient of agent_1 is not finite in {tensor};.*learning rate"):
        check_gradients({"agent_0": good, "agent_1": Gradient(vector, {}, good.parts)})
    with pytest.raises(DivergedError, match="agent_1 is not finite in its vector"):
        check_gradients({"agent_1": Gradient(vector, {})})


@given(bad_numbers)
@settings(max_examples=3)
def test_a_loss_or_a_metric_that_is_not_finite_is_named(bad):
    with pytest.raises(DivergedError, match="critic_loss of agent_1 is"):
        check_gradients({"agent_1": Gradient(np.zeros(2), {"critic_loss": bad})})
    with pytest.raises(DivergedError, match=r"agent_1\.w_norm is"):
        check_metrics({"agent_0.w_norm": 1.0, "agent_1.w_norm": bad}, dict)
    with pytest.raises(DivergedError, match=r"actor hold what is not finite"):
        check_metrics({"x": bad}, lambda: {"actor": np.array([1, bad]), "critic": np.ones(2)})
    with pytest.raises(DivergedError, match=r"\(team\.critic hold what is not finite"):
        check_metrics({"x": bad}, lambda: {"team": {"actor": np.ones(2), "critic": np.array([1, bad])}})


@pytest.mark.parametrize("where", ["gradient", "loss", "parameter"])
def test_a_diverging_run_stops_within_the_update_and_its_checkpoints_stay_good(make_run, silent, monkeypatch, where):
    config, folder = make_run("one", SMALL)
    gradients, apply, updates = ToyLearner.gradients, ToyLearner.apply, itertools.count()

    def bad_gradients(self, units, batch, round):
        found = gradients(self, units, batch, round)
        if round == 15 and where != "parameter":
            vector = found["agent_2"].vector * (np.nan if where == "gradient" else 1)
            found["agent_2"] = Gradient(vector, {"loss": math.inf if where == "loss" else 0.0}, found["agent_2"].parts)
        return found

    def bad_apply(self, found):
        bad = {"agent_2.w_norm": math.nan} if next(updates) == 15 and where == "parameter" else {}
        return {**apply(self, found), **bad}

    monkeypatch.setattr(ToyLearner, "gradients", bad_gradients)
    monkeypatch.setattr(ToyLearner, "apply", bad_apply)
    with pytest.raises(DivergedError, match="agent_2"):
        train(config, folder, silent)
    saved = load_saved(folder)
    assert saved.manifest.note["update"] <= 15
    assert saved.manifest.step > 0
    assert all(np.isfinite(w).all() for w in saved.learner.weights().values())
    json.loads(folder.metrics.read_text().splitlines()[-1])


# -- before the first step --------------------------------------------------------------------------


def test_a_ring_that_the_machine_cannot_hold_is_refused_before_it_is_made():
    config = resolve({"run": {"algo": "toy", "scenario": "toy_grid", "steps": 10**13}, "algo": {"capacity": 10**12}})
    with pytest.raises(ConfigError, match=r"would need [\d.]+ GB and .* choose a smaller capacity"):
        rehearse(config)


def test_room_is_what_can_be_had_and_an_unknown_amount_refuses_nothing(monkeypatch, toy_run):
    spec = load_saved(toy_run).spec
    monkeypatch.setattr(opening, "free_memory", lambda: 1000)
    with pytest.raises(ConfigError, match=r"0\.0 GB are free"):
        check_room(Replay(1000, 1, 1, 1), spec, 1)
    check_room(Replay(1, 1, 1, 1), spec, 1)
    check_room(Rollout(1), spec, 1)
    with pytest.raises(ConfigError, match="10 copies of the environment would need"):
        check_room(Rollout(1000), spec, 10)
    with pytest.raises(ConfigError, match=r"1,000 copies of the environment would need .*choose fewer"):
        check_room(Replay(1, 1, 1, 1), spec, 1000)
    monkeypatch.setattr(opening, "free_memory", lambda: None)
    check_room(Replay(10**12, 1, 1, 1), spec, 1)


def test_what_the_file_cache_holds_counts_as_free():
    free = free_memory()
    with open("/proc/meminfo") as file:  # noqa: PTH123
        told = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file}
    assert free == pytest.approx(told["MemAvailable"], rel=0.2)


def test_a_ring_is_no_larger_than_the_budget_fills():
    run = {"algo": "toy", "scenario": "toy_grid", "num_envs": 3}
    big = {"algo": {"capacity": 10**6}}
    assert memory_kind(resolve({"run": {**run, "steps": 100}, **big})).capacity == 102
    assert memory_kind(resolve({"run": {**run, "num_episodes": 10}, **big})).capacity == 144
    assert memory_kind(resolve({"run": {**run, "steps": 10**9}, **big})).capacity == 10**6
    assert memory_kind(resolve({"run": run, "algo": {"on_policy": True}})) == Rollout(10)


def test_a_ring_cut_to_the_budget_learns_the_same(trained):
    """Nothing that could be drawn is missing from it."""
    exact = trained("exact", {"algo": {"capacity": 40 * 12 + 1}})
    assert trained("huge", {"algo": {"capacity": 10**6}}).metrics.read_bytes() == exact.metrics.read_bytes()


@dataclass(frozen=True)
class Timid(Toy):
    """Plays nothing."""

    def drives(self, spec):
        return "it is too hard"


@dataclass(frozen=True)
class Broken(Toy):
    """Cannot even say what it plays."""

    def drives(self, spec):
        raise RuntimeError("oh dear")


@pytest.fixture
def installed(monkeypatch):
    """Only these algorithms: installed("toy", "timid"); `missing` cannot be imported."""

    def install(*names):
        values = {"toy": "marlctl.testing.toy:Toy", "missing": "no_such_module:Nothing"}
        for name, algo in (("timid", Timid), ("broken", Broken)):
            monkeypatch.setattr(toys, algo.__name__, algo, raising=False)
            values[name] = f"marlctl.testing.toy:{algo.__name__}"
        found = [EntryPoint(name, values[name], plugins.Kind.ALGORITHM.value) for name in names]
        others = plugins._entries
        monkeypatch.setattr(plugins, "_entries", lambda group: found if group == found[0].group else others(group))

    return install


def refusal(algo, scenario="toy_grid"):
    with pytest.raises(ConfigError) as told:
        rehearse(resolve({"run": {"algo": algo, "scenario": scenario}}))
    return str(told.value)


def test_an_algorithm_may_refuse_a_game_and_those_that_would_play_it_are_named(installed):
    installed("timid", "toy")
    assert refusal("timid") == "timid cannot play toy_grid: it is too hard; with default options toy could"


def test_a_broken_algorithm_does_not_spoil_the_refusal(installed):
    installed("broken", "missing", "timid", "toy")
    assert refusal("timid").endswith("it is too hard; with default options toy could")


def test_a_refusal_says_so_when_nobody_could_play(installed):
    installed("timid", "toy")
    assert refusal("timid", "probe/pointing").endswith("it is too hard; no installed algorithm could")
    assert refusal("toy", "probe/pointing").startswith("toy cannot play probe/pointing: agent_0 has Box actions")
