import json
from dataclasses import replace

import numpy as np
import pytest

from marlctl import plotting
from marlctl.errors import ConfigError, FileError
from marlctl.metrics import read
from marlctl.plotting import Curve, Look, bands, draw, read_curve, short


def curve(seed=0, y=(1.0, 2.0, 3.0), x=(10, 20, 30), **changes):
    plain = Curve("toy_grid", "toy", seed, {"algo.lr": 0.1}, np.array(x, float), np.array(y, float))
    return replace(plain, **changes)


def test_a_curve_holds_the_numbers_of_the_run(toy_run):
    rows = [row for row in read(toy_run.metrics) if row["kind"] == "train"]
    found = read_curve(toy_run, "return.total")
    assert found.y.tolist() == [row["return"]["total"] for row in rows]
    assert found.x.tolist() == [row["step"] for row in rows]
    assert (found.scenario, found.algo, found.seed) == ("toy_grid", "toy", 0)


@pytest.mark.parametrize("metric", ["return.agents.agent_1", "return.teams.agent", "length", "loss.agent_0.loss"])
def test_every_metric_has_a_name(toy_run, metric):
    assert np.isfinite(read_curve(toy_run, metric).y).all()
    assert metric in plotting.metric_names(list(read(toy_run.metrics)))


def test_evaluations_are_curves_too(toy_run):
    rows = [row for row in read(toy_run.metrics) if row["kind"] == "eval"]
    assert read_curve(toy_run, "eval.return.total").y.tolist() == [row["return"]["total"] for row in rows]
    assert read_curve(toy_run, "eval.return.total", x="episodes").x.tolist() == [20, 40, 60]


def test_a_metric_that_is_not_there_suggests_near_ones(toy_run):
    with pytest.raises(ConfigError, match=r"did you mean .*return\.total"):
        read_curve(toy_run, "retrun.total")
    with pytest.raises(ConfigError, match=r"loss\.agent_0\.loss"):
        read_curve(toy_run, "loss.agent_0.los")


def test_a_part_of_a_name_suggests_the_names_with_that_part(toy_run):
    with pytest.raises(ConfigError, match=r"no metric 'retrun'; did you mean return\.total, return\.") as caught:
        read_curve(toy_run, "retrun")
    assert "loss" not in str(caught.value)


def test_a_run_without_episodes_says_so(make_run):
    _, folder = make_run()
    with pytest.raises(ConfigError, match="has no finished episodes yet"):
        read_curve(folder, "return.total")
    folder.metrics.write_bytes(b"")
    with pytest.raises(ConfigError, match="has no finished episodes yet"):
        read_curve(folder, "return.total")


def test_a_run_without_evaluations_says_so(make_run):
    _, folder = make_run()
    folder.metrics.write_text(json.dumps({"kind": "train", "step": 3, "episode": 1, "return": {"total": 1.0}}) + "\n")
    with pytest.raises(ConfigError, match="never evaluated"):
        read_curve(folder, "eval.return.total")


def test_time_goes_on_where_a_continued_run_began_again_at_zero(make_run):
    _, folder = make_run()
    steps = [1, 2, 3, 4]
    rows = [{"kind": "train", "step": s, "episode": s, "return": {"total": 0.0}} for s in steps]
    folder.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    # The first process died after step 3; the second went on from step 2 and did step 3 again.
    clock = [(1, 10.0), (2, 20.0), (3, 30.0), (3, 5.0), (4, 15.0)]
    lines = [json.dumps({"step": s, "kind": "train", "seconds": t}) + "\n" for s, t in clock]
    folder.timings.write_text("".join(lines))
    assert read_curve(folder, "return.total", x="time").x.tolist() == [10, 20, 35, 45]


def test_a_process_that_began_later_adds_its_time_however_long_its_first_row_took(make_run):
    _, folder = make_run()
    rows = [{"kind": "train", "step": s, "episode": s, "return": {"total": 0.0}} for s in (1, 2)]
    folder.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    clock = [(1, 10.0, 1000.0), (2, 25.0, 2000.0)]
    lines = [json.dumps({"step": s, "kind": "train", "seconds": t, "began": b}) + "\n" for s, t, b in clock]
    folder.timings.write_text("".join(lines))
    assert read_curve(folder, "return.total", x="time").x.tolist() == [10, 35]


