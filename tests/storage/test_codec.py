"""Records to trees and back: by the reader's hints alone."""

import struct
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vff.storage import Codec, FileError, read_file, write_file

PACKAGE = __name__.split(".")[0]
CODEC = Codec(PACKAGE)


class Pair(NamedTuple):
    first: int
    second: str = "two"


class AbstractShape(ABC):
    @abstractmethod
    def area(self) -> float: ...


@dataclass(frozen=True)
class Square(AbstractShape):
    side: float

    def __post_init__(self) -> None:
        if self.side < 0:
            raise ValueError("a side must not be negative")

    def area(self) -> float:
        return self.side**2


@dataclass(frozen=True)
class Disc(AbstractShape):
    radius: float
    memory: dict[str, float] = field(default_factory=dict, compare=False)

    def area(self) -> float:
        return 3.0 * self.radius**2

    @cached_property
    def worked_out(self) -> float:
        return self.area()


@dataclass(frozen=True)
class Stranger:
    """No shape."""

    side: float


@dataclass(frozen=True)
class Everything:
    flag: bool
    number: float
    maybe: int | None
    several: tuple[int, ...]
    fixed: tuple[float, str]
    listed: list[Pair]
    shape: AbstractShape
    either: Square | Disc | None
    by_pair: Mapping[tuple[int, int], np.ndarray]
    by_name: dict[str, float | int | str | None]
    names: frozenset[Hashable]
    levels: tuple[Any, ...] | None
    mixed: int | tuple[int | None, ...] | None
    anything: Any = None


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(max_size=5),
    st.floats(allow_nan=False).map(np.float64),
    st.integers(-(2**31), 2**31 - 1).map(np.int32),
    st.booleans().map(np.bool_),
    st.text().map(np.str_),
    st.integers(-(2**40), 2**40).map(lambda n: np.datetime64(n, "us")),
    st.integers(-(2**40), 2**40).map(lambda n: np.timedelta64(n, "ns")),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text() | st.integers() | st.tuples(st.text(), st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)
SHAPES = st.floats(0.0, 9.0).map(Square) | st.floats(0.0, 9.0).map(Disc)
RECORDS = st.builds(
    Everything,
    flag=st.booleans(),
    number=st.floats(allow_nan=False) | st.integers() | st.floats(allow_nan=False).map(np.float64),
    maybe=st.none() | st.integers(),
    several=st.lists(st.integers()).map(tuple),
    fixed=st.tuples(st.floats(allow_nan=False), st.text()),
    listed=st.lists(st.builds(Pair, st.integers(), st.text())),
    shape=SHAPES,
    either=st.none() | SHAPES,
    by_pair=st.just({}),
    by_name=st.dictionaries(st.text(), st.none() | st.text() | st.integers() | st.floats(allow_nan=False)),
    names=st.frozensets(st.text() | st.integers(), max_size=4),
    levels=st.none() | st.lists(SCALARS).map(tuple),
    mixed=st.none() | st.integers() | st.lists(st.none() | st.integers()).map(tuple),
    anything=ANYTHING,
)


def typed(value: Any) -> Any:
    """With the types of all parts, which equality forgets."""
    if isinstance(value, tuple | list):
        return type(value), [typed(part) for part in value]
    if isinstance(value, dict):
        return dict, [(typed(key), typed(part)) for key, part in value.items()]
    if isinstance(value, float):
        return type(value), struct.pack("d", value)
    if hasattr(value, "__dataclass_fields__"):
        return type(value), [typed(getattr(value, name)) for name in value.__dataclass_fields__]
    return type(value), value


@given(RECORDS)
def test_records_come_back_through_a_file(tmp_path_factory, record):
    path: Path = tmp_path_factory.mktemp("record") / "file"
    write_file(path, "x", CODEC.encode(record, Everything))
    assert typed(CODEC.decode(read_file(path, "x").record, Everything)) == typed(record)


def test_arrays_by_pairs_of_numbers():
    blocks = {(0, 1): np.ones((2, 3)), (0, 2): np.zeros(0)}
    hint = Mapping[tuple[int, int], np.ndarray]
    found = CODEC.decode(CODEC.encode(blocks, hint), hint)
    assert list(found) == list(blocks)
    assert all(found[pair] is blocks[pair] for pair in blocks)


