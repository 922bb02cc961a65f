"""Chunks that somebody brings: shown before they are read, checked against the first, read once or twice."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vff.data.opening import scan
from vff.data.source import Chunk, ReadOptions, SourceError

X = np.arange(20.0).reshape(10, 2)


def chunks(source) -> list:
    return [chunk for part in source.parts() for chunk in part.chunks()]


def frames(n: int = 3):
    for i in range(n):
        yield pd.DataFrame({"x": [float(i), i + 0.5], "y": [1.0, 2.0], "city": ["a", "b"]})


def test_an_iterator_shows_its_names_and_keeps_its_first_chunk() -> None:
    source = scan(frames(), chunk_rows=2)
    assert (source.names, source.repeatable, source.n_rows) == (("x", "y", "city"), False, None)
    found = chunks(source.restricted(["city", "x"]))
    assert [list(chunk.data.columns) for chunk in found] == [["x", "city"]] * 3
    assert np.concatenate([chunk.data["x"] for chunk in found]).tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    assert [chunk.where for chunk in found] == ["chunk 0", "chunk 1", "chunk 2"]
    with pytest.raises(
        ValueError, match="expected rows that can be read again, found an iterator that is used up; pass a"
    ):
        chunks(source)


@pytest.mark.parametrize("data", [list(frames()), frames], ids=["list", "function"])
def test_lists_and_functions_can_be_read_twice(data) -> None:
    source = scan(data, chunk_rows=2)
    assert source.repeatable
    assert source.n_rows == (6 if isinstance(data, list) else None)
    first, second, third = chunks(source), chunks(source), chunks(source.restricted(["x"]))
    assert len(first) == len(second) == len(third) == 3
    for one, other in zip(first, second, strict=True):
        pd.testing.assert_frame_equal(one.data, other.data)
    marks = [part.fingerprint() for part in source.parts()]
    assert marks == [part.fingerprint() for part in source.parts()]
    assert len(set(marks)) == 3


def test_a_function_that_returns_the_same_iterator_again_is_found_out() -> None:
    iterator = frames()
    source = scan(lambda: iterator, chunk_rows=2)
    assert len(chunks(source)) == 3
    with pytest.raises(ValueError, match="expected a function that returns a new iterator every time it is called"):
        chunks(source)


@given(cuts=st.lists(st.integers(0, 10), max_size=4), chunk_rows=st.integers(1, 12), kind=st.integers(0, 3))
def test_any_split_gives_the_same_rows(cuts, chunk_rows, kind) -> None:
    make = [lambda Z: Z, lambda Z: pd.DataFrame(Z, columns=["a", "b"]), _polars, _arrow][kind]
    bounds = [0, *sorted(cuts), 10]
    y, w = np.arange(10), np.ones(10)
    items = [(make(X[i:j]), y[i:j], w[i:j]) for i, j in itertools.pairwise(bounds)]
    found = chunks(scan(items, chunk_rows=chunk_rows))
    assert all(1 <= chunk.n_rows <= chunk_rows for chunk in found)
    assert np.array_equal(np.concatenate([_plain(chunk.data) for chunk in found]), X)
    assert np.array_equal(np.concatenate([chunk.y for chunk in found]), y)
    assert sum(len(chunk.w) for chunk in found) == 10


def _polars(Z: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"a": Z[:, 0], "b": Z[:, 1]})


def _arrow(Z: np.ndarray) -> pa.Table:
    return pa.table({"a": Z[:, 0], "b": Z[:, 1]})


def _plain(data) -> np.ndarray:
    return (
        np.column_stack([data[name] for name in data.column_names]) if isinstance(data, pa.Table) else np.asarray(data)
    )


def test_batches_of_arrow_and_arrays_without_names() -> None:
    reader = pa.RecordBatchReader.from_batches(_arrow(X).schema, _arrow(X).to_batches(max_chunksize=4))
    source = scan(reader, chunk_rows=4)
    assert (source.names, source.repeatable) == (("a", "b"), False)
    assert [chunk.n_rows for chunk in chunks(source.restricted(["b"]))] == [4, 4, 2]
    source = scan(iter([X, X]), chunk_rows=10)
    assert source.names is None
    assert [chunk.n_rows for chunk in chunks(source)] == [10, 10]
    with pytest.raises(ValueError, match="expected columns of the chunks, found 'a'; the columns are without names"):
        scan([X]).restricted(["a"])


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        (
            pd.DataFrame({"x": [1.0]}),
            "expected column 'y', as in the first chunk, found 'x' in chunk 1; bring the same",
        ),
        (np.ones((2, 2)), r"made like the first, \(table with names\), found \(array\) in chunk 1"),
        ((next(frames()), [1.0, 2.0]), r"made like the first, \(table with names\), found \(table with names, y\)"),
        (
            (next(frames()), [1.0]),
            "expected as many values of y as rows, found 1 and 2 in chunk 1; bring them together",
        ),
        ([1.0], r"expected every chunk to be a table or a tuple \(X, y\) or \(X, y, w\), found list as chunk 1"),
        (np.ones(3), r"found ndarray of shape \(3,\) as chunk 1"),
        ((1, 2, 3, 4), r"found a tuple of 4 \(int, int, int, int\) as chunk 1"),
    ],
)
def test_chunks_that_are_not_like_the_first(second, sentence) -> None:
    source = scan(iter([next(frames()), second]))
    with pytest.raises(SourceError, match=sentence):
        chunks(source)


def test_columns_in_another_order_are_put_in_order_and_numbers_of_columns_must_agree() -> None:
    one = pd.DataFrame({"x": [1.0], "y": [2.0]})
    found = chunks(scan([one, one[["y", "x"]]], chunk_rows=1))
    assert [list(chunk.data.columns) for chunk in found] == [["x", "y"]] * 2
    with pytest.raises(SourceError, match=r"expected 2 column\(s\), as in the first chunk, found 3 in chunk 1"):
        chunks(scan(iter([X, np.ones((2, 3))])))


def test_what_is_no_stream() -> None:
    with pytest.raises(ValueError, match="expected at least one chunk of rows, found none; is the iterator used up"):
        scan(iter([]))
    with pytest.raises(TypeError, match=r"expected a path, an iterator, .* found int; rows that are in memory"):
        scan(3)
    with pytest.raises(TypeError, match="expected a function that returns an iterator of chunks, found int"):
        scan(lambda: 3)


def test_numbered_columns_are_no_names_and_names_stand_once() -> None:
    source = scan([pd.DataFrame(X), pd.DataFrame(X)], missing="drop", chunk_rows=10)
    assert source.names is None
    assert [chunk.n_rows for chunk in chunks(source)] == [10, 10]
    with pytest.raises(ValueError, match="expected every column to have a name of its own, found 'x' twice in chunk 0"):
        scan([pd.DataFrame(X, columns=["x", "x"])])


def test_an_error_of_the_generator_comes_through() -> None:
    def broken():
        yield X
        raise RuntimeError("the line is dead")

    with pytest.raises(RuntimeError, match="the line is dead"):
        chunks(scan(broken()))


VALUES = {"x": [1.0, np.nan, np.inf, 4.0, 5.0], "label": ["a", "b", "c", None, "e"]}
with np.errstate(invalid="ignore"):  # pandas 2 tries whether the numbers are whole
    MASKED = pd.DataFrame(VALUES).convert_dtypes()


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame(VALUES),
        MASKED,
        pd.DataFrame(VALUES).astype({"label": "category"}),
        pl.DataFrame(VALUES),
        pa.table(VALUES),
        pa.RecordBatch.from_pydict(VALUES),
        np.array(list(zip(*VALUES.values(), strict=True)), dtype=object),
    ],
    ids=["pandas", "pandas masked", "pandas category", "polars", "table", "batch", "objects"],
)
def test_incomplete_rows_are_left_out_of_everything(data) -> None:
    chunk = Chunk("here", data, y=np.array([1.0, 1.0, 1.0, 1.0, np.nan]), w=pd.Series(np.arange(5.0)))
    found = chunk.counted(ReadOptions(missing="drop"))
    assert (found.n_rows, found.dropped, len(found.data), list(found.y), list(found.w)) == (1, 4, 1, [1.0], [0.0])
    if not isinstance(data, np.ndarray):
        found = chunk.counted(ReadOptions(missing="drop", keep_missing=("label",)))
        assert (found.n_rows, list(found.w)) == (2, [0.0, 3.0])
    assert chunk.counted(ReadOptions()).n_rows == 5


def test_missing_times_and_arrow_targets() -> None:
    times = np.array([["2024-01-01"], ["NaT"], ["2024-01-03"]], dtype="datetime64[D]")
    found = Chunk("here", times, y=pa.array([1.0, 2.0, None])).counted(ReadOptions(missing="drop"))
    assert (found.n_rows, found.y.to_pylist()) == (1, [1.0])
    assert Chunk("here", np.ones((3, 1), dtype=int)).counted(ReadOptions(missing="drop")).dropped == 0
