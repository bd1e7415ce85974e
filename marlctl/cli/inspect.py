"""`marlctl inspect`: what is inside a file, without trusting it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marlctl.cli import show
from marlctl.cli.flags import Json

if TYPE_CHECKING:
    from marlctl.storage.manifest import Manifest
    from marlctl.storage.segments import StoredFile


# Files of a run folder that need no inspecting.
_TEXT = {
    ".toml": "a run file, text in TOML; `marlctl runs show {folder}` shows the run",
    ".jsonl": "text, a JSON object a line; `marlctl plot {folder}` draws a run's metrics",
}


def inspect(
    file: Annotated[Path, typer.Argument(help="An HDF5 file, or the manifest (.json) of a checkpoint.")],
    json: Json = False,
) -> None:
    """Show what an HDF5 file or a checkpoint's manifest holds; a bad file can do no harm."""
    from marlctl.errors import FileError

    if file.is_dir():
        raise FileError(f"{file} is a folder; `marlctl runs show {file}` shows a run")
    if file.suffix in _TEXT and file.is_file():
        raise FileError(f"{file} is {_TEXT[file.suffix].format(folder=file.parent)}")
    if file.suffix == ".json":
        return _manifest(file, json)
    return _arrays(file, json)


def _arrays(file: Path, json: bool) -> None:
    from marlctl.storage.foreign import inspect_foreign

    owner = _vouched(file)
    entries = inspect_foreign(file)
    if json:
        arrays = [{"name": e.path, "shape": list(e.shape), "dtype": e.dtype, "bytes": e.size} for e in entries]
        return show.as_json({"file": str(file), "manifest": owner, "arrays": arrays})
    rows = [[e.path, _shape(e.shape), _dtype(e.dtype), show.size(e.size)] for e in entries]
    show.table(["array", "shape", "numbers", "size"], rows)
    total = show.size(sum(e.size for e in entries))
    word = f"whole, as {owner} says" if owner else "no manifest beside it speaks of this file"
    return show.say(f"{show.count(len(entries), 'array')}, {total}; {word}")


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "one number"


def _dtype(code: str) -> str:
    """A dtype by its name; one that numpy does not know stays as it is."""
    import numpy as np

    try:
        return np.dtype(code).name
    except TypeError:
        return code


def _vouched(file: Path) -> str | None:
    """The manifest that names the file, if there is one; a file that is not what it says is a FileError."""
    from marlctl.errors import FileError

    folder = file.absolute().parent.parent
    for path in sorted((folder / "checkpoints").glob("*.json")):
        try:
            stored = _read(path).files
        except FileError:
            continue  # a damaged manifest vouches for nothing
        for one in stored:
            if folder / one.name == file.absolute():
                one.read(folder)
                return path.name
    return None


def _read(path: Path) -> Manifest:
    from marlctl.storage.files import read_plain
    from marlctl.storage.manifest import MAX_SIZE, parse

    return parse(read_plain(path, MAX_SIZE), str(path))


def _manifest(file: Path, json: bool) -> None:
    from dataclasses import asdict

    manifest = _read(file)
    states = {stored.name: _state(file, stored) for stored in manifest.files}
    if json:
        return show.as_json({**asdict(manifest), "files": states})
    replay = manifest.replay
    show.facts(
        {
            "kind": {"full": "full, to go on from", "policy": "best policy"}[manifest.kind],
            "step": f"{manifest.step:,}",
            **{name: value for name, value in manifest.note.items() if isinstance(value, str | int | float)},
            "replay": f"rows {replay.oldest:,} to {replay.total:,}" if replay else "none",
        }
    )
    rows = [[stored.name, show.size(stored.size), stored.sha256[:12], states[stored.name]] for stored in manifest.files]
    show.table(["file", "size", "SHA-256", ""], rows)
    return None


def _state(file: Path, stored: StoredFile) -> str:
    """Whether a file of the checkpoint is what it was."""
    from marlctl.errors import FileError

    folder = file.absolute().parent.parent
    if not (folder / stored.name).exists():
        return "missing"
    try:
        stored.read(folder)
    except FileError:
        return "damaged"
    return "whole"