def test_memories_are_left_behind():
    disc = Disc(2.0, {"a": 1.0})
    assert disc.worked_out == 12.0
    assert CODEC.encode(disc, AbstractShape) == {"Disc": {"radius": 2.0}}
    assert CODEC.decode({"Disc": {"radius": 2.0}}, AbstractShape).memory == {}


def test_sets_are_written_in_one_order():
    names = [f"name {n}" for n in range(50)]
    assert CODEC.encode(frozenset(names), frozenset[str]) == CODEC.encode(frozenset(names[::-1]), frozenset[str])


def test_a_new_field_with_a_default_may_be_missing_from_an_old_file():
    assert CODEC.decode({"Pair": {"first": 1}}, Pair) == Pair(1, "two")


@pytest.mark.parametrize(
    ("tree", "hint"),
    [
        ({"Stranger": {"side": 1.0}}, AbstractShape),
        ({"AbstractShape": {}}, AbstractShape),
        ({"Square": {"side": 1.0}}, Disc),
        ({"Square": {"side": 1.0}, "Disc": {"radius": 1.0}}, AbstractShape),
        ({"Square": {}}, AbstractShape),
        ({"Square": {"side": 1.0, "area": 2.0}}, AbstractShape),
        ({"Square": [1.0]}, AbstractShape),
        ({"Square": {"side": "1"}}, AbstractShape),
        ({"Square": {"side": True}}, AbstractShape),
        ({"Pair": {"second": "x"}}, Pair),
        ({"os.system": {"command": "true"}}, AbstractShape),
        (1.5, int),
        (True, int),
        (1, bool),
        (1, str),
        (None, int),
        ([1, 2, 3], tuple[int, int]),
        ([1, "x"], tuple[int, ...]),
        ({"tuple": [1]}, tuple[int, ...]),
        ([[1, 2], [1, 3]], dict[int, int]),
        ([[1, 2, 3]], dict[int, int]),
        ([1, 1], frozenset[int]),
        ([], np.ndarray),
        (np.zeros(2), tuple[float, ...]),
        ({"int8": 300}, int),
        ({"float64": "1"}, float),
        ({"datetime64[us]": 2**63}, Any),
        ({"datetime64[s3]": 1}, Any),
        ({"set": [1]}, Any),
        ({"list": {"a": 1}}, Any),
        ({"bytes": 1}, Any),
        ([1], Any),
        ({"tuple": [1]}, Hashable),
        (np.zeros(2), Hashable),
        ({"a": 1}, Any),
    ],
)
def test_a_tree_that_does_not_suit_its_hint_is_refused(tree, hint):
    with pytest.raises(FileError, match="was expected, found"):
        CODEC.decode(tree, hint)


def test_a_record_that_cannot_be_says_so_itself():
    with pytest.raises(ValueError, match="side must not be negative"):
        CODEC.decode({"Square": {"side": -1.0}}, AbstractShape)


@dataclass(frozen=True)
class WithFunction:
    call: Callable[..., Any]


@pytest.mark.parametrize("record", [WithFunction(abs), WithFunction(lambda x: x)])
def test_functions_are_refused(record):
    with pytest.raises(FileError, match="function of your own"):
        CODEC.encode(record, WithFunction)
    with pytest.raises(FileError):
        CODEC.decode({"WithFunction": {"call": "abs"}}, WithFunction)


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy, from 2.5 on
    NO_UNIT = np.datetime64("NaT")


@pytest.mark.parametrize("value", [object(), 1j, {1, 2}, NO_UNIT, np.datetime64("NaT", "us"), Square(1.0), np.float32])
def test_values_that_no_file_takes_are_refused(value):
    with pytest.raises(FileError, match=r"cannot be written|function of your own"):
        CODEC.encode(value, Any)


def test_records_of_other_packages_are_no_leaves():
    assert set(CODEC.allowed(AbstractShape)) == {"Square", "Disc"}
    assert Codec("vff").allowed(AbstractShape) == {}


class Forward(NamedTuple):
    later: "Later | None"  # noqa: F821


def test_names_that_hints_do_not_import_are_handed_in():
    codec = Codec(PACKAGE, {"Later": Pair})
    assert codec.decode(codec.encode(Forward(Pair(1)), Forward), Forward) == Forward(Pair(1))
