"""Rows with something missing, found and left out of arrays, frames and Arrow tables alike, without importing any."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vff.data.frames import column_names, is_arrow, row_count
from vff.data.frames import selected as selected  # the room offers it from here
from vff.data.source import Chunk, Handling

_ARROW_FLOATS = ("double", "float", "halffloat", "float16")


def handled(chunk: Chunk, handling: Handling) -> Chunk:
    """The chunk as it is asked for: with or without its incomplete rows, and with its count."""
    if handling.missing == "refuse":
        return replace(chunk, n_rows=row_count(chunk.data))
    whole = np.ones(row_count(chunk.data), dtype=bool)
    for column in _columns(chunk, handling.keep_missing):
        present = _present(column)
        whole = whole if present is None else whole & present
    if whole.all():
        return replace(chunk, n_rows=len(whole))
    left = int(whole.sum())
    y, w = (None if part is None else _rows(part, whole) for part in (chunk.y, chunk.w))
    return replace(chunk, data=_rows(chunk.data, whole), y=y, w=w, n_rows=left, dropped=len(whole) - left)


def _columns(chunk: Chunk, keep: Sequence[str | int]) -> Iterator[Any]:
    data, names = chunk.data, column_names(chunk.data)
    if names is None:
        array = np.asarray(data)
        yield from (array[:, i] for i in range(array.shape[1]) if i not in keep)
    elif is_arrow(data):
        yield from (data.column(i) for i, name in enumerate(names) if name not in keep)
    else:
        yield from (data[name] for name in names if name not in keep)
    yield from (part for part in (chunk.y, chunk.w) if part is not None)


def _present(column: Any) -> np.ndarray | None:
    """Where a column has a value that is not infinite; None where it has one everywhere, by its type."""
    if hasattr(column, "null_count") and hasattr(column, "type"):
        if str(column.type) in _ARROW_FLOATS:
            return np.isfinite(_arrow_floats(column))
        return np.asarray(column.is_valid()) if column.null_count else None
    if hasattr(column, "is_null"):
        present = ~column.is_null().to_numpy()
        return present & np.isfinite(column.to_numpy()) if column.dtype.is_float() else present
    if hasattr(column, "isna"):
        present = ~column.isna().to_numpy()
        if getattr(column.dtype, "kind", "O") != "f":
            return present
        return present & np.isfinite(column.to_numpy(dtype=float, na_value=np.nan))
    return _present_in_array(np.asarray(column))


def _arrow_floats(column: Any) -> np.ndarray:
    chunked = hasattr(column, "chunks")
    return column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False)


def _present_in_array(values: np.ndarray) -> np.ndarray | None:
    present: np.ndarray
    if values.dtype.kind in "fc":
        present = np.isfinite(values)
    elif values.dtype.kind in "mM":
        present = ~np.isnat(values)
    elif values.dtype.kind == "O":
        present = np.array([_is_there(value) for value in values.ravel()], dtype=bool).reshape(values.shape)
    else:
        return None
    return present if present.ndim == 1 else np.all(present.reshape(len(present), -1), axis=1)


def _is_there(value: Any) -> bool:
    """None, NaN, and what pandas has for them are not, nor is anything infinite."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return False
    return not isinstance(value, float | np.floating) or bool(np.isfinite(value))


def _rows(data: Any, keep: np.ndarray) -> Any:
    if hasattr(data, "filter") and (is_arrow(data) or hasattr(data, "null_count")):
        return data.filter(keep)  # Arrow and polars
    if hasattr(data, "loc"):
        return data.loc[keep]
    return np.asarray(data)[keep]