def test_time_needs_the_timings_of_every_row(make_run):
    _, folder = make_run()
    folder.metrics.write_text(json.dumps({"kind": "train", "step": 7, "episode": 1, "return": {"total": 0.0}}) + "\n")
    folder.timings.write_bytes(b"")
    with pytest.raises(ConfigError, match="step 7"):
        read_curve(folder, "return.total", x="time")


@pytest.mark.parametrize("x", ["steps", "time"])
def test_rows_of_somebody_else_are_a_bad_file(make_run, x):
    _, folder = make_run()
    folder.metrics.write_text(json.dumps({"kind": "train", "return": {"total": 0.0}}) + "\n")
    folder.timings.write_text(json.dumps({"step": 1}) + "\n")
    with pytest.raises(FileError, match="marlctl did not write"):
        read_curve(folder, "return.total", x=x)


def test_smoothing_averages_the_rows_before(toy_run):
    raw, smooth = (read_curve(toy_run, "return.total", smooth=n).y for n in (1, 3))
    assert smooth[0] == raw[0]
    assert smooth[1] == pytest.approx(raw[:2].mean())
    assert smooth[5] == pytest.approx(raw[3:6].mean())
    assert len(smooth) == len(raw)


def test_seeds_are_averaged_and_the_band_covers_the_mean(rng):
    ys = rng.normal(size=(5, 3))
    (band,) = bands([curve(seed, y) for seed, y in enumerate(ys)])
    assert band.seeds == 5
    assert band.mean == pytest.approx(ys.mean(0))
    assert (band.low <= band.mean).all()
    assert (band.mean <= band.high).all()
    assert (band.low >= ys.min(0)).all()
    assert (band.high <= ys.max(0)).all()


def test_a_95_percent_band_is_as_wide_as_theory_says(rng):
    ys = rng.normal(size=(400, 3))
    (band,) = bands([curve(seed, y) for seed, y in enumerate(ys)])
    assert band.high - band.low == pytest.approx(2 * 1.96 / np.sqrt(400), rel=0.15)


def test_one_seed_has_a_line_and_no_band():
    (band,) = bands([curve()])
    assert band.seeds == 1
    assert band.mean.tolist() == band.low.tolist() == band.high.tolist() == [1, 2, 3]


def test_seeds_logged_at_other_steps_meet_on_a_common_grid():
    (band,) = bands([curve(0, (0, 10), (0, 10)), curve(1, (4, 8), (4, 8))])
    assert band.x.tolist() == [4, 8]  # only where both have something to say
    assert band.mean.tolist() == [4, 8]


def test_seeds_that_never_meet_are_not_averaged():
    with pytest.raises(ConfigError, match="no part in common"):
        bands([curve(0, (0, 1), (0, 10)), curve(1, (0, 1), (20, 30))])


def test_a_repeated_seed_counts_once_and_the_last_one_wins():
    (band,) = bands([curve(0, (1, 1, 1)), curve(1, (3, 3, 3)), curve(0, (5, 5, 5))])
    assert (band.seeds, band.mean[0]) == (2, 4)


def test_algorithms_and_scenarios_are_kept_apart():
    found = bands([curve(), curve(algo="maddpg"), curve(scenario="simple_tag")])
    assert sorted(band.label for band in found) == ["maddpg, toy_grid", "toy, simple_tag", "toy, toy_grid"]
    assert sorted(band.label for band in bands([curve(), curve(algo="maddpg")])) == ["maddpg", "toy"]


def test_runs_with_other_options_are_not_averaged_and_the_label_says_which():
    found = bands([curve(0), curve(1), curve(0, options={"algo.lr": 0.2})])
    assert sorted((band.label, band.seeds) for band in found) == [("toy, lr=0.1", 2), ("toy, lr=0.2", 1)]


MANY = {f"algo.option_{n}": n for n in range(8)}


