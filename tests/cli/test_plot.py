import shutil

import pytest


def test_the_newest_run_is_drawn_into_its_own_folder(marlctl, run, files):
    before = files()
    said = marlctl("plot")
    path = "runs/toy_grid/toy/toy/plots/return-total.png"
    assert (said.code, said.out) == (0, f"{path}\n")
    after = files()
    assert after.pop("plots/return-total.png").startswith(b"\x89PNG")
    assert after == before


def test_several_runs_go_to_learning_curves(marlctl, run, tmp_path):
    other = run.path.with_name("other")
    shutil.copytree(run.path, other)
    (other / "run.toml").write_text((other / "run.toml").read_text().replace("seed = 0", "seed = 1"))
    said = marlctl("plot", "toy", "other", "--format", "svg", "--x", "episodes")
    assert said.out == "learning_curves/toy_grid-return-total-episodes.svg\n"
    assert said.err == ""
    assert (tmp_path / said.out.strip()).read_bytes().startswith(b"<?xml")


def test_a_folder_stands_for_the_runs_below_it(marlctl, run):
    shutil.copytree(run.path, run.path.with_name("again"))
    said = marlctl("plot", "runs", "--out", "deep/er/curve.pdf")
    assert said.out == "deep/er/curve.pdf\n"
    assert "repeat the seed" in said.err


def test_a_plots_dir_and_an_evaluation_curve(marlctl, run, tmp_path):
    assert marlctl("plot", "--eval", "--plots-dir", "here").out == "here/eval-return-total.png\n"
    assert marlctl("plot", "--metric", "loss.agent_0.loss", "--plots-dir", "here", "--x", "time").code == 0
    assert sorted(p.name for p in (tmp_path / "here").iterdir()) == [
        "eval-return-total.png",
        "loss-agent_0-loss-time.png",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--metric", "retrun.total"], "did you mean return.total"),
        (["--metric", "retrun"], "did you mean return.total"),
        (["tay"], "did you mean toy"),
        (["--out", "x.jpg"], "must end with .png, .svg or .pdf"),
        (["--out", "x.png", "--format", "pdf"], "two kinds of file"),
        (["--save-dir", "nowhere"], "no runs below nowhere"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_written(marlctl, run, tmp_path, files, arguments, words):
    before = files()
    said = marlctl("plot", *arguments)
    assert said.code == 2
    assert words in said.err
    assert said.out == ""
    assert files() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["runs"]


def test_a_run_that_has_not_begun_is_no_crash(marlctl, run):
    run.metrics.write_bytes(b'{"kind": "train", "st')
    said = marlctl("plot")
    assert (said.code, "has no finished episodes yet" in said.err) == (2, True)


def test_a_run_that_has_not_begun_is_left_out_of_a_folder(marlctl, run):
    empty = run.path.with_name("empty")
    shutil.copytree(run.path, empty)
    (empty / "metrics.jsonl").write_bytes(b"")
    said = marlctl("plot", "runs", "-o", "all.png")
    assert (said.code, said.out) == (0, "all.png\n")
    assert said.err == "left out: runs/toy_grid/toy/empty has no finished episodes yet\n"


def test_policies_that_a_run_keeps_are_no_runs_of_a_folder(marlctl, run):
    (run.path / "players" / "0").mkdir(parents=True)
    shutil.copy(run.path / "run.toml", run.path / "players" / "0")
    assert marlctl("plot", "runs", "-o", "all.png").err == ""


def test_damaged_metrics_are_a_bad_file(marlctl, run):
    run.metrics.write_bytes(b"not json\n")
    said = marlctl("plot")
    assert (said.code, "line 1: not JSON" in said.err) == (3, True)


def test_a_score_is_drawn_beside_what_counts_as_solved(marlctl, scored_run, tmp_path):
    said = marlctl("plot", "--metric", "score", "--format", "svg")
    assert said.out == "runs/toy_grid/toy/scored/plots/score.svg\n"
    assert b"solved at 0.4" in (tmp_path / said.out.strip()).read_bytes()
    assert marlctl("plot", "--metric", "score", "--eval").code == 0
    other = marlctl("plot", "--format", "svg")
    assert b"solved at" not in (tmp_path / other.out.strip()).read_bytes()
