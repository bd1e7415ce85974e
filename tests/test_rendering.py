from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from marlctl import rendering
from marlctl.errors import ConfigError, PluginError
from marlctl.evaluation import evaluate
from marlctl.rendering import check_target, film, gif, save
from marlctl.testing.toy import Grid
from marlctl.training import train


@pytest.fixture
def played(toy_run):
    return film(toy_run, episodes=3)


def durations(data):
    image = Image.open(BytesIO(data))
    stays = []
    for number in range(image.n_frames):
        image.seek(number)
        stays.append(image.info["duration"])
    return stays


def pictures(film):
    return [np.asarray(Image.open(BytesIO(frame))) for frame in film.frames]


def test_every_step_has_its_picture(played):
    assert len(played.frames) == played.scores.lengths.sum()
    assert {picture.shape for picture in pictures(played)} == {(60, 140, 3)}


def test_it_plays_the_games_an_evaluation_plays(toy_run, played):
    scores = evaluate(toy_run, episodes=3)
    assert played.scores.returns.tolist() == scores.returns.tolist()
    assert played.scores.lengths.tolist() == scores.lengths.tolist()


def test_an_episode_ends_with_the_picture_of_its_end_and_not_of_the_next_start(toy_run, monkeypatch):
    drawn = []
    render = Grid.render
    monkeypatch.setattr(Grid, "render", lambda self: (drawn.append((self._time, len(self.agents))), render(self))[1])
    lengths = film(toy_run, episodes=2).scores.lengths
    times = [time for time, _ in drawn]
    assert times == [time for length in lengths for time in range(1, length + 1)]
    assert [agents for time, agents in drawn if time in lengths][-1] == 0


def test_another_seed_is_another_game(toy_run, played):
    assert film(toy_run, episodes=3, seed=1).frames != played.frames
    assert film(toy_run, episodes=3, seed=0).frames == played.frames


def test_a_gif_lasts_as_long_as_the_game_and_rests_at_the_end_of_an_episode(played):
    data = gif(played)
    assert sum(durations(data)) == 100 * len(played.frames) + 3 * 800
    assert durations(data)[-1] >= 900
    assert Image.open(BytesIO(data)).info["loop"] == 0


def test_a_gif_has_one_frame_for_each_step(played):
    # Pillow joins pictures that are alike, and adds up how long they stay; so none are alike here.
    different = replace(played, frames=[_noise(number) for number in range(len(played.frames))])
    assert Image.open(BytesIO(gif(different))).n_frames == len(played.frames)


def _noise(seed):
    pixels = np.random.default_rng(seed).integers(256, size=(20, 20, 3), dtype=np.uint8)
    data = BytesIO()
    Image.fromarray(pixels).save(data, "png")
    return data.getvalue()


@pytest.mark.parametrize("fps", [30, 7.5, 3])
def test_a_gif_keeps_the_speed_it_was_asked_for(played, fps):
    seconds = (sum(durations(gif(played, fps))) - 3 * 800) / 1000
    assert seconds == pytest.approx(len(played.frames) / fps, abs=0.01)


def test_colours_are_those_of_the_pictures(played):
    image = Image.open(BytesIO(gif(played))).convert("RGB")
    assert (np.asarray(image) == pictures(played)[0]).all()


def test_large_pictures_are_made_smaller_and_small_ones_left_alone(toy_run):
    assert pictures(film(toy_run, episodes=1, width=70))[0].shape == (30, 70, 3)
    assert pictures(film(toy_run, episodes=1, width=9999))[0].shape == (60, 140, 3)


def test_agents_that_do_not_learn_play_as_in_training(make_run, silent):
    config, folder = make_run("hosted", {"policy": {"agent_2": "random"}})
    train(config, folder, silent)
    assert len(film(folder, episodes=2).frames) > 0


def test_episodes_are_as_long_as_in_training(make_run, silent):
    config, folder = make_run("short", {"run": {"max_episode_len": 4}})
    train(config, folder, silent)
    assert film(folder, episodes=3).scores.lengths.max() <= 4


def test_a_scenario_without_pictures_says_so(toy_run, monkeypatch):
    monkeypatch.setattr(Grid, "metadata", {"render_modes": []})
    with pytest.raises(ConfigError, match="toy_grid cannot be rendered as rgb_array"):
        film(toy_run)


FACTORIES = """
from marlctl.testing.toy import Grid

def deaf(max_cycles=5):
    return Grid(2, 5, max_cycles)

def stubborn(max_cycles=5):
    return Grid(2, 5, max_cycles, render_mode="rgb_array")

def hearing(max_cycles=5, render_mode=None):
    return Grid(2, 5, max_cycles, render_mode=render_mode)
"""


@pytest.mark.parametrize(("factory", "shown"), [("deaf", False), ("stubborn", True), ("hearing", True)])
def test_a_factory_that_cannot_be_asked_for_pictures_says_what_it_needs(
    make_run, silent, tmp_path, monkeypatch, factory, shown
):
    (tmp_path / "own_games.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    config, folder = make_run(factory, {"run": {"scenario": f"own_games:{factory}", "num_episodes": 2}})
    train(config, folder, silent)
    if shown:
        assert film(folder, episodes=1).frames
    else:
        with pytest.raises(ConfigError, match="its factory needs a `render_mode` parameter"):
            film(folder, episodes=1)


def test_what_is_no_picture_is_refused(toy_run, monkeypatch):
    monkeypatch.setattr(Grid, "render", lambda self: None)
    with pytest.raises(ConfigError, match="no picture"):
        film(toy_run)


def test_a_scenario_that_breaks_while_drawing_is_named(toy_run, monkeypatch):
    monkeypatch.setattr(Grid, "render", lambda self: 1 / 0)
    with pytest.raises(PluginError, match="toy_grid failed in its render: ZeroDivisionError"):
        film(toy_run)


def test_frames_go_to_a_folder_in_order(played, tmp_path):
    save(played, tmp_path / "deep" / "frames")
    written = sorted((tmp_path / "deep" / "frames").iterdir())
    assert [path.read_bytes() for path in written] == list(played.frames)
    assert written[0].name == "frame-00000.png"


def test_a_film_does_not_go_where_something_else_is(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    (tmp_path / "full.gif").mkdir()
    (tmp_path / "empty").mkdir()
    for name in ("full", "full.gif", "film.mp4", "full/thesis.tex"):
        with pytest.raises(ConfigError):
            check_target(tmp_path / name)
    for name in ("empty", "new", "new.gif"):
        check_target(tmp_path / name)


def test_a_window_needs_a_display(toy_run, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(rendering, "load_saved", lambda *_: pytest.fail("looked at the checkpoint first"))
    with pytest.raises(ConfigError, match="no display here; leave it out"):
        rendering.watch(toy_run)


def test_a_window_shows_steps_no_faster_than_asked(toy_run, monkeypatch):
    naps = []
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setattr(Grid, "metadata", {"render_modes": ["human"]})
    monkeypatch.setattr(rendering.time, "sleep", naps.append)
    scores = rendering.watch(toy_run, episodes=1, fps=20)
    assert len(naps) == scores.lengths.sum()
    assert 0 < max(naps) <= 0.05


@pytest.mark.slow
def test_a_particle_world_is_filmed_without_a_display(make_run, silent):
    config, folder = make_run("spread", {"run": {"scenario": "simple_spread", "num_episodes": 2}})
    train(config, folder, silent)
    film_ = film(folder, episodes=1)
    assert len(film_.frames) == 25
    assert pictures(film_)[0].shape == (400, 400, 3)
    assert len(gif(film_)) < 1_000_000
