"""ma-gym is imported without gym, leaves nothing behind, and is missed only by who asks for it."""

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from marlctl.errors import ConfigError, PluginError
from marlctl_magym import _options_class, cage, family

NEEDS_MA_GYM = pytest.mark.skipif(find_spec("ma_gym") is None, reason="ma-gym is not installed")
OPEN = "from marlctl.plugins import environment; environment('ma-gym/Combat-v0')().make().reset(seed=0)"


def run(code: str) -> list[str]:
    """What a fresh Python prints as JSON; warnings are errors there too."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import json, sys\n{code}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.fixture
def afresh():
    """As if nothing of ma-gym had been opened yet, before and after."""
    _options_class.cache_clear(), cage.registered.cache_clear()
    yield
    _options_class.cache_clear(), cage.registered.cache_clear()


@NEEDS_MA_GYM
def test_opening_a_scenario_leaves_no_gym_behind():
    gyms = "[name for name in sys.modules if name.partition('.')[0] in ('gym', 'ma_gym', 'pyglet')]"
    assert run(f"{OPEN}\nprint(json.dumps({gyms}))") == []


@NEEDS_MA_GYM
def test_a_gym_that_was_there_is_back():
    code = f"""
from types import ModuleType
theirs = {{name: ModuleType(name) for name in ("gym", "gym.spaces", "gym.wrappers", "ma_gym", "ma_gym.envs")}}
sys.modules.update(theirs)
{OPEN}
now = {{name: module for name, module in sys.modules.items() if name.partition(".")[0] in ("gym", "ma_gym")}}
print(json.dumps([name for name in {{**now, **theirs}} if now.get(name) is not theirs.get(name)]))
"""
    assert run(code) == []


@NEEDS_MA_GYM
def test_a_gym_is_back_also_when_ma_gym_breaks(afresh, monkeypatch):
    gym = object()
    monkeypatch.setitem(sys.modules, "gym", gym)

    def broken(name):
        assert sys.modules["gym"] is not gym
        raise ZeroDivisionError

    monkeypatch.setattr(cage, "import_module", broken)
    with pytest.raises(ZeroDivisionError):
        family("Combat-v0")
    assert sys.modules["gym"] is gym
    assert "gym.spaces" not in sys.modules


def test_a_missing_extra_comes_with_the_command_that_installs_it(afresh, monkeypatch):
    monkeypatch.setitem(sys.modules, "ma_gym", None)
    with pytest.raises(PluginError, match=r"ma-gym/Combat-v0 .*pip install 'marlctl\[magym\]'"):
        family("Combat-v0")
    assert sys.modules["ma_gym"] is None


def test_names_and_everything_else_work_without_the_extra(afresh, monkeypatch):
    from marlctl.plugins import Kind, environment, installed

    monkeypatch.setitem(sys.modules, "ma_gym", None)
    assert "ma-gym" in {plugin.name for plugin in installed(Kind.FAMILY)}
    with pytest.raises(ConfigError, match="did you mean ma-gym/Combat-v0"):
        environment("ma-gym/Combat-v1")
    environment("Switch2-v0")().make().reset()


def test_naming_the_family_imports_nothing_heavy():
    loaded = run("import marlctl_magym\nprint(json.dumps(list(sys.modules)))")
    assert not {"numpy", "gymnasium", "pettingzoo", "ma_gym"} & set(loaded)
