import json
from pathlib import Path

import pytest

from marlctl.cli import show
from marlctl.metrics import read
from marlctl.rundir import lock


def listed(said):
    assert said.code == 0
    return {run["run"]: run for run in json.loads(said.out)["runs"]}


def test_a_finished_run_is_listed_with_what_it_reached(marlctl, run):
    (found,) = listed(marlctl("runs", "list", "--json")).values()
    assert (found["scenario"], found["algo"], found["seed"], found["state"]) == ("toy_grid", "toy", 0, "finished")
    assert (found["episode"], found["num_episodes"]) == (60, 60)
    rows = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    played = [r["return"]["total"] for r in rows if r["kind"] == "train"]  # five episodes each
    assert found["return"] == pytest.approx(sum(played) / len(played))
    assert found["best_eval"] == max(r["return"]["total"] for r in rows if r["kind"] == "eval")


def test_the_table_tells_the_same(marlctl, run):
    said = marlctl("runs", "list")
    assert "60 of 60 episodes" in said.out
    assert "finished" in said.out


def test_a_run_in_use_is_running_and_looking_does_not_disturb_it(marlctl, run):
    with lock(run):
        before = (run.path / ".lock").read_bytes()
        assert listed(marlctl("runs", "list", "--json"))["toy"]["state"] == "running"
        assert (run.path / ".lock").read_bytes() == before
    with lock(run):  # nobody was left holding it
        pass


def test_a_run_that_is_not_done_is_stopped(marlctl, run):
    lines = run.metrics.read_text().splitlines(keepends=True)
    run.metrics.write_text("".join(lines[:4]) + lines[4][:20])
    for manifest in run.path.glob("checkpoints/*.json"):
        manifest.unlink()
    found = listed(marlctl("runs", "list", "--json"))["toy"]
    assert (found["state"], found["episode"]) == ("stopped", 20)


def test_a_checkpoint_later_than_the_last_row_tells_how_far_the_run_is(marlctl, run):
    lines = run.metrics.read_text().splitlines(keepends=True)
    run.metrics.write_text("".join(lines[:4]))
    newest = max(int(path.stem.removeprefix("step-")) for path in run.path.glob("checkpoints/step-*.json"))
    found = listed(marlctl("runs", "list", "--json"))["toy"]
    assert (found["episode"], found["step"]) == (60, newest)
    assert "60 of 60 episodes" in marlctl("runs", "show").out


def test_the_last_return_is_the_mean_of_about_100_episodes(marlctl, run):
    ends = [(10, 1.0), (100, 5.0), (190, 2.0), (200, 4.0)]
    rows = [{"kind": "train", "step": e, "episode": e, "return": {"total": r}} for e, r in ends]
    run.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert listed(marlctl("runs", "list", "--json"))["toy"]["return"] == pytest.approx((90 * 2 + 10 * 4) / 100)


def test_one_episode_is_one_episode(marlctl, run):
    text = (run.path / "run.toml").read_text()
    (run.path / "run.toml").write_text(text.replace("num_episodes = 60", "num_episodes = 1"))
    assert "of 1 episode," in marlctl("runs", "show").out


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_the_table_breaks_no_word_and_no_number(marlctl, run, monkeypatch, width):
    run.path.rename(run.path.with_name("a-name-that-" + "goes-on-" * 8))
    monkeypatch.setattr(show, "width", lambda: width)
    lines = [line.rstrip() for line in marlctl("runs", "list").out.splitlines() if line.strip()]
    if width >= 60:
        assert len(lines) == 3 and max(map(len, lines)) <= width  # a head, a rule and the run
        assert ("…" in lines[2]) == (width < 200) and "finished" in lines[2] and "-" in lines[2]
    assert ("created" in lines[0]) == (width >= 120)
    assert ("60 of 60 episodes" in lines[2]) == (width >= 120)


@pytest.mark.parametrize(
    "damage",
    [
        lambda run: (run.path / "run.toml").unlink(),
        lambda run: (run.path / "run.toml").write_text("x = ["),
        lambda run: (run.path / "run.toml").write_bytes(b"\xff\xfe\x00"),
        lambda run: (run.path / "run.toml").write_text('run = "a word"'),
        lambda run: run.metrics.write_text("[1]\n"),
        lambda run: run.metrics.write_text("{}\n"),
        lambda run: run.metrics.write_bytes(b"\x00\n"),
        lambda run: run.metrics.write_text('{"kind": "eval", "return": 3}\n'),
    ],
)
def test_a_damaged_folder_is_listed_as_damaged(marlctl, run, damage):
    damage(run)
    assert listed(marlctl("runs", "list", "--json"))["toy"]["state"] == "damaged"
    said = marlctl("runs", "list")
    assert said.code == 0
    assert "is damaged" in said.err


