"""The manifest of a checkpoint: which files belong to it, and how to know that they are whole."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

from marlctl.errors import FileError
from marlctl.storage.files import sha256
from marlctl.storage.hdf5 import LIMIT
from marlctl.storage.segments import Segment, StoredFile, StoredReplay

FORMAT = 1
MAX_SIZE = 8 << 20
MAX_STEP = 10**12
_MAX_ROWS = 1 << 53
NAME = re.compile(r"(checkpoints/(step|best)-[0-9]{12}|replay/rows-[0-9]{1,16}-[0-9]{1,16})-[0-9a-f]{12}\.h5")
_DIGEST = re.compile(r"[0-9a-f]{64}")

Kind = Literal["full", "policy"]  # what `--restore` continues from; weights alone, kept as the best


@dataclass(frozen=True)
class Manifest:
    """A committed checkpoint."""

    kind: Kind
    step: int
    serial: int  # counts the saves of a folder: after going back to an older step, what comes later is newer
    note: Mapping[str, Any]  # whatever the trainer wants to know again
    state: StoredFile
    replay: StoredReplay | None = None

    @property
    def files(self) -> tuple[StoredFile, ...]:
        return (self.state, *(segment.file for segment in (self.replay.segments if self.replay else ())))

    def dump(self) -> bytes:
        """As JSON, with a digest of its own."""
        body = {"format": FORMAT, **asdict(self)}
        return (json.dumps({**body, "sha256": _digest(body)}, indent=1, allow_nan=False) + "\n").encode()


def parse(data: bytes, source: str) -> Manifest:
    """The manifest that was dumped, or a FileError that begins with `source`."""
    try:
        return _parse(data)
    except FileError as error:
        raise FileError(f"{source} {error}") from error
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise FileError(f"{source} is not a manifest: {error}") from error


def _parse(data: bytes) -> Manifest:
    body = json.loads(data, object_pairs_hook=_unique)
    if not isinstance(body, dict):
        raise FileError("is not a manifest")
    if body.get("format") != FORMAT or type(body["format"]) is not int:
        raise FileError(f"has format {str(body.get('format'))[:20]!r}; this marlctl reads {FORMAT}")
    if body.pop("sha256", None) != _digest(body):
        raise FileError("is damaged: it does not match its own SHA-256")
    del body["format"]
    _check(set(body) == {"kind", "step", "serial", "note", "state", "replay"}, "its fields")
    manifest = Manifest(
        kind=body["kind"],
        step=_count(body["step"], MAX_STEP),
        serial=_count(body["serial"]),
        note=body["note"],
        state=_file(body["state"], "checkpoints/"),
        replay=None if body["replay"] is None else _replay(body["replay"]),
    )
    _check(manifest.kind in get_args(Kind), "its kind")
    _check(manifest.kind == "full" or manifest.replay is None, "a policy with replay")
    _check(isinstance(manifest.note, dict), "its note")
    _check(len({file.name for file in manifest.files}) == len(manifest.files), "a file named twice")
    return manifest


def _replay(value: Any) -> StoredReplay:
    _check(isinstance(value, dict) and set(value) == {"oldest", "total", "segments"}, "its replay")
    _check(isinstance(value["segments"], list), "its segments")
    replay = StoredReplay(_count(value["oldest"]), _count(value["total"]), tuple(map(_segment, value["segments"])))
    bounds = [replay.oldest, *(segment.stop for segment in replay.segments)]
    starts = [segment.start for segment in replay.segments]
    _check(bounds[-1] == replay.total and all(a < b for a, b in pairwise(bounds)), "its rows")
    _check(starts[1:] == bounds[1:-1] and all(start <= replay.oldest for start in starts[:1]), "rows that are missing")
    return replay


def _segment(value: Any) -> Segment:
    _check(isinstance(value, dict) and set(value) == {"start", "stop", "file"}, "a segment")
    segment = Segment(_count(value["start"]), _count(value["stop"]), _file(value["file"], "replay/"))
    _check(segment.start < segment.stop, "an empty segment")
    return segment


def _file(value: Any, folder: str) -> StoredFile:
    _check(isinstance(value, dict) and set(value) == {"name", "size", "sha256"}, "a file")
    name, digest = value["name"], value["sha256"]
    _check(isinstance(name, str) and NAME.fullmatch(name) is not None and name.startswith(folder), "a file's name")
    _check(isinstance(digest, str) and _DIGEST.fullmatch(digest) is not None, "a file's SHA-256")
    return StoredFile(name, _count(value["size"], LIMIT + 1), digest)


def _count(value: Any, limit: int = _MAX_ROWS) -> int:
    _check(type(value) is int and 0 <= value < limit, "a number")
    return int(value)


def _check(fact: bool, what: str) -> None:
    if not fact:
        raise FileError(f"is not a manifest that marlctl wrote: {what} cannot be right")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    _check(len(values) == len(pairs), "a name given twice")
    return values


def _digest(body: Mapping[str, Any]) -> str:
    return sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode())
