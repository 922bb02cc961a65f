"""One file with a tree of plain values and arrays: written all at once or not at all, and read with suspicion."""

import hashlib
import json
import math
import os
import re
import stat
import struct
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from vff.storage.writing import sync_folder, temporary_beside, unwritable
from vff.words import LONGEST_PATH, shortened

MAGIC = b"\x89VFF\r\n\x1a\n"
VERSION = 5
"""Of the format. Older files are read."""
Tree = Any
"""None, bool, int, float, str, arrays, lists of trees, dictionaries of trees by text."""

_START = struct.Struct("<8sIQ")
_ALIGNED = 64
_DIGEST = hashlib.sha256().digest_size
_DTYPES = {"float64": "<f8", "int64": "<i8", "int32": "<i4", "bool": "|b1", "uint8": "|u1"}
_LARGEST_HEADER = 2**26  # bytes
_MOST_ENTRIES, _BYTES_PER_ENTRY = 2**17, 64  # of a header, and more in files that are large anyway
_ENTRY = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[,\[{]', re.DOTALL)  # a text as a whole, or what begins an entry
_DEEPEST = 100  # lists within lists; Python's own limit is ten times as far away
_MOST_AXES = 16
_LARGEST_AXIS = 2**40
_PIECE = 2**20
_QUOTE = ord('"')
_BITS = re.compile(r"[0-9a-f]{16}")
_TOO_NEW = "read it with a newer vff (pip install --upgrade vff)"
_DAMAGED = "copy it again, or write it anew with save"
_FOREIGN = "give the path of a file that save has written"


class FileError(ValueError):
    """A file that cannot be read, or a record that cannot be written to one."""


class _Damage(FileError):
    """What is wrong with a file, without what to do about it: that depends on whose file it is."""


class _Foreign(_Damage):
    """A file that is no file of vff's."""


@dataclass(frozen=True)
class Content:
    """What a file holds."""

    kind: str
    version: int
    record: Tree


@dataclass(frozen=True)
class _Layout:
    """One array in the file."""

    dtype: str
    shape: tuple[int, ...]
    order: tuple[int, ...]
    """Its axes as they follow one another in memory, the slowest first."""

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * np.dtype(_DTYPES[self.dtype]).itemsize


def write_file(path: str | os.PathLike[str], kind: str, record: Tree, *, private: bool = False) -> None:
    """Write a record. The file appears when all of it is on the disk; until then an old one stays as it is.

    Who may read it does not change where there was a file. A new one follows the umask, or is for its owner alone if
    it is ``private``.
    """
    target, packer = Path(os.path.realpath(path)), _Packer()
    plain = packer.packed(record)
    arrays = [array for _, array in packer.arrays.values()]
    layouts = [_layout_of(array) for array in arrays]
    listed = [{"dtype": own.dtype, "shape": own.shape, "order": own.order} for own in layouts]
    header = json.dumps({"kind": kind, "arrays": listed, "record": plain}, allow_nan=False, separators=(",", ":"))
    text, size = header.encode("ascii"), sum(own.bytes for own in layouts) + len(header)
    if len(text) > _LARGEST_HEADER or _entries(text, _most_entries(size)) > _most_entries(size):
        raise FileError(
            f"{path}: at most {_most_entries(size):,} entries in {_LARGEST_HEADER:,} bytes beside the arrays were "
            f"expected in a file of this size, found more in {len(text):,} bytes; leave out columns with very many "
            "levels"
        )
    temporary = temporary_beside(target)
    try:
        mode = _mode_of(target)
        hidden = private or mode is not None
        with open(
            temporary, "xb", opener=(lambda name, flags: os.open(name, flags, 0o600)) if hidden else None
        ) as stream:
            _write(stream, text, arrays, layouts)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    sync_folder(target.parent)


def _mode_of(target: Path) -> int | None:
    """Who may read and write a file; None where there is none."""
    try:
        return stat.S_IMODE(target.stat().st_mode) & 0o777
    except FileNotFoundError:
        return None


def _write(stream: BinaryIO, header: bytes, arrays: list[np.ndarray], layouts: list[_Layout]) -> None:
    digest, offset = hashlib.sha256(), 0

    def put(data: Any) -> None:
        nonlocal offset
        stream.write(data)
        digest.update(data)
        offset += memoryview(data).nbytes

    put(_START.pack(MAGIC, VERSION, len(header)) + header)
    for array, layout in zip(arrays, layouts, strict=True):
        put(bytes(-offset % _ALIGNED))
        put(np.ascontiguousarray(array.transpose(layout.order), _DTYPES[layout.dtype]).reshape(-1).data.cast("B"))
    stream.write(digest.digest())


def _entries(header: bytes, most: int) -> int:
    """About as many objects as the header will become, before any of them is made; counted as far as ``most`` + 1.

    Two bytes such as [] become more than a hundred. A text is one object, whatever commas are in it.
    """
    quickly = sum(header.count(mark) for mark in (b",", b"[", b"{"))
    if quickly <= most:
        return quickly
    marks = (match for match in _ENTRY.finditer(header) if header[match.start()] != _QUOTE)
    return sum(1 for _ in islice(marks, most + 1))


def _most_entries(size: int) -> int:
    return _MOST_ENTRIES + size // _BYTES_PER_ENTRY


def _layout_of(array: np.ndarray) -> _Layout:
    if array.dtype.name not in _DTYPES:
        raise FileError(
            f"a file takes arrays of {', '.join(_DTYPES)}, and one of {array.dtype} was to be written; convert it first"
        )
    if array.ndim > _MOST_AXES:
        raise FileError(f"a file takes arrays of at most {_MOST_AXES} axes, found {array.ndim}; reshape it first")
    order = sorted(range(array.ndim), key=lambda axis: (-abs(array.strides[axis]), axis))
    natural = array.size == 0 or array.flags.c_contiguous
    return _Layout(array.dtype.name, array.shape, tuple(range(array.ndim)) if natural else tuple(order))


@dataclass(frozen=True)
class _Packer:
    """From trees to JSON: arrays become numbers in a list of their own, floats that JSON does not know their bits."""

    arrays: dict[int, tuple[int, np.ndarray]] = field(default_factory=dict)
    """With their numbers, by ``id``, which stays while an array is held: one in two places is written once."""

    def packed(self, tree: Tree, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            raise FileError(f"a file takes at most {_DEEPEST} levels within each other, found more; flatten the record")
        if tree is None or type(tree) in (bool, int, str):
            return tree
        if type(tree) is float:
            return tree if math.isfinite(tree) else {"$float": struct.pack(">d", tree).hex()}
        if isinstance(tree, np.ndarray):
            return {"$array": self.arrays.setdefault(id(tree), (len(self.arrays), tree))[0]}
        if type(tree) is list:
            return [self.packed(part, depth + 1) for part in tree]
        if type(tree) is dict and all(type(name) is str for name in tree):
            names = {name: f"${name}" if name.startswith("$") else name for name in tree}
            return {names[name]: self.packed(part, depth + 1) for name, part in tree.items()}
        raise FileError(f"a file takes plain values and arrays, and found {type(tree).__name__}; convert it first")


def read_file(
    path: str | os.PathLike[str], kinds: Collection[str], *, damaged: str = _DAMAGED, foreign: str = _FOREIGN
) -> Content:
    """Read a file of one of these kinds. Nothing larger than the file is ever allocated for its arrays.

    ``damaged`` says what to do with a damaged file, ``foreign`` with one that is no file of vff's.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise type(error)(error.errno, error.strerror, shortened(path, LONGEST_PATH)) from error
    if not stat.S_ISREG(mode):
        raise FileError(f"{path}: a file was expected, found a folder or a device; give the path of a vff file")
    with open(path, "rb") as stream:
        try:
            return _Reader(stream, os.fstat(stream.fileno()).st_size, frozenset(kinds)).content()
        except _Damage as error:
            raise FileError(f"{path}: {error}; {foreign if isinstance(error, _Foreign) else damaged}") from error
        except FileError as error:
            raise FileError(f"{path}: {error}") from error
        except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
            raise FileError(
                f"{path}: a record of vff was expected, found something else ({error}); {damaged}"
            ) from error


def _refuse(expected: str, found: str, advice: str | None = None) -> NoReturn:
    said = f"{expected} was expected, found {found}"
    raise _Damage(said) if advice is None else FileError(f"{said}; {advice}")


class _Reader:
    """From front to end, once; what is read is part of the checksum."""

    def __init__(self, stream: BinaryIO, size: int, kinds: frozenset[str]) -> None:
        self._stream, self._size, self._kinds = stream, size, kinds
        self._digest, self._offset = hashlib.sha256(), 0

    def content(self) -> Content:
        version, length = self._start()
        text = self._take(length)
        most = _most_entries(self._size)
        if _entries(text, most) > most:
            _refuse(f"a header of at most {most:,} entries", "more")
        header = _parsed(text)
        if not isinstance(header, dict) or set(header) != {"kind", "arrays", "record"}:
            _refuse("a header with kind, arrays and record", "another")
        kind = header["kind"]
        if kind not in self._kinds:
            _refuse(f"a file of kind {' or '.join(sorted(self._kinds))}", f"{kind!r:.80}", "give another file")
        layouts = self._layouts(header["arrays"])
        arrays = [self._array(layout) for layout in layouts]
        if self._stream.read(_DIGEST) != self._digest.digest():
            _refuse("the checksum of the content", "another, so that the file is damaged")
        unpacker = _Unpacker(arrays, set())
        record = unpacker.unpacked(header["record"], 0)
        if len(unpacker.used) < len(arrays):
            _refuse("a place in the record for every array", f"{len(arrays) - len(unpacker.used)} array(s) without")
        return Content(kind, version, record)

    def _start(self) -> tuple[int, int]:
        if self._size < _START.size + _DIGEST or (start := self._take(_START.size))[:8] != MAGIC:
            raise _Foreign("a file that vff has written was expected, found something else")
        _, version, length = _START.unpack(start)
        if version > VERSION:
            _refuse(f"a file of format version 1 to {VERSION}", f"version {version}", _TOO_NEW)
        if version < 1:
            _refuse(f"a file of format version 1 to {VERSION}", f"version {version}")
        if length > min(_LARGEST_HEADER, self._size - _START.size - _DIGEST):
            _refuse("a header that fits into the file", f"a length of {length} in {self._size} bytes")
        return version, length

    def _layouts(self, listed: Any) -> list[_Layout]:
        """What the header says of arrays, which together must end where the file does."""
        if not isinstance(listed, list):
            _refuse("a list of arrays", type(listed).__name__)
        layouts, end = [_checked_layout(own) for own in listed], self._offset
        for layout in layouts:
            end += -end % _ALIGNED + layout.bytes
        if end + _DIGEST != self._size:
            _refuse(f"a file of {end + _DIGEST} bytes", f"{self._size}, so that it is cut short or damaged")
        return layouts

    def _take(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) != count:
            _refuse(f"{count} more bytes", f"{len(data)}, so that the file is cut short")
        self._digest.update(data)
        self._offset += count
        return data

    def _array(self, layout: _Layout) -> np.ndarray:
        if any(self._take(-self._offset % _ALIGNED)):
            _refuse("zeros between arrays", "other bytes")
        shape = tuple(layout.shape[axis] for axis in layout.order)
        array = np.empty(math.prod(shape), _DTYPES[layout.dtype])
        raw = array.view(np.uint8)
        for start in range(0, raw.size, _PIECE):
            piece = raw[start : start + _PIECE].data
            if self._stream.readinto(piece) != piece.nbytes:  # pyright: ignore[reportAttributeAccessIssue]
                _refuse("the rest of an array", "the end, so that the file is cut short")
            self._digest.update(piece)
        self._offset += raw.size
        if layout.dtype == "bool" and raw.max(initial=0) > 1:
            _refuse("truth values of 0 and 1", f"{raw.max()}")
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        return native.reshape(shape).transpose(np.argsort(layout.order) if shape else ())


def _checked_layout(own: Any) -> _Layout:
    if not isinstance(own, dict) or set(own) != {"dtype", "shape", "order"}:
        _refuse("an array with dtype, shape and order", f"{own!r:.80}")
    dtype, shape, order = own["dtype"], own["shape"], own["order"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        _refuse(f"an array of {', '.join(_DTYPES)}", f"{dtype!r:.80}")
    if not _are_counts(shape) or not _are_counts(order) or sorted(order) != list(range(len(shape))):
        _refuse("lengths of axes and their order", f"{shape!r:.80} and {order!r:.80}")
    return _Layout(dtype, tuple(shape), tuple(order))


def _are_counts(values: Any) -> bool:
    known = isinstance(values, list) and len(values) <= _MOST_AXES
    return known and all(type(value) is int and 0 <= value <= _LARGEST_AXIS for value in values)


def _parsed(text: bytes) -> Any:
    return json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        _refuse("names that differ", "one name twice in the header")
    return found


def _no_constant(text: str) -> NoReturn:
    _refuse("a number that JSON knows", text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        _refuse("a number of float64", f"{text:.80}")
    return value


@dataclass(frozen=True)
class _Unpacker:
    """From JSON to trees."""

    arrays: list[np.ndarray]
    used: set[int]

    def unpacked(self, tree: Any, depth: int) -> Tree:
        if depth > _DEEPEST:
            _refuse(f"a record of at most {_DEEPEST} levels", "more within each other")
        if isinstance(tree, list):
            return [self.unpacked(part, depth + 1) for part in tree]
        if not isinstance(tree, dict):
            return tree
        if set(tree) == {"$array"}:
            return self._array(tree["$array"])
        if set(tree) == {"$float"}:
            return _from_bits(tree["$float"])
        return {_name(name): self.unpacked(part, depth + 1) for name, part in tree.items()}

    def _array(self, number: Any) -> np.ndarray:
        if type(number) is not int or not 0 <= number < len(self.arrays):
            _refuse(f"the number of one of {len(self.arrays)} arrays", f"{number!r:.80}")
        self.used.add(number)
        return self.arrays[number]


def _name(written: str) -> str:
    if not written.startswith("$"):
        return written
    if not written.startswith("$$"):
        _refuse("$array or $float alone", f"{written!r:.80}")
    return written[1:]


def _from_bits(text: Any) -> float:
    if not isinstance(text, str) or not _BITS.fullmatch(text):
        _refuse("sixteen hexadecimal digits", f"{text!r:.80}")
    return struct.unpack(">d", bytes.fromhex(text))[0]
