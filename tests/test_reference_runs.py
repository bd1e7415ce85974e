"""The reference runs: statistics that can be checked by hand, and the one command at a tiny size."""

import json
import subprocess
import sys
import threading
import time
from math import gamma, pi, sqrt
from pathlib import Path

import numpy as np
import pytest
import torch

HOME = Path(__file__).parents[1] / "examples" / "reference_runs"
sys.path.insert(0, str(HOME))  # where the command's own modules are

from reference import page, plan, published, work, yardstick  # noqa: E402
from reference.arrays import read_arrays  # noqa: E402
from reference.bounds import listener  # noqa: E402
from reference.games import OLD_REWARDS, Games, PlainActors, Side  # noqa: E402
from reference.intervals import Estimate, crossed, difference, estimate, t_quantile, verdict  # noqa: E402
from reference.results import spec_of, thin  # noqa: E402

# -- statistics ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("df", "known"), [(1, 12.7062), (2, 4.30265), (4, 2.77645), (10, 2.22814), (100, 1.98397)])
def test_students_quantiles_are_those_of_the_tables(df, known):
    assert t_quantile(df) == pytest.approx(known, rel=1e-5)


def test_a_quantile_between_whole_degrees_of_freedom_holds_95_percent():
    df = 6.3
    x = np.linspace(-t_quantile(df), t_quantile(df), 200_001)
    density = gamma((df + 1) / 2) / (sqrt(df * pi) * gamma(df / 2)) * (1 + x**2 / df) ** (-(df + 1) / 2)
    assert np.mean(density) * (x[-1] - x[0]) == pytest.approx(0.95, abs=1e-5)


def test_the_interval_of_five_seeds():
    found = estimate([1, 2, 3, 4, 5])
    assert (found.mean, found.n) == (3, 5)
    assert found.half == pytest.approx(2.776445 * sqrt(2.5 / 5), rel=1e-5)


def test_one_seed_has_no_interval():
    assert estimate([7.0]) == Estimate(7.0, None, 1)
    assert verdict(difference([7.0], [1.0, 2.0])) == "too few seeds"


def test_with_equal_spread_welch_has_the_degrees_of_freedom_of_both():
    found = difference([1, 2, 3], [2, 3, 4])
    assert found.mean == -1
    assert found.half == pytest.approx(2.776445 * sqrt(2 / 3), rel=1e-5)
    assert verdict(found) == "no difference shown"


def test_where_one_side_does_not_vary_welch_counts_the_other_alone():
    assert difference([0, 2], [0, 0, 0, 0]).half == pytest.approx(12.7062, rel=1e-5)


@pytest.mark.parametrize(("ours", "says"), [([10, 11, 12], "better"), ([-10, -11, -12], "worse")])
def test_a_difference_that_leaves_out_zero_is_one(ours, says):
    assert verdict(difference(ours, [0.0, 0.5, 1.0])) == says


def test_games_between_seeds_vary_by_both_sides():
    by_rows = crossed([[0, 0, 0], [1, 1, 1], [2, 2, 2]])
    assert by_rows.half == pytest.approx(estimate([0, 1, 2]).half)
    assert crossed([[0, 1, 2]] * 3) == by_rows
    assert crossed([[0, 1, 2], [1, 2, 3], [2, 3, 4]]).half > by_rows.half * 0.8


# -- what is run --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted((HOME / "runs").glob("*.toml")), ids=lambda path: path.stem)
def test_every_run_file_is_a_run_and_is_named_after_it(path):
    from marlctl.config import read_file, resolve
    from marlctl.opening import open_env

    config = resolve(read_file(path))
    open_env(config, 1)[0].close()
    assert f"{path.stem}-".startswith(f"{config.run.scenario}-{config.run.algo}-")
    assert config.run.threads == 1
    if config.run.scenario in plan.SCENARIOS:
        assert config.run.num_envs == (1 if path.stem.endswith("-one") else 32)


def test_every_run_file_has_its_place_in_the_plan():
    assert sorted(name for group in plan.names() for name in group) == sorted(
        path.stem for path in (HOME / "runs").glob("*.toml")
    )


def test_three_seeds_of_everything_come_before_the_others():
    jobs = [job for job in plan.jobs() if job.name in plan.names()[0]]
    assert [job.seed < 3 for job in jobs] == [True] * 60 + [False] * 40
    assert {job.scenario for job in jobs[:9]} == {"simple_spread"}


