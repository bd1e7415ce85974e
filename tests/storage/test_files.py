import errno
import os
import stat
from pathlib import Path

import pytest

from marlctl.errors import FileError, StorageError
from marlctl.storage import files


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def test_what_was_written_is_there(tmp_path):
    files.write_whole(tmp_path / "a", b"old")
    files.write_whole(tmp_path / "a", memoryview(b"newer"))
    files.write_whole(tmp_path / "empty", b"")
    assert (tmp_path / "a").read_bytes() == b"newer"
    assert (tmp_path / "empty").read_bytes() == b""
    assert names(tmp_path) == ["a", "empty"]


def test_the_order_is_data_fsync_rename_fsync_of_the_folder(tmp_path, faults):
    with faults.at() as trace:
        files.write_whole(tmp_path / "a", b"data")
    assert [name for name, *_ in trace.calls] == ["open", "write", "fsync", "replace", "open", "fsync"]
    assert trace.calls[4][1] == tmp_path


def test_a_disk_that_takes_a_few_bytes_at_a_time_gets_them_all(tmp_path, monkeypatch):
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: real(file, data[:7]))
        files.write_whole(tmp_path / "a", bytes(range(100)))
    assert (tmp_path / "a").read_bytes() == bytes(range(100))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS])
@pytest.mark.parametrize("n", range(1, 7))
def test_a_failing_disk_leaves_the_old_file_or_the_new_one_and_says_what_to_do(tmp_path, faults, n, code):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    error = OSError(code, os.strerror(code))
    advice = r"4 bytes needed, [0-9,]+ free.*free some space"
    with faults.at(n, error), pytest.raises(StorageError, match=advice) as caught:
        files.write_whole(path, b"data")
    assert str(path) in str(caught.value)
    assert os.strerror(code) in str(caught.value)
    assert path.read_bytes() == (b"old" if n < 5 else b"data")
    assert names(tmp_path) == ["a"]


def test_a_folder_that_is_missing_or_closed_is_a_storage_error(tmp_path):
    with pytest.raises(StorageError, match="No such file"):
        files.write_whole(tmp_path / "no" / "a", b"")
    with pytest.raises(StorageError, match="File name too long"):
        files.write_whole(tmp_path / ("x" * 255), b"")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="Not a directory"):
        files.make_folder(tmp_path / "file" / "folder")


def test_a_link_at_the_name_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "a").symlink_to(tmp_path / "target")
    files.write_whole(tmp_path / "a", b"data")
    assert (tmp_path / "target").read_bytes() == b"precious"
    assert not (tmp_path / "a").is_symlink()


def test_files_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        files.write_whole(tmp_path / "a", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(tmp_path, faults):
    (tmp_path / "notes.part").write_bytes(b"the user's")
    with faults.at(4, KeyboardInterrupt(), sticky=True), pytest.raises(KeyboardInterrupt):
        files.write_whole(tmp_path / "a", b"data")
    assert len(names(tmp_path)) == 2
    files.remove_leftovers(tmp_path)
    assert names(tmp_path) == ["notes.part"]


def test_verified_bytes_come_back(tmp_path):
    (tmp_path / "a").write_bytes(b"data")
    assert files.read_verified(tmp_path / "a", 4, files.sha256(b"data")) == b"data"


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"dat", "cut short"), (b"", "cut short"), (b"data+", "no more than 4"), (b"dAta", "is damaged")],
)
def test_other_bytes_are_refused(tmp_path, content, reason):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(FileError, match=reason) as caught:
        files.read_verified(tmp_path / "a", 4, files.sha256(b"data"))
    assert str(tmp_path / "a") in str(caught.value)


def test_what_is_not_a_regular_file_is_refused_without_waiting(tmp_path):
    (tmp_path / "a").write_bytes(b"data")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    handles = len(names("/proc/self/fd"))
    for name in ("link", "folder", "fifo", "missing", "nul\0", "/dev/zero", "/dev/null"):
        with pytest.raises(FileError):
            files.read_verified(tmp_path / name, 4, files.sha256(b"data"))
    assert len(names("/proc/self/fd")) == handles


def test_a_disk_that_cannot_be_read_is_a_file_error(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"data")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", lambda file: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        with pytest.raises(FileError, match="cannot be read: Input/output error"):
            files.read_plain(tmp_path / "a", 4)


def test_a_trial_save_leaves_nothing_and_asks_for_space(tmp_path):
    files.trial(tmp_path, 1000)
    with pytest.raises(StorageError, match="the run needs about 1,000,000,000,000,000,000"):
        files.trial(tmp_path, 10**18)
    assert names(tmp_path) == []
    with pytest.raises(StorageError):
        files.trial(tmp_path / "missing", 0)
