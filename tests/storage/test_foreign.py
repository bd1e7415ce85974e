import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from marlctl.errors import FileError
from marlctl.storage import foreign
from marlctl.storage.foreign import inspect_foreign
from marlctl.storage.hdf5 import pack, summary


def test_a_good_file_is_listed_as_the_gate_lists_it(tmp_path, monkeypatch):
    data = pack({"a": {"w": np.zeros((3, 0, 2), np.float32)}, "b": True})
    (tmp_path / "x.h5").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    assert inspect_foreign(Path("x.h5")) == summary(data)


def test_a_hostile_file_is_refused_with_the_gates_reason(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["w"] = h5py.ExternalLink("/etc/passwd", "/w")
    with pytest.raises(FileError, match=r"x\.h5 is refused: '/w' is a link") as caught:
        inspect_foreign(path)
    assert str(caught.value).count(str(path)) == 1


def test_what_is_not_a_plain_small_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(3 << 30)
    for name in ("fifo", "folder", "huge", "missing", "nul\0"):
        with pytest.raises(FileError):
            inspect_foreign(tmp_path / name)


def test_python_files_beside_the_file_are_not_imported(tmp_path, monkeypatch):
    (tmp_path / "x.h5").write_bytes(pack({"a": 1}))
    for module in ("numpy", "json", "marlctl", "resource"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'canary')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    assert inspect_foreign(Path("x.h5"))[0].path == "a"
    assert not (tmp_path / "canary").exists()


@pytest.fixture
def child(tmp_path, monkeypatch):
    """Put a script in the place of the child."""

    def replace(script: str) -> Path:
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(foreign.sys, "executable", str(program))
        return tmp_path / "x.h5"

    return replace


def test_a_child_that_crashes_is_a_bad_file(child):
    with pytest.raises(FileError, match="takes the HDF5 library down"):
        inspect_foreign(child("kill -SEGV $$"))


def test_a_child_that_hangs_is_a_bad_file(child, monkeypatch):
    monkeypatch.setattr(foreign, "_SECONDS", 0.3)
    with pytest.raises(FileError, match="takes more than"):
        inspect_foreign(child("exec sleep 30"))