def test_a_part_can_be_asked_for():
    assert {job.name for job in plan.jobs("simple_tag")} == {
        f"simple_tag-{end}" for end in ("maddpg", "ddpg", "maddpg-one")
    }
    assert [job.exp_name for job in plan.jobs("simple-ddpg", 2, 30)] == ["simple-ddpg-s0", "simple-ddpg-s1"]


# -- counting as others counted -----------------------------------------------------------------


def test_the_old_reward_of_simple_reference_is_found_from_the_mixed_one():
    distances = np.array([[0.3, 2.0]])
    own = -distances
    mixed = 0.5 * own + 0.5 * own.mean(1, keepdims=True)
    assert OLD_REWARDS["simple_reference"](mixed) == pytest.approx(-2 * (0.3**2 + 2.0**2))


def test_the_old_reward_of_simple_adversary_squares_its_distance():
    assert OLD_REWARDS["simple_adversary"](np.array([[-3.0, 1.0, 1.0]])) == pytest.approx(-7)


def test_the_old_return_of_simple_spread_counts_everything_three_times():
    agents = [f"agent_{i}" for i in range(3)]
    summary = {
        "agents": {agent: {} for agent in agents},
        "diagnostics": {"reward": {agent: {"per_episode": -20.0} for agent in agents}},
    }
    assert published.MEASURES["spread as printed"](summary) == -3 * (60 + 75)


def test_a_thinned_curve_keeps_the_mean():
    job = plan.Job("simple-ddpg", "simple", "ddpg", 100, 0)
    rows = [{"episode": e, "return": {"total": float(e), "teams": {"agent": 1.0}}} for e in range(1, 101)]
    curve = thin(job, rows)
    assert curve.episodes == list(range(4, 101, 4))
    assert np.mean(curve.returns["total"]) == pytest.approx(50.5)


def test_a_listener_that_is_told_where_to_go_earns_much_more():
    assert listener(told=True, episodes=200) > 0.7 * listener(told=False, episodes=200)


# -- the plain loop -----------------------------------------------------------------------------


@pytest.fixture
def plain_push(tmp_path) -> tuple[Path, dict[str, torch.nn.Module]]:
    """Actors as the plain loop keeps them."""
    spec = spec_of("simple_push-ddpg")
    nets = {
        a.name: torch.nn.Sequential(
            torch.nn.Linear(a.obs_size, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, a.action.size),
        )
        for a in spec.agents
    }
    arrays = {f"{a}.{n}": p.detach().numpy() for a, net in nets.items() for n, p in net.named_parameters()}
    path = tmp_path / "simple_push-ddpg-s0.npz"
    np.savez(path, **arrays)
    return path, nets


def test_the_plain_loops_actors_play_as_their_networks(plain_push, rng):
    path, nets = plain_push
    spec = spec_of("simple_push-ddpg")
    obs = {a.name: rng.normal(size=(50, a.obs_size)).astype(np.float32) for a in spec.agents}
    action = PlainActors(spec, path).act(obs, {}, rng=rng, mode="greedy").action
    for agent, net in nets.items():
        best = net(torch.from_numpy(obs[agent])).argmax(1).numpy()
        assert (action[agent].argmax(1) == best).all()
        assert (action[agent].sum(1) == 1).all()


@pytest.mark.parametrize(
    "values", [np.array([{}], object), np.zeros(3), np.asfortranarray(np.zeros((2, 3), np.float32))]
)
def test_only_plain_arrays_are_read(tmp_path, values):
    from marlctl.errors import FileError

    np.savez(tmp_path / "odd.npz", a=values)
    with pytest.raises(FileError, match="plain arrays"):
        read_arrays(tmp_path / "odd.npz")


def test_a_game_is_played_once(plain_push, tmp_path, monkeypatch):
    side = Side("plain", plain_push[0], "simple_push-ddpg")
    games = Games(tmp_path / "games.json", 5)
    found = games.meet(side, side, "sampled")
    games.save()
    assert found.keys() == {"adversary", "agent"}
    monkeypatch.setattr(Games, "_play", None)
    assert Games(tmp_path / "games.json", 5).meet(side, side, "sampled") == found


