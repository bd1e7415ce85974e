"""Real processes, stopped at any moment: nothing that was acknowledged is lost, and the run goes on exactly."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from marlctl.storage.checkpoint import Checkpoints

# A run that saves without pause and says so after each save, as the live view would.
SAVER = """
import sys
from pathlib import Path
from marlctl import config, rundir, training
class Watch:
    def started(self, *_): pass
    def tick(self, _): pass
    def row(self, _): pass
    def saved(self, step): print(step, flush=True)
folder = rundir.RunFolder(Path(sys.argv[1]))
training.train(folder.config(), folder, Watch(), restore=sys.argv[2] == "restore")
"""
TOY = {"run": {"num_episodes": 100_000, "save_rate": 1, "eval_every": 3, "keep": 1}, "algo": {"capacity": 120}}
SMALL = {"warmup": 50, "batch_size": 16, "capacity": 200, "update_every": 10, "num_units": 8}
MADDPG = {
    "run": {**TOY["run"], "algo": "maddpg", "scenario": "simple_tag", "eval_episodes": 1, "threads": 1},
    "algo": SMALL,
}


def start(folder, restore=False):
    mode = "restore" if restore else "new"
    return subprocess.Popen(
        [sys.executable, "-c", SAVER, str(folder.path), mode], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
@pytest.mark.parametrize(("values", "kills"), [(TOY, 100), (MADDPG, 10)], ids=["toy", "maddpg"])
def test_no_acknowledged_checkpoint_is_lost_when_the_run_is_killed(values, kills, make_run):
    _, folder = make_run("killed", values)
    chance = random.Random(3)
    acknowledged, restored_from = -1, []
    for kill in range(kills):
        child = start(folder, restore=kill > 0)
        assert child.stdout is not None and child.stderr is not None
        first = ""
        if kill % 2:  # at some moment of its start, or of its work
            time.sleep(chance.uniform(0, 1.2))
        else:
            first = child.stdout.readline()  # the first save of this process
            assert first, child.stderr.read()
            time.sleep(chance.uniform(0, 0.15))
        child.send_signal(signal.SIGKILL)
        rest, _ = child.communicate()
        said = [int(line) for line in (first + rest).splitlines(keepends=False) if line.isdecimal()]
        acknowledged = max([acknowledged, *said])
        manifest, skipped = Checkpoints(folder.path).newest()
        assert skipped == [] and manifest.step >= acknowledged
        restored_from.append(manifest.step)
    assert restored_from == sorted(restored_from) and restored_from[-1] > restored_from[0]


def run(*arguments, **more):
    command = [sys.executable, "-m", "marlctl", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **more)


TOY_FLAGS = ("train", "--algo", "toy", "--scenario", "toy_grid", "--eval-every", "50", "--save-rate", "40")


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_like_one_that_was_not(tmp_path):
    whole = run(*TOY_FLAGS, "--num-episodes", 1500, "--exp-name", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    chance = random.Random(5)
    first = [*TOY_FLAGS, "--num-episodes", "1500", "--exp-name", "cut"]
    again = ["train", "--restore", "--exp-name", "cut"]
    cuts = 0
    while True:
        command = [
            sys.executable,
            "-m",
            "marlctl",
            *(again if (tmp_path / "runs/toy_grid/toy/cut/checkpoints").exists() else [*first, "--force"]),
        ]
        child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
        try:
            child.wait(timeout=chance.uniform(0.6, 1.4) if cuts < 12 else 120)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            cuts += 1
            continue
        assert child.returncode == 0, child.communicate()[1]
        child.communicate()
        break
    assert cuts >= 1
    one, other = (tmp_path / f"runs/toy_grid/toy/{name}/metrics.jsonl" for name in ("whole", "cut"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_says_how_to_go_on_and_the_run_goes_on_exactly(number, code, tmp_path):
    flags = [*TOY_FLAGS, "--num-episodes", "1200"]
    assert run(*flags, "--exp-name", "whole", cwd=tmp_path).returncode == 0
    command = [sys.executable, "-m", "marlctl", *flags, "--exp-name", "cut"]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    folder = tmp_path / "runs/toy_grid/toy/cut"
    _wait_for(lambda: len(list(folder.glob("checkpoints/step-*.json"))) > 1)
    child.send_signal(number)
    _, said = child.communicate(timeout=30)
    assert child.returncode == code, said
    (advice,) = [line for line in said.splitlines() if "to go on: marlctl train --restore" in line]
    go_on = advice.partition("marlctl ")[2].split()
    assert run(*go_on, cwd=tmp_path).returncode == 0
    assert (folder / "metrics.jsonl").read_bytes() == (tmp_path / "runs/toy_grid/toy/whole/metrics.jsonl").read_bytes()


def test_a_signal_during_an_evaluation_is_heard_and_the_evaluation_made_up_for(tmp_path):
    flags = ["train", "--algo", "toy", "--scenario", "toy_grid", "--num-episodes", "40", "--eval-every", "20"]
    flags += ["--eval-episodes", "3000"]
    assert run(*flags, "--exp-name", "whole", cwd=tmp_path).returncode == 0
    command = [sys.executable, "-m", "marlctl", *flags, "--exp-name", "cut"]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    folder = tmp_path / "runs/toy_grid/toy/cut"
    _wait_for(lambda: (folder / "metrics.jsonl").exists() and (folder / "metrics.jsonl").read_bytes().count(b"\n") >= 2)
    time.sleep(0.3)  # the second row comes right before the evaluation, which takes seconds
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=5)
    assert child.returncode == 143
    assert b"eval" not in (folder / "metrics.jsonl").read_bytes()
    assert run("train", "--restore", "--exp-name", "cut", cwd=tmp_path).returncode == 0
    assert (folder / "metrics.jsonl").read_bytes() == (tmp_path / "runs/toy_grid/toy/whole/metrics.jsonl").read_bytes()


def test_nohup_is_left_alone_and_a_reader_that_goes_away_does_not_stop_the_run(tmp_path):
    quick = [*TOY_FLAGS, "--num-episodes", "300"]
    shell = f"trap '' HUP; {sys.executable} -m marlctl {' '.join(quick)} --exp-name a 2>&1 | head -1"
    child = subprocess.Popen(["bash", "-c", shell], cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    folder = tmp_path / "runs/toy_grid/toy/a"
    _wait_for(lambda: (folder / "metrics.jsonl").exists())
    os.killpg(child.pid, signal.SIGHUP)
    assert child.wait(timeout=60) == 0
    _wait_for(lambda: b'"episode": 300' in (folder / "metrics.jsonl").read_bytes())
    closed = f"{sys.executable} -m marlctl {' '.join(quick)} --exp-name b >&- 2>&-"
    assert subprocess.run(["bash", "-c", closed], cwd=tmp_path, check=False).returncode == 0


def _wait_for(fact, seconds=30):
    end = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_of_several_starts_in_one_folder_one_wins_and_the_others_exit_5(tmp_path):
    assert run(*TOY_FLAGS, "--num-episodes", 40, "--exp-name", "a", cwd=tmp_path).returncode == 0
    command = [sys.executable, "-m", "marlctl", "train", "--restore", "--num-episodes", "100000"]
    children = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    _wait_for(lambda: sum(child.poll() is not None for child in children) == 3)
    losers = [child for child in children if child.poll() is not None]
    (winner,) = [child for child in children if child.poll() is None]
    for child in losers:
        _, said = child.communicate()
        assert child.returncode == 5 and f"process {winner.pid}" in said
    winner.kill()
    winner.communicate()
    after = run("train", "--restore", "--num-episodes", 100, cwd=tmp_path)
    assert after.returncode == 0 or "are done already" in after.stderr  # the lock died with it


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_full_disk_is_exit_8_and_the_last_checkpoint_still_loads(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8192k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no mounts here")
    try:
        (disk / "ballast").write_bytes(bytes(7 << 20))
        flags = ["--save-dir", disk, "--exp-name", "a", "--set", "algo.capacity=5000"]
        full = run(*TOY_FLAGS, "--num-episodes", 600, "--keep", 500, *flags, cwd=tmp_path)
        assert full.returncode == 8, full.stderr
        assert "free" in full.stderr and "Traceback" not in full.stderr
        assert run("eval", "--save-dir", disk, "--episodes", 2, cwd=tmp_path).returncode == 0
        (disk / "ballast").unlink()
        more = run("train", "--restore", "--save-dir", disk, cwd=tmp_path)
        assert more.returncode == 0, more.stderr
        assert run(*TOY_FLAGS, "--num-episodes", 600, "--exp-name", "b", *flags[4:], cwd=tmp_path).returncode == 0
        whole = (tmp_path / "runs/toy_grid/toy/b/metrics.jsonl").read_bytes()
        assert (disk / "toy_grid/toy/a/metrics.jsonl").read_bytes() == whole
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_the_hash_seed_the_locale_and_the_folder_do_not_change_a_number(tmp_path):
    found = []
    for number, change in enumerate(
        [{"PYTHONHASHSEED": "0"}, {"PYTHONHASHSEED": "1", "LANG": "C"}, {"LC_ALL": "tr_TR.UTF-8"}]
    ):
        here = tmp_path / f"a folder {number} ✓"
        here.mkdir()
        done = run(*TOY_FLAGS, "--num-episodes", 80, "--exp-name", "x", cwd=here, env={**os.environ, **change})
        assert done.returncode == 0, done.stderr
        found.append((here / "runs/toy_grid/toy/x/metrics.jsonl").read_bytes())
    assert found[0] == found[1] == found[2]
    other = run(*TOY_FLAGS, "--num-episodes", 80, "--exp-name", "y", "--seed", 1, cwd=tmp_path)
    assert other.returncode == 0
    assert (tmp_path / "runs/toy_grid/toy/y/metrics.jsonl").read_bytes() != found[0]


def test_maddpg_twice_with_one_seed_gives_equal_bytes_and_another_seed_does_not(make_run, silent):
    from marlctl.training import train

    files = []
    for name, seed in (("one", 0), ("again", 0), ("other", 1)):
        values = {"run": {"algo": "maddpg", "scenario": "simple_tag", "num_episodes": 20, "seed": seed}, "algo": SMALL}
        config, folder = make_run(name, values)
        train(config, folder, silent)
        files.append(folder.metrics.read_bytes())
    assert files[0] == files[1] != files[2]
    assert b"critic_loss" in files[0]