def test_single_runs_that_differ_in_much_are_called_by_their_names():
    other = {name: value + 1 for name, value in MANY.items()}
    found = bands([curve(options=MANY, name="one"), curve(options=other, name="two")])
    assert [band.label for band in found] == ["toy, one", "toy, two"]


def test_an_option_that_a_run_does_not_have_is_not_spoken_of():
    hosted = {"algo.lr": 0.1, "policy.agent_*": "random"}
    found = bands([curve(name="one"), curve(options=hosted, name="two")])
    assert [band.label for band in found] == ["toy", "toy, agent_*=random"]


def test_runs_that_play_against_other_runs_are_not_averaged(make_run, toy_run):
    curves = []
    for name, seed in (("a", 1), ("b", 2)):
        _, folder = make_run(name, {"policy": {"agent_2": "players/0"}, "run": {"num_episodes": 5}})
        (folder.path / "players" / "0").mkdir(parents=True)
        played = (toy_run.path / "run.toml").read_text().replace('created = "20', f'created = "{seed}0')
        (folder.path / "players" / "0" / "run.toml").write_text(played)
        folder.metrics.write_bytes(toy_run.metrics.read_bytes())
        curves.append(read_curve(folder, "return.total"))
    assert len({str(curve.options["policy.agent_2"]) for curve in curves}) == 2
    assert len(bands(curves)) == 2


@pytest.mark.parametrize("n", [1, 3, 8, 30])
@pytest.mark.parametrize("width", [1, 60])
def test_the_axes_keep_their_width_whatever_the_legend_says(n, width):
    options = [{**MANY, "algo.word": "w" * width, "algo.x": i} for i in range(n)]
    drawn = plotting.figure(
        bands([curve(i, options=o, name="n" * width + str(i)) for i, o in enumerate(options)]), Look()
    )
    drawn.draw_without_rendering()
    (axes,) = drawn.axes
    assert axes.get_position().width > 0.75
    assert axes.get_window_extent().height > 250  # of 390: the figure grows with its legend
    for legend in [*drawn.legends, axes.get_legend()]:
        for text in legend.get_texts() if legend else []:
            assert max(map(len, text.get_text().splitlines())) <= 40


def test_a_small_legend_stands_among_the_curves_and_a_large_one_below():
    few = plotting.figure(bands([curve(), curve(algo="maddpg")]), Look())
    many = plotting.figure(bands([curve(options={"algo.lr": i}) for i in range(8)]), Look())
    assert few.axes[0].get_legend() is not None and not few.legends
    assert many.axes[0].get_legend() is None and len(many.legends) == 1


def test_the_name_of_a_run_is_no_formula():
    assert draw(bands([curve(algo=r"a$\frac$b")]), Look(title="$x$ and $"), "png")


@pytest.mark.parametrize(("format", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_same_curves_give_the_same_file(format, start):
    found = bands([curve(0), curve(1, (2, 3, 4)), curve(algo="maddpg"), curve(algo="one", x=[5], y=[1.0])])
    data = draw(found, Look(), format)
    assert data.startswith(start)
    assert data == draw(found, Look(), format)


def test_the_legend_says_how_many_seeds(monkeypatch):
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")  # words stay words
    data = draw(bands([curve(0), curve(1), curve(algo="maddpg")]), Look(title="A title"), "svg").decode()
    assert "toy (2 seeds)" in data
    assert "maddpg (1 seed)" in data
    assert "environment steps" in data
    assert "A title" in data


def test_drawing_leaves_the_users_settings_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw(bands([curve()]), Look())
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (950, "950"), (1000, "1k"), (250_000, "250k"), (1_500_000, "1.5M"), (-2000, "\N{MINUS SIGN}2k")],
)
def test_thousands_are_abbreviated(number, text):
    assert short(number) == text


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("return.total", "episode return"),
        ("return.teams.adversary", "episode return of adversary"),
        ("loss.agent_0.critic_loss", "agent_0 critic loss"),
        ("eval.length", "evaluation: episode length"),
    ],
)
def test_axes_speak_plainly(metric, words):
    assert plotting.y_label(metric) == words
