import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from marlctl import config as configs
from marlctl.cli.live import Live, Plain, Quiet, make_watch
from marlctl.opening import rehearse
from marlctl.scoring import Standing, Task
from marlctl.wheel import Progress

TIME = {"acting": 1.0, "environment": 2.0, "sampling": 0.0, "learning": 1.0}


def progress(**changes):
    plain = {"episodes": 40, "steps": 400, "updates": 5, "seconds": 10.0, "steps_here": 400, "time": TIME, "row": {}}
    return Progress(**{**plain, **changes})


@pytest.fixture
def config():
    return configs.resolve({"run": {"algo": "toy", "scenario": "toy_grid", "num_episodes": 100}})


@pytest.fixture
def screen(config, tmp_path):
    """What the live view shows: screen(80, 24, progress(), agents=3) -> its lines."""

    def draw(width, height, p, agents=3, losses=(), saved=None, **own):
        chosen = configs.resolve(configs.merge(config.values, {"env": {"n_agents": agents}}))
        live = Live(tmp_path / "run")
        live.__enter__()
        live._console = Console(file=StringIO(), width=width, height=height, force_terminal=True, color_system=None)
        live._config, live._spec = chosen, rehearse(chosen)[0]
        names = live._spec.names
        told = {"total": -1.5, "teams": {}, "agents": dict.fromkeys(names, -0.5)}
        loss = {f"{agent}.{kind}": 0.25 for agent in names for kind in losses}
        live.row({"kind": "train", "return": told, **({"loss": loss} if loss else {}), **own})
        if saved is not None:
            live.saved(saved)
        live._console.print(live._screen(p))
        return live._console.file.getvalue().splitlines()

    return draw


@pytest.mark.parametrize(("width", "height"), [(140, 45), (100, 30), (80, 24), (60, 16)])
@pytest.mark.parametrize("agents", [1, 3, 50])
@pytest.mark.parametrize("losses", [(), ("critic_loss", "actor_loss", *(f"kind_{n}" for n in range(12)))])
def test_the_panel_fits_the_terminal_and_leaves_room_for_what_it_echoes(screen, width, height, agents, losses):
    lines = screen(width, height, progress(), agents, losses)
    assert len(lines) < height
    assert max(map(len, lines)) <= width - 4  # ^C^C
    assert lines[-1].startswith("╰")


def test_every_agent_has_a_row_with_its_losses(screen):
    lines = screen(140, 45, progress(), 20, ("critic_loss", "actor_loss"))
    assert any("critic loss" in line and "actor loss" in line for line in lines)
    assert all(any(f"agent_{n} " in line and line.count("0.25") == 2 for line in lines) for n in range(20))


def test_what_there_is_no_room_for_is_counted(screen):
    lines = screen(80, 24, progress(), 50, tuple(f"kind_{n}" for n in range(12)))
    shown = sum(bool(re.search(r"agent_\d", line)) for line in lines)
    (note,) = [line for line in lines if "more" in line]
    assert f"and {50 - shown} more agents" in note
    columns = sum(line.count("kind ") for line in lines)
    assert f"{12 - columns} more losses each" in note


@pytest.mark.parametrize(("updates", "words"), [(0, "losses: before the first update"), (5, "losses: no row yet")])
def test_losses_that_are_not_there_say_why(screen, updates, words):
    assert any(words in line for line in screen(80, 24, progress(updates=updates)))


def test_no_time_is_promised_before_learning(screen):
    early = "\n".join(screen(140, 45, progress(updates=0)))
    assert "before learning" in early and " left" not in early
    assert "0m 15s left" in "\n".join(screen(140, 45, progress()))


def test_the_time_left_is_that_of_learning(config, tmp_path, capsys):
    watch = Plain(tmp_path)
    watch._config = config
    watch._line(progress(episodes=10, steps=100, steps_here=100, updates=0, seconds=1.0))
    watch._line(progress(episodes=20, steps=200, steps_here=200, updates=5, seconds=11.0))
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("before learning")
    assert second.endswith("1m 20s left")  # 800 steps at 10 a second


@pytest.mark.parametrize(
    ("solved_at", "solved", "note"),
    [(None, 0, ""), (0.5, 0, r" \(needed: 0\.5 over 100\)"), (0.5, 812, r" \(solved at episode 812\)")],
)
def test_who_watches_sees_how_near_the_task_is_to_being_solved(
    config, screen, tmp_path, capsys, solved_at, solved, note
):
    here = Standing(Task(None, True, solved_at, 100), 0.25, 37, solved)
    words = f"score 0.25 over the last 37 episodes{note}"
    watch = Plain(tmp_path)
    watch._config = config
    watch._line(progress(standing=here))
    assert re.search(f": no finished row yet, {words}, 40 steps/s", capsys.readouterr().err)
    lines = screen(80, 24, progress(standing=here))
    assert sum(bool(re.search(words, line)) for line in lines) == 1


def test_a_score_has_a_row_of_its_own_above_the_returns(screen):
    first = [line.split()[1] for line in screen(140, 45, progress(), score=0.125) if "0.12" in line or "in all" in line]
    assert first == ["score", "in"]


@pytest.mark.parametrize("ending", ["done", "stopped"])
def test_plain_lines_end_with_where_the_time_went(tmp_path, capsys, ending):
    watch = Plain(tmp_path)
    watch._next = float("inf")
    watch.tick(progress)
    if ending == "done":
        watch.__exit__(None)
    else:
        watch.stopped("stopped by SIGINT", "marlctl train --restore")
    assert capsys.readouterr().err.startswith("time: environment 50%, acting 25%, learning 25%, sampling 0%\n")


def test_one_episode_is_one_episode(config, tmp_path, capsys):
    watch = Plain(tmp_path)
    watch._config = config
    watch._line(progress(episodes=1, steps=1, steps_here=1, updates=1))
    assert capsys.readouterr().err.startswith("1 episode, 1 step, 1 update: ")


def test_the_view_fits_where_the_output_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    assert type(make_watch(tmp_path, quiet=False)) is Live
    assert type(make_watch(tmp_path, quiet=True)) is Quiet
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: False))
    assert type(make_watch(tmp_path, quiet=False)) is Plain


@pytest.mark.slow
def test_ctrl_c_on_a_terminal_ends_with_the_checkpoint_it_wrote(tmp_path):
    ours, theirs = pty.openpty()
    command = ["train", "--algo", "toy", "--scenario", "toy_grid", "--num-episodes", "1000000", "--exp-name", "x"]
    env = {**os.environ, "COLUMNS": "100", "LINES": "30", "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-m", "marlctl", *command],
        cwd=tmp_path, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    ) as child:  # fmt: skip
        os.close(theirs)
        text, stopping = "", 0.0
        while child.poll() is None or select.select([ours], [], [], 0.2)[0]:
            try:
                text += os.read(ours, 65536).decode(errors="replace") if select.select([ours], [], [], 0.2)[0] else ""
            except OSError:  # the other side is closed
                break
            if not stopping and re.search(r"\d\d updates", text):
                stopping = time.monotonic()
                child.send_signal(signal.SIGINT)
            assert not stopping or time.monotonic() < stopping + 60
    os.close(ours)
    assert child.returncode == 130
    last = text[text.rfind("╭") : text.rfind("╰")]
    step = re.search(r"saved at step ([\d,]+)", last)[1]
    assert step != "0" and f"{step} steps" in last
    assert "everything is saved" in text[text.rfind("╰") :]
