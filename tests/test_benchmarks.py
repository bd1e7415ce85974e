import json
import os
import platform
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import cli, machine, venvs
from benchmarks.child import Enough, Stopwatch
from benchmarks.contestants import CONTESTANTS, Contestant, choose
from benchmarks.flops import least_flops, update_flops
from benchmarks.records import BenchmarkError, Measurement, Results, append, read, write_json
from benchmarks.schedule import Job, Runner, jobs
from benchmarks.summary import best, ratio, rows

TIMES = " \N{MULTIPLICATION SIGN}"
HERE = {"cpu": "a processor", "cores": 2, "memory_gb": 8, "python": "3.11.7", "versions": {"torch": "2.13.0"}}


def measured(contestant, value, *, part="train", round=1, threads=None, unit="steps/s", **more):
    return Measurement(part, contestant, round, threads, value, unit, **more)


def some_results():
    """A little of every part, as it could be measured."""

    def growth(n, ms, rate):
        facts = {"mflop": 1.0, "gflop_a_second": rate, "least_gflop_a_second": rate / 2}
        setting = {"what": "agents", "agents": n}
        return measured("agents", ms, part="growth", unit="ms", setting=setting, facts=facts)

    def envs(name, rate, **facts):
        return measured(name, rate, part="envs", setting={"scenario": "simple_tag", "copies": 32}, facts=facts)

    return Results(
        HERE,
        (
            *(measured("marlctl simple_tag", 20_000.0 + r, round=r, facts={"num_envs": 32}) for r in (1, 2, 3)),
            *(measured("plain loop", 2_000.0, round=r, threads=1) for r in (1, 2, 3)),
            *(measured("plain loop", 1_000.0, round=r, threads=2) for r in (1, 2, 3)),
            measured("BenchMARL VMAS", 10_000.0, threads=1, versions={"torch": "2.13.0+cpu", "vmas": "1.5.2"}),
            Measurement("train", "AgileRL", 1, 1, error="cannot install agilerl: ERROR: no such | version"),
            envs("marlctl", 500_000.0),
            envs("JaxMARL", 400_000.0, compile_seconds=2.5),
            growth(6, 10.0, 100.0),
            growth(48, 900.0, 80.0),
            measured("copies", 9_000.0, part="growth", setting={"what": "copies", "copies": 4}),
            measured("ring", 604.0, part="memory", unit="MB", setting={"what": "ring"}),
            measured("marlctl simple_tag", 110.0, part="whole", unit="s", facts={"steps": 1_500_000}),
        ),
    )


@pytest.fixture
def command():
    def run(*arguments):
        return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])

    return run


@pytest.fixture
def quiet_runner(monkeypatch):
    """Nobody is run; every job gives a number, and is remembered."""
    done = []

    def run(self, job):
        done.append(job.key)
        return [measured(job.contestant.name, 1.0, part=job.contestant.part, round=job.round, threads=job.threads)]

    monkeypatch.setattr(Runner, "run", run)
    return done


# -- the work an update is ----------------------------------------------------------------------


def test_the_classic_update_of_simple_tag_is_548_mflop():
    assert round(update_flops([16, 16, 16, 14], [5] * 4) / 1e6) == 548


def test_a_tiny_update_counted_by_hand():
    # One agent, everything of size 1 but the critic's two inputs: forward, an actor is 6 and a critic 8.
    targets, critic_step, actor_step = 6 + 8, 8 + 8 + 4, 6 + 8 + (4 + 2) + 6 + 4
    assert update_flops([1], [1], batch=1, hidden=(1, 1)) == targets + critic_step + actor_step
    assert least_flops([1], [1], batch=1, hidden=(1, 1)) == targets + critic_step + actor_step - 2


def test_work_grows_with_the_batch():
    assert update_flops([3, 4], [2, 2], batch=20) == 2 * update_flops([3, 4], [2, 2], batch=10)


# -- contestants and their turns ----------------------------------------------------------------


def test_every_contestant_is_a_module_and_every_peer_has_requirements():
    for contestant in CONTESTANTS:
        assert find_spec(f"benchmarks.{contestant.module}"), contestant.name
        assert contestant.venv is None or venvs.REQUIREMENTS[contestant.venv]


def test_contestants_take_turns():
    chosen = choose(["train"], ["plain"])
    order = [(job.round, job.contestant.name, job.threads) for job in jobs(chosen, 2, set())]
    one = [("marlctl simple_tag", None), ("plain loop", 1), ("plain loop", 2), ("marlctl simple_spread", None)]
    assert order == [(number, *who) for number in (1, 2) for who in one]


def test_ours_can_be_measured_alone():
    assert {c.peer for c in choose(None, ["none"])} == {None}


def test_a_contestant_in_a_process_of_its_own_hands_over_its_numbers(tmp_path):
    small = Contestant("envs", "marlctl", "ours.envs", {"seconds": 0.001, "copies": [1, 2]})
    found = Runner(tmp_path).run(Job(small, None, 1))
    assert [m.error for m in found] == [None] * 4
    assert [m.setting["copies"] for m in found] == [1, 2, 1, 2]
    assert all(m.value > 0 and m.unit == "steps/s" and m.versions["torch"] for m in found)