def test_no_runs_is_no_error(marlctl, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = marlctl("runs", "list")
    assert (said.code, said.out) == (0, "")
    assert "no runs below runs" in said.err
    assert listed(marlctl("runs", "list", "--json")) == {}


def test_show_tells_what_was_changed_what_is_saved_and_how_large_it_is(marlctl, run, files):
    before = files()
    shown = json.loads(marlctl("runs", "show", "toy", "--json").out)
    changed = {name: value for name, value in shown["changed"].items() if name != "run.log_every"}
    assert changed == {"run.num_episodes": 60, "run.eval_every": 20, "run.save_rate": 20}
    assert [c["kind"] for c in shown["checkpoints"]].count("best") == 1
    assert all(c["problem"] is None and c["bytes"] > 0 for c in shown["checkpoints"])
    assert shown["bytes"] == sum(len(data) for data in before.values())
    assert files() == before


def test_show_says_which_checkpoints_are_damaged(marlctl, run):
    first, *_ = sorted(run.path.glob("checkpoints/step-*.json"))
    first.write_text("{")
    shown = {c["file"]: c for c in json.loads(marlctl("runs", "show", "--json").out)["checkpoints"]}
    assert "is not a manifest" in shown[first.name]["problem"]
    said = marlctl("runs", "show")
    assert said.code == 0
    assert first.name in said.out


def test_show_works_without_the_plugins_of_the_run(marlctl, run):
    text = (run.path / "run.toml").read_text()
    (run.path / "run.toml").write_text(text.replace('algo = "toy"', 'algo = "gone"'))
    shown = json.loads(marlctl("runs", "show", "--json").out)
    assert shown["changed"]["algo.lr"] == 0.1  # nobody knows its default


def test_a_name_that_is_not_there_suggests_near_ones(marlctl, run):
    said = marlctl("runs", "show", "tay")
    assert (said.code, "did you mean toy" in said.err) == (2, True)


def test_a_name_cannot_steer_the_terminal(marlctl, run):
    run.path.rename(run.path.with_name("evil\x1b[2J"))
    assert "\x1b" not in marlctl("runs", "list").out


def test_one_bad_folder_does_not_hide_the_others(marlctl, runs, run):
    import os
    import shutil

    def another(name):
        return shutil.copytree(run.path, run.path.with_name(name))

    fifo = another("fifo") / ".lock"
    fifo.unlink()
    os.mkfifo(fifo)
    text = another("text") / "run.toml"
    text.write_text(text.read_text().replace("num_episodes = 60", 'num_episodes = "60"'))
    for name, line in {
        "odd": '{"kind": "train", "step": 9, "episode": 9, "return": {"total": "x"}}',
        "deep": "[" * 100_000,
    }.items():
        with (another(name) / "metrics.jsonl").open("a") as file:
            file.write(line + "\n")
    with (another("nan") / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "step": 9, "episode": 9, "return": {"total": NaN}}\n')
    said = marlctl("runs", "list", "--json")
    states = {each["run"]: each["state"] for each in json.loads(said.out, parse_constant=lambda word: 1 / 0)["runs"]}
    assert states["toy"] == "finished"
    assert {states[name] for name in ("text", "odd", "deep", "nan")} == {"damaged"}
    assert marlctl("runs", "list").code == 0
    assert marlctl("train", "--restore", "--load-dir", run.path.with_name("fifo")).code == 3


def test_a_run_with_a_score_shows_it_and_when_it_was_solved(marlctl, scored_run):
    found = listed(marlctl("runs", "list", "--json"))["scored"]
    (row,) = [row for row in read(Path(found["path"]) / "metrics.jsonl") if row["kind"] == "solved"]
    assert found["solved_episode"] == row["episode"] == 20
    assert found["best_by"] == "score" and found["best_eval"] <= 1
    said = marlctl("runs", "show").out
    assert "at episode 20" in said and "(score)" in said and "last score" in said
