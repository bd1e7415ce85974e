"""What is true of the repository as a whole: who imports what, and that its words match its deeds."""

import ast
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import marlctl

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
TRY = "pip install -c constraints.txt . && marlctl train --algo maddpg --scenario simple_tag"
DEVELOP = "pip install -c constraints.txt -e '.[all,test]' && pytest"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ENTRIES = [
    *PROJECT["scripts"].values(),
    *(value for group in PROJECT["entry-points"].values() for value in group.values()),
]


def sources(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in found if "tests" not in path.relative_to(ROOT).parts)


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imported(path: Path) -> set[str]:
    """Every module a file imports, wherever in it, by its full name."""
    names: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def called(path: Path) -> set[str]:
    """Every dotted name a file calls or hands on, such as `torch.load`."""
    return {ast.unparse(node) for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute | ast.Name)}


def loaded_by(program: str, *arguments: str) -> set[str]:
    """The modules a fresh Python has loaded after running the program."""
    code = f"""
import json, sys
sys.argv = ["marlctl", *{list(arguments)!r}]
try:
    {program}
except SystemExit as end:
    assert not end.code, end.code
print("\\n" + json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


# -- words and deeds ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", [TRY, DEVELOP])
def test_the_readme_has_the_command_in_a_block_of_its_own(command):
    blocks = re.findall(r"^```\w*\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert f"{command}\n" in blocks


def test_ci_runs_what_the_readme_tells_contributors_to_run():
    assert DEVELOP in (ROOT / ".ci" / "run").read_text().splitlines()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_every_link_in_the_readme_and_docs_leads_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_constraints_are_plain_pins():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9A-Za-z.]*( ; python_version < '3\.\d+')?", line), line


def test_constraints_pin_everything_the_project_names():
    pinned = {
        re.split("==", line)[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    named = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    names = {re.match(r"[A-Za-z0-9_-]+", line)[0].lower() for line in named if "python_version < '3.11'" not in line}
    assert names - {"marlctl"} <= pinned


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_point_leads_to_something(entry):
    module, _, name = entry.partition(":")
    assert callable(getattr(import_module(module), name))


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "runs").glob("*.toml")), ids=lambda path: path.stem)
def test_every_run_file_of_the_examples_is_a_run(path):
    from marlctl.config import read_file, resolve
    from marlctl.wheel import open_env

    env, _ = open_env(resolve(read_file(path)), 1)
    env.close()


def test_there_are_at_most_twenty_public_names_and_each_is_there():
    assert len(marlctl.__all__) <= 20
    for name in marlctl.__all__:
        assert getattr(marlctl, name) is not None


# -- who imports what ---------------------------------------------------------------------------


def test_the_core_names_no_plugin():
    for path in sources("marlctl"):
        assert not {name for name in imported(path) if name.startswith("marlctl_")}, path


def test_only_storage_imports_h5py():
    for path in sources("marlctl", "plugins"):
        if "storage" not in path.parts:
            assert "h5py" not in {name.partition(".")[0] for name in imported(path)}, path


def test_typer_and_rich_stay_in_the_command_line():
    for path in sources("marlctl", "plugins"):
        if "cli" not in path.parts:
            assert not {"typer", "rich"} & {name.partition(".")[0] for name in imported(path)}, path


def test_nothing_can_run_code_from_a_file():
    modules = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "yaml"}
    calls = {"torch.load", "torch.save", "torch.jit.load", "eval", "exec", "np.load", "numpy.load", "np.lib.format"}
    for path in sources("marlctl", "plugins", "examples"):
        assert not modules & {name.partition(".")[0] for name in imported(path)}, path
        assert not calls & called(path), path
        assert "allow_pickle" not in path.read_text(), path


@pytest.mark.parametrize("module", ["storage.checkpoint", "memory", "contracts", "records"])
def test_storage_memory_and_the_contracts_need_no_torch(module):
    assert "torch" not in loaded_by(f"import marlctl.{module}")


@pytest.mark.parametrize("module", ["contracts", "records", "memory", "wheel"])
def test_what_a_plugin_author_imports_needs_no_cli(module):
    assert not {"typer", "rich", "marlctl.cli"} & loaded_by(f"import marlctl.{module}")


@pytest.mark.parametrize("command", ["--help", "--version", "train --help", "plugins list"])
def test_a_quick_command_imports_nothing_heavy_and_no_plugin(command):
    loaded = loaded_by("from marlctl.cli import main; main()", *command.split())
    heavy = {"torch", "h5py", "numpy", "gymnasium", "pettingzoo", "matplotlib", "stevedore"}
    assert not heavy & loaded
    assert not {name for name in loaded if name.startswith("marlctl_") or name.startswith("marlctl.testing")}
