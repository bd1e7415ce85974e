"""Scenarios given as `package.module:factory`."""

import itertools
import sys

import pytest

from marlctl.errors import ConfigError, PluginError
from marlctl.factory import from_path
from marlctl.options import build, describe
from marlctl.plugins import environment

MODULE = """
from __future__ import annotations
from typing import TYPE_CHECKING, Literal
from mpe2 import simple_spread_v3, simple_tag_v3
from pettingzoo import ParallelEnv
if TYPE_CHECKING:
    from nowhere import Nothing

def spread(N: int = 3, local_ratio: float = 0.5, *, max_cycles: int = 25, kind: Literal["a", "b"] = "a",
           sizes: list = [1, 2], anything=None, render_mode=None):
    '''Cooperative navigation of my own.'''
    assert kind in "ab" and sizes and anything is None
    return simple_spread_v3.parallel_env(N=N, local_ratio=local_ratio, max_cycles=max_cycles, render_mode=render_mode)

def plain(odd: Nothing = 1):
    return simple_tag_v3.parallel_env()

def open(N: int = 3, **others):
    return simple_spread_v3.parallel_env(N=N, **others)

def required(N: int):
    return simple_spread_v3.parallel_env(N=N)

def helped():
    import {helper}
    return {helper}.make()

def turns():
    return simple_tag_v3.env()

def nothing():
    return 3

def broken():
    raise RuntimeError("no luck")

class Mine(ParallelEnv):
    metadata = {{"name": "mine"}}
    possible_agents = ["a"]
    def __init__(self, size: int = 2):
        self.size = size

five = 5
"""
COUNTER = itertools.count()


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The name of a module in the current folder, which is not on the path."""
    name = f"mine_{next(COUNTER)}"
    (tmp_path / f"{name}.py").write_text(MODULE.format(helper=f"{name}_helper"))
    (tmp_path / f"{name}_helper.py").write_text("from mpe2.simple_v3 import parallel_env as make")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(tmp_path))])
    return name


def test_parameters_become_options(mine):
    scenario = from_path(f"{mine}:spread")
    options = {o.name: (o.type, o.default) for o in describe(scenario)}
    assert options["N"] == (int, 3)
    assert options["local_ratio"] == (float, 0.5)
    assert set(options) == {"N", "local_ratio", "max_cycles", "kind", "sizes", "anything"}
    env = build(scenario, {"N": "5"}, owner="env").with_length(7).make(render_mode="rgb_array")
    assert len(env.possible_agents) == 5
    assert env.unwrapped.max_cycles == 7
    assert env.unwrapped.render_mode == "rgb_array"
    with pytest.raises(ConfigError, match="whole number"):
        build(scenario, {"N": "many"}, owner="env")
    with pytest.raises(ConfigError, match="one of a, b"):
        build(scenario, {"kind": "c"}, owner="env")


def test_a_scenario_is_found_by_its_path(mine):
    assert environment(f"{mine}:spread").__doc__ == "Cooperative navigation of my own."


def test_a_factory_need_not_take_a_render_mode_or_a_length(mine):
    scenario = from_path(f"{mine}:plain")()
    assert scenario.make(render_mode="rgb_array").possible_agents
    assert not hasattr(scenario, "with_length")


def test_open_keywords_are_open_options(mine):
    scenario = build(from_path(f"{mine}:open"), {"N": 2, "max_cycles": "9"}, owner="env")
    env = scenario.make(render_mode="rgb_array")
    assert env.unwrapped.max_cycles == 9
    assert env.unwrapped.render_mode == "rgb_array"
    assert len(env.possible_agents) == 2


def test_a_required_parameter_is_asked_for(mine):
    with pytest.raises(ConfigError, match="'N'"):
        build(from_path(f"{mine}:required"), {}, owner="env")


def test_a_class_is_a_factory(mine):
    scenario = build(from_path(f"{mine}:Mine"), {"size": 4}, owner="env")
    assert scenario.make().size == 4


def test_modules_of_this_folder_are_found_while_the_environment_is_made(mine):
    before = list(sys.path)
    assert from_path(f"{mine}:helped")().make().possible_agents == ["agent_0"]
    assert sys.path == before


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("{}:spraed", "did you mean spread"),
        ("{}:five", "is a int"),
        ("{}_gone:make", "no module '.*_gone'"),
        ("{}.deeper:make", "no module"),
        ("some/{}.py:make", "package.module:factory"),
        ("{}:", "package.module:factory"),
    ],
)
def test_a_path_that_leads_nowhere_is_explained(mine, path, says):
    with pytest.raises(ConfigError, match=says):
        from_path(path.format(mine))


@pytest.mark.parametrize(("name", "says"), [("turns", "in turns"), ("nothing", "gives a int")])
def test_what_is_no_parallel_environment_is_refused(mine, name, says):
    with pytest.raises(ConfigError, match=says):
        from_path(f"{mine}:{name}")().make()


def test_a_factory_that_fails_is_named(mine):
    with pytest.raises(PluginError, match=f"{mine}:broken.*RuntimeError: no luck"):
        from_path(f"{mine}:broken")().make()


@pytest.mark.parametrize("code", ["1 / 0", "import no_such_module_at_all", "raise SystemExit(3)", "def :"])
def test_a_module_that_cannot_be_imported_is_named(tmp_path, monkeypatch, code):
    name = f"broken_{next(COUNTER)}"
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PluginError, match=f"'{name}' cannot be imported"):
        from_path(f"{name}:make")
