import json

import pytest


@pytest.fixture
def manifest(run):
    return sorted(run.path.glob("checkpoints/step-*.json"))[-1]


@pytest.fixture
def state(run, manifest):
    return run.path / json.loads(manifest.read_text())["state"]["name"]


def test_a_checkpoint_lists_its_arrays_and_who_vouches_for_it(marlctl, state, manifest):
    found = json.loads(marlctl("inspect", state, "--json").out)
    arrays = {array["name"]: array for array in found["arrays"]}
    assert arrays["learner/w/agent_0"]["shape"] == [3, 3]
    assert found["manifest"] == manifest.name
    said = marlctl("inspect", state)
    assert "learner/w/agent_0" in said.out
    assert "3 x 3" in said.out
    assert f"whole, as {manifest.name} says" in said.err


def test_a_file_on_its_own_is_shown_too(marlctl, state, tmp_path):
    stray = tmp_path / "stray.h5"
    stray.write_bytes(state.read_bytes())
    said = marlctl("inspect", stray)
    assert said.code == 0
    assert "no manifest beside it" in said.err


def test_a_manifest_shows_its_files_and_whether_they_are_whole(marlctl, manifest, state):
    assert set(json.loads(marlctl("inspect", manifest, "--json").out)["files"].values()) == {"whole"}
    state.write_bytes(state.read_bytes()[:-1])
    files = json.loads(marlctl("inspect", manifest, "--json").out)["files"]
    assert files[f"checkpoints/{state.name}"] == "damaged"
    state.unlink()
    said = marlctl("inspect", manifest)
    assert said.code == 0
    assert "missing" in said.out


def test_a_file_that_is_not_what_its_manifest_says_is_bad(marlctl, state):
    data = bytearray(state.read_bytes())
    data[-1] ^= 1
    state.write_bytes(data)
    said = marlctl("inspect", state)
    assert (said.code, "damaged" in said.err) == (3, True)


@pytest.mark.parametrize(("name", "words"), [("run.toml", "a run file, text in TOML"), ("metrics.jsonl", "plot")])
def test_text_says_which_command_shows_it(marlctl, run, name, words):
    said = marlctl("inspect", run.path / name)
    assert said.code == 3
    assert words in said.err
    assert str(run.path) in said.err


@pytest.mark.parametrize("name", ["gone.h5", "text.h5", "text.json", "cut.h5", "folder"])
def test_bad_files_are_refused(marlctl, state, tmp_path, name):
    (tmp_path / "text.h5").write_text("not HDF5")
    (tmp_path / "text.json").write_text("{}")
    (tmp_path / "cut.h5").write_bytes(state.read_bytes()[:1000])
    (tmp_path / "folder").mkdir()
    said = marlctl("inspect", tmp_path / name)
    assert said.code == 3
    assert said.out == ""
    assert name in said.err
    assert "Traceback" not in said.err
