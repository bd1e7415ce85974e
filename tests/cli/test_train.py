import json
import re
import sys
from pathlib import Path

import pytest
import tomllib

from marlctl.metrics import read

TOY = ("train", "--algo", "toy", "--scenario", "toy_grid")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def only_run(below="runs"):
    (path,) = Path(below).glob("*/*/*/run.toml")
    return path.parent


def test_it_ends_with_the_folder_and_the_next_commands(marlctl):
    said = marlctl(*TOY, "--num-episodes", 30)
    folder = only_run()
    assert said.code == 0 and said.out == ""
    for command in ("eval", "render", "plot"):
        assert f"marlctl {command} {folder}" in said.err
    assert {p.name for p in folder.iterdir()} >= {"run.toml", "metrics.jsonl", "timings.jsonl", "checkpoints", "replay"}


def test_the_folder_holds_every_resolved_value_and_where_it_came_from(marlctl):
    marlctl(*TOY, "--num-episodes", 20, "--lr", 0.5, "--set", "env.size=9", "--seed", 3, "--exp-name", "mine")
    values = tomllib.loads(Path("runs/toy_grid/toy/mine/run.toml").read_text())
    assert values["run"]["seed"] == 3 and values["run"]["num_episodes"] == 20
    assert values["algo"] == {
        "lr": 0.5,
        "momentum": 0.9,
        "batch_size": 32,
        "capacity": 500,
        "warmup": 50,
        "update_every": 10,
        "on_policy": False,
    }
    assert values["env"] == {"n_agents": 3, "size": 9, "max_cycles": 12}
    assert values["about"]["plugins"]["algo"].startswith("marlctl ")


def test_a_run_file_repeats_a_run_and_flags_win_over_it(marlctl):
    marlctl(*TOY, "--num-episodes", 20, "--seed", 5, "--exp-name", "one")
    first = Path("runs/toy_grid/toy/one")
    marlctl("train", "--config", first / "run.toml", "--exp-name", "two")
    marlctl("train", "--config", first / "run.toml", "--exp-name", "three", "--seed", 6)
    two, three = (Path(f"runs/toy_grid/toy/{name}/metrics.jsonl").read_bytes() for name in ("two", "three"))
    assert two == (first / "metrics.jsonl").read_bytes() != three


def test_json_is_one_object_and_nothing_else_on_stdout(marlctl):
    said = marlctl(*TOY, "--num-episodes", 20, "--json", "--eval-every", 10)
    result = json.loads(said.out)
    assert Path(result["run"]) == only_run()
    assert isinstance(result["eval"]["return"]["total"], float) and said.err == ""


def test_several_seeds_are_several_runs(marlctl):
    said = marlctl(*TOY, "--num-episodes", 10, "--seeds", "2,5", "--exp-name", "x", "--json")
    assert [result["seed"] for result in json.loads(said.out)] == [2, 5]
    assert {p.name for p in Path("runs/toy_grid/toy").iterdir()} == {"x-s2", "x-s5"}
    assert len(json.loads(marlctl(*TOY, "--num-episodes", 10, "--seeds", 3, "--json").out)) == 3


def test_a_dry_run_checks_everything_and_starts_nothing(marlctl):
    said = marlctl(*TOY, "--dry-run", "--set", "algo.capacity=1000")
    assert said.code == 0 and not Path("runs").exists()
    assert tomllib.loads(said.out)["algo"]["capacity"] == 1000
    assert "team agent: agent_0, agent_1, agent_2" in said.err and "replay memory" in said.err


def test_quiet_says_nothing(marlctl):
    said = marlctl(*TOY, "--num-episodes", 10, "--quiet")
    assert (said.code, said.out, said.err) == (0, "", "")


def test_a_budget_in_steps(marlctl):
    marlctl(*TOY, "--steps", 333, "--num-envs", 4, "--exp-name", "s")
    rows = list(read(Path("runs/toy_grid/toy/s/metrics.jsonl")))
    assert rows[-1]["step"] == 336  # all four copies finish the step


def test_an_existing_run_is_not_overwritten_without_force(marlctl):
    marlctl(*TOY, "--num-episodes", 10, "--exp-name", "a", "--seed", 1)
    before = (only_run() / "metrics.jsonl").read_bytes()
    said = marlctl(*TOY, "--num-episodes", 10, "--exp-name", "a", "--seed", 2)
    assert said.code == 2 and "--force" in said.err and (only_run() / "metrics.jsonl").read_bytes() == before
    assert marlctl(*TOY, "--num-episodes", 10, "--exp-name", "a", "--seed", 2, "--force").code == 0
    aside = next(Path("runs/toy_grid/toy").glob("a.old-*"))
    assert (aside / "metrics.jsonl").read_bytes() == before


