"""The file format: what goes in comes out, a failed write leaves no trace, every bad file is refused in a sentence."""

import errno
import hashlib
import json
import os
import stat
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from vff.storage import VERSION, FileError, check_writable, container, read_file, write_file

START = struct.Struct("<8sIQ")
RECORD = {"a": np.arange(6.0).reshape(2, 3), "b": [1, None, "ü", np.array([True, False])], "nan": float("nan")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.vff"


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        alike = isinstance(other, np.ndarray) and one.dtype == other.dtype and one.shape == other.shape
        return alike and one.tobytes() == other.tobytes()
    if isinstance(one, float):
        return isinstance(other, float) and struct.pack("d", one) == struct.pack("d", other)
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**80), 2**80),
    st.floats(),
    st.text(),
    arrays.arrays(
        st.sampled_from([np.float64, np.int64, np.bool_, np.uint8]), arrays.array_shapes(min_dims=0, min_side=0)
    ),
)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)


@given(TREES)
def test_what_goes_in_comes_out(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("tree") / "file"
    write_file(path, "tree", tree)
    content = read_file(path, ("tree", "other"))
    assert same(content.record, tree)
    assert (content.kind, content.version) == ("tree", VERSION)


@pytest.mark.parametrize("value", [float("nan"), -float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 0.1])
def test_floats_keep_every_bit(path, value):
    write_file(path, "x", [value, {"$float": value, "$": 1, "$$array": 0}])
    record = read_file(path, "x").record
    assert struct.pack("d", record[0]) == struct.pack("d", value)
    assert struct.pack("d", record[1]["$float"]) == struct.pack("d", value)


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_the_order_of_axes_in_memory_is_kept(path, axes):
    array = np.random.default_rng(0).standard_normal((2, 3, 4)).transpose(axes)
    write_file(path, "x", array)
    found = read_file(path, "x").record
    assert np.array_equal(found, array)
    assert found.strides == array.strides


def test_views_with_gaps_are_written_without_them(path):
    array = np.arange(24.0).reshape(4, 6)[::2, 1::2]
    write_file(path, "x", [array, array.T, array[::-1], np.broadcast_to(1.0, (3, 2))])
    expected = (array, array.T, array[::-1], np.ones((3, 2)))
    assert all(map(np.array_equal, read_file(path, "x").record, expected))


def test_an_array_in_two_places_is_written_once(path):
    array = np.arange(1000.0)
    write_file(path, "x", [array, array])
    assert path.stat().st_size < 9000
    first, second = read_file(path, "x").record
    assert first is second


@pytest.mark.parametrize("record", [np.zeros(2, np.float32), np.array(["a"]), {1: 2}, (1, 2), object(), 1j, b"x"])
def test_what_a_file_does_not_take_is_refused_before_anything_is_written(path, record):
    with pytest.raises(FileError, match="a file takes"):
        write_file(path, "x", record)
    assert list(path.parent.iterdir()) == []


def test_a_record_of_too_many_entries_is_not_written(path):
    with pytest.raises(FileError, match="very many levels"):
        write_file(path, "x", list(range(200_000)))
    write_file(path, "x", [list(range(200_000)), np.zeros(10**6)])


class FullDisk:
    """A stream that has no room for the checksum, or none that can be synchronised."""

    def __init__(self, path: Path, mode: str, **_: Any) -> None:
        self._stream = path.open(mode)

    def __enter__(self) -> "FullDisk":
        return self

    def __exit__(self, *_: Any) -> None:
        self._stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, data: Any) -> int:
        if len(data) == 32:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._stream.write(data)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, r"room for a file was expected, found none \(why\); make room, or name another place"),
        (errno.EDQUOT, r"room for a file was expected, found none \(why\); make room, or name another place"),
        (errno.EACCES, r"leave to write in .* was expected, found none \(why\); change its permissions, or name"),
        (errno.EROFS, r"leave to write in .* was expected, found none \(why\); change its permissions, or name"),
        (errno.EIO, r"a file that can be written was expected, found none \(why\); name another"),
    ],
)
def test_a_file_that_cannot_be_written_is_called_as_it_was_given(path, number, sentence, monkeypatch):
    def fails(*_: Any) -> None:
        raise OSError(number, "why", f"{path.parent}/.some.vff.0123456789ab")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match=rf"^{path}: {sentence}[a-z ]*$") as caught:
        write_file(path, "x", RECORD)
    assert caught.value.errno == number
    assert type(caught.value) is type(OSError(number, ""))
    assert list(path.parent.iterdir()) == []


