"""Replay in immutable segments, so that a save writes only the rows that are new.

Rows are numbered by when they were added, for ever. A segment holds rows `start` to `stop - 1`; it never
changes, and is dropped when the memory has forgotten all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from marlctl.errors import FileError
from marlctl.records import Array
from marlctl.storage.files import make_folder, read_verified, sha256, write_whole
from marlctl.storage.hdf5 import pack, unpack

FOLDER = "replay"
LIMIT = 64_000_000  # bytes of rows a segment
TAIL = 1 / 8  # of that, up to which short tails are put together


class Memory(Protocol):
    """A memory of joint transitions that can be stored and filled again."""

    @property
    def total(self) -> int:
        """Rows ever added."""

    @property
    def oldest(self) -> int:
        """The number of the oldest row still held; `total` if there is none."""

    def rows(self, start: int, stop: int) -> Mapping[str, Array]:
        """Rows `start` to `stop - 1`, all still held: one array a field; no rows are empty arrays."""

    def fill(self, start: int, rows: Mapping[str, Array]) -> None:
        """Take rows back, `start` being the first one's number; called with consecutive pieces."""


@dataclass(frozen=True)
class StoredFile:
    """A file as it was when it was saved; `name` is relative to the run folder."""

    name: str
    size: int
    sha256: str

    @classmethod
    def write(cls, folder: Path, stem: str, data: bytes) -> StoredFile:
        """Write `data` under a name that ends with its digest, so that no content takes another's place."""
        digest = sha256(data)
        file = cls(f"{stem}-{digest[:12]}.h5", len(data), digest)
        write_whole(folder / file.name, data)
        return file

    def read(self, folder: Path) -> bytes:
        return read_verified(folder / self.name, self.size, self.sha256)

    def is_there(self, folder: Path) -> bool:
        """A quick look, without reading it."""
        try:
            return (folder / self.name).lstat().st_size == self.size
        except OSError:
            return False


@dataclass(frozen=True)
class Segment:
    start: int
    stop: int
    file: StoredFile

    @property
    def length(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class StoredReplay:
    """What a memory held: rows `oldest` to `total - 1`, in consecutive segments."""

    oldest: int
    total: int
    segments: tuple[Segment, ...]


def save(folder: Path, memory: Memory, before: Sequence[Segment] = ()) -> StoredReplay:
    """Store what `memory` holds; segments of an earlier save, `before`, are used again."""
    oldest, total = memory.oldest, memory.total
    kept = list(_usable(folder, before, oldest, total))
    start = max(kept[-1].stop if kept else 0, oldest)
    if start < total:
        make_folder(folder / FOLDER)
        longest = _longest(memory, start)
        # Small tails are written again together with what is new, as in a binary counter: with a save every
        # few rows there are still few segments, and a row is written O(log) times in all.
        small = longest * TAIL
        while kept and oldest <= kept[-1].start and kept[-1].length <= total - start <= small - kept[-1].length:
            start = kept.pop().start
        kept += [_write(folder, memory, at, min(at + longest, total)) for at in range(start, total, longest)]
    return StoredReplay(oldest, total, tuple(kept))


def load(folder: Path, replay: StoredReplay, memory: Memory) -> None:
    """Fill `memory` with the rows that were held; fields that it does not have are refused."""
    fields = _fields(memory.rows(memory.total, memory.total))
    for segment in replay.segments:
        path = folder / segment.file.name
        rows = unpack(segment.file.read(folder), source=str(path))
        if _fields(rows) != fields:
            raise FileError(f"{path} has other fields than this run's memory")
        if any(len(array) != segment.length for array in rows.values()):
            raise FileError(f"{path} does not hold rows {segment.start} to {segment.stop}")
        skip = max(replay.oldest - segment.start, 0)
        memory.fill(segment.start + skip, {name: array[skip:] for name, array in rows.items()})


def _usable(folder: Path, before: Sequence[Segment], oldest: int, total: int) -> Iterator[Segment]:
    """Segments that still count, up to the first one that is gone."""
    if before and before[-1].stop > total:  # of another memory
        return iter(())
    return takewhile(lambda s: s.file.is_there(folder), (s for s in before if s.stop > oldest))


def _longest(memory: Memory, row: int) -> int:
    """Rows that fit into one segment."""
    return max(1, LIMIT // max(1, sum(array.nbytes for array in memory.rows(row, row + 1).values())))


def _write(folder: Path, memory: Memory, start: int, stop: int) -> Segment:
    data = pack(memory.rows(start, stop))
    return Segment(start, stop, StoredFile.write(folder, f"{FOLDER}/rows-{start}-{stop}", data))


def _fields(rows: Mapping[str, Any]) -> dict[str, Any]:
    """What is the same for every row: each field's shape and type."""
    return {name: (array.shape[1:], array.dtype) if np.ndim(array) else None for name, array in rows.items()}
