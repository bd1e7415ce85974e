import os
import random
import shutil
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from marlctl.errors import ConfigError, FileError
from marlctl.storage.checkpoint import Checkpoints


@pytest.fixture
def three(tmp_path, make_ring, save):
    """A run folder with checkpoints of steps 1, 2 and 3."""
    checkpoints, ring = Checkpoints(tmp_path), make_ring()
    for step in (1, 2, 3):
        save(checkpoints, ring, step)
    return tmp_path


def names(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def kept(folder, *manifests):
    """Whether the folder holds these checkpoints and nothing else."""
    stems = {"full": "step", "policy": "best"}
    jsons = {f"checkpoints/{stems[m.kind]}-{m.step:012d}.json" for m in manifests}
    return names(folder) == jsons | {file.name for m in manifests for file in m.files}


def test_the_newest_checkpoint_comes_back_in_another_process(three, check):
    assert check(three) == 3
    assert Checkpoints(three).newest()[1] == []


def test_a_copied_folder_is_as_good(three, check, tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy") / "run"
    shutil.copytree(three, copy, copy_function=shutil.copyfile)
    assert check(copy) == 3


def test_reading_changes_nothing(three, check):
    before = {name: (three / name).stat().st_mtime_ns for name in names(three)}
    three.joinpath("checkpoints").chmod(0o555)
    try:
        check(three)
        Checkpoints(three).best()
        Checkpoints(three).at(2)
    finally:
        three.joinpath("checkpoints").chmod(0o755)
    assert {name: (three / name).stat().st_mtime_ns for name in names(three)} == before


def test_a_step_can_be_named(three):
    checkpoints = Checkpoints(three)
    assert checkpoints.read_state(checkpoints.at(2))["learner"]["rounds"] == 2
    with pytest.raises(ConfigError, match="no checkpoint of step 5; there are: 3, 2, 1"):
        checkpoints.at(5)


def test_a_folder_without_checkpoints_says_so(tmp_path):
    with pytest.raises(FileError, match="has no checkpoint; its training never began"):
        Checkpoints(tmp_path).newest()
    assert Checkpoints(tmp_path).best() is None
    Checkpoints(tmp_path).tidy()
    Checkpoints(tmp_path).prune(1)
    assert not names(tmp_path)


def test_a_damaged_newest_checkpoint_is_skipped_and_named(three, check):
    checkpoints = Checkpoints(three)
    path = three / checkpoints.at(3).state.name
    path.write_bytes(path.read_bytes()[:-1])
    (three / "checkpoints/step-000000000002.json").write_bytes(b"{}")
    assert check(three) == 1
    skipped = checkpoints.newest()[1]
    assert len(skipped) == 2
    assert str(path) in " ".join(skipped)
    assert "step-000000000002.json has format" in " ".join(skipped)
    with pytest.raises(FileError, match="cut short"):
        checkpoints.at(3)


def test_if_none_is_whole_all_reasons_are_given(three):
    for path in three.glob("checkpoints/*.h5"):
        path.unlink()
    with pytest.raises(FileError, match="no checkpoint can be read") as caught:
        Checkpoints(three).newest()
    assert str(caught.value).count("No such file") == 3


def test_a_policy_can_be_read_where_the_replay_was_left_behind(three):
    shutil.rmtree(three / "replay")
    checkpoints = Checkpoints(three)
    with pytest.raises(FileError):
        checkpoints.newest()
    assert checkpoints.newest(replay=False)[0].step == checkpoints.at(3, replay=False).step == 3


def test_a_manifest_under_another_name_is_refused(three):
    shutil.copy(three / "checkpoints/step-000000000003.json", three / "checkpoints/step-000000000009.json")
    manifest, skipped = Checkpoints(three).newest()
    assert manifest.step == 3
    assert "belongs to another checkpoint" in skipped[0]


def test_the_same_step_can_be_saved_twice(three, make_ring, state):
    checkpoints = Checkpoints(three)
    checkpoints.save(3, state(30), {"again": True}, make_ring().add(4))
    manifest, _ = checkpoints.newest()
    assert (manifest.step, manifest.note) == (3, {"again": True})
    assert checkpoints.read_state(manifest)["learner"]["rounds"] == 30
    checkpoints.prune(9)
    assert kept(three, *(checkpoints.at(step) for step in (1, 2, 3)))


def test_a_checkpoint_without_replay_fills_nothing(tmp_path, make_ring, state):
    checkpoints = Checkpoints(tmp_path)
    manifest = checkpoints.save(1, state(1), {})
    with pytest.raises(FileError, match="has no replay"):
        checkpoints.fill(manifest, make_ring())
    assert not (tmp_path / "replay").exists()


def test_prune_keeps_the_last_ones_and_the_best(three, state, check):
    checkpoints = Checkpoints(three)
    checkpoints.save_best(1, state(1), {"score": 5})
    best = checkpoints.save_best(2, state(2), {"score": 6})
    checkpoints.prune(2)
    assert kept(three, checkpoints.at(2), checkpoints.at(3), best)
    checkpoints.prune(0)
    assert kept(three, checkpoints.at(3), best)
    assert checkpoints.best() == best
    assert check(three) == 3


def test_a_damaged_best_is_not_passed_over_in_silence(three, state):
    checkpoints = Checkpoints(three)
    checkpoints.save_best(1, state(1), {})
    best = checkpoints.save_best(2, state(2), {})
    (three / best.state.name).write_bytes(b"")
    with pytest.raises(FileError, match="cut short"):
        checkpoints.best()
    (three / "checkpoints/best-000000000002.json").write_bytes(b"")
    with pytest.raises(FileError, match="not a manifest"):
        checkpoints.best()


def test_after_going_back_the_later_save_is_the_newer_one(three, make_ring, save, state):
    checkpoints, ring = Checkpoints(three), make_ring(salt=1)
    (three / checkpoints.at(3).state.name).unlink()  # damaged, so the run goes on from step 1
    checkpoints.fill(checkpoints.at(1), ring)
    save(checkpoints, ring, 2)
    checkpoints.prune(1)
    manifest, skipped = Checkpoints(three).newest()
    assert (manifest.step, skipped) == (2, [])
    Checkpoints(three).fill(manifest, back := make_ring())
    assert back.held() == ring.held()
    assert kept(three, manifest)


def test_what_a_newer_marlctl_saved_is_not_swept_away(three, save, make_ring):
    future = three / "checkpoints/step-000000000003.json"
    future.write_bytes(future.read_bytes().replace(b'"format": 1', b'"format": 2'))
    files = [three / name for name in names(three) if name.split("/")[1] in future.read_text() or "0003" in name]
    checkpoints = Checkpoints(three)
    save(checkpoints, make_ring(), 4)
    checkpoints.prune(1)
    checkpoints.tidy()
    assert all(path.exists() for path in files)
    assert len(files) >= 2


def test_tidy_removes_orphans_and_leftovers_but_no_file_of_the_users(three):
    before = names(three)
    orphans = [f"{stem}-0123456789ab.h5" for stem in ("checkpoints/best-000000000009", "replay/rows-0-9")]
    orphans += ["checkpoints/.x.part", "replay/.x.part", ".x.part"]
    foreign = ["checkpoints/notes.txt", "checkpoints/mine.h5", "replay/rows.h5", "run.toml"]
    for name in orphans + foreign:
        (three / name).write_bytes(b"x")
    Checkpoints(three).tidy()
    assert names(three) == before | set(foreign)


def test_the_state_that_was_read_belongs_to_the_reader(three):
    checkpoints = Checkpoints(three)
    manifest = checkpoints.at(1)
    checkpoints.read_state(manifest)["learner"]["weights"] += 1
    assert checkpoints.read_state(manifest)["learner"]["weights"].max() == 1


def test_links_and_pipes_in_the_place_of_our_files_are_refused(three):
    checkpoints = Checkpoints(three)
    state = three / checkpoints.at(3).state.name
    state.rename(three / "elsewhere.h5")
    state.symlink_to(three / "elsewhere.h5")
    os.mkfifo(three / "checkpoints/step-000000000008.json")
    (three / "checkpoints/step-000000000009.json").mkdir()
    manifest, skipped = checkpoints.newest()
    assert manifest.step == 2
    assert len(skipped) == 3
    checkpoints.prune(1)
    assert checkpoints.newest()[0].step == 2


def mutate(rng, path, files):
    data, other = path.read_bytes(), rng.choice(files).read_bytes()
    at = rng.randrange(len(data))
    end = at + rng.randrange(1, 64)
    flipped = bytes([data[at] ^ 1 << rng.randrange(8)])
    middle = rng.choice([flipped, rng.randbytes(1), bytes(end - at), b"", data[at:] + rng.randbytes(9), other[at:end]])
    rest = rng.choice([data[at + len(middle) :], data[at + len(middle) :], data[end:], b""])
    path.write_bytes(rng.choice([data[:at] + middle + rest] * 9 + [other]))


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_checkpoint_is_never_silently_wrong(three, seed, check):
    Checkpoints(three).prune(1)
    rng = random.Random(seed)
    files = [three / name for name in sorted(names(three))]
    whole = {path: path.read_bytes() for path in files}
    refused = 0
    for _ in range(150):
        path = rng.choice(files)
        mutate(rng, path, files)
        try:
            assert check(three) == 3  # it is as it was saved
        except FileError:
            refused += 1
        path.write_bytes(whole[path])
    assert refused > 100
    assert check(three) == 3


def test_going_on_after_a_restore_writes_only_what_is_new(tmp_path, make_ring, state):
    ring = make_ring(100_000).add(50_000)
    Checkpoints(tmp_path).save(1, state(1), {}, ring)
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.h5"))
    checkpoints, back = Checkpoints(tmp_path), make_ring(100_000)
    checkpoints.fill(checkpoints.newest()[0], back)
    checkpoints.save(2, state(2), {}, back.add(10))
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.h5")) - size < 20_000


class RunFolder(RuleBasedStateMachine):
    """A trainer that adds, saves, prunes, dies and comes back, beside a list of what it saved."""

    def __init__(self):
        super().__init__()
        self.folder = Path(mkdtemp(dir=self.place))
        self.checkpoints, self.ring = Checkpoints(self.folder), self.make_ring(13)
        self.saved: list[tuple[int, list]] = []  # (step, rows), the last saved last
        self.step = 0

    @rule(n=st.integers(0, 30))
    def add(self, n):
        self.ring.add(n)

    @rule(ahead=st.integers(0, 2))
    def save(self, ahead):
        self.step += ahead
        self.checkpoints.save(self.step, {"step": self.step}, {}, self.ring)
        self.saved = [each for each in self.saved if each[0] != self.step] + [(self.step, self.ring.held())]

    @rule(keep=st.integers(1, 3))
    def prune(self, keep):
        self.checkpoints.prune(keep)
        self.saved = self.saved[-keep:]

    @precondition(lambda self: self.saved)
    @rule(back=st.integers(1, 3), salt=st.integers(0, 9))
    def restart(self, back, salt):
        """Die, and go on from one of the last checkpoints, perhaps along another way."""
        self.step, rows = self.saved[-min(back, len(self.saved))]
        self.checkpoints, self.ring = Checkpoints(self.folder), self.make_ring(13, salt)
        self.checkpoints.tidy()
        self.checkpoints.fill(self.checkpoints.at(self.step), self.ring)
        assert self.ring.held() == rows

    @invariant()
    def the_newest_is_the_last_one_saved(self):
        if self.saved:
            manifest, skipped = Checkpoints(self.folder).newest()
            assert (manifest.step, skipped) == (self.saved[-1][0], [])
            back = self.make_ring(13)
            Checkpoints(self.folder).fill(manifest, back)
            assert back.held() == self.saved[-1][1]

    def teardown(self):
        checkpoints = Checkpoints(self.folder)
        for step, rows in self.saved:
            checkpoints.fill(checkpoints.at(step), back := self.make_ring(13))
            assert back.held() == rows
        checkpoints.tidy()
        assert kept(self.folder, *(checkpoints.at(step) for step, _ in self.saved))
        shutil.rmtree(self.folder)


def test_memory_and_segments_agree_with_a_list_whatever_happens(tmp_path, make_ring):
    machine = type("Here", (RunFolder,), {"place": tmp_path, "make_ring": staticmethod(make_ring)})
    run_state_machine_as_test(
        machine, settings=settings(deadline=None, database=None, max_examples=40, stateful_step_count=25)
    )


def test_large_arrays_survive(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    weights = np.random.default_rng(0).normal(size=(1000, 1000))
    manifest = checkpoints.save(1, {"w": weights}, {})
    assert np.array_equal(checkpoints.read_state(manifest)["w"], weights)
