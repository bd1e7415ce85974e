"""Whatever happens at whatever moment: the last acknowledged checkpoint loads, or a newer one."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl.errors import StorageError
from marlctl.storage.checkpoint import Checkpoints


class PowerCut(BaseException):
    """Nothing runs after it."""


@pytest.fixture
def trainer(tmp_path_factory, make_ring, save):
    """Make a run folder with checkpoints of steps 1 and 2, and the trainer that would now save step 3."""

    def make():
        folder = tmp_path_factory.mktemp("run")
        checkpoints, ring = Checkpoints(folder), make_ring(10)
        for step in (1, 2):
            save(checkpoints, ring, step)
        return folder, checkpoints, ring

    return make


def calls_of(trainer, faults, act):
    """How many calls reach the disk when nothing goes wrong."""
    _, checkpoints, ring = trainer()
    with faults.at() as trace:
        act(checkpoints, ring)
    return len(trace.calls)


def tidy(folder):
    """Tidy up, and see that only what the manifests name is left."""
    Checkpoints(folder).tidy()
    checkpoints = Checkpoints(folder)
    there = {path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".json"}
    steps = [int(path.stem[5:]) for path in folder.glob("checkpoints/*.json")]
    assert there == {Path(file.name).name for step in steps for file in checkpoints.at(step).files}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("sticky", [False, True])
def test_a_disk_that_fails_at_any_call_costs_only_that_save(trainer, faults, save, check, code, sticky):
    count = calls_of(trainer, faults, lambda checkpoints, ring: save(checkpoints, ring, 3))
    assert count >= 18
    for n in range(1, count + 1):
        folder, checkpoints, ring = trainer()
        error = OSError(code, os.strerror(code))
        with faults.at(n, error, sticky), pytest.raises(StorageError, match=r"bytes needed, .* free\); ") as caught:
            save(checkpoints, ring, 3)
        assert caught.value.exit_code == 8
        assert check(folder, memory=10) in (2, 3)
        save(checkpoints, ring, 4)
        checkpoints.prune(1)
        assert check(folder, memory=10) == 4
        tidy(folder)


def test_a_failed_save_leaves_nothing_that_fills_the_disk_further(trainer, faults, save):
    count = calls_of(trainer, faults, lambda checkpoints, ring: save(checkpoints, ring, 3))
    for n in range(1, count - 2):  # before the manifest has its name
        folder, checkpoints, ring = trainer()
        before = sorted(folder.rglob("*"))
        with faults.at(n, OSError(errno.ENOSPC, "full")), pytest.raises(StorageError):
            save(checkpoints, ring, 3)
        assert sorted(folder.rglob("*")) == before


def test_a_crash_at_any_call_of_save_and_prune_leaves_the_old_or_the_new_state(trainer, faults, save, check):
    def save_and_prune(checkpoints, ring):
        save(checkpoints, ring, 3)
        checkpoints.prune(1)

    count = calls_of(trainer, faults, save_and_prune)
    assert count >= 26
    steps = []
    for n in range(1, count + 1):
        folder, checkpoints, ring = trainer()
        with faults.at(n, PowerCut(), sticky=True), pytest.raises(PowerCut):
            save_and_prune(checkpoints, ring)
        steps.append(check(folder, memory=10))
        tidy(folder)
        assert check(folder, memory=10) == steps[-1]
    assert steps == sorted(steps)
    assert set(steps) == {2, 3}


def test_an_older_checkpoint_goes_only_when_the_new_one_is_safe(trainer, faults, save):
    folder, checkpoints, ring = trainer()
    with faults.at() as trace:
        save(checkpoints, ring, 3)
        saved = len(trace.calls)
        checkpoints.prune(1)
    assert "unlink" not in [name for name, *_ in trace.calls[:saved]]
    assert [name for name, *_ in trace.calls[saved - 3 : saved]] == ["replace", "open", "fsync"]
    assert trace.calls[saved - 3][2] == folder / "checkpoints/step-000000000003.json"
    removed = [call[1].suffix for call in trace.calls[saved:] if call[0] == "unlink"]
    assert removed[:2] == [".json", ".json"]
    assert set(removed[2:]) == {".h5"}


def test_no_kill_loses_a_checkpoint_that_was_acknowledged(tmp_path):
    script = Path(__file__).with_name("saver.py")
    command = [sys.executable, str(script), str(tmp_path), "100", "1"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout)
    assert (seen["lost"], seen["skipped"]) == (0, 0)
    assert seen["saved"] > 50  # the savers did work,
    assert seen["leftovers"] > 0  # and some were killed in the middle of it


def test_a_disk_that_is_really_full_is_a_storage_error(trainer, tmp_path):
    """A file size limit in a process of its own stands for the full disk."""
    code = (
        "import resource, signal, sys, numpy as np; from pathlib import Path\n"
        "from marlctl.storage.checkpoint import Checkpoints; from marlctl.errors import StorageError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); c = Checkpoints(Path(sys.argv[1])); c.save(1, {'w': 1}, {})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "try: c.save(2, {'w': np.zeros(100_000)}, {})\n"
        "except StorageError as error: sys.exit(f'{c.newest()[0].step} {error}')\n"
    )
    result = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert result.stderr.startswith("1 ")
    assert "File too large (80" in result.stderr
    assert len(list(tmp_path.rglob("*.*"))) == 2


class Journal:
    """What reached the disk, in order; from it, every disk that a power cut could leave behind."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.operations, self._names = folder, [], {}

    def record(self, monkeypatch):
        real = {name: getattr(os, name) for name in ("open", "write", "fsync")}
        replace, unlink = Path.replace, Path.unlink

        def opening(path, *args, **kwargs):
            handle = real["open"](path, *args, **kwargs)
            self._names[handle] = Path(path)
            return handle

        def writing(handle, data):
            self.operations.append(("write", self._names[handle], bytes(data)))
            return real["write"](handle, data)

        def syncing(handle):
            self.operations.append(("sync", self._names[handle], None))
            real["fsync"](handle)

        def renaming(path, target):
            self.operations.append(("rename", path, target))
            return replace(path, target)

        def unlinking(path, missing_ok=False):
            if path.exists():
                self.operations.append(("unlink", path, None))
            unlink(path, missing_ok=missing_ok)

        for owner, name, call in (
            (os, "open", opening),
            (os, "write", writing),
            (os, "fsync", syncing),
            (Path, "replace", renaming),
            (Path, "unlink", unlinking),
        ):
            monkeypatch.setattr(owner, name, call)

    def acknowledge(self, step: int) -> None:
        self.operations.append(("ack", step, None))

    def disk(self, cut: int, choose) -> tuple[dict[Path, bytes], int]:
        """Files after a power cut at operation `cut`, and the last acknowledged step.

        What was synced is there. Of the rest, `choose` decides: how much of a file's data, and which changes
        of a folder's names, in any combination.
        """
        data: dict[Path, bytes] = {}  # content that is safe or was chosen, by the name it was written under
        files: dict[Path, bytes] = {}  # names that are safe
        pending: list[tuple] = []
        acknowledged = 0
        for kind, a, b in self.operations[:cut]:
            if kind == "write":
                data[a] = data.get(a, b"") + b
            elif kind == "sync" and a.is_dir():
                self._apply([change for change in pending if change[1].parent == a], files)
                pending = [change for change in pending if change[1].parent != a]
            elif kind in ("rename", "unlink"):
                synced = ("sync", a, None) in self.operations[:cut]
                content = data.get(a, b"")
                pending.append((kind, b or a, content if synced else content[: choose(len(content))]))
            elif kind == "ack":
                acknowledged = a
        self._apply([change for change in pending if choose(1)], files)
        return files, acknowledged

    @staticmethod
    def _apply(changes, files):
        for kind, path, content in changes:
            if kind == "rename":
                files[path] = content
            else:
                files.pop(path, None)


def test_no_power_cut_loses_a_checkpoint_that_was_acknowledged(tmp_path, make_ring, save, check, tmp_path_factory):
    journal, ring = Journal(tmp_path), make_ring(20)
    checkpoints = Checkpoints(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        journal.record(patch)
        for step in (1, 2, 3, 4):
            save(checkpoints, ring, step)
            journal.acknowledge(step)
            checkpoints.prune(1)
    first = journal.operations.index(("ack", 1, None)) + 1
    place = tmp_path_factory.mktemp("disk")

    @given(st.integers(first, len(journal.operations)), st.data())
    @settings(deadline=None, database=None, max_examples=500)
    def every_disk_recovers(cut, data):
        files, acknowledged = journal.disk(cut, lambda most: data.draw(st.integers(0, most)))
        shutil.rmtree(place)
        for path, content in files.items():
            target = place / path.relative_to(tmp_path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        assert check(place, memory=20) >= acknowledged
        Checkpoints(place).tidy()
        assert check(place, memory=20) >= acknowledged

    every_disk_recovers()
