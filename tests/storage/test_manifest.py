import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl.errors import FileError
from marlctl.storage.files import sha256
from marlctl.storage.manifest import Manifest, parse
from marlctl.storage.segments import Segment, StoredFile, StoredReplay

DIGEST = "0123456789ab" + "c" * 52


def rows(start, stop):
    return Segment(start, stop, StoredFile(f"replay/rows-{start}-{stop}-0123456789ab.h5", 99, DIGEST))


GOOD = Manifest(
    kind="full",
    step=70,
    serial=3,
    note={"score": -1.5, "plugins": {"maddpg": "1.0"}, "offset": 812, "none": None, "name": "ü\ud800"},
    state=StoredFile("checkpoints/step-000000000070-0123456789ab.h5", 1234, DIGEST),
    replay=StoredReplay(5, 21, (rows(0, 10), rows(10, 21))),
)


def signed(body):
    """Whatever an attacker can write: a manifest whose digest is right."""
    return json.dumps({**body, "sha256": sha256(json.dumps(body, sort_keys=True).encode())}).encode()


def body():
    content = json.loads(GOOD.dump())
    del content["sha256"]
    return content


def test_a_manifest_comes_back():
    policy = Manifest("policy", 7, 0, {}, StoredFile("checkpoints/best-000000000007-0123456789ab.h5", 0, DIGEST))
    assert parse(GOOD.dump(), "x") == GOOD
    assert parse(signed(body()), "x") == GOOD
    assert parse(policy.dump(), "x") == policy


@pytest.mark.parametrize("found", [2, 0, "1", 1.0, True, None, [1], "9" * 1000])
def test_another_format_is_named(found):
    with pytest.raises(FileError, match=r"^x\.json has format .{1,30}; this marlctl reads 1$"):
        parse(signed({**body(), "format": found}), "x.json")


WRONG = {
    "step": [-1, 10**12, 1.0, "70", True, None],
    "serial": [-1, 1 << 60, False],
    "kind": ["policy", "best", None, 1, [], {}],
    "note": [None, [], "x"],
    "state": [None, [], {}],
    "state.size": [-1, 1 << 40, 1.5, None],
    "state.sha256": ["", DIGEST.upper(), DIGEST + "\n", DIGEST[:-1], None],
    "state.name": [
        "/etc/passwd",
        "../x.h5",
        "checkpoints/../x.h5",
        "checkpoints/step-000000000070-0123456789ab.h5\n",
        "checkpoints/step-\u0660" + "00000000070-0123456789ab.h5",
        "replay/rows-0-9-0123456789ab.h5",
        "",
        3,
    ],
    "replay": [[], 0, {}, "x"],
    "replay.oldest": [-1, 10, 22, "5", None],
    "replay.total": [20, 22, None],
    "replay.segments": [None, [], {}, [None], [{}]],
    "replay.segments.0.start": [6, -1, 10, None],
    "replay.segments.0.stop": [9, 11, 0],
    "replay.segments.1.start": [9, 11, 21],
    "replay.segments.1.file.name": [
        "replay/rows-0-10-0123456789ab.h5",
        "checkpoints/step-000000000070-0123456789ab.h5",
        "replay/x/rows-1-2-0123456789ab.h5",
    ],
}


@pytest.mark.parametrize(("place", "value"), [(place, value) for place in WRONG for value in WRONG[place]])
def test_a_value_that_cannot_be_right_is_refused_even_if_the_digest_fits(place, value):
    content = body()
    *parents, last = place.split(".")
    inner = content
    for name in parents:
        inner = inner[int(name) if name.isdigit() else name]
    assert inner[last] != value or isinstance(value, bool | float)
    inner[last] = value
    with pytest.raises(FileError, match=r"^x\.json is not a manifest that marlctl wrote: .+ cannot be right"):
        parse(signed(content), "x.json")


def test_missing_additional_and_repeated_fields_are_refused():
    for name in body():
        with pytest.raises(FileError):
            parse(signed({k: v for k, v in body().items() if k != name}), "x")
    with pytest.raises(FileError):
        parse(signed({**body(), "more": 1}), "x")
    with pytest.raises(FileError, match="given twice"):
        parse(GOOD.dump().replace(b'"step": 70', b'"step": 70, "step": 70'), "x")


def test_a_changed_value_does_not_match_the_digest():
    with pytest.raises(FileError, match="does not match its own SHA-256"):
        parse(GOOD.dump().replace(b"-1.5", b"-1.6"), "x")


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\xff", b"null", b"[]", b"{}", b"\0", b"1" * 5000, b'{"format": NaN}'),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        GOOD.dump().replace(b"-1.5", b"1e999"),
        GOOD.dump().replace(b"-1.5", b"NaN"),
    ],
    ids=range(12),
)
def test_bytes_that_are_no_manifest_are_refused(data):
    with pytest.raises(FileError, match=r"^x\.json "):
        parse(data, "x.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(deadline=None, database=None, max_examples=200)
def test_arbitrary_bytes_are_refused_and_nothing_else(data):
    with pytest.raises(FileError):
        parse(data, "x")


@given(st.sampled_from(sorted(body())), JSON)
@settings(deadline=None, database=None, max_examples=200)
def test_arbitrary_values_under_a_right_digest_give_a_manifest_or_a_file_error(name, value):
    try:
        found = parse(signed({**body(), name: value}), "x")
    except FileError:
        return
    assert parse(found.dump(), "x") == found


def test_damaged_bytes_never_give_another_manifest():
    rng = random.Random(3)
    data = GOOD.dump()
    refused = 0
    for _ in range(1000):
        mutant = bytearray(data)
        mutant[rng.randrange(len(mutant))] ^= 1 << rng.randrange(8)
        try:
            assert parse(bytes(mutant), "x") == GOOD  # a blank that became another blank
        except FileError:
            refused += 1
    assert refused > 800


def test_a_number_that_json_has_not_is_refused_before_it_is_written():
    with pytest.raises(ValueError, match="not JSON compliant"):
        Manifest("policy", 7, 0, {"score": float("nan")}, GOOD.state).dump()
