"""The one gate that opens HDF5.

An HDF5 file is an active document: it can point at other files, at itself, and at terabytes it does
not hold. Only plain trees pass here: groups and uncompressed arrays of numbers, each reached once, that
together are no larger than the file. libhdf5 sees bytes in memory and never a file on disk, because on a
full disk it can take the process down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any, NamedTuple

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5l, h5o, h5pl, h5s, h5t

from marlctl.errors import FileError
from marlctl.records import Array

LIMIT = 4 << 30
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MAX_OBJECTS = 100_000
_MAX_DEPTH = 32
_PLAIN = (h5t.INTEGER, h5t.FLOAT)
# All that h5py and numpy were seen to raise for a damaged file.
_BROKEN = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError),
    *(OSError, RuntimeError, SystemError, TypeError, ValueError),
)

# Even a group's index can be stored through a filter, and libhdf5 would load a library to read it.
while h5pl.size():
    h5pl.remove(0)


class Entry(NamedTuple):
    """One array of a file."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    size: int


def pack(tree: Mapping[str, Any]) -> bytes:
    """A nested mapping of arrays and plain numbers as an HDF5 image; the same tree gives the same bytes."""
    image = BytesIO()
    with h5py.File(image, "w") as file:
        _put(file, tree, "")
    data = image.getvalue()
    if len(data) > LIMIT:
        raise ValueError(f"a file of {len(data):,} bytes would be too large to be read back (at most {LIMIT:,})")
    return data


def unpack(data: bytes, *, source: str = "the HDF5 data", limit: int = LIMIT) -> dict[str, Any]:
    """The tree that was packed, or a FileError.

    Keys come in the order of their names; arrays are the caller's own; 0-d arrays are plain numbers.
    """
    tree: dict[str, Any] = {}
    with _opened(data, source, limit) as objects:
        for path, dataset in objects:
            parent = tree
            for name in path[:-1]:
                parent = parent[name]
            parent[path[-1]] = {} if dataset is None else _read(dataset)
    return tree


def summary(data: bytes, *, source: str = "the HDF5 data", limit: int = LIMIT) -> list[Entry]:
    """What a file holds, after the same checks as `unpack`."""
    with _opened(data, source, limit) as objects:
        return [
            Entry("/".join(path), dataset.shape, dataset.dtype.str, dataset.get_storage_size())
            for path, dataset in objects
            if dataset is not None
        ]


def _put(group: Any, tree: Mapping[str, Any], path: str) -> None:
    for name, value in sorted(tree.items(), key=lambda item: str(item[0])):
        here = f"{path}/{name}"
        if not isinstance(name, str) or not _is_plain_name(name):
            raise ValueError(f"{here!r}: a name in a state is a string without '/' and NUL, and not '', '.' or '..'")
        if isinstance(value, Mapping):
            _put(group.create_group(name), value, here)
        elif isinstance(value, (np.ndarray, np.generic, bool, int, float)):
            array = np.asarray(value)
            if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
                raise TypeError(f"{here!r}: a state holds numbers of at most 64 bits, not {array.dtype}")
            group.create_dataset(name, data=array)
        else:
            raise TypeError(f"{here!r}: a state holds arrays, plain numbers and mappings, not {type(value).__name__}")


def _is_plain_name(name: str) -> bool:
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


Object = tuple[tuple[str, ...], Any]  # where it is, and the dataset; None for a group


@contextmanager
def _opened(data: bytes, source: str, limit: int) -> Iterator[Iterator[Object]]:
    try:
        if not data.startswith(_SIGNATURE):  # libhdf5 would also look further in, behind another format
            raise FileError("it is not HDF5")
        if len(data) > limit:
            raise FileError(f"it has {len(data):,} bytes, more than the {limit:,} allowed")
        with h5py.File(BytesIO(data), "r") as file:
            yield _Walk(len(data)).objects(h5g.open(file.id, b"/"), ())
    except FileError as error:
        raise FileError(f"{source} is refused: {error}") from error
    except _BROKEN as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise FileError(f"{source} is damaged: {reason[:200]}") from error


class _Walk:
    """One pass over a file that refuses everything but a plain tree."""

    def __init__(self, size: int) -> None:
        self._bytes_left = size
        self._seen: set[int] = set()

    def objects(self, group: Any, path: tuple[str, ...]) -> Iterator[Object]:
        """Every object below `group`, parents first."""
        _refuse(len(path) >= _MAX_DEPTH, path, "is nested too deep")
        _refuse(group.get_num_objs() + len(self._seen) > _MAX_OBJECTS, path, "holds too many objects")
        _refuse(h5a.get_num_attrs(group) > 0, path, "has attributes")
        for raw in group:
            name = raw.decode()
            here = (*path, name)
            _refuse(not _is_plain_name(name), here, "has a forbidden name")
            child = self._child(group, raw, here)
            if isinstance(child, h5g.GroupID):
                yield here, None
                yield from self.objects(child, here)
            else:
                self._check(child, here)
                yield here, child

    def _child(self, group: Any, name: bytes, path: tuple[str, ...]) -> Any:
        _refuse(group.links.get_info(name).type != h5l.TYPE_HARD, path, "is a link to somewhere else")
        info = h5o.get_info(group, name)
        _refuse(info.type not in (h5o.TYPE_GROUP, h5o.TYPE_DATASET), path, "is neither a group nor an array")
        _refuse(info.rc != 1 or info.addr in self._seen, path, "can be reached twice")
        self._seen.add(info.addr)
        return h5o.open(group, name)

    def _check(self, dataset: Any, path: tuple[str, ...]) -> None:
        # The layout comes first: to tell the shape of a virtual dataset, libhdf5 opens other files.
        plan = dataset.get_create_plist()
        _refuse(plan.get_layout() != h5d.CONTIGUOUS, path, "is chunked, compressed or virtual")
        _refuse(plan.get_external_count() > 0, path, "lies in another file")
        _refuse(plan.get_nfilters() > 0, path, "goes through a filter")
        _refuse(h5a.get_num_attrs(dataset) > 0, path, "has attributes")
        kind = dataset.get_type()
        truth = kind.get_class() == h5t.ENUM and kind.dtype == np.dtype(bool)
        _refuse(kind.committed() or not (truth or kind.get_class() in _PLAIN), path, "does not hold plain numbers")
        _refuse(dataset.dtype.itemsize > 8, path, "has numbers of more than 64 bits")
        _refuse(dataset.get_space().get_simple_extent_type() == h5s.NULL, path, "has no shape")
        size = int(np.prod(dataset.shape, dtype=object)) * kind.get_size()
        self._bytes_left -= size
        stored = dataset.get_storage_size()
        _refuse(size != stored or self._bytes_left < 0, path, f"declares {size:,} bytes that the file does not hold")


def _refuse(condition: bool, path: tuple[str, ...], reason: str) -> None:
    if condition:
        where = "/" + "/".join(path)
        raise FileError(f"{where if len(where) < 100 else where[:100] + '...'!r} {reason}")


def _read(dataset: Any) -> Array | int | float | bool:
    array = np.empty(dataset.shape, dataset.dtype)
    if array.size:
        dataset.read(h5s.ALL, h5s.ALL, array)
    if array.dtype == bool and array.size and array.view(np.uint8).max() > 1:
        raise FileError("a truth value is neither true nor false")
    plain: Array | int | float | bool = array if array.ndim else array.item()
    return plain