def test_the_ring_is_as_large_as_its_arrays_and_a_later_save_writes_only_what_is_new(tmp_path):
    ring = Contestant("memory", "ring", "ours.memory", {"rows": 40_000})
    full, first, later = Runner(tmp_path).run(Job(ring, None, 1))
    assert full.value == pytest.approx(full.facts["array_mb"], rel=0.2)
    assert [m.setting["what"] for m in (full, first, later)] == ["ring", "first save", "next save"]
    assert 0 < later.facts["written_mb"] < first.facts["written_mb"] / 2


@pytest.mark.slow
def test_a_run_stopped_by_the_clock_tells_its_steps_and_settings(tmp_path):
    more = ["--threads", "1", "--num-envs", "8", "--set", "algo.warmup=1024", "--set", "algo.capacity=5000"]
    train = Contestant("train", "ours", "ours.train", {"scenario": "simple_spread", "seconds": 0.5, "more": more})
    (row,) = Runner(tmp_path).run(Job(train, None, 1))
    assert row.error is None
    assert row.value > 0 and row.facts["steps"] > 0
    assert (row.facts["num_envs"], row.facts["threads"]) == (8, 1)


@pytest.mark.slow
def test_the_rate_of_an_update_is_its_work_by_its_time(tmp_path):
    growth = Contestant("growth", "agents", "ours.growth", {"seconds": 0.1, "agents": [2], "thread_counts": [1]})
    update, threads = Runner(tmp_path).run(Job(growth, 1, 1))
    assert update.facts["gflop_a_second"] == pytest.approx(update.facts["mflop"] / update.value)
    assert update.facts["mflop"] == update_flops([12, 12], [5, 5]) / 1e6
    assert threads.setting == {"what": "threads", "threads": 1}


def test_a_contestant_that_fails_is_a_row_that_says_so_without_naming_folders(tmp_path):
    (row,) = Runner(tmp_path).run(Job(Contestant("train", "broken", "peers.no_such_peer"), 2, 1))
    assert row.value is None
    assert "no_such_peer" in row.error
    assert str(Path.cwd()) not in row.error and str(Path.home()) not in row.error


def test_a_peer_that_cannot_be_installed_is_a_row_that_says_so(tmp_path, monkeypatch):
    def refuse(peer, cache):
        raise BenchmarkError(f"cannot install {peer} to {cache}: no such version")

    monkeypatch.setattr(venvs, "prepare", refuse)
    (row,) = Runner(tmp_path).run(Job(Contestant("train", "XuanCe", "peers.xuance", venv="xuance"), 1, 1))
    assert row.error == "cannot install xuance to …: no such version"


def test_what_comes_before_a_loop_is_warm_does_not_count():
    watch = Stopwatch(warm=100, seconds=0.0)
    watch.count(100)
    assert watch.facts["steps"] == 0
    with pytest.raises(Enough):
        watch.count(7)
    assert watch.facts["steps"] == 7
    assert watch.rate > 0


def test_a_loop_that_never_gets_warm_has_no_rate():
    with pytest.raises(RuntimeError, match="warm"):
        _ = Stopwatch(warm=100, seconds=1.0).rate


# -- keeping ------------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_and_measures_nothing_twice(command, quiet_runner, tmp_path, monkeypatch):
    whole, run = Runner.run, ("run", "--only", "train", "--peers", "plain", "--rounds", 2, "--cache", tmp_path)

    def interrupted(self, job):
        if len(quiet_runner) == 3:
            raise KeyboardInterrupt
        return whole(self, job)

    monkeypatch.setattr(Runner, "run", interrupted)
    assert command(*run).exit_code == 130
    first = list(quiet_runner)
    with (tmp_path / cli.FILE).open("a") as file:
        file.write('{"half a line')
    monkeypatch.setattr(Runner, "run", whole)
    assert command(*run).exit_code == 0
    assert len(first) == 3
    assert len(quiet_runner) == len(set(quiet_runner)) == 8
    assert [m.job for m in read(tmp_path / cli.FILE).measurements] == quiet_runner


def test_more_rounds_add_to_what_is_there_and_fresh_puts_it_aside(command, quiet_runner, tmp_path):
    run = ("run", "--only", "memory", "--cache", tmp_path)
    command(*run, "--rounds", 1)
    command(*run, "--rounds", 3)
    assert [key[-1] for key in quiet_runner] == [1, 2, 3]
    assert command(*run, "--rounds", 1, "--fresh").exit_code == 0
    assert len(read(tmp_path / cli.FILE).measurements) == 1
    assert len(read(tmp_path / "measurements-1.jsonl").measurements) == 3


