"""Checkpoints: immutable files, and a manifest whose rename commits them.

Beside the manifests in `checkpoints/` lie the state files they name, and in `replay/` the segments. A file
that no manifest names does not count; a checkpoint whose files do not match its manifest does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from marlctl.errors import ConfigError, FileError, StorageError
from marlctl.storage import segments
from marlctl.storage.files import make_folder, read_plain, remove, remove_leftovers, write_whole
from marlctl.storage.hdf5 import pack, unpack
from marlctl.storage.manifest import MAX_SIZE, MAX_STEP, NAME, Kind, Manifest, parse
from marlctl.storage.segments import Memory, Segment, StoredFile

FOLDER = "checkpoints"
_STEMS: dict[Kind, str] = {"full": "step", "policy": "best"}


class Checkpoints:
    """The checkpoints of one run folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in (FOLDER, segments.FOLDER):
            if (folder / name).is_symlink():  # or another run's files would be swept away as ours
                raise FileError(f"{folder / name} is a link; a run keeps its files in its own folder")
        self._segments: tuple[Segment, ...] = ()  # of the memory as last saved or filled
        self._serial = 0  # of the last save

    def save(
        self, step: int, state: Mapping[str, Any], note: Mapping[str, Any], memory: Memory | None = None
    ) -> Manifest:
        """Store what `--restore` needs. When this returns, no crash can take it away."""
        return self._save("full", step, state, note, memory)

    def save_best(self, step: int, state: Mapping[str, Any], note: Mapping[str, Any]) -> Manifest:
        """Store the best policy so far; the one before goes with the next `prune`."""
        return self._save("policy", step, state, note, None)

    def newest(self, *, replay: bool = True) -> tuple[Manifest, list[str]]:
        """The last full checkpoint that is whole, and why later ones were skipped.

        Without `replay`, the replay files need not be there.
        """
        manifests, skipped = self._read("full")
        for manifest in manifests:
            try:
                self._verify(manifest, replay)
            except FileError as error:
                skipped.append(str(error))
            else:
                return manifest, skipped
        if skipped:
            raise FileError("\n".join(("no checkpoint can be read:", *skipped)))
        raise FileError(f"{self._folder} has no checkpoint; its training never began")

    def best(self) -> Manifest | None:
        """The best policy, or None if none was saved yet."""
        manifests, damaged = self._read("policy")
        if damaged:
            raise FileError(damaged[0])
        if not manifests:
            return None
        self._verify(manifests[0])
        return manifests[0]

    def at(self, step: int, *, replay: bool = True) -> Manifest:
        """The full checkpoint of `step`."""
        path = self._path("full", step)
        if not path.exists():
            steps = ", ".join(str(manifest.step) for manifest in self._read("full")[0]) or "none"
            raise ConfigError(f"{self._folder} has no checkpoint of step {step}; there are: {steps}")
        manifest = _load(path)
        self._verify(manifest, replay)
        return manifest

    def read_state(self, manifest: Manifest) -> dict[str, Any]:
        """The state that was saved."""
        return unpack(manifest.state.read(self._folder), source=str(self._folder / manifest.state.name))

    def fill(self, manifest: Manifest, memory: Memory) -> None:
        """Give `memory` the rows it had, and go on from these segments."""
        if manifest.replay is None:
            raise FileError(f"{self._path(manifest.kind, manifest.step)} has no replay")
        segments.load(self._folder, manifest.replay, memory)
        self._segments = manifest.replay.segments

    def prune(self, keep: int) -> None:
        """Remove full checkpoints before the last `keep`, and all policies but the last best one."""
        full = self._read("full")[0]
        whole = [manifest for manifest in full if all(file.is_there(self._folder) for file in manifest.files)]
        old = [manifest for last in whole[max(keep, 1) - 1 :][:1] for manifest in full if manifest.serial < last.serial]
        remove(*(self._path(manifest.kind, manifest.step) for manifest in old + self._read("policy")[0][1:]))
        self._sweep()

    def forget_after(self, manifest: Manifest) -> None:
        """Remove the best policies saved later: a run that goes on from `manifest` will save them again."""
        later = [best for best in self._read("policy")[0] if best.serial > manifest.serial]
        remove(*(self._path(best.kind, best.step) for best in later))

    def tidy(self) -> None:
        """Remove what a killed process left behind. Only for who holds the run folder."""
        for name in ("", FOLDER, segments.FOLDER):
            remove_leftovers(self._folder / name)
        self._sweep()

    def _save(
        self, kind: Kind, step: int, state: Mapping[str, Any], note: Mapping[str, Any], memory: Memory | None
    ) -> Manifest:
        if not 0 <= step < MAX_STEP:
            raise ValueError(f"step {step} is out of range")
        path = self._path(kind, step)
        try:
            make_folder(self._folder / FOLDER)
            file = StoredFile.write(self._folder, f"{FOLDER}/{path.stem}", pack(state))
            replay = None if memory is None else segments.save(self._folder, memory, self._segments)
            data = Manifest(kind, step, self._next_serial(), dict(note), file, replay).dump()
            manifest = parse(data, str(path))  # nothing is written that could not be read
            write_whole(path, data)
        except StorageError:
            with suppress(StorageError):  # on a full disk, files without a manifest are only in the way
                self._sweep()
            raise
        self._serial = manifest.serial
        self._segments = replay.segments if replay else self._segments
        return manifest

    def _next_serial(self) -> int:
        return 1 + max([self._serial, *(manifest.serial for kind in _STEMS for manifest in self._read(kind)[0])])

    def _path(self, kind: Kind, step: int) -> Path:
        return self._folder / FOLDER / f"{_STEMS[kind]}-{step:012d}.json"

    def _manifests(self, stem: str) -> list[Path]:
        return sorted((self._folder / FOLDER).glob(f"{stem}-{'[0-9]' * 12}.json"))

    def _read(self, kind: Kind) -> tuple[list[Manifest], list[str]]:
        """Manifests of one kind, the last saved first, and what is wrong with those that cannot be read."""
        manifests, damaged = [], []
        for path in self._manifests(_STEMS[kind]):
            try:
                manifests.append(_load(path))
            except FileError as error:
                damaged.append(str(error))
        return sorted(manifests, key=lambda manifest: manifest.serial, reverse=True), damaged

    def _verify(self, manifest: Manifest, replay: bool = True) -> None:
        for file in manifest.files if replay else (manifest.state,):
            file.read(self._folder)

    def _sweep(self) -> None:
        """Remove our files that no manifest mentions; while one cannot be read, nobody knows which those are."""
        if any(self._read(kind)[1] for kind in _STEMS):
            return
        manifests = (path for stem in _STEMS.values() for path in self._manifests(stem))
        try:
            mentioned = b"".join(read_plain(path, MAX_SIZE) for path in manifests)
        except FileError:
            return
        for folder in (FOLDER, segments.FOLDER):
            names = (f"{folder}/{path.name}" for path in (self._folder / folder).glob("*.h5"))
            orphans = (name for name in names if NAME.fullmatch(name) and name.encode() not in mentioned)
            remove(*(self._folder / name for name in orphans))


def _load(path: Path) -> Manifest:
    manifest = parse(read_plain(path, MAX_SIZE), str(path))
    if path.name != f"{_STEMS[manifest.kind]}-{manifest.step:012d}.json":
        raise FileError(f"{path} belongs to another checkpoint, of kind {manifest.kind} and step {manifest.step}")
    return manifest
