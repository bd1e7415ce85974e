"""Run folders: names, making, finding, moving, and holding them for one process."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest
import tomli_w

from marlctl import rundir
from marlctl.config import resolve
from marlctl.errors import BusyError, ConfigError, FileError, StorageError
from marlctl.rundir import RunFolder, create, find, find_all, is_run, lock

CONFIG = resolve({"run": {"algo": "toy", "scenario": "toy_grid", "num_episodes": 5}})


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "around" / "runs"


def everything(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


def made(runs, name, created):
    """A run that says it was created then."""
    folder = create(runs, CONFIG, name)
    values = folder.values()
    values["about"]["created"] = created
    (folder.path / "run.toml").write_text(tomli_w.dumps(values))
    return folder


# -- making -----------------------------------------------------------------------------------------


PATHS = ["../x", "..", ".", "/etc", "/etc/passwd", "a/b", "a\0b", "x" * 300, "", " ", "a b", "-x", ".x", "a\n", "a\\b"]
WEIRD = [
    "~",
    "$HOME",
    "a:b",
    "\N{PARTY POPPER}",
    "\N{RIGHT-TO-LEFT OVERRIDE}x",
    "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
]


@pytest.mark.parametrize("name", [*PATHS, *WEIRD])
def test_a_name_that_is_no_plain_folder_name_is_refused_and_nothing_is_made(runs, name):
    runs.parent.mkdir()
    with pytest.raises(ConfigError, match="--exp-name"):
        create(runs, CONFIG, name)
    assert everything(runs.parent) == []


@pytest.mark.parametrize("name", ["a", "a-b_c.d+e=f", "2024", "_", "x" * 100])
def test_a_plain_name_becomes_the_folders(runs, name):
    assert create(runs, CONFIG, name).path == runs / "toy_grid" / "toy" / name


@pytest.mark.parametrize("scenario", ["mpe/simple_tag", "marlctl:toy_grid", "marlctl.testing.toy:Grid"])
def test_a_scenarios_name_becomes_one_folder(runs, scenario):
    env = {"n_agents": 2, "size": 3, "max_cycles": 4} if "Grid" in scenario else {}
    config = resolve({"run": {"algo": "toy", "scenario": scenario, "num_episodes": 5}, "env": env})
    folder = create(runs, config, "a")
    assert len(folder.path.relative_to(runs).parts) == 3
    assert folder.config().values == config.values
    assert find(runs).path == folder.path


def test_runs_that_start_in_one_second_get_names_of_their_own(runs, monkeypatch):
    class Stopped(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2024, 5, 6, 7, 8, 9, tzinfo=tz)

    monkeypatch.setattr(rundir, "datetime", Stopped)
    names = [create(runs, CONFIG, None).path.name for _ in range(4)]
    assert names == [f"20240506-070809-s0{number}" for number in ("", "-2", "-3", "-4")]


def test_processes_that_start_at_once_get_folders_of_their_own(runs):
    code = f"""if True:
        from pathlib import Path
        from marlctl.config import resolve
        from marlctl.rundir import create
        config = resolve({{"run": {{"algo": "toy", "scenario": "toy_grid", "num_episodes": 5}}}})
        print(*(create(Path({str(runs)!r}), config, None).path.name for _ in range(20)))
    """
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    names = [name for process in started for name in process.communicate()[0].split()]
    assert len(names) == len(set(names)) == len(find_all(runs)) == 40


def test_a_name_that_is_taken_is_refused_and_the_run_is_not_touched(runs):
    folder = create(runs, CONFIG, "a")
    before = (folder.path / "run.toml").read_bytes()
    with pytest.raises(ConfigError, match=r"already holds a run; --restore continues it, --force starts anew"):
        create(runs, CONFIG, "a")
    assert (folder.path / "run.toml").read_bytes() == before


def test_force_moves_the_old_run_aside_and_loses_nothing(runs):
    old = create(runs, CONFIG, "a")
    (old.path / "metrics.jsonl").write_text("{}\n")
    new = create(runs, CONFIG, "a", force=True)
    assert new.path == old.path
    assert not new.metrics.exists()
    (aside,) = (path for path in new.path.parent.iterdir() if path != new.path)
    assert (aside / "metrics.jsonl").read_text() == "{}\n"
    assert [run.path for run in find_all(runs)] == [new.path]


def test_force_does_not_move_a_run_that_is_being_used(runs):
    folder = create(runs, CONFIG, "a")
    with lock(folder), pytest.raises(BusyError, match=f"process {os.getpid()}"):
        create(runs, CONFIG, "a", force=True)
    assert is_run(folder.path)


def test_a_run_may_be_called_almost_like_one_that_was_moved_aside(runs):
    folder = create(runs, CONFIG, "a.old-b")
    assert find(runs).path == folder.path


def test_a_file_in_the_way_is_explained(runs):
    runs.mkdir(parents=True)
    (runs / "toy_grid").write_text("")
    with pytest.raises((ConfigError, StorageError), match="toy_grid"):
        create(runs, CONFIG, "a")


def test_a_folder_that_cannot_be_written_is_explained():
    with pytest.raises(StorageError, match="cannot make /proc/runs/toy_grid/toy/a"):
        create(Path("/proc/runs"), CONFIG, "a")


# -- what a run says about itself -------------------------------------------------------------------


def test_run_toml_says_everything_needed_to_run_again_and_where_it_came_from(runs):
    folder = create(runs, CONFIG, "a")
    assert folder.config() == CONFIG
    about = folder.values()["about"]
    assert about["versions"]["marlctl"]
    assert about["versions"]["numpy"]
    assert about["plugins"]["algo"].startswith("marlctl ")
    assert datetime.fromisoformat(about["created"]).tzinfo is not None


def test_writing_again_keeps_when_and_how_it_began(runs):
    folder = create(runs, CONFIG, "a")
    about = folder.values()["about"]
    longer = resolve({"run": {**CONFIG.values["run"], "num_episodes": 50}})
    folder.write(longer)
    assert folder.values()["about"] == about
    assert folder.config().run.num_episodes == 50


def test_a_run_file_whose_about_was_taken_out_can_be_written_again(runs):
    folder = create(runs, CONFIG, "a")
    (folder.path / "run.toml").write_text(tomli_w.dumps(CONFIG.values))
    folder.write(CONFIG)
    assert folder.created


@pytest.mark.parametrize("content", [b"", b"\xff", b"not toml", b"[run\n", b"seed = 1", b"#" * 1_000_001])
def test_a_damaged_run_file_is_a_bad_file_and_hides_no_other_run(runs, content):
    good, bad = create(runs, CONFIG, "good"), create(runs, CONFIG, "bad")
    (bad.path / "run.toml").write_bytes(content)
    if content:
        with pytest.raises(FileError, match=r"run\.toml"):
            bad.values()
    assert find(runs).path == good.path
    assert find(runs, "good").path == good.path


def test_a_run_file_that_is_gone_is_a_bad_file(tmp_path):
    with pytest.raises(FileError, match=r"run\.toml"):
        RunFolder(tmp_path).config()


# -- finding ----------------------------------------------------------------------------------------


def test_the_newest_run_is_the_one_that_says_so_whatever_the_file_times(runs):
    first = made(runs, "z", "2024-01-01T00:00:00.000000+00:00")
    second = made(runs, "a", "2024-01-02T00:00:00.000000+00:00")
    os.utime(first.path / "run.toml")
    assert find(runs).path == second.path
    assert [run.path for run in find_all(runs)] == [first.path, second.path]


def test_a_run_is_found_by_its_name_its_path_and_the_end_of_its_path(runs, monkeypatch):
    folder = create(runs, CONFIG, "mine")
    create(runs, CONFIG, "other")
    monkeypatch.chdir(runs)
    for name in ("mine", "toy/mine", "toy_grid/toy/mine", str(folder.path), "./toy_grid/toy/mine"):
        assert find(runs, name).path.resolve() == folder.path.resolve()


def test_a_name_that_several_runs_have_is_refused_with_their_paths(runs):
    other = resolve({"run": {"algo": "toy", "scenario": "probe/matching", "num_episodes": 5}})
    create(runs, CONFIG, "mine")
    newer = create(runs, other, "mine")
    with pytest.raises(
        ConfigError, match=r"several runs are called mine(.|\n)*toy_grid/toy/mine(.|\n)*matching/toy/mine"
    ):
        find(runs, "mine")
    assert find(runs, "toy_grid/toy/mine").path != newer.path
    assert find(runs, "mine", among="probe-*/toy").path == newer.path


def test_a_moved_folder_works_where_it_is_now(runs, tmp_path):
    folder = create(runs, CONFIG, "mine")
    there = tmp_path / "elsewhere" / "renamed"
    shutil.copytree(folder.path, there)
    shutil.rmtree(runs)
    assert find(runs, str(there)).config() == CONFIG


def test_an_unknown_run_is_explained_with_near_ones(runs):
    create(runs, CONFIG, "first-try")
    with pytest.raises(ConfigError, match="did you mean first-try"):
        find(runs, "frist-try")
    with pytest.raises(ConfigError, match="no runs below"):
        find(runs / "nothing")


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a\0b", "x" * 300, "x" * 5000, "\N{PARTY POPPER}", " ", "a/" * 50]
)
def test_what_cannot_be_a_path_is_no_run(runs, name):
    create(runs, CONFIG, "mine")
    with pytest.raises(ConfigError, match="no run"):
        find(runs, name)


# -- holding ----------------------------------------------------------------------------------------

HOLDER = """if True:
    import sys, time
    from pathlib import Path
    from marlctl.rundir import RunFolder, lock
    with lock(RunFolder(Path(sys.argv[1]))):
        print("held", flush=True)
        time.sleep(60)
