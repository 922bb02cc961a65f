"""Arrays, frames and Arrow tables alike: their columns and rows, without importing any library that makes them."""

from collections.abc import Sequence
from typing import Any


def is_arrow(data: Any) -> bool:
    """Whether this is an Arrow table or record batch."""
    return hasattr(data, "column_names") and hasattr(data, "num_rows")


def column_names(data: Any) -> tuple[str, ...] | None:
    """Columns of a table; None for an array, and for a frame whose columns are numbered."""
    if is_arrow(data):
        return tuple(data.column_names)
    if not hasattr(data, "columns") or not all(isinstance(name, str) for name in data.columns):
        return None
    return tuple(data.columns)


def selected(data: Any, names: Sequence[str]) -> Any:
    """These columns of a table with names."""
    return data.select(list(names)) if is_arrow(data) else data[list(names)]


def row_count(data: Any) -> int:
    """How many rows a table or an array has."""
    return data.num_rows if is_arrow(data) else len(data)


def sliced(data: Any, start: int, stop: int) -> Any:
    """Rows from ``start`` up to ``stop``, without a copy."""
    if is_arrow(data) or hasattr(data, "null_count"):
        return data.slice(start, stop - start)  # Arrow and polars
    return (data.iloc if hasattr(data, "iloc") else data)[start:stop]


def is_frame(data: Any) -> bool:
    """Whether this is a table with names of columns, in memory."""
    return is_arrow(data) or (hasattr(data, "columns") and len(getattr(data, "shape", ())) == 2)


def is_table(data: Any) -> bool:
    """Whether this has rows and columns, in memory."""
    return is_frame(data) or len(getattr(data, "shape", ())) == 2
