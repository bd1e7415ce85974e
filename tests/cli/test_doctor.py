import json
import sys

import pytest

from marlctl.cli import doctor


@pytest.fixture
def broken_plugin(tmp_path, monkeypatch):
    """A package whose plugin takes the process down when it is imported."""
    (tmp_path / "their_plugin.py").write_text("import os\nprint('hello')\nos._exit(9)\n")
    info = tmp_path / "their_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[marlctl.algorithms]\ntheirs = their_plugin:Theirs\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)


@pytest.fixture
def quick(monkeypatch):
    """Without importing every plugin that is installed."""
    real = doctor._fails
    monkeypatch.setattr(doctor, "_fails", lambda arguments: real(arguments) if "their-plugin" in arguments else None)


def test_a_sound_installation_is_found_sound(marlctl, quick):
    said = marlctl("doctor", "--json")
    assert said.code == 0
    report = json.loads(said.out)
    assert report["core"] == []
    assert report["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert all(report["packages"][name] for name in ("marlctl", "torch", "numpy", "pettingzoo", "mpe2", "h5py"))
    assert {"sisl", "all"} <= set(report["extras"])
    assert report["machine"]["cores"] >= 1
    assert marlctl("doctor").out.endswith("marlctl works\n")


def test_a_broken_plugin_is_marked_and_does_not_take_doctor_down(marlctl, quick, broken_plugin):
    said = marlctl("doctor", "--json")
    assert said.code == 0
    ill = [plugin for plugin in json.loads(said.out)["plugins"] if plugin["problem"]]
    assert [(plugin["name"], plugin["package"], plugin["version"]) for plugin in ill] == [
        ("theirs", "their-plugin", "1.0")
    ]
    said = marlctl("doctor")
    assert "BROKEN" in said.out
    assert said.out.endswith("marlctl works; 1 plugin does not\n")


@pytest.mark.parametrize(("missing", "package"), [("no_such_thing.inside", "no-such-thing"), ("cv2", "opencv-python")])
def test_a_plugin_that_lacks_a_module_is_told_to_get_it_and_not_to_be_reinstalled(
    marlctl, quick, broken_plugin, tmp_path, missing, package
):
    (tmp_path / "their_plugin.py").write_text(f"import {missing}\n")
    said = marlctl("doctor").err
    assert "plugin 'theirs' of their-plugin 1.0 needs the module" in said
    assert f"pip install {package}`" in said
    assert "reinstall" not in said


def test_a_plugin_whose_own_module_is_gone_is_to_be_reinstalled(marlctl, quick, broken_plugin, tmp_path):
    (tmp_path / "their_plugin.py").unlink()
    assert "pip install --force-reinstall their-plugin" in marlctl("doctor").err


def test_the_test_extra_is_no_alarm(marlctl, quick, monkeypatch):
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "hypothesis" else real(name))
    (line,) = [line for line in marlctl("doctor").out.splitlines() if line.startswith(" test ")]
    assert "only needed to develop marlctl" in line
    assert "missing" not in line


def test_free_memory_is_what_a_run_may_take(marlctl, quick, monkeypatch):
    monkeypatch.setattr("marlctl.opening.free_memory", lambda: 123_000_000)
    assert json.loads(marlctl("doctor", "--json").out)["machine"]["memory_free_bytes"] == 123_000_000
    assert "123 MB free" in marlctl("doctor").out


def test_a_core_that_cannot_work_is_exit_1(marlctl, monkeypatch):
    monkeypatch.setattr(doctor, "_fails", lambda arguments: "no torch" if "training" in arguments[-1] else None)
    said = marlctl("doctor")
    assert said.code == 1
    assert "no torch" in said.err
    assert "marlctl cannot work" in said.out


@pytest.mark.parametrize(("extra", "needs", "family"), [("sisl", "pymunk", "sisl"), ("magym", "ma-gym", "ma-gym")])
def test_what_an_extra_lacks_is_listed_with_the_command_that_brings_it(
    extra, needs, family, marlctl, quick, monkeypatch
):
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == needs else real(name))
    report = json.loads(marlctl("doctor", "--json").out)
    assert any(need.startswith(needs) for need in report["extras"][extra]["missing"])
    assert report["extras"][extra]["install"] == f"pip install 'marlctl[{extra}]'"
    lines = [line for line in marlctl("doctor").out.splitlines() if "scenario family" in line]
    shown = [line for line in lines if line.rstrip().endswith(f" {family}")]
    assert f"pip install 'marlctl[{extra}]'" in shown[0]


@pytest.mark.slow
def test_every_plugin_of_ours_can_be_imported():
    assert [plugin for plugin in doctor._plugins() if plugin["package"] == "marlctl" and plugin["problem"]] == []


def test_a_package_whose_import_fails_says_why():
    assert doctor._fails(["-c", "raise ImportError('no such thing')"]) == "ImportError: no such thing"
    assert doctor._fails(["-c", "import os; os._exit(9)"]) == "its process ended with 9"
    assert doctor._fails(["-c", "pass"]) is None