"""


@pytest.fixture
def holder(runs):
    """A run folder, and another process that holds it."""
    folder = create(runs, CONFIG, "a")
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder.path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield folder, process
    process.kill()
    process.communicate()


def test_a_second_holder_is_told_which_process_on_which_host_has_the_folder(holder):
    folder, process = holder
    with pytest.raises(BusyError, match=f"process {process.pid} on {socket.gethostname()}"), lock(folder):
        pytest.fail("two hold one folder")


def test_a_holder_that_is_killed_lets_go(holder):
    folder, process = holder
    process.send_signal(signal.SIGKILL)
    process.wait()
    for _ in range(50):
        try:
            with lock(folder):
                return
        except BusyError:
            time.sleep(0.05)
    pytest.fail("the folder is still held")


def test_a_folder_can_be_held_again_after_it_was_let_go(runs):
    folder = create(runs, CONFIG, "a")
    for _ in range(3):
        with lock(folder), pytest.raises(BusyError), lock(folder):
            pass


def test_a_lock_that_is_a_link_is_refused_and_what_it_points_to_is_not_touched(runs, tmp_path):
    folder = create(runs, CONFIG, "a")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (folder.path / ".lock").symlink_to(victim)
    with pytest.raises(StorageError, match="cannot write"), lock(folder):
        pass
    assert victim.read_text() == "precious"


def test_a_file_system_without_locks_is_not_mistaken_for_another_process(runs, monkeypatch):
    folder = create(runs, CONFIG, "a")

    def no_locks(file, how):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(rundir.fcntl, "flock", no_locks)
    with pytest.raises(StorageError, match="No locks available"), lock(folder):
        pass
