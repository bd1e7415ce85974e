"""A run folder: made once, locked while it is used, and able to explain itself wherever it is moved."""

from __future__ import annotations

import fcntl
import os
import platform
import re
import socket
import stat
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import tomli_w

from marlctl import config as configs
from marlctl import plugins
from marlctl.config import Config, Values
from marlctl.errors import BusyError, ConfigError, FileError, StorageError
from marlctl.options import unknown
from marlctl.storage.files import sync_folder, write_whole

RUN_FILE = "run.toml"


@dataclass(frozen=True)
class RunFolder:
    """Where a run keeps what it makes."""

    path: Path

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def timings(self) -> Path:
        return self.path / "timings.jsonl"

    def values(self) -> Values:
        """What run.toml says, [about] included."""
        try:
            values = configs.read_file(self.path / RUN_FILE)
        except ConfigError as error:
            raise FileError(str(error)) from error
        if not {"scenario", "algo"} <= values.get("run", {}).keys():
            raise FileError(f"{self.path / RUN_FILE} does not say which scenario and algorithm it is of")
        return values

    def config(self) -> Config:
        """The run's own configuration, as it was resolved when it began."""
        return configs.resolve(self.values())

    @property
    def created(self) -> str:
        """When the run began; the empty text when its run.toml is damaged."""
        try:
            return str(self.values().get("about", {}).get("created", ""))
        except FileError:
            return ""

    def write(self, config: Config, command: str = "") -> None:
        about = self.values().get("about") if (self.path / RUN_FILE).is_file() else None
        values: dict[str, Any] = {**config.values, "about": about or _about(config, command)}
        write_whole(self.path / RUN_FILE, tomli_w.dumps(values).encode())


def _about(config: Config, command: str) -> dict[str, Any]:
    return {
        "created": datetime.now(timezone.utc).isoformat(timespec="microseconds"),
        "command": command,
        "python": platform.python_version(),
        "versions": versions(config),
        "plugins": {"algo": _origin(plugins.Kind.ALGORITHM, config.run.algo), "env": _env_origin(config.run.scenario)},
    }


def versions(config: Config) -> dict[str, str]:
    """What the numbers of a run may depend on: the packages of its plugins and marlctl, and all they ask for."""
    packages = {"marlctl", *(plugins.owner(type(part)).partition(" ")[0] for part in (config.algo, config.env))}
    asked = {re.split(r"[^\w.-]", text, maxsplit=1)[0] for name in packages for text in _requirements(name)}
    found = {}
    for name in sorted(packages | asked):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _requirements(package: str) -> list[str]:
    try:
        return [text for text in requires(package) or [] if "extra ==" not in text]
    except PackageNotFoundError:
        return []


def _origin(kind: plugins.Kind, name: str) -> str:
    try:
        return plugins.find(kind, name).origin
    except ConfigError:
        return name  # a factory, or a name with its version


def _env_origin(scenario: str) -> str:
    family, slash, _ = scenario.partition("/")
    return _origin(plugins.Kind.FAMILY, family) if slash else _origin(plugins.Kind.ENVIRONMENT, scenario)


def create(save_dir: Path, config: Config, name: str | None, *, force: bool = False, command: str = "") -> RunFolder:
    """Make `save_dir/<scenario>/<algo>/<name>`; an existing run is not touched unless `force` moves it aside."""
    if name is not None and not re.fullmatch(r"[A-Za-z0-9_][\w.+=-]{0,99}", name, re.ASCII):
        raise ConfigError(f"--exp-name {name!r} cannot be a folder's name; use letters, digits, and any of . _ + = -")
    parent = save_dir / as_folder(config.run.scenario) / as_folder(config.run.algo)
    stamp = name or f"{datetime.now():%Y%m%d-%H%M%S}-s{config.run.seed}"
    try:
        for level in (save_dir.parent, save_dir, parent.parent, parent):
            level.mkdir(parents=True, exist_ok=True)
            sync_folder(level.parent)
        path = _new_folder(parent, stamp, chosen=name is not None, force=force)
    except FileExistsError as error:
        raise ConfigError(f"{error.filename} is a file, and a folder is needed there") from error
    except OSError as error:
        raise StorageError(f"cannot make {parent / stamp}: {error.strerror}") from error
    sync_folder(path.parent)
    folder = RunFolder(path)
    folder.write(config, command)
    return folder


