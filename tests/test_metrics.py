"""Metrics: lines that survive a crash, and sums that go on where they were saved."""

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl.errors import FileError, StorageError
from marlctl.metrics import Lines, Tally, read, returns_row
from marlctl.records import ActionSpec, AgentSpec, EnvSpec

SPEC = EnvSpec(
    tuple(
        AgentSpec(name, team, 2, ActionSpec("discrete", (2,)))
        for name, team in (("wolf_0", "wolf"), ("wolf_1", "wolf"), ("sheep_0", "sheep"))
    )
)
ROWS = [{"kind": "train", "step": i, "return": {"total": i / 3}} for i in range(4)]


def written(path, rows=ROWS, **how):
    lines = Lines(path, **how)
    for row in rows:
        lines.append(row)
    length = lines.sync()
    lines.close()
    return length


# -- lines ------------------------------------------------------------------------------------------


def test_rows_come_back_as_they_were_written(tmp_path):
    length = written(tmp_path / "m.jsonl")
    assert list(read(tmp_path / "m.jsonl")) == ROWS
    assert length == (tmp_path / "m.jsonl").stat().st_size


def test_wherever_a_crash_cuts_the_last_line_the_others_are_read(tmp_path):
    path = tmp_path / "m.jsonl"
    written(path)
    whole = path.read_bytes()
    last = len(json.dumps(ROWS[-1])) + 1
    for cut in range(1, last + 1):
        path.write_bytes(whole[:-cut])
        assert list(read(path)) == ROWS[:-1]


def test_going_on_cuts_the_file_back_to_the_checkpoint(tmp_path):
    path = tmp_path / "m.jsonl"
    length = written(path, ROWS[:2])
    written(path, ROWS[2:], keep=length)
    with path.open("ab") as file:
        file.write(b'{"half')
    written(path, ROWS[2:], keep=length)
    assert list(read(path)) == ROWS


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_going_on_without_a_checkpoint_first_removes_half_a_line(tmp_path, cut):
    path = tmp_path / "t.jsonl"
    written(path)
    os.truncate(path, path.stat().st_size - cut)
    written(path, ROWS[-1:])
    assert list(read(path)) == ROWS


def test_half_a_line_alone_is_no_line(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"ki')
    written(path)
    assert list(read(path)) == ROWS


def test_a_file_far_longer_than_a_line_keeps_everything_whole(tmp_path):
    path = tmp_path / "t.jsonl"
    many = [{"step": i, "text": "x" * 100} for i in range(3000)]
    written(path, many)
    written(path, ROWS)
    assert list(read(path)) == [*many, *ROWS]


def test_a_file_shorter_than_its_checkpoint_says_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "m.jsonl"
    length = written(path)
    before = path.read_bytes()
    with pytest.raises(FileError, match=r"m\.jsonl is shorter than its checkpoint says"):
        Lines(path, keep=length + 1)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"a": 1}\nnonsense\n{"b": 1}\n', "line 2: not JSON"),
        (b"[1]\n", "line 1: not a JSON object"),
        (b"\xff\n", "line 1"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path, content, says):
    path = tmp_path / "m.jsonl"
    path.write_bytes(content)
    with pytest.raises(FileError, match=says):
        list(read(path))


def test_a_missing_file_is_a_bad_file(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        list(read(tmp_path / "m.jsonl"))


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "m.jsonl").symlink_to(victim)
    with pytest.raises(StorageError, match="cannot write"):
        Lines(tmp_path / "m.jsonl", keep=0)
    assert victim.read_text() == "precious"


def test_a_full_disk_is_told():
    lines = Lines.__new__(Lines)
    lines.path, lines._file = "/dev/full", os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(StorageError, match="No space left"):
        lines.append(ROWS[0])
    lines.close()


# -- sums -------------------------------------------------------------------------------------------


def test_returns_are_summed_by_team_and_in_all():
    row = returns_row(SPEC, np.array([1.0, 2.0, -4.0]))
    assert row == {
        "total": -1.0,
        "teams": {"wolf": 3.0, "sheep": -4.0},
        "agents": {"wolf_0": 1.0, "wolf_1": 2.0, "sheep_0": -4.0},
    }


def test_a_row_holds_means_and_counting_begins_anew():
    tally = Tally(SPEC)
    tally.add_episodes(np.array([[1.0, 2, 3], [3.0, 2, 1]]), np.array([10, 20]))
    tally.add_update({"wolf_0.loss": 1.0})
    tally.add_update({"wolf_0.loss": 3.0})
    row = tally.row()
    assert row["return"]["agents"] == {"wolf_0": 2.0, "wolf_1": 2.0, "sheep_0": 2.0}
    assert row["length"] == 15.0
    assert row["loss"] == {"wolf_0.loss": 2.0}
    assert tally.row() == {}


numbers = st.floats(-1e6, 1e6)
episodes = st.tuples(st.just("episode"), st.lists(numbers, min_size=3, max_size=3), st.integers(1, 100))
updates = st.tuples(st.just("update"), st.fixed_dictionaries({"a.loss": numbers, "b.loss": numbers}), st.none())


def tell(tally, happened):
    for kind, what, length in happened:
        if kind == "episode":
            tally.add_episodes(np.array([what]), np.array([length]))
        else:
            tally.add_update(what)


@settings(max_examples=50)
@given(st.lists(episodes | updates), st.lists(episodes | updates))
def test_a_tally_saved_and_loaded_equals_an_uninterrupted_one(before, after):
    whole, first, second = (Tally(SPEC) for _ in range(3))
    tell(whole, before + after)
    tell(first, before)
    state = first.state()
    tell(first, after)  # what is saved stays as it was
    second.load(state)
    tell(second, after)
    assert json.dumps(second.row()) == json.dumps(whole.row())
