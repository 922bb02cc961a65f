"""Checksums change when a single value does, and do not when nothing does; what settles the rows is put in writing."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet
import pytest

import vff
from vff.data.fingerprints import content_mark
from vff.data.opening import scan

N = 50
VALUES: dict[str, Any] = {
    "x": [i / 3.0 for i in range(N)],
    "n": list(range(N)),
    "s": [None if i == 7 else f"level {i}" for i in range(N)],
}
MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas masked": lambda values: pd.DataFrame(values).convert_dtypes(),
    "pandas category": lambda values: pd.DataFrame(values).astype({"s": "category"}),
    "polars": pl.DataFrame,
    "table": pa.table,
    "slice": lambda values: pa.table({name: [*part, *part] for name, part in values.items()}).slice(N, N),
    "batch": pa.RecordBatch.from_pydict,
    "dictionary": lambda values: pa.table({**values, "s": pa.array(values["s"]).dictionary_encode()}),
    "objects": lambda values: np.array(list(zip(*values.values(), strict=True)), dtype=object),
    "numbers": lambda values: np.column_stack([values["x"], values["n"], [hash(s) % 1000 for s in values["s"]]]),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("column", VALUES)
def test_one_value_makes_another_mark(kind: str, column: str) -> None:
    make = MAKERS[kind]
    changed = {name: list(part) for name, part in VALUES.items()}
    changed[column][N // 2] = {"x": N / 6.0 + 1e-9, "n": 999, "s": "other"}[column]
    assert content_mark(make(VALUES)) == content_mark(make(VALUES))
    assert content_mark(make(VALUES)) != content_mark(make(changed))


@pytest.mark.parametrize(
    "make", [list, np.array, pd.Series, pl.Series, pa.array, lambda y: pa.chunked_array([pa.array(y)])]
)
def test_targets_and_weights_count(make: Any) -> None:
    X, y, other = np.ones((3, 2)), make([1.0, 2.0, 3.0]), make([1.0, 2.0, 3.0 + 1e-15])
    marks = {content_mark(X, y, None), content_mark(X, None, y), content_mark(X, other, None), content_mark(X, y, y)}
    assert len(marks) == 4


def test_nulls_and_decimals() -> None:
    assert content_mark(pa.array([1.0, None])) != content_mark(pa.array([1.0, 0.0]))
    assert content_mark(np.array([Decimal("1.0")])) != content_mark(np.array([Decimal("1.00")]))


def marks(data: Any) -> list[str]:
    return [part.fingerprint() for part in scan(data).parts()]


def test_datasets_in_memory_are_known_by_their_rows() -> None:
    table, other = pa.table({"x": [1.0, 2.0, 3.0]}), pa.table({"x": [1.0, 2.5, 3.0]})
    assert marks(ds.dataset(table)) == marks(ds.dataset(table))
    assert marks(ds.dataset(table)) != marks(ds.dataset(other))
    assert marks(ds.dataset(table).filter(ds.field("x") > 2)) != marks(ds.dataset(other).filter(ds.field("x") > 2))
    assert len(marks(ds.dataset(table))) == 1


def test_filtered_datasets_are_known_by_their_files_and_filters(tmp_path: Path) -> None:
    for name in "ab":
        pyarrow.parquet.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / f"{name}.parquet")

    def filtered(least: float) -> list[str]:
        return marks(ds.dataset(tmp_path).filter(ds.field("x") > least))

    def joined() -> list[str]:
        parts = [ds.dataset(tmp_path / f"{name}.parquet") for name in "ab"]
        return marks(ds.dataset(parts).filter(ds.field("x") > 0))

    before, union = filtered(0.0), joined()
    assert before == filtered(0.0)
    assert before != filtered(1.5)
    assert union == joined()
    pyarrow.parquet.write_table(pa.table({"x": [1.0, 2.0, 3.0]}), tmp_path / "b.parquet")
    assert before != filtered(0.0)
    assert union != joined()


def test_the_identity_says_what_settles_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1;2\n")
    plain = scan(path)
    changed = [
        scan(path, types={"a": "text"}),
        scan(path, delimiter=";"),
        scan(path, missing="drop"),
        scan(path, chunk_rows=7),
        plain.with_options(keep_missing=("a",)),
        plain.with_integers(["a"]),
    ]
    identities = [plain.identity, *(source.identity for source in changed)]
    assert len(set(identities)) == len(identities)
    assert plain.identity == scan(path, report=print, faulty="skip").identity
    assert f"vff {vff.__version__}" in plain.identity
    stream = scan([np.ones((2, 1))] * 2, missing="drop").with_options(keep_missing=(0,)).identity
    assert stream.endswith("missing 'drop' but kept in 0")