def line(scenario="simple_push", algo="ddpg", seed=0, episodes=30):
    score = {"mean": [-1.0, -2.0], "total": -3.0}
    run = {"scenario": scenario, "algo": algo, "seed": seed, "episodes": episodes}
    return {**run, "seconds": 1, "curve_total": [], "greedy": score, "sampled": score}


def test_results_of_the_plain_loop_are_taken_over_sorted_and_once(tmp_path):
    source, into, jsonl = tmp_path / "source", tmp_path / "plain", tmp_path / "plain_loop.jsonl"
    source.mkdir()
    jsonl.write_text(json.dumps(line(seed=1)) + "\n")
    for seed in (1, 0):
        (source / f"simple_push-ddpg-s{seed}.json").write_text(json.dumps(line(seed=seed)))
    (source / "simple_push-ddpg-s2.json").write_text('{"scenario": ')  # still being written
    yardstick.adopt(source, into)
    assert [each["seed"] for each in yardstick.merge(jsonl, into)] == [0, 1]
    assert len(jsonl.read_text().splitlines()) == 2


def test_with_one_agent_ddpg_is_maddpg():
    lines = [line("simple", "maddpg", 3)]
    assert yardstick.chosen(lines, "simple", "ddpg", 30) == lines
    assert yardstick.chosen(lines, "simple", "ddpg", 25_000) == []


# -- the command --------------------------------------------------------------------------------


def test_the_page_is_written_anew_between_its_marks():
    once = page.written(f"# Title\n\n{page.BEGIN}\nold\n{page.END}\n\nlast\n", "new")
    assert once.startswith("# Title\n") and once.endswith("last\n")
    assert "old" not in once
    assert page.written(once, "new") == once


def test_stopping_ends_what_runs_and_starts_nothing_more():
    processes = work.Processes()
    threading.Timer(0.3, processes.stop).start()
    start = time.monotonic()
    with pytest.raises(work.Halted):
        processes.run([sys.executable, "-c", "import time; time.sleep(60)"])
    assert time.monotonic() - start < 30
    with pytest.raises(work.Halted):
        processes.marlctl("--version")


def test_one_failure_does_not_stop_the_others():
    done = []

    def fail():
        raise work.Failed("it did")

    said = []
    assert work.do_all([("bad", fail), ("good", lambda: done.append(1))], 1, said.append) == ["bad"]
    assert done == [1] and "it did" in said[0]


@pytest.mark.slow
def test_the_command_goes_on_with_a_half_trained_run_and_does_nothing_twice(tmp_path, plain_push):
    out, actors = tmp_path / "out", plain_push[0]
    actors.with_suffix(".json").write_text(json.dumps(line()))
    (begun,) = plan.jobs("simple_push-ddpg", 1, 20)
    worker = work.Worker(out, 10, say=lambda text: None)
    worker._train(begun)  # and there it was killed
    created = begun.folder(out).created

    def command(*more):
        tiny = ["--episodes", "30", "--seeds", "1", "--eval-episodes", "10", "--out", out, "--yardstick", tmp_path]
        program = [sys.executable, HOME / "run.py", "--only", "simple_push-ddpg", *tiny, *more]
        done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "going on with simple_push-ddpg-s0" in command()
    record = worker.record_file(begun)
    assert json.loads(record.read_text())["trained"] == 30
    assert begun.folder(out).created == created  # the same run
    assert not (begun.folder(out).path / "replay").exists()

    results = out / "results"
    tables = json.loads((results / "results" / "tables.json").read_text())
    assert {row["who"] for row in tables["own_games"]} == {"total", "adversary", "agent"}
    assert tables["own_games"][0]["theirs"]["mean"] == -3.0
    assert {(row["first"], row["others"]) for row in tables["meetings"]} == {
        (one, other) for one in ("ours ddpg", "plain loop ddpg") for other in ("ours ddpg", "plain loop ddpg")
    }
    assert "simple_push" in (results / "README.md").read_text()
    assert (results / "figures" / "simple_push-agent.png").is_file()
    curve = json.loads((results / "results" / "curves.jsonl").read_text())
    assert curve["episodes"][-1] == 32  # all copies end their episode

    before = record.stat().st_mtime_ns, (results / "results" / "tables.json").read_bytes()
    assert "training" not in command()
    assert (record.stat().st_mtime_ns, (results / "results" / "tables.json").read_bytes()) == before
