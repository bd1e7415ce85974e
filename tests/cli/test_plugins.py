import json
import subprocess
import sys

import pytest


def test_list_names_every_kind_and_its_package(marlctl):
    said = marlctl("plugins", "list", "--json")
    listed = {(p["kind"], p["name"]): p["package"] for p in json.loads(said.out)["plugins"]}
    assert listed["algorithm", "maddpg"] == listed["environment", "simple_tag"] == "marlctl"
    assert len([1 for kind, name in listed if kind == "environment" and name.startswith("simple")]) == 11


def test_show_gives_each_option_with_type_default_and_help(marlctl):
    options = {o["name"]: o for o in json.loads(marlctl("plugins", "show", "maddpg", "--json").out)["options"]}
    assert options["gamma"]["default"] == 0.95 and options["gamma"]["allowed"] == "a number at least 0 and at most 1"
    assert all(option["help"] for option in options.values())
    published = {
        "lr": 1e-2,
        "batch_size": 1024,
        "update_every": 100,
        "warmup": 25600,
        "capacity": 10**6,
        "tau": 0.01,
        "clip": 0.5,
    }
    assert {name: options[name]["default"] for name in published} == published
    assert "num_good" in marlctl("plugins", "show", "simple_tag").out
    assert "num_good" in marlctl("plugins", "show", "mpe/simple_tag_v3").out


def test_an_unknown_plugin_gets_a_suggestion(marlctl):
    said = marlctl("plugins", "show", "madpg")
    assert said.code == 2 and "maddpg" in said.err


@pytest.mark.parametrize(("family", "one"), [("probe", "probe/matching"), ("sisl", "sisl/pursuit_v5")])
def test_a_family_says_that_it_is_one_and_which_scenarios_it_has(marlctl, family, one):
    said = marlctl("plugins", "show", family)
    assert (said.code, f"{family} is a family of scenarios; `marlctl plugins show {family}/" in said.err) == (0, True)
    assert all(line.startswith(f"{family}/") for line in said.out.splitlines())
    assert one in said.out.splitlines()
    assert one in json.loads(marlctl("plugins", "show", family, "--json").out)["scenarios"]


def test_options_that_are_passed_on_are_listed_where_they_are_known(marlctl):
    pytest.importorskip("pymunk")
    said = marlctl("plugins", "show", "sisl/pursuit_v5")
    assert (said.code, "passed on to the environment as they are: --set env.NAME=VALUE" in said.err) == (0, True)
    assert {"max_cycles", "n_evaders"} <= set(said.out.splitlines())
    assert "max_cycles" in json.loads(marlctl("plugins", "show", "sisl/pursuit_v5", "--json").out)["takes"]


def test_help_version_list_and_completion_import_no_torch_no_h5py_and_no_plugin():
    for arguments in (["--help"], ["--version"], ["plugins", "list"], ["train", "--help"]):
        code = (
            f"import sys; from marlctl.cli import main; sys.argv = ['marlctl', *{arguments!r}]\n"
            "try: main()\nexcept SystemExit as e: assert not e.code, e.code\n"
            "bad = {'torch', 'h5py', 'numpy', 'pettingzoo', 'matplotlib'} & set(sys.modules)\n"
            "bad |= {m for m in sys.modules if m.startswith('marlctl_')}\n"
            "print(sorted(bad), file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr.strip().splitlines()[-1] == "[]", arguments