def test_restore_continues_to_a_longer_budget_as_if_it_had_been_given_at_once(marlctl):
    both = ("--eval-every", 30, "--set", "run.log_every=7", "--save-rate", 25)
    marlctl(*TOY, "--num-episodes", 120, "--exp-name", "whole", *both)
    marlctl(*TOY, "--num-episodes", 50, "--exp-name", "parts", *both)
    said = marlctl("train", "--restore", "--exp-name", "parts", "--num-episodes", 120)
    assert said.code == 0
    whole, parts = (Path(f"runs/toy_grid/toy/{name}") for name in ("whole", "parts"))
    assert (whole / "metrics.jsonl").read_bytes() == (parts / "metrics.jsonl").read_bytes()
    assert tomllib.loads((parts / "run.toml").read_text())["run"]["num_episodes"] == 120


def test_restore_without_a_name_takes_load_dir_or_the_newest_run(marlctl):
    for name in ("a", "b"):
        marlctl(*TOY, "--num-episodes", 10, "--exp-name", name)
    assert "runs/toy_grid/toy/b" in marlctl("train", "--restore", "--num-episodes", 12).err
    assert (
        "runs/toy_grid/toy/a"
        in marlctl("train", "--restore", "--load-dir", "runs/toy_grid/toy/a", "--num-episodes", 12).err
    )
    said = marlctl("train", "--restore", "--load-dir", "nowhere")
    assert said.code == 2 and "nowhere" in said.err


def test_flags_that_contradict_the_run_are_refused_with_the_difference(marlctl):
    marlctl(*TOY, "--num-episodes", 10, "--seed", 4, "--exp-name", "a")
    said = marlctl("train", "--restore", "--seed", 5, "--lr", 0.3)
    assert said.code == 2
    assert "run.seed: the run has 4, you gave 5" in said.err and "algo.lr: the run has 0.1, you gave 0.3" in said.err
    assert "10 are done already" in marlctl("train", "--restore", "--num-episodes", 5).err
    assert marlctl("train", "--restore", "--seed", 4, "--algo", "toy", "--num-episodes", 11).code == 0


def test_a_run_without_replay_cannot_go_on_but_can_be_started_from(marlctl):
    marlctl(*TOY, "--num-episodes", 10, "--no-save-replay", "--exp-name", "a")
    said = marlctl("train", "--restore", "--num-episodes", 20)
    assert said.code == 2 and "--init-from" in said.err
    assert marlctl(*TOY, "--num-episodes", 10, "--init-from", "a", "--exp-name", "b").code == 0


def test_init_from_begins_with_the_other_runs_weights(marlctl):
    marlctl(*TOY, "--num-episodes", 60, "--exp-name", "teacher")
    marlctl(
        *TOY,
        "--num-episodes",
        1,
        "--init-from",
        "teacher",
        "--set",
        "algo.warmup=1000",
        "--exp-name",
        "pupil",
        "--seed",
        9,
    )
    from marlctl.policies import load_saved
    from marlctl.rundir import RunFolder

    teacher, pupil = (load_saved(RunFolder(Path(f"runs/toy_grid/toy/{n}"))).learner for n in ("teacher", "pupil"))
    assert all((teacher.w[name] == pupil.w[name]).all() for name in teacher.w)
    said = marlctl(*TOY, "--num-episodes", 1, "--init-from", "teacher", "--set", "env.n_agents=2")
    assert said.code == 2 and "agents" in said.err


def test_agents_that_do_not_learn(marlctl):
    marlctl(*TOY, "--num-episodes", 30, "--exp-name", "a")
    said = marlctl(
        *TOY, "--num-episodes", 30, "--policy", "agent_0=random", "--policy", "agent_1=a", "--exp-name", "b", "--json"
    )
    assert list(json.loads(said.out)["train"]["return"]["agents"]) == ["agent_0", "agent_1", "agent_2"]
    losses = json.loads(said.out)["train"]["loss"]
    assert list(losses) == ["agent_2.loss"]
    assert list(json.loads(marlctl("eval", "b", "--json").out)["agents"]) == ["agent_0", "agent_1", "agent_2"]