def test_what_failed_is_tried_again_and_counts_only_until_it_works(tmp_path):
    path = tmp_path / "m.jsonl"
    append(path, HERE, [Measurement("train", "XuanCe", 1, 1, error="no")])
    assert read(path).done == set()
    assert [m.error for m in read(path).measurements] == ["no"]
    append(path, HERE, [measured("XuanCe", 5.0, threads=1)])
    assert [m.value for m in read(path).measurements] == [5.0]


def test_results_of_two_machines_are_not_mixed(command, tmp_path):
    append(tmp_path / cli.FILE, HERE, [measured("plain loop", 1.0)])
    said = command("run", "--only", "memory", "--cache", tmp_path)
    assert said.exit_code == 2
    assert "another machine" in said.stderr
    append(tmp_path / cli.FILE, {**HERE, "cpu": "another"}, [measured("plain loop", 1.0, round=2)])
    with pytest.raises(BenchmarkError, match="two machines"):
        read(tmp_path / cli.FILE)


def test_json_gives_back_what_was_measured(tmp_path):
    write_json(tmp_path / "results.json", some_results())
    assert read(tmp_path / "results.json") == some_results()


def test_the_machine_is_described_without_saying_whose_it_is():
    told = json.dumps(machine.describe())
    assert {"cpu", "cores", "versions"} <= set(json.loads(told))
    assert f'"{platform.node()}"' not in told
    assert os.sep not in told.replace("model", "")


# -- summing up ---------------------------------------------------------------------------------


def test_a_peer_counts_with_the_threads_that_suit_it_best():
    peer = best(rows(some_results(), "train"), "plain loop")
    assert (peer.threads, peer.spread.middle) == (1, 2_000.0)


def test_the_spread_of_a_ratio_is_slowest_by_fastest_and_fastest_by_slowest():
    results = Results(
        HERE,
        tuple(
            measured(name, value, round=number)
            for name, values in {"ours": (90.0, 100.0, 120.0), "theirs": (8.0, 10.0, 12.0)}.items()
            for number, value in enumerate(values)
        ),
    )
    found = rows(results, "train")
    got = ratio(best(found, "ours"), best(found, "theirs"))
    assert (got.middle, got.low, got.high, got.rounds) == (10.0, 7.5, 15.0, 3)


def test_the_report_is_written_from_the_measurements(command, tmp_path):
    write_json(tmp_path / "some.json", some_results())
    (tmp_path / "out").mkdir()
    said = command("report", tmp_path / "some.json", "--to", tmp_path / "out")
    assert said.exit_code == 0, said.stderr
    text = (tmp_path / "out" / "RESULTS.md").read_text()
    lines = text.splitlines()
    (plain,) = [line for line in lines if line.startswith("| a plain per-agent torch loop")]
    assert plain.endswith(f"| 7{TIMES} | 12{TIMES} | 10.0{TIMES} | 10.0 to 10.0 | reached |")
    (vmas,) = [line for line in lines if line.startswith("| BenchMARL on VMAS")]
    assert vmas.endswith(f"| 2.0{TIMES} | 2.0 to 2.0 | NOT reached |")
    (agile,) = [line for line in lines if line.startswith("| AgileRL, one")]
    assert agile.endswith("| not measured |")
    assert "failed: cannot install agilerl: ERROR: no such \\| version" in text
    assert "The rate with 48 agents is 0.80" in text
    assert "ends after 110 s" in text
    assert "2.5 to 2.5 s" in text
    assert "a processor; 2 cores" in text
    assert "vmas 1.5.2" in text
    assert (tmp_path / "out" / "results.png").read_bytes().startswith(b"\x89PNG")
    assert read(tmp_path / "out" / "results.json") == some_results()


def test_a_report_of_little_has_the_tables_of_what_there_is(command, tmp_path):
    append(tmp_path / "m.jsonl", HERE, [measured("ring", 604.0, part="memory", setting={"what": "ring"})])
    assert command("report", tmp_path / "m.jsonl", "--to", tmp_path).exit_code == 0
    titles = [line for line in (tmp_path / "RESULTS.md").read_text().splitlines() if line.startswith("## ")]
    assert [title for title in titles if "Memory" in title] and not [title for title in titles if "Asked" in title]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "--only", "everything"), "there is train, coma, envs"),
        (("run", "--peers", "rllib"), "there is plain, agilerl"),
        (("run", "--rounds", "0"), "--rounds"),
        (("run", "--scale", "0"), "--scale"),
        (("report", "no-such-file.jsonl"), "is not there"),
        (("report", __file__), "is not what the benchmarks write"),
        (("nonsense",), "nonsense"),
    ],
)
def test_bad_arguments_are_told_and_end_with_2(command, quiet_runner, arguments, told):
    said = command(*arguments)
    assert said.exit_code == 2
    assert told in said.stderr
    assert quiet_runner == []


def test_a_report_needs_a_folder_to_go_to(command, tmp_path):
    write_json(tmp_path / "some.json", some_results())
    said = command("report", tmp_path / "some.json", "--to", tmp_path / "nowhere")
    assert said.exit_code == 2
    assert "no folder" in said.stderr