def as_folder(name: str) -> str:
    """A scenario's or an algorithm's name as that of a folder."""
    return re.sub(r"[^\w.-]+", "-", name)


def _new_folder(parent: Path, stamp: str, *, chosen: bool, force: bool) -> Path:
    for number in range(1, 1000):
        path = parent / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            path.mkdir()
            return path
        except FileExistsError:
            if not chosen:
                continue
            if path.is_dir() and not any(path.iterdir()):
                return path  # left by a start that was killed at once
            if not force:
                raise ConfigError(
                    f"{path} already holds a run; --restore continues it, --force starts anew, "
                    "another --exp-name leaves it alone"
                ) from None
            with lock(RunFolder(path)):  # somebody may be using it
                aside = path.with_name(f"{path.name}.old-{datetime.now():%Y%m%d-%H%M%S-%f}")
                path.rename(aside)
            path.mkdir()
            return path
    raise ConfigError(f"{parent} holds too many runs called {stamp}")


class lock:
    """Hold a run folder for this process alone; the system lets go when the process dies, however it does."""

    def __init__(self, folder: RunFolder) -> None:
        self._path = folder.path / ".lock"

    def __enter__(self) -> None:
        try:
            self._file = os.open(
                self._path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644
            )
        except OSError as error:
            raise StorageError(f"cannot write {self._path}: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            os.close(self._file)
            raise FileError(f"{self._path} is no plain file, as a lock must be; remove it")
        try:
            self._take()
        except BlockingIOError:
            owner = self._owner()
            os.close(self._file)
            raise BusyError(f"{self._path.parent} is in use by {owner}; wait for it or stop it") from None
        except OSError as error:
            os.close(self._file)
            raise StorageError(f"cannot lock {self._path}: {error.strerror}") from error
        os.ftruncate(self._file, 0)
        os.write(self._file, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def _take(self) -> None:
        """At once, or a moment later: somebody may only be looking whether the run is running."""
        for _ in range(5):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(0.02)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _owner(self) -> str:
        """Who holds the lock; it may just be about to write its name."""
        for _ in range(20):
            if said := os.pread(self._file, 200, 0).decode(errors="replace").strip():
                return said
            time.sleep(0.01)
        return "another process"

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def is_run(path: Path) -> bool:
    """Whether a run lies there; what cannot be a path is none."""
    try:
        return (path / RUN_FILE).is_file()
    except OSError:  # a name too long, a folder that may not be entered
        return False


def is_aside(path: Path) -> bool:
    """Whether `--force` moved this run out of the way."""
    return re.search(r"\.old-\d{8}-\d{6}-\d{6}$", path.name) is not None


def find_all(save_dir: Path, among: str = "*/*") -> list[RunFolder]:
    """Every run below `save_dir`, oldest first."""
    paths = [path.parent for path in save_dir.glob(f"{among}/*/{RUN_FILE}")]
    runs = [RunFolder(path) for path in paths if not is_aside(path)]
    return sorted(runs, key=lambda run: (run.created, run.path.name))


def find(save_dir: Path, name: str | None = None, *, among: str = "*/*") -> RunFolder:
    """The run of that path or name, or the newest when none is named; `among` is a pattern of scenario/algorithm."""
    if name is not None:
        if is_run(Path(name)):
            return RunFolder(Path(name))
        runs = find_all(save_dir, among)
        hits = [run for run in runs if run.path.name == name or str(run.path).endswith(f"/{name}")]
        if len(hits) > 1:
            raise ConfigError(
                "\n".join([f"several runs are called {name}; say which:", *(str(run.path) for run in hits)])
            )
        if hits:
            return hits[0]
        known = [run.path.name for run in runs]
        raise ConfigError(unknown(name, known, what=f"run (as a path, or below {save_dir})"))
    runs = find_all(save_dir, among)
    if not runs:
        raise ConfigError(f"no runs below {save_dir}; `marlctl train` makes one, --save-dir looks elsewhere")
    return runs[-1]
