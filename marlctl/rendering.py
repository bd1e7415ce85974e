"""Watching a trained run: its episodes as pictures, one a step, as a GIF or as a folder of PNGs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from pettingzoo.utils import BaseParallelWrapper
from PIL import Image

from marlctl.config import Config
from marlctl.contracts import Environment
from marlctl.copies import Copies
from marlctl.episodes import Env, guarded
from marlctl.errors import ConfigError, StorageError
from marlctl.evaluation import Scores, cast_of, play
from marlctl.factory import Made
from marlctl.policies import load_saved
from marlctl.records import Mode
from marlctl.rundir import RunFolder
from marlctl.storage.files import write_whole

FPS = 10  # of a scenario that does not say
MAX_FPS = 50  # viewers of GIFs slow down whatever is faster
_PAUSE = 80  # hundredths of a second an episode's last picture stays longer


@dataclass(frozen=True)
class Film:
    """Episodes in pictures."""

    frames: Sequence[bytes]  # one PNG a step: many times smaller than the pixels
    scores: Scores
    fps: float
    step: int  # the checkpoint that played


def film(
    folder: RunFolder,
    *,
    episodes: int = 3,
    which: str = "last",
    seed: int = 0,
    mode: Mode | None = None,
    width: int = 400,
) -> Film:
    """Play a run's policy and keep a picture of every step, at most `width` pixels wide."""
    camera = _Camera("rgb_array", lambda env: frames.append(_picture(env, width)))
    frames: list[bytes] = []
    scores, step = _perform(folder, camera, episodes=episodes, which=which, seed=seed, mode=mode)
    return Film(frames, scores, min(camera.fps, MAX_FPS), step)


def watch(
    folder: RunFolder,
    *,
    episodes: int = 3,
    which: str = "last",
    seed: int = 0,
    mode: Mode | None = None,
    fps: float | None = None,
) -> Scores:
    """Play a run's policy in a window."""
    check_display()
    last = time.monotonic()

    def wait(_env: Env) -> None:  # a scenario draws its window by itself
        nonlocal last
        time.sleep(max(0.0, last + 1 / (fps or camera.fps) - time.monotonic()))
        last = time.monotonic()

    camera = _Camera("human", wait)
    return _perform(folder, camera, episodes=episodes, which=which, seed=seed, mode=mode)[0]


def check_display() -> None:
    """Refuse to open a window where there is no screen."""
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    if sys.platform not in ("darwin", "win32") and not any(os.environ.get(name) for name in screens):
        raise ConfigError("--human opens a window and there is no display here; leave it out to get a GIF")


# -- playing ------------------------------------------------------------------------------------


def _perform(
    folder: RunFolder, camera: _Camera, *, episodes: int, which: str, seed: int, mode: Mode | None
) -> tuple[Scores, int]:
    """The same games as an evaluation with this seed plays; the step of the checkpoint that played."""
    config = folder.config()
    saved = load_saved(folder, which)
    env = camera.open(config)
    try:
        cast = cast_of(config, folder, env.spec, saved.learner, mode)
        scores = play(env, cast, seed=seed, mode=mode or saved.learner.plays, episodes=episodes)
    finally:
        env.close()
    return scores, saved.manifest.step


class _Camera:
    """Sees every step of an environment, also an episode's last, before the next one begins."""

    fps = float(FPS)

    def __init__(self, render_mode: str, after_step: Callable[[Env], None]) -> None:
        self._render_mode, self._after_step = render_mode, after_step

    def open(self, config: Config) -> Copies:
        environment, length = config.env, config.run.max_episode_len
        if length is not None and hasattr(environment, "with_length"):
            environment, length = environment.with_length(length), None
        self._environment, self._scenario = environment, config.run.scenario
        return Copies(self, 1, length=length, num_adversaries=config.run.num_adversaries)

    def make(self, *, render_mode: str | None = None) -> Env:
        env = guarded(self._scenario, "make", lambda: _make(self._environment, self._render_mode))
        modes = env.metadata.get("render_modes") or env.metadata.get("render.modes") or ()
        if self._render_mode not in modes:
            offered = f"; it offers {', '.join(map(str, modes))}" if modes else ""
            raise ConfigError(f"{self._scenario} cannot be rendered as {self._render_mode}{offered}")
        if not _takes_mode(self._environment) and getattr(env, "render_mode", None) != self._render_mode:
            raise ConfigError(
                f"{self._scenario} cannot be rendered: its factory needs a `render_mode` parameter, "
                "None unless we ask for pictures, that it hands on to the environment"
            )
        self.fps = float(env.metadata.get("render_fps") or FPS)
        return _Seen(env, self._scenario, self._after_step)

    def __getattr__(self, name: str) -> Any:
        """Teams and divided actions are the scenario's own."""
        return getattr(self.__dict__["_environment"], name)


