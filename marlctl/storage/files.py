"""Files that are whole or not there, read only if they are what they were."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from marlctl.errors import FileError, StorageError

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO must not keep us waiting
_LEFTOVERS = ".*.part"


def sha256(data: bytes | memoryview) -> str:
    """The SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def write_whole(path: Path, data: bytes | memoryview) -> None:
    """Put `data` at `path`: after a crash at any moment the old file is there or the new one, never a part.

    When this returns, the file has reached the disk under its name.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        with _storing(path, len(data)):
            _write(part, data)
            part.replace(path)
            sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _write(path: Path, data: bytes | memoryview) -> None:
    file = os.open(path, _CREATE, 0o666)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
    finally:
        os.close(file)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` last: files that came, went or changed their name."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot, and need not
            raise
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make `folder` inside one that exists, so that it lasts."""
    with _storing(folder):
        if not folder.is_dir():
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)


def remove(*paths: Path) -> None:
    """Remove files of one folder, those that are still there, so that they stay removed."""
    for path in paths:
        with _storing(path, act="removed"):
            path.unlink(missing_ok=True)
    if paths:
        with _storing(paths[0].parent):
            sync_folder(paths[0].parent)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of a process that was killed while it wrote."""
    remove(*folder.glob(_LEFTOVERS))


def trial(folder: Path, needed: int) -> None:
    """Write and remove a small file in `folder`, and see that `needed` bytes are free."""
    path = folder / ".trial.part"
    write_whole(path, b"marlctl was here")
    remove(path)
    free = _free(folder)
    if free is not None and free < needed:
        raise StorageError(
            f"{folder} has {free:,} bytes free and the run needs about {needed:,}; "
            "free some space, choose another folder, or keep fewer checkpoints"
        )


def read_plain(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; links, pipes and devices are refused."""
    try:
        file = os.open(path, _READ)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise FileError(f"{path} is not a regular file")
            if status.st_size > limit:
                raise FileError(f"{path} has {status.st_size:,} bytes; no more than {limit:,} belong there")
            with os.fdopen(file, "rb", closefd=False) as stream:
                return stream.read(status.st_size)
        finally:
            os.close(file)
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise FileError(f"{path} cannot be read: {reason}") from error
    except ValueError as error:  # a NUL in the name
        raise FileError(f"{str(path)!r} cannot be read: {error}") from error


def read_verified(path: Path, size: int, digest: str) -> bytes:
    """The bytes of `path` if they have this size and SHA-256, and nothing otherwise."""
    data = read_plain(path, size)
    if len(data) != size:
        raise FileError(f"{path} has {len(data):,} bytes where {size:,} were saved; it is cut short or replaced")
    if sha256(data) != digest:
        raise FileError(f"{path} is damaged: its SHA-256 is not the one that was saved")
    return data


@contextmanager
def _storing(path: Path, needed: int = 0, act: str = "written") -> Iterator[None]:
    """Turn what the operating system says into what the user can do about it."""
    try:
        yield
    except OSError as error:
        free = _free(path.parent)
        raise StorageError(
            f"{path} could not be {act}: {error.strerror or error} "
            f"({needed:,} bytes needed, {'unknown' if free is None else f'{free:,}'} free); "
            "free some space or make the folder writable, then go on from the last checkpoint with --restore"
        ) from error


def _free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
