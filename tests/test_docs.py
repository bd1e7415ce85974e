import re
import sys
from pathlib import Path

import pytest

from marlctl import config as configs
from marlctl.evaluation import evaluate
from marlctl.metrics import read
from marlctl.rundir import create
from marlctl.training import train

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def linear(tmp_path, monkeypatch):
    """The learner of docs/plugins.md, installed as the page says."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / "plugins.md").read_text(), re.DOTALL | re.MULTILINE)
    (code,) = [block for block in blocks if "class LinearLearner" in block]
    (tmp_path / "linear.py").write_text(code)
    info = tmp_path / "marlctl_linear-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: marlctl-linear\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[marlctl.algorithms]\nlinear = linear:Linear\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "linear"
    sys.modules.pop("linear", None)


def test_the_learner_of_the_page_on_plugins_runs_and_resumes(linear, tmp_path, silent):
    every = {"log_every": 10, "save_rate": 50, "eval_every": 0}
    values = {"run": {"algo": linear, "scenario": "toy_grid", "num_episodes": 60, **every}}
    config = configs.resolve(values)
    whole, parts = (create(tmp_path / "runs", config, name) for name in ("whole", "parts"))
    train(config, whole, silent)
    train(configs.resolve(configs.merge(values, {"run": {"num_episodes": 30}})), parts, silent)
    train(config, parts, silent, restore=True)
    assert whole.metrics.read_bytes() == parts.metrics.read_bytes()
    assert any("loss" in row for row in read(whole.metrics))
    assert len(evaluate(whole, episodes=3).returns) == 3


def test_the_learner_of_the_page_on_plugins_learns(linear, tmp_path, silent):
    run = {"algo": linear, "scenario": "probe/matching", "num_episodes": 400, "log_every": 20, "eval_every": 0}
    config = configs.resolve({"run": run})
    folder = create(tmp_path / "runs", config, "matching")
    train(config, folder, silent)
    losses = [row["loss"]["agent_0.loss"] for row in read(folder.metrics) if "loss" in row]
    assert losses[-1] < 0.1 * losses[0]


def test_the_commands_page_knows_every_flag_it_maps_from_openai_maddpg(marlctl_help):
    table = (DOCS / "commands.md").read_text().partition("### From openai/maddpg")[2].partition("## eval")[0]
    flags = set(re.findall(r"--[a-z][a-z-]+", table))
    assert len(flags) >= 20
    assert [flag for flag in sorted(flags) if flag not in marlctl_help] == []


@pytest.fixture
def marlctl_help():
    import typer

    from marlctl.cli import app

    command = typer.main.get_command(app)
    return {name for sub in command.commands.values() for option in sub.params for name in option.opts}