def test_places_where_no_file_can_be(tmp_path):
    cases = {
        tmp_path / "nowhere" / "a.vff": (
            FileNotFoundError,
            f"found none at {tmp_path}/nowhere; make it, or name another",
        ),
        tmp_path: (OSError, "the name of a file was expected, found a folder; name a file in it"),
        tmp_path / ("n" * 10**5): (OSError, "found none (File name too long); name another"),
    }
    for place, (kind, sentence) in cases.items():
        for write in (check_writable, lambda place: write_file(place, "x", 1)):
            if write is check_writable and place == tmp_path:
                continue  # its folder takes files
            with pytest.raises(kind) as caught:
                write(place)
            assert str(caught.value).startswith(f"{place}"[:100])
            assert str(caught.value).endswith(sentence)
            assert len(str(caught.value)) < 500
    check_writable(tmp_path / "a.vff")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_pipe_is_not_replaced(tmp_path):
    pipe, link = tmp_path / "ff", tmp_path / "link.vff"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for place in (pipe, link):
        with pytest.raises(OSError, match="a file was expected, found a folder or a device; name another path"):
            check_writable(place)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert link.is_symlink()


@pytest.mark.parametrize("where", ["write", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(path, where, monkeypatch):
    write_file(path, "x", 1)
    before = path.read_bytes()

    def fails(*_: Any) -> None:
        raise OSError(errno.EIO, "no")

    if where == "write":
        monkeypatch.setattr(container, "open", FullDisk, raising=False)
    else:
        monkeypatch.setattr(os, where, fails)
    with pytest.raises(OSError, match=r"no|No space"):
        write_file(path, "x", RECORD)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_file_is_written_through_a_link_and_with_the_usual_rights(path):
    link = path.with_name("link")
    link.symlink_to(path)
    write_file(link, "x", 1)
    assert link.is_symlink()
    assert read_file(path, "x").record == 1
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def assembled(header: Any, rest: bytes = b"", version: int = VERSION, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = START.pack(container.MAGIC, version, len(text) if length is None else length) + text
    body += bytes(-len(body) % 64) + rest if rest else b""
    return body + hashlib.sha256(body).digest()


def empty(record: Any = None, arrays: Any = ()) -> dict[str, Any]:
    return {"kind": "x", "arrays": list(arrays), "record": record}


def array(shape: Any, dtype: Any = "float64", order: Any = None) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "order": list(range(len(shape))) if order is None else order}


EIGHT = bytes(8)
ONE = {"$array": 0}
BAD = {
    "nothing": (b"", "that vff has written"),
    "something else": (b"PK\x03\x04" + bytes(100), "that vff has written"),
    "a newer version": (assembled(empty(), version=VERSION + 1), "read it with a newer vff"),
    "version zero": (assembled(empty(), version=0), "format version"),
    "a long header": (assembled(empty(), length=2**60), "header that fits"),
    "no JSON": (assembled(b"{"), "record of vff"),
    "no UTF-8": (assembled(b"\xff\xfe"), "record of vff"),
    "a list": (assembled([1]), "header with kind"),
    "an entry too many": (assembled({**empty(), "more": 1}), "header with kind"),
    "another kind": (assembled({**empty(), "kind": "y"}), "kind x"),
    "a kind that is no text": (assembled({**empty(), "kind": [1]}), "x"),
    "a name twice": (assembled(b'{"kind":"x","kind":"x","arrays":[],"record":0}'), "names that differ"),
    "NaN": (assembled(b'{"kind":"x","arrays":[],"record":NaN}'), "JSON knows"),
    "a large number": (assembled(b'{"kind":"x","arrays":[],"record":1e999}'), "float64"),
    "many digits": (assembled(b'{"kind":"x","arrays":[],"record":' + b"9" * 5000 + b"}"), "record of vff"),
    "deep": (assembled(b'{"kind":"x","arrays":[],"record":' + b"[" * 200 + b"]" * 200 + b"}"), "levels"),
    "very deep": (assembled(b'{"kind":"x","arrays":[],"record":' + b"[" * 10**5 + b"]" * 10**5 + b"}"), "vff"),
    "many entries": (assembled(b'{"kind":"x","arrays":[],"record":[' + b"[]," * 2**17 + b"0]}"), "entries"),
    "not closed": (assembled(b"[" * 10**5), "record of vff"),
    "arrays that are none": (assembled({**empty(), "arrays": 3}), "list of arrays"),
    "an array that is none": (assembled(empty(ONE, [3]), EIGHT), "dtype, shape and order"),
    "an object": (assembled(empty(ONE, [array([1], "object")]), EIGHT), "an array of float64"),
    "a dtype that is a list": (assembled(empty(ONE, [array([1], ["float64"])]), EIGHT), "an array of float64"),
    "a huge shape": (assembled(empty(ONE, [array([2**40, 2**40])]), EIGHT), "bytes was expected"),
    "a negative shape": (assembled(empty(ONE, [array([-1])]), EIGHT), "lengths of axes"),
    "a shape of truth": (assembled(empty(ONE, [array([True])]), EIGHT), "lengths of axes"),
    "many axes": (assembled(empty(ONE, [array([1] * 40)]), EIGHT), "lengths of axes"),
    "an endless axis": (assembled(empty(ONE, [array([0, 2**62])])), "lengths of axes"),
    "an order that is none": (assembled(empty(ONE, [array([1, 1], order=[0, 0])]), EIGHT), "lengths of axes"),
    "an array too short": (assembled(empty(ONE, [array([2])]), EIGHT), "bytes was expected"),
    "an array too long": (assembled(empty(ONE, [array([1])]), bytes(16)), "bytes was expected"),
    "an array without a place": (assembled(empty(0, [array([1])]), EIGHT), "place in the record"),
    "a place without an array": (assembled(empty(ONE)), "one of 0 arrays"),
    "a truth value of two": (assembled(empty(ONE, [array([1], "bool")]), b"\x02"), "truth values"),
    "no bits": (assembled(empty({"$float": "12"})), "sixteen"),
    "an unknown mark": (assembled(empty({"$class": "x"})), r"\$array or \$float"),
}


def test_older_versions_are_read(tmp_path):
    path = tmp_path / "older.vff"
    for version in range(1, VERSION + 1):
        path.write_bytes(assembled(empty(5), version=version))
        content = read_file(path, ["x"])
        assert (content.version, content.record) == (version, 5)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_sentence(name, path):
    data, message = BAD[name]
    path.write_bytes(data)
    with pytest.raises(FileError, match=message) as caught:
        read_file(path, ("x",))
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    assert "; " in said
    assert len(said) < 400 + len(str(path))


def test_every_cut_and_every_flipped_bit_is_noticed(path):
    write_file(path, "x", RECORD)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place])
        with pytest.raises(FileError):
            read_file(path, ("x",))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        with pytest.raises(FileError):
            read_file(path, ("x",))
    path.write_bytes(whole + b"\0")
    with pytest.raises(FileError, match="bytes was expected"):
        read_file(path, ("x",))


