import numpy as np
import pytest

from marlctl.errors import FileError
from marlctl.storage import segments
from marlctl.storage.segments import load, save


def spans(replay):
    return [(segment.start, segment.stop) for segment in replay.segments]


def written(folder):
    return sum(path.stat().st_size for path in folder.rglob("*.h5"))


def test_rows_come_back(tmp_path, make_ring):
    ring, back = make_ring().add(33), make_ring()
    load(tmp_path, save(tmp_path, ring), back)
    assert back.held() == ring.held()


def test_a_memory_without_rows_has_no_segments(tmp_path, make_ring):
    replay = save(tmp_path, make_ring())
    load(tmp_path, replay, back := make_ring())
    assert (spans(replay), back.total) == ([], 0)
    assert not list(tmp_path.iterdir())


def test_a_save_writes_only_what_is_new(tmp_path, make_ring):
    ring = make_ring(100_000).add(50_000)
    first = save(tmp_path, ring)
    size = written(tmp_path)
    second = save(tmp_path, ring.add(100), first.segments)
    assert spans(second) == [(0, 50_000), (50_000, 50_100)]
    assert written(tmp_path) - size < 100 * 13 + 4096
    assert save(tmp_path, ring, second.segments) == second


def test_small_tails_are_merged(tmp_path, make_ring):
    ring, before, counts, total = make_ring(10_000), (), [], 0
    for _ in range(256):
        before = save(tmp_path, ring.add(1), before).segments
        total += before[-1].length
        counts.append(len(before))
    assert max(counts) <= 9
    assert total <= 256 * 9
    assert [segment.length for segment in before] == [256]


def test_no_segment_is_larger_than_the_limit(tmp_path, make_ring, monkeypatch):
    monkeypatch.setattr(segments, "LIMIT", 130)  # ten rows of 13 bytes
    ring, before = make_ring(), ()
    for n in (4, 4, 4, 25, 1):
        before = save(tmp_path, ring.add(n), before).segments
    assert all(segment.length <= 10 for segment in before)
    load(tmp_path, save(tmp_path, ring, before), back := make_ring())
    assert back.held() == ring.held()


def test_a_full_segment_is_not_written_again(tmp_path, make_ring, monkeypatch):
    monkeypatch.setattr(segments, "LIMIT", 130)
    ring = make_ring().add(10)
    first = save(tmp_path, ring)
    inode = (tmp_path / first.segments[0].file.name).stat().st_ino
    second = save(tmp_path, ring.add(12), first.segments)
    assert spans(second) == [(0, 10), (10, 20), (20, 22)]
    assert (tmp_path / first.segments[0].file.name).stat().st_ino == inode


def test_forgotten_segments_are_dropped_and_half_forgotten_ones_stay(tmp_path, make_ring):
    ring = make_ring(10).add(10)
    first = save(tmp_path, ring)
    second = save(tmp_path, ring.add(4), first.segments)
    assert spans(second) == [(0, 10), (10, 14)]
    third = save(tmp_path, ring.add(7), second.segments)
    assert spans(third) == [(10, 14), (14, 21)]
    load(tmp_path, third, back := make_ring(10))
    assert (back.oldest, back.held()) == (11, ring.held())


def test_a_ring_that_went_round_more_than_once_is_stored_afresh(tmp_path, make_ring):
    ring = make_ring(10).add(10)
    first = save(tmp_path, ring)
    assert spans(save(tmp_path, ring.add(35), first.segments)) == [(35, 45)]


def test_a_segment_that_has_gone_is_written_again(tmp_path, make_ring):
    ring = make_ring().add(20)
    first = save(tmp_path, ring)
    second = save(tmp_path, ring.add(5), first.segments)
    (tmp_path / first.segments[0].file.name).unlink()
    third = save(tmp_path, ring, second.segments)
    load(tmp_path, third, back := make_ring())
    assert back.held() == ring.held()


def test_segments_of_another_memory_are_not_used(tmp_path, make_ring):
    other = save(tmp_path, make_ring(salt=1).add(20))
    ring = make_ring().add(5)
    load(tmp_path, save(tmp_path, ring, other.segments), back := make_ring())
    assert back.held() == ring.held()


def test_a_memory_with_other_fields_is_not_filled(tmp_path, make_ring):
    replay = save(tmp_path, make_ring().add(5))
    for change in ({"numbers": np.zeros((0, 4), "f4")}, {"numbers": np.zeros((0, 3), "f8")}, {"more": np.zeros((0,))}):
        back = make_ring()
        rows = back.rows
        back.rows = lambda start, stop, rows=rows, change=change: {**rows(start, stop), **change}
        with pytest.raises(FileError, match="has other fields"):
            load(tmp_path, replay, back)
        assert back.total == 0


def test_a_segment_of_another_length_is_refused(tmp_path, make_ring):
    replay = save(tmp_path, make_ring().add(5))
    wrong = segments.Segment(0, 6, replay.segments[0].file)
    with pytest.raises(FileError, match="does not hold rows 0 to 6"):
        load(tmp_path, segments.StoredReplay(0, 6, (wrong,)), make_ring())
