"""Reading the plain loop's .npz: plain numbers and nothing else, since no file of ours may run code."""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np

from marlctl.errors import FileError
from marlctl.records import Array

MAGIC = b"\x93NUMPY\x01\x00"  # the first version of the format, which every small array has
HEADER = 10  # bytes before the header, the last two of them its length


def read_arrays(path: Path) -> dict[str, Array]:
    """The float32 arrays of an .npz by name; anything else is a bad file."""
    try:
        with ZipFile(path) as archive:
            return {name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()}
    except (BadZipFile, KeyError, SyntaxError, TypeError, ValueError) as error:
        raise FileError(f"{path} does not hold plain arrays: {error}") from error


def _array(data: bytes) -> Array:
    begin = HEADER + int.from_bytes(data[HEADER - 2 : HEADER], "little")
    header = literal_eval(data[HEADER:begin].decode("latin1")) if data.startswith(MAGIC) else {}
    if (header.get("descr"), header.get("fortran_order")) != ("<f4", False):
        raise ValueError(f"an array of {header.get('descr', 'an unknown kind')}")
    return np.frombuffer(data, "<f4", offset=begin).reshape(header["shape"])
