"""Small chunks are put together, in order and with their places; what is not alike, or is faulty, stays apart."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from vff.data import FaultyPartWarning, SourceError
from vff.data.opening import scan
from vff.data.source import Chunk, ReadOptions
from vff.data.streams import StreamSource

X = np.arange(40.0).reshape(20, 2)
MAKERS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda Z: Z,
    "pandas": lambda Z: pd.DataFrame(Z, columns=["a", "b"]),
    "polars": lambda Z: pl.DataFrame({"a": Z[:, 0], "b": Z[:, 1]}),
    "table": lambda Z: pa.table({"a": Z[:, 0], "b": Z[:, 1]}),
    "batch": lambda Z: pa.RecordBatch.from_pydict({"a": Z[:, 0], "b": Z[:, 1]}),
}
COLUMNS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": lambda y: y.tolist(),
    "array": lambda y: y,
    "pandas": pd.Series,
    "polars": pl.Series,
    "arrow": pa.array,
    "chunked": lambda y: pa.chunked_array([pa.array(y)]),
}


def chunks(source: Any) -> list[Chunk]:
    return [chunk for part in source.parts() for chunk in part.chunks()]


def plain(data: Any) -> np.ndarray:
    return np.column_stack([data[name] for name in "ab"]) if hasattr(data, "column_names") else np.asarray(data)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("beside", COLUMNS)
def test_neighbours_are_put_together(kind: str, beside: str) -> None:
    make, column = MAKERS[kind], COLUMNS[beside]
    items = [(make(X[i : i + 2]), column(X[i : i + 2, 0]), column(X[i : i + 2, 1])) for i in range(0, 20, 2)]
    for data in (items, iter(items), lambda: iter(items)):
        found = chunks(scan(data, chunk_rows=7))
        assert [chunk.where for chunk in found] == ["chunks 0 to 2", "chunks 3 to 5", "chunks 6 to 8", "chunk 9"]
        assert [chunk.n_rows for chunk in found] == [6, 6, 6, 2]
        assert np.array_equal(np.concatenate([plain(chunk.data) for chunk in found]), X)
        for place in (0, 1):
            assert np.array_equal(np.concatenate([(chunk.y, chunk.w)[place] for chunk in found]), X[:, place])


def test_large_chunks_are_left_as_they_are_and_cut() -> None:
    sizes = [2, 9, 1, 1, 7]
    bounds = np.cumsum([0, *sizes])
    items = [X[i:j] for i, j in pairwise(bounds)]
    found = chunks(scan(iter(items), chunk_rows=7))
    places = ["chunk 0", "chunk 1, rows 0 to 6", "chunk 1, rows 7 to 8", "chunks 2 to 3", "chunk 4"]
    assert [chunk.where for chunk in found] == places
    assert np.array_equal(np.concatenate([chunk.data for chunk in found]), X)


def test_an_array_that_is_filled_anew_for_every_chunk() -> None:
    def rows() -> Iterator[Any]:
        buffer, y = np.empty((2, 2)), np.empty(2)
        for i in range(0, 20, 2):
            buffer[:], y[:] = X[i : i + 2], X[i : i + 2, 1]
            yield buffer, y

    for data in (rows, rows()):
        found = chunks(scan(data, chunk_rows=8))
        assert len(found) == 3
        assert np.array_equal(np.concatenate([chunk.data for chunk in found]), X)
        assert np.array_equal(np.concatenate([chunk.y for chunk in found]), X[:, 1])


def test_other_types_stay_apart() -> None:
    one, other = pd.DataFrame({"a": [2**60 + 1]}), pd.DataFrame({"a": [0.5]})
    found = chunks(scan([one, one, other, other]))
    assert [chunk.where for chunk in found] == ["chunks 0 to 1", "chunks 2 to 3"]
    assert found[0].data["a"].tolist() == [2**60 + 1] * 2
    assert len(chunks(scan([one, pl.DataFrame({"a": [1]})]))) == 2


class CountRows:
    phase: ClassVar[str] = "counting"
    kind: ClassVar[Any] = int

    def __call__(self, chunk: Chunk) -> int:
        return chunk.n_rows

    def merge(self, one: int, other: int) -> int:
        return one + other


def test_a_faulty_chunk_is_left_out_alone() -> None:
    items: list[Any] = [X[:2], X[2:4], np.ones((2, 3)), X[4:6], X[6:8]]
    with pytest.raises(SourceError, match=r"found 3 in chunk 2; bring the same columns"):
        scan(iter(items)).reduce(CountRows())
    with pytest.warns(FaultyPartWarning, match="found 3 in chunk 2"):
        found = scan(iter(items), faulty="skip").reduce(CountRows())
    assert (found.rows, found.skipped) == (8, ("chunk 2",))
    assert [part.name for part in found.done] == ["chunks 0 to 1", "chunk 2", "chunks 3 to 4"]


TYPED = pd.DataFrame(
    {
        "number": [1.0, 2.0],
        "integer": [1, 2],
        "when": pd.to_datetime(["2024-01-01", "2024-01-02"]),
        "long": pd.to_timedelta([1, 2], unit="s"),
        "ok": [True, False],
        "word": ["a", "b"],
        "level": pd.Categorical(["a", "b"]),
        "thing": pd.Series([("a",), ("b",)], dtype=object),
    }
)
KINDS = dict(zip(TYPED, ["number", "number", "datetime", "duration", "boolean", "text", "text", "text"], strict=True))


def test_kinds_are_known_from_the_first_chunk() -> None:
    masked = TYPED.convert_dtypes()
    for data in (TYPED, masked):
        assert StreamSource([data]).kinds == KINDS
    some = [name for name in TYPED if name != "thing"]
    arrow = pa.Table.from_pandas(TYPED[some])
    for data in (arrow, arrow.to_batches()[0], pl.from_arrow(arrow)):
        assert StreamSource([data]).kinds == {name: KINDS[name] for name in some}
    assert scan([pa.table({"a": pa.nulls(2), "b": [1, 2]})]).kinds == {"b": "number"}
    assert scan([pl.DataFrame({"a": [None], "b": [1]})]).kinds == {"b": "number"}
    assert StreamSource([X]).kinds == {}


def test_levels_of_arrays_are_kept_by_their_number() -> None:
    data = np.array([[1.0, "a"], [2.0, None], [np.nan, "c"]], dtype=object)
    found = Chunk("here", data).counted(ReadOptions(missing="drop", keep_missing=(1,)))
    assert (found.n_rows, found.dropped, found.data[:, 1].tolist()) == (2, 1, ["a", None])
    source = scan([data], missing="drop").with_options(keep_missing=(0, 1))
    assert [chunk.n_rows for chunk in chunks(source)] == [3]
