import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from marlctl.cli import main
from marlctl.rundir import RunFolder


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def marlctl(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Run a command in this process, as the shell would: marlctl("runs", "list") -> code, out, err."""

    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["marlctl", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as exit:
            main()
        out, err = capfd.readouterr()
        code = exit.value.code
        return Said(code if isinstance(code, int) else 0 if code is None else 1, out, err)

    return run


@pytest.fixture
def runs(toy_run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of runs with a finished one of our own to change, and nothing else around."""
    monkeypatch.chdir(tmp_path)
    save_dir = toy_run.path.parents[2]
    shutil.copytree(save_dir, tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture
def run(runs: Path) -> RunFolder:
    return RunFolder(runs / "toy_grid" / "toy" / "toy")


@pytest.fixture
def files(run: RunFolder) -> Callable[[], dict[str, bytes]]:
    """What the run folder holds now."""
    return lambda: {str(p.relative_to(run.path)): p.read_bytes() for p in run.path.rglob("*") if p.is_file()}


@pytest.fixture
def scored_run(scored: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marlctl: Callable[..., Said]) -> Said:
    """What training the grid with a score said; its run is the newest."""
    monkeypatch.chdir(tmp_path)
    flags = ("--num-episodes", 30, "--eval-every", 15, "--exp-name", "scored")
    return marlctl("train", "--algo", "toy", "--scenario", "toy_grid", *flags)