def test_bytes_between_arrays_are_zero(path):
    write_file(path, "x", [np.zeros(1), np.ones(1)])
    body = bytearray(path.read_bytes()[:-32])
    body[-9] = 1
    path.write_bytes(bytes(body) + hashlib.sha256(body).digest())
    with pytest.raises(FileError, match="zeros between"):
        read_file(path, ("x",))


def test_folders_devices_and_missing_files(tmp_path):
    with pytest.raises(FileError, match="a file was expected, found a folder"):
        read_file(tmp_path, "x")
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none", "x")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
@pytest.mark.parametrize("old", [0o600, 0o640, 0o444, 0o666])
@pytest.mark.parametrize("private", [False, True])
def test_who_may_read_an_old_file_may_read_the_new_one(path, old, private):
    write_file(path, "x", 1)
    path.chmod(old)
    write_file(path, "x", 2, private=private)
    assert (mode(path), read_file(path, "x").record) == (old, 2)


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_a_private_file_is_for_its_owner_alone(path, monkeypatch):
    seen: list[int] = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (seen.append(os.fstat(handle).st_mode & 0o777), sync(handle)))
    write_file(path, "x", 1, private=True)
    assert (mode(path), seen[0]) == (0o600, 0o600)  # while it is being written, too


def test_many_arrays_are_numbered_once_each(path):
    arrays = [np.full(1, float(k)) for k in range(3000)]
    write_file(path, "x", [*arrays, *arrays, np.zeros(10**6)])
    record = read_file(path, "x").record
    assert [float(array[0]) for array in record[:3000]] == list(range(3000))
    assert all(one is other for one, other in zip(record[:3000], record[3000:6000], strict=True))


def test_a_text_is_one_entry_whatever_is_in_it(path):
    text = ',[{"\\' * 200_000
    write_file(path, "x", {"names": text, text[:4]: 1})
    assert read_file(path, "x").record == {"names": text, text[:4]: 1}


@pytest.mark.parametrize("inside", [b'"' + b"\\," * 200_000, b'"a,' * 200_001, b'"\\"' * 200_000 + b"," * 200_000])
def test_texts_without_an_end_are_refused(path, inside):
    path.write_bytes(assembled(b'{"kind":"x","arrays":[],"record":[' + inside + b"]}"))
    with pytest.raises(FileError, match=r"some\.vff: "):
        read_file(path, "x")


def test_what_could_not_be_read_is_not_written(path):
    deep: Any = 1
    for _ in range(101):
        deep = [deep]
    for record, sentence in ((deep, "at most 100 levels"), (np.zeros((1,) * 17), "at most 16 axes")):
        with pytest.raises(FileError, match=sentence):
            write_file(path, "x", record)
    write_file(path, "x", deep[0])
    assert read_file(path, "x").record == deep[0]
