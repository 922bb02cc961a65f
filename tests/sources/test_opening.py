"""What counts as rows in chunks, what as rows in memory, and what is said when a library is not there."""

import builtins
import sys
from pathlib import Path

import dask
import dask.array
import dask.dataframe
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from vff.data.opening import is_chunked, scan
from vff.data.source import SourceError

FRAME = pd.DataFrame({"x": [1.0, 2.0]})
TABLE = pa.table({"x": [1.0, 2.0]})


@pytest.mark.parametrize(
    "data",
    [
        "a.csv",
        Path("a.csv"),
        ["a.csv", Path("b.csv")],
        pyarrow.dataset.dataset(TABLE),
        iter([FRAME]),
        (frame for frame in [FRAME]),
        lambda: iter([FRAME]),
        [FRAME, FRAME],
        [(np.ones((2, 1)), np.ones(2))],
        pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()),
        dask.dataframe.from_pandas(FRAME, npartitions=1),
        dask.array.ones((4, 2)),
        (dask.array.ones((4, 2)), dask.array.ones(4)),
        [dask.delayed(FRAME)],
        ibis.memtable(TABLE),
        scan([FRAME]),
        pl.LazyFrame(FRAME),
    ],
    ids=lambda data: type(data).__name__,
)
def test_rows_that_have_to_be_fetched(data) -> None:
    assert is_chunked(data)


@pytest.mark.parametrize(
    "data",
    [
        FRAME,
        FRAME["x"],
        TABLE,
        TABLE.to_batches()[0],
        pl.DataFrame(FRAME),
        np.ones((2, 2)),
        np.float64(1.0),
        [[1.0, 2.0], [3.0, 4.0]],
        [[1.0, "a"]],
        [np.ones(2), np.ones(2)],
        [np.ones((2, 2))],
        [(1.0, 2.0)],
        [],
        (),
        {"x": [1.0]},
        None,
        3,
        np.ndarray,
    ],
    ids=lambda data: type(data).__name__,
)
def test_rows_that_are_in_memory(data) -> None:
    assert not is_chunked(data)


def test_a_source_can_be_scanned_again() -> None:
    source = scan([FRAME])
    again = scan(source, missing="drop", chunk_rows=1)
    assert (again.options.missing, again.options.chunk_rows, source.options.missing) == ("drop", 1, None)


def test_options_are_checked(tmp_path) -> None:
    with pytest.raises(ValueError, match='expected missing="effect", "drop" or "refuse", found \'ignore\''):
        scan([FRAME], missing="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='expected faulty="refuse" or "skip", found \'drop\''):
        scan([FRAME], faulty="drop")  # type: ignore[arg-type]
    for chunk_rows in (0, 1.5, True):
        with pytest.raises(ValueError, match="expected chunk_rows to be a positive integer, found"):
            scan([FRAME], chunk_rows=chunk_rows)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="types= and delimiter= are for files"):
        scan([FRAME], types={"x": "text"})
    with pytest.raises(ValueError, match="expected delimiter= to be one character, found '::'"):
        scan("a.csv", delimiter="::")
    assert scan([FRAME], checkpoint=tmp_path / "state").options.checkpoint == str(tmp_path / "state")


@pytest.mark.parametrize(("library", "extra"), [("pyarrow", "files"), ("dask", "dask")])
def test_a_library_that_is_not_there_is_asked_for(monkeypatch, tmp_path, library, extra) -> None:
    data = tmp_path / "a.csv" if library == "pyarrow" else dask.array.ones((4, 2))
    if library == "pyarrow":
        data.write_text("x\n1\n")
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.split(".")[0] == library:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *arguments, **options)

    for module in ("arrow", "files", "dask"):
        monkeypatch.delitem(sys.modules, f"vff.data.{module}", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=rf"pip install 'vff\[{extra}\]'"):
        scan(data)


def test_a_fault_is_a_value_error() -> None:
    assert issubclass(SourceError, ValueError)