def _make(environment: Environment, render_mode: str) -> Env:
    return environment.make(render_mode=render_mode)


def _takes_mode(environment: Environment) -> bool:
    """Whether the environment heard what it is to draw; a factory may have no parameter for that."""
    return not isinstance(environment, Made) or environment._rendered or bool(environment.open_options)


class _Seen(BaseParallelWrapper):  # type: ignore[misc] # PettingZoo is untyped to us
    """An environment whose every step is looked at."""

    def __init__(self, env: Env, scenario: str, after_step: Callable[[Env], None]) -> None:
        super().__init__(env)
        self._scenario, self._after_step = scenario, after_step

    def step(self, actions: Any) -> Any:
        given = guarded(self._scenario, "step", lambda: self.env.step(actions))
        guarded(self._scenario, "render", lambda: self._after_step(self.env))
        return given


def _picture(env: Env, width: int) -> bytes:
    pixels = np.asarray(env.render())
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or pixels.dtype != np.uint8:
        raise ConfigError(f"this scenario renders {pixels.dtype} of shape {pixels.shape}, which is no picture")
    image = Image.fromarray(np.ascontiguousarray(pixels[..., :3]))
    if image.width > width:
        image = image.resize((width, max(1, round(image.height * width / image.width))), Image.Resampling.LANCZOS)
    data = BytesIO()
    image.save(data, "png", compress_level=3)
    return data.getvalue()


# -- writing ------------------------------------------------------------------------------------


def gif(film: Film, fps: float | None = None) -> bytes:
    """The film as a GIF that plays for ever, and rests a little at the end of every episode."""
    # Each picture has its own colours: Pillow maps to a common palette only roughly, and white turns grey.
    images = (Image.open(BytesIO(frame)).convert("RGB").quantize(dither=Image.Dither.NONE) for frame in film.frames)
    first = next(images)
    durations = [10 * hundredths for hundredths in _durations(film, fps or film.fps)]
    data = BytesIO()
    first.save(data, "gif", save_all=True, append_images=images, duration=durations, loop=0, optimize=False)
    return data.getvalue()


def _durations(film: Film, fps: float) -> list[int]:
    """Hundredths of a second a picture stays, rounded so that the whole keeps its speed."""
    times = np.round(np.arange(len(film.frames) + 1) * 100 / min(fps, MAX_FPS)).astype(int)
    stays = np.diff(times)
    stays[np.cumsum(film.scores.lengths) - 1] += _PAUSE
    return [int(stay) for stay in stays]


def check_target(out: Path) -> None:
    """See before the games that the film can go there: a .gif, or a new or empty folder for its frames."""
    if out.suffix.lower() in (".mp4", ".webm", ".avi", ".mov", ".mkv", ".png", ".jpg", ".webp", ".apng"):
        raise ConfigError(f"--out {out} must end with .gif, or be a folder for PNG frames, which ffmpeg can join")
    if out.suffix.lower() == ".gif":
        if out.is_dir():
            raise ConfigError(f"--out {out} is a folder")
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"--out {out} is there already and not an empty folder; choose another one for the frames")


def save(film: Film, out: Path, fps: float | None = None) -> None:
    """Write the film to a `.gif`, or its frames to a folder of any other name."""
    is_gif = out.suffix.lower() == ".gif"
    try:
        (out.parent if is_gif else out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {error.filename}: {error.strerror}") from error
    if is_gif:
        return write_whole(out, gif(film, fps))
    for number, frame in enumerate(film.frames):
        write_whole(out / f"frame-{number:05d}.png", frame)
    return None
