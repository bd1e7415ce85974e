"""A stranger's distribution: installing it is enabling it, uninstalling it is disabling it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "third_party"
TRAIN = ["train", "--algo", "reinforce", "--scenario", "rendezvous", "--num-envs", "8", "--exp-name", "met"]


def call(arguments: list[str], *, path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(path), "CI": "true"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def marlctl(*arguments: str, path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = "import sys; sys.argv[0] = 'marlctl'; from marlctl.cli import main; main()"
    return call(["-c", program, *arguments], path=path, cwd=cwd)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The distribution, installed into a folder of its own from a copy of its source."""
    source, target = (tmp_path_factory.mktemp(name) for name in ("source", "target"))
    shutil.copytree(EXAMPLE, source, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "runs"))
    quietly = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    done = call([*quietly, "--target", str(target), str(source)], path=source, cwd=source)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def site(built, tmp_path) -> Path:
    """An installation that a test may take away again."""
    return Path(shutil.copytree(built, tmp_path / "site"))


def listed(site: Path, cwd: Path) -> set[tuple[str, str]]:
    done = marlctl("plugins", "list", "--json", path=site, cwd=cwd)
    assert done.returncode == 0, done.stderr
    plugins = json.loads(done.stdout)["plugins"]
    return {(p["kind"], p["name"]) for p in plugins if p["package"] == "marlctl-example-plugin"}


def test_installing_lists_both_and_uninstalling_takes_them_away(site, tmp_path):
    assert listed(site, tmp_path) == {("algorithm", "reinforce"), ("environment", "rendezvous")}
    shutil.rmtree(site)
    assert listed(site, tmp_path) == set()

    done = marlctl(*TRAIN, path=site, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: no algorithm 'reinforce'")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_listing_imports_nothing_of_it(site, tmp_path):
    for module in (site / "marlctl_example").glob("*.py"):
        module.write_text("raise SystemExit('imported')\n")
    assert len(listed(site, tmp_path)) == 2


def test_a_stranger_that_breaks_on_import_is_one_clear_error(site, tmp_path):
    (site / "marlctl_example" / "reinforce.py").write_text("import not_there\n")
    done = marlctl(*TRAIN, path=site, cwd=tmp_path)
    assert done.returncode == 4
    for word in ("reinforce", "marlctl-example-plugin 1.0.0", "not_there", "pip install --force-reinstall"):
        assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_a_strangers_algorithm_learns_a_strangers_game(site, tmp_path):
    budget = ["--num-episodes", "2000", "--eval-every", "1000", "--json"]
    done = marlctl(*TRAIN, *budget, path=site, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "runs/rendezvous/reinforce/met/metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    explored = [row["return"]["total"] for row in rows if row["kind"] == "train"]
    assert explored[0] < 1.0
    assert explored[-1] > 1.7
    assert json.loads(done.stdout)["eval"]["return"]["total"] > 1.8  # the best pair there is gets about 1.88

    scored = marlctl("eval", "met", "--episodes", "50", "--json", path=site, cwd=tmp_path)
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["total"]["mean"] > 1.8

    shutil.rmtree(site)
    orphan = marlctl("eval", "met", path=site, cwd=tmp_path)
    assert orphan.returncode == 2
    assert "no algorithm 'reinforce'" in orphan.stderr


def test_its_own_tests_pass(site, tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__", "marlctl_example"))
    done = call(["-m", "pytest", "-q", "-p", "no:cacheprovider"], path=site, cwd=tmp_path / "source")
    assert done.returncode == 0, done.stdout + done.stderr
