import io
import pickle
import random
import struct
import zipfile

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from marlctl.errors import FileError
from marlctl.storage import hdf5
from marlctl.storage.hdf5 import pack, summary, unpack

NAMES = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="/\0"), min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..")
)
DTYPES = st.sampled_from(["?", "i1", "<i8", ">i4", "u8", "<f2", "<f4", ">f8"])
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4))
NUMBERS = st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats()
VALUES = st.recursive(ARRAYS | NUMBERS, lambda inner: st.dictionaries(NAMES, inner, max_size=4), max_leaves=12)
TREES = st.dictionaries(NAMES, VALUES, max_size=5)


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, np.ndarray):
        return (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes())
    return type(a) is type(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes()


@given(TREES)
@settings(deadline=None, database=None, max_examples=150)
def test_a_tree_comes_back_as_it_was(tree):
    assert same(unpack(pack(tree)), tree)


@given(TREES)
@settings(deadline=None, database=None, max_examples=30)
def test_the_same_tree_gives_the_same_bytes(tree):
    assert pack(tree) == pack(unpack(pack(tree)))


def test_numpy_scalars_come_back_as_plain_numbers():
    tree = unpack(pack({"a": np.float32(0.5), "b": np.array(3), "c": np.bool_(True)}))
    assert [(type(value), value) for value in tree.values()] == [(float, 0.5), (int, 3), (bool, True)]


def test_arrays_of_any_memory_order_come_back_and_are_the_callers_own():
    array = np.arange(24.0).reshape(4, 6)[::2, ::-1]
    back = unpack(pack({"a": array}))["a"]
    assert np.array_equal(back, array)
    back += 1


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a\0b", 3])
def test_a_name_that_would_not_come_back_is_refused(name):
    with pytest.raises(ValueError, match="a name in a state"):
        pack({"outer": {name: 1}})


@pytest.mark.parametrize(
    "value",
    ["text", [1, 2], None, 1j, 2**64, np.array(["a"]), np.array([None]), np.zeros(2, "g"), np.zeros(2, "M8[s]")],
)
def test_a_value_that_is_no_number_is_refused_with_its_place(value):
    with pytest.raises(TypeError, match="'/outer/inner'"):
        pack({"outer": {"inner": value}})


def test_a_summary_lists_every_array():
    data = pack({"b": {"w": np.zeros((2, 3), np.float32)}, "a": 1, "empty": {}})
    assert summary(data) == [("a", (), "<i8", 8), ("b/w", (2, 3), "<f4", 24)]


# Hostile files. Each builder gets an open file and the path of a secret that must not be touched.


def external_link(file, secret):
    file["w"] = h5py.ExternalLink(str(secret), "/w")


def soft_link(file, secret):
    file["w"] = h5py.SoftLink("/elsewhere")


def soft_link_to_an_array(file, secret):
    file["v"] = np.zeros(3)
    file["w"] = h5py.SoftLink("/v")


def external_storage(file, secret):
    file.create_dataset("w", (4,), "u1", external=[(str(secret), 0, 4)])


def virtual(file, secret):
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource(str(secret), "w", (4,))
    file.create_virtual_dataset("w", layout)


def virtual_without_end(file, secret):
    layout = h5py.VirtualLayout((4,), "f8", maxshape=(None,))
    source = h5py.VirtualSource(str(secret), "w", (4,), maxshape=(None,))
    layout[: h5py.h5s.UNLIMITED] = source[: h5py.h5s.UNLIMITED]
    file.create_virtual_dataset("w", layout)


def cycle(file, secret):
    file.create_group("w")["again"] = file["/"]


def deep_cycle(file, secret):
    file.create_group("a/b")
    file["a/b"]["again"] = file["a"]


def shared(file, secret):
    file["v"] = np.zeros(3)
    file["w"] = file["v"]


def shape_bomb(file, secret):
    file.create_dataset("w", (1 << 39,), "f8")


def never_written(file, secret):
    file.create_dataset("w", (4,), "f8")


def chunked_bomb(file, secret):
    file.create_dataset("w", (1 << 39,), "f8", chunks=(1024,))


def gzip(file, secret):
    file.create_dataset("w", data=np.zeros(1000), compression="gzip")


def checksum(file, secret):
    file.create_dataset("w", data=np.zeros(1000), fletcher32=True)


def unknown_filter(file, secret):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((10,))
    plist.set_filter(32_000, h5py.h5z.FLAG_OPTIONAL, (1,))
    h5py.h5d.create(file.id, b"w", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((10,)), plist)


def compact(file, secret):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    h5py.h5d.create(file.id, b"w", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((10,)), plist)


def text(file, secret):
    file["w"] = "text"


def fixed_text(file, secret):
    file["w"] = np.array([b"text"])


def ragged(file, secret):
    file.create_dataset("w", (2,), h5py.vlen_dtype(np.int32))[0] = [1, 2]


def reference(file, secret):
    file.create_dataset("w", data=file.ref, dtype=h5py.ref_dtype)


def region(file, secret):
    file["v"] = np.zeros(3)
    file.create_dataset("w", data=file["v"].regionref[:2], dtype=h5py.regionref_dtype)


def opaque(file, secret):
    file.create_dataset("w", data=np.array([1], "M8[s]").astype(h5py.opaque_dtype(np.dtype("M8[s]"))))


def compound(file, secret):
    file["w"] = np.zeros(2, [("a", "i4"), ("b", "f4")])


def complex_numbers(file, secret):
    file["w"] = np.zeros(2, complex)


def enum(file, secret):
    file.create_dataset("w", data=[1, 0], dtype=h5py.enum_dtype({"RED": 0, "BLUE": 1}))


def sub_array(file, secret):
    kind = h5py.h5t.array_create(h5py.h5t.NATIVE_FLOAT, (3,))
    h5py.h5d.create(file.id, b"w", kind, h5py.h5s.create_simple((2,)))
    file["w"][...] = np.ones((2, 3))


def bit_field(file, secret):
    kind = h5py.h5t.STD_B8LE
    h5py.h5d.create(file.id, b"w", kind, h5py.h5s.create_simple((2,))).write(
        h5py.h5s.ALL, h5py.h5s.ALL, np.ones(2, "u1"), kind
    )


def long_double(file, secret):
    file["w"] = np.zeros(2, np.longdouble)


def named_type(file, secret):
    file["w"] = np.dtype("f8")


def committed_type(file, secret):
    file["t"] = np.dtype("f8")
    file.create_dataset("a", data=np.ones(2), dtype=file["t"])
    del file["t"]


def no_shape(file, secret):
    file["w"] = h5py.Empty("f8")


def attribute(file, secret):
    file["w"] = np.zeros(2)
    file["w"].attrs["code"] = "import os"


def root_attribute(file, secret):
    file.attrs["model_config"] = "lambda"


def many_attributes(file, secret):
    group = file.create_group("w")
    for k in range(1000):
        group.attrs[str(k)] = k


def deep(file, secret):
    file.create_group("/".join("a" * 200))


def dots(file, secret):
    # libhdf5 reads '..' as an ordinary name
    h5py.h5g.create(file.id, b"..")


def not_utf8(file, secret):
    h5py.h5g.create(file.id, b"\xff\xfe")


HOSTILE = {
    "is a link to somewhere else": (external_link, soft_link, soft_link_to_an_array),
    "lies in another file": (external_storage,),
    "is chunked, compressed or virtual": (
        virtual,
        virtual_without_end,
        chunked_bomb,
        gzip,
        checksum,
        unknown_filter,
        compact,
    ),
    "can be reached twice": (cycle, deep_cycle, shared),
    "declares 4,398,046,511,104 bytes that the file does not hold": (shape_bomb,),
    "declares 32 bytes that the file does not hold": (never_written,),
    "does not hold plain numbers": (
        text,
        fixed_text,
        ragged,
        reference,
        region,
        opaque,
        compound,
        complex_numbers,
        enum,
        sub_array,
        bit_field,
        committed_type,
    ),
    "has numbers of more than 64 bits": (long_double,),
    "is neither a group nor an array": (named_type,),
    "has no shape": (no_shape,),
    "has attributes": (attribute, root_attribute, many_attributes),
    "is nested too deep": (deep,),
    "has a forbidden name": (dots,),
    "'utf-8' codec can't decode byte": (not_utf8,),
}


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret.h5"
    with h5py.File(path, "w") as file:
        file["w"] = np.arange(4.0)
    return path


def image(build, secret, **options):
    data = io.BytesIO()
    with h5py.File(data, "w", **options) as file:
        build(file, secret)
    return data.getvalue()


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize(
    ("build", "reason"),
    [pytest.param(build, reason, id=build.__name__) for reason, builds in HOSTILE.items() for build in builds],
)
def test_a_hostile_file_is_refused_and_no_other_file_is_opened(build, reason, libver, secret, watch):
    data = image(build, secret, libver=libver)
    seen = watch(secret)
    for gate in (unpack, summary):
        with pytest.raises(FileError, match=rf"^x\.h5 is (refused|damaged): .*{reason}") as caught:
            gate(data, source="x.h5")
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300
    assert not seen.opened()


@pytest.mark.parametrize("build", [external_link, external_storage, virtual, virtual_without_end])
def test_without_the_gate_those_files_do_reach_another_file(build, secret, watch, tmp_path):
    (tmp_path / "x.h5").write_bytes(image(build, secret))
    seen = watch(secret)
    with h5py.File(tmp_path / "x.h5", "r") as file:
        file["w"][...]
    assert seen.opened()


def test_a_header_that_lies_about_its_size_gets_no_memory():
    data = pack({"w": np.zeros(1_000_003, "u1")})
    honest, lie = struct.pack("<Q", 1_000_003), struct.pack("<Q", 1 << 42)
    assert data.count(honest) >= 2
    with pytest.raises(FileError, match=r"declares 4,398,046,511,104 bytes|invalid dataset size"):
        unpack(data.replace(honest, lie))


def test_arrays_that_lie_over_each_other_cannot_be_larger_than_the_file():
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file["a"] = np.zeros(1 << 20, "u1")
        place = file["a"].id.get_offset()
        for k in range(40):
            file.create_dataset(f"w{k}", (1 << 20,), "u1")
    nowhere, there = (struct.pack("<BBQQ", 3, 1, at, 1 << 20) for at in (2**64 - 1, place))
    assert buffer.getvalue().count(nowhere) == 40
    with pytest.raises(FileError, match="'/w0' declares 1,048,576 bytes that the file does not hold"):
        unpack(buffer.getvalue().replace(nowhere, there))


def test_a_truth_value_that_is_neither_is_refused():
    data = pack({"w": np.array([True, True, True, False] * 5)})
    with pytest.raises(FileError, match="neither true nor false"):
        unpack(data.replace(b"\1\1\1\0" * 5, b"\1\2\1\0" * 5))


def test_too_many_objects_are_refused(monkeypatch):
    tree = {str(k): {str(j): j for j in range(10)} for k in range(10)}
    monkeypatch.setattr(hdf5, "_MAX_OBJECTS", 110)
    assert unpack(pack(tree)) == tree
    monkeypatch.setattr(hdf5, "_MAX_OBJECTS", 109)
    with pytest.raises(FileError, match="too many objects"):
        unpack(pack(tree))


def test_a_file_over_the_limit_is_refused():
    with pytest.raises(FileError, match="more than the 100 allowed"):
        unpack(pack({"a": 1}), limit=100)


def test_control_characters_in_a_name_do_not_reach_the_terminal():
    data = image(lambda file, _: file.__setitem__("\x1b[2J", h5py.SoftLink("/x")), None)
    with pytest.raises(FileError, match=r"'/\\x1b\[2J' is a link"):
        unpack(data)


def other_formats():
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("data.pkl", "x")
    good = pack({"a": 1})
    return {
        "empty": b"",
        "pickle": pickle.dumps({"a": np.zeros(3)}),
        "zip": zipped.getvalue(),
        "text": b"hello" * 99,
        "polyglot": zipped.getvalue().ljust(512, b"\0") + good,
        "signature": good[:8],
        "zeros": good[:8] + bytes(4096),
    }


@pytest.mark.parametrize("name", list(other_formats()))
def test_another_format_under_our_name_is_refused(name):
    with pytest.raises(FileError):
        unpack(other_formats()[name])


def test_a_file_cut_anywhere_is_refused():
    data = pack({"a": {"w": np.arange(1000.0)}, "b": 3})
    for k in range(60):
        with pytest.raises(FileError):
            unpack(data[: len(data) * k // 60])


def test_a_damaged_file_is_refused_or_read_but_nothing_else():
    rng = random.Random(7)
    data = pack({"a": {"w": np.arange(40.0), "on": np.ones(9, bool)}, "b": 3, "c": {}})
    outcomes = {True: 0, False: 0}
    for _ in range(400):
        mutant = bytearray(data)
        for _ in range(rng.choice((1, 1, 4))):
            mutant[rng.randrange(len(mutant))] = rng.randrange(256)
        try:
            outcomes[isinstance(unpack(bytes(mutant)), dict)] += 1
        except FileError:
            outcomes[False] += 1
    assert sum(outcomes.values()) == 400
    assert outcomes[False] > 20