BAD = {
    "unknown algorithm": (["--algo", "madpg"], "maddpg"),
    "unknown scenario": (["--scenario", "simple_tga"], "simple_tag"),
    "unknown option": (["--set", "algo.learning_rat=1"], "algo.lr"),
    "unknown bare option": (["--set", "capcity=1"], "capacity"),
    "unknown owner": (["--set", "alg.lr=1"], "algo"),
    "flag the algorithm lacks": (["--num-units", "8"], "algo.num_units"),
    "negative batch": (["--batch-size", "-4"], "at least 1"),
    "gamma too large": (["--algo", "maddpg", "--scenario", "simple", "--gamma", "1.7"], "at most 1"),
    "NaN lr": (["--lr", "nan"], "above 0"),
    "text lr": (["--lr", "fast"], "a number"),
    "zero episodes": (["--num-episodes", "0"], "at least 1"),
    "half an episode": (["--num-episodes", "2.5"], "a whole number"),
    "two budgets": (["--num-episodes", "5", "--steps", "5"], "one budget"),
    "unknown policy name": (["--algo", "maddpg", "--scenario", "simple", "--good-policy", "madpg"], "maddpg, ddpg"),
    "unknown agent": (["--policy", "prey*=random"], "agent_0"),
    "unknown fixed run": (["--policy", "agent_0=nobody"], "nobody"),
    "nobody learns": (["--policy", "*=random"], "no agent that learns"),
    "too many adversaries": (["--num-adversaries", "9"], "9"),
    "path as name": (["--exp-name", "../../x"], "letters"),
    "no such run file": (["--config", "missing.toml"], "missing.toml"),
    "unknown team": (["--best-by", "blue"], "agent"),
    "bad seeds": (["--seeds", "a,b"], "--seeds"),
    "unknown init": (["--init-from", "nobody"], "nobody"),
    "ring too large": (["--set", "algo.capacity=100000000000", "--steps", "100000000000"], "GB"),
    "unknown factory": (["--scenario", "nowhere.at_all:make"], "nowhere"),
    "unknown family": (["--scenario", "mpee/simple"], "mpe"),
    "not an option of the scenario": (["--set", "env.n_agnts=2"], "env.n_agents"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_message_and_exit_2_before_anything_is_written(case, marlctl):
    flags, hint = BAD[case]
    said = marlctl(*TOY, *flags)
    assert said.code == 2, said.err
    assert hint in said.err and "Traceback" not in said.err and said.out == ""
    assert len(said.err.strip().splitlines()) <= 10
    assert not list(Path().rglob("run.toml")) and not list(Path().rglob("*.h5"))


def test_unknown_names_are_found_before_any_heavy_import(marlctl):
    import subprocess

    code = (
        "import sys; from marlctl.cli import main\n"
        "sys.argv = ['marlctl', 'train', '--algo', 'madpg', '--scenario', 'simple_tag']\n"
        "try: main()\nexcept SystemExit as e: print(e.code, sorted({'torch', 'h5py', 'pettingzoo'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2 []"


def test_learning_that_diverges_ends_with_code_6_and_keeps_the_last_good_checkpoint(marlctl):
    wild = ("--lr", "1e30", "--set", "algo.warmup=60", "--batch-size", 16, "--set", "algo.update_every=5")
    often = ("--num-episodes", 40, "--save-rate", 2, "--eval-every", 0, "--exp-name", "x")
    said = marlctl("train", "--algo", "maddpg", "--scenario", "simple_tag", *wild, *often)
    assert said.code == 6 and ("adversary" in said.err or "agent" in said.err)
    assert marlctl("eval", "x", "--episodes", 2).code == 0


def test_a_wish_for_more_adversaries_only_changes_the_teams(marlctl):
    said = marlctl(*TOY, "--dry-run", "--num-adversaries", 1)
    assert "team adversary: agent_0" in said.err and "team agent: agent_1, agent_2" in said.err


def test_a_longer_budget_with_several_copies_finds_every_transition_again(marlctl):
    """The copies overshoot a budget in episodes; the ring must have room for that, and be found whole."""
    both = ("--num-envs", 10, "--set", "algo.capacity=100000", "--eval-every", 0)
    assert marlctl(*TOY, "--num-episodes", 60, "--exp-name", "whole", *both).code == 0
    assert marlctl(*TOY, "--num-episodes", 11, "--exp-name", "parts", *both).code == 0
    assert marlctl("train", "--restore", "--exp-name", "parts", "--num-episodes", 60).code == 0
    whole, parts = (Path(f"runs/toy_grid/toy/{name}/metrics.jsonl").read_bytes() for name in ("whole", "parts"))
    assert whole == parts


def test_a_longer_budget_gives_the_rows_and_the_best_of_a_run_that_had_it_from_the_start(marlctl):
    from marlctl.storage.checkpoint import Checkpoints

    both = ("--eval-every", 50, "--eval-episodes", 3)
    for seed in range(4):
        marlctl(*TOY, "--num-episodes", 240, "--exp-name", f"whole{seed}", "--seed", seed, *both)
        marlctl(*TOY, "--num-episodes", 70, "--exp-name", f"parts{seed}", "--seed", seed, *both)
        marlctl("train", "--restore", "--exp-name", f"parts{seed}", "--num-episodes", 240)
        whole, parts = (Path(f"runs/toy_grid/toy/{name}{seed}") for name in ("whole", "parts"))
        assert (whole / "metrics.jsonl").read_bytes() == (parts / "metrics.jsonl").read_bytes()
        best = [Checkpoints(path).best() for path in (whole, parts)]
        assert best[0].step == best[1].step and best[0].note["score"] == best[1].note["score"]


def test_a_shorter_budget_is_fine_where_it_is_more_than_is_done(marlctl):
    marlctl(*TOY, "--num-episodes", 20, "--exp-name", "a")
    run = Path("runs/toy_grid/toy/a/run.toml")
    run.write_text(run.read_text().replace("num_episodes = 20", "num_episodes = 60000"))  # as if it had been stopped
    assert marlctl("train", "--restore", "--num-episodes", 30).code == 0
    assert marlctl("train", "--restore", "--num-episodes", 25).code == 2


def test_a_restored_run_says_where_it_goes_on_and_when_nothing_is_left(marlctl):
    marlctl(*TOY, "--num-episodes", 20, "--exp-name", "a")
    assert "its budget is spent" in marlctl("train", "--restore").err
    assert "continuing at episode 20" in marlctl("train", "--restore", "--num-episodes", 30).err


def test_restore_looks_only_among_runs_of_the_scenario_and_algorithm_that_are_named(marlctl):
    marlctl(*TOY, "--num-episodes", 10, "--exp-name", "same")
    marlctl("train", "--algo", "toy", "--scenario", "probe/matching", "--num-episodes", 10, "--exp-name", "same")
    said = marlctl("train", "--restore", "--exp-name", "same", "--scenario", "toy_grid", "--num-episodes", 12)
    assert said.code == 0 and "runs/toy_grid/toy/same" in said.err
    said = marlctl("train", "--restore", "--exp-name", "same", "--num-episodes", 12)
    assert said.code == 2 and "probe-matching/toy/same" in said.err and "toy_grid/toy/same" in said.err


@pytest.mark.parametrize(
    "pair", [("--restore", "--force"), ("--restore", "--seeds=2"), ("--seed=1", "--seeds=2"), ("--load-dir=x",)]
)
def test_flags_that_contradict_each_other_are_refused(marlctl, pair):
    assert marlctl(*TOY, *pair).code == 2


def test_a_device_that_is_not_there_is_refused_before_a_folder_is_made(marlctl):
    said = marlctl("train", "--algo", "maddpg", "--scenario", "simple", "--device", "cuda:9")
    assert said.code == 2 and "--device cuda:9" in said.err and not Path("runs").exists()


def test_a_run_with_a_frozen_policy_stands_alone_and_its_opponent_cannot_change(marlctl, tmp_path):
    import shutil

    marlctl(*TOY, "--num-episodes", 60, "--exp-name", "teacher")
    flags = (*TOY, "--num-episodes", 40, "--policy", "agent_1=teacher", "--eval-every", 10)
    marlctl(*flags, "--exp-name", "whole")
    marlctl(*flags[:5], "--num-episodes", 20, *flags[7:], "--exp-name", "parts")
    marlctl("train", "--restore", "--exp-name", "teacher", "--num-episodes", 90)
    shutil.rmtree("runs/toy_grid/toy/teacher")
    Path("runs").rename("moved")
    assert marlctl("train", "--restore", "--save-dir", "moved", "--exp-name", "parts", "--num-episodes", 40).code == 0
    assert marlctl("eval", "parts", "--save-dir", "moved", "--episodes", 2).code == 0
    whole, parts = (Path(f"moved/toy_grid/toy/{name}/metrics.jsonl").read_bytes() for name in ("whole", "parts"))
    assert whole == parts


def test_a_task_that_is_solved_is_told_once_and_how_near_it_is_at_the_end(scored_run):
    (solved,) = [line for line in scored_run.err.splitlines() if line.startswith("solved")]
    assert re.fullmatch(r"solved at episode 20: mean score \S+ of the last 20 episodes", solved)
    assert re.search(r"^score \S+ over the last 20 episodes \(solved at episode 20\)$", scored_run.err, re.MULTILINE)
    assert re.search(r"^evaluation after 15 episodes: return \S+, score \S+$", scored_run.err, re.MULTILINE)


def test_json_says_when_a_task_was_solved(scored_run, marlctl):
    said = marlctl("train", "--algo", "toy", "--scenario", "toy_grid", "--num-episodes", 30, "--json")
    result = json.loads(said.out)
    assert result["solved"]["episode"] == 20
    assert "score" in result["train"] and "score" in result["eval"]
