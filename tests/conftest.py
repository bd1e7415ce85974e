from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marlctl import config as configs
from marlctl.rundir import RunFolder, create
from marlctl.testing.toy import ToyGrid


class Silent:
    """A watch that remembers and says nothing."""

    def __init__(self):
        self.notes, self.rows, self.saves = [], [], []

    def started(self, config, spec, notes):
        self.notes = notes

    def tick(self, progress):
        pass

    def row(self, row):
        self.rows.append(row)

    def saved(self, step):
        self.saves.append(step)


@pytest.fixture
def silent() -> Silent:
    return Silent()


EVERY = {"eval_every": 20, "save_rate": 20, "log_every": 5}
TOY = {"run": {"algo": "toy", "scenario": "toy_grid", "num_episodes": 60, **EVERY}}


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., tuple[configs.Config, RunFolder]]:
    """A new run folder for the toy, with these values changed: make_run("name", {"run": {...}, "algo": {...}})."""

    def make(name: str = "toy", values: dict[str, Any] | None = None) -> tuple[configs.Config, RunFolder]:
        config = configs.resolve(configs.merge(TOY, values or {}))
        return config, create(tmp_path / "runs", config, name)

    return make


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The grid, judged by its best agent, and solved by a mean of 0.4 over 20 episodes."""
    monkeypatch.setattr(ToyGrid, "score", lambda self, returns: returns.max(-1), raising=False)
    monkeypatch.setattr(ToyGrid, "solved_at", 0.4, raising=False)
    monkeypatch.setattr(ToyGrid, "solved_over", 20, raising=False)


@pytest.fixture(scope="session")
def toy_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A finished toy run; not to be changed."""
    from marlctl.training import train

    config = configs.resolve(TOY)
    folder = create(tmp_path_factory.mktemp("toy") / "runs", config, "toy")
    train(config, folder, Silent())
    return folder
