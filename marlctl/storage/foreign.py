"""Look into an HDF5 file of unknown origin: in a process of its own, with little memory and little time.

libhdf5 can be crashed by a crafted file. A checkpoint is checked against its manifest before libhdf5
sees it; a file without one is opened only here, where a crash is an answer like any other.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import marlctl
from marlctl.errors import FileError
from marlctl.storage.files import read_plain
from marlctl.storage.hdf5 import Entry, summary

_MEMORY = 2 << 30
_SECONDS = 20


def inspect_foreign(path: Path) -> list[Entry]:
    """What the file holds, or a FileError; never a crash."""
    command = [sys.executable, "-m", "marlctl.storage.foreign", str(path.absolute())]
    home = Path(marlctl.__file__).parents[1]  # Python would import from the present folder, which may be hostile too
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # each thread would take its share of the memory
    try:
        child = subprocess.run(command, cwd=home, env=env, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise FileError(f"{path} takes more than {_SECONDS} s to read; it is damaged or hostile") from error
    except ValueError as error:  # a NUL in the name
        raise FileError(f"{str(path)!r} cannot be read: {error}") from error
    if child.returncode == FileError.exit_code:
        raise FileError(child.stderr.decode(errors="replace"))
    if child.returncode:
        raise FileError(f"{path} takes the HDF5 library down ({child.returncode}); it is damaged or hostile")
    return [Entry(name, tuple(shape), dtype, size) for name, shape, dtype, size in json.loads(child.stdout)]


def _main(path: Path) -> int:
    """The child's side: JSON on stdout, or the reason on stderr."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    try:
        data = read_plain(path, _MEMORY // 2)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))  # from here on no other file can be opened
        sys.stdout.write(json.dumps(summary(data, source=str(path))))
    except FileError as error:
        sys.stderr.write(str(error))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1])))
