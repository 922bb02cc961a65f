"""Arrays, frames and Arrow tables alike: their columns and rows, without importing any library that makes them."""

from collections.abc import Sequence
from typing import Any

_NUMPY_KINDS = {"b": "boolean", "M": "datetime", "m": "duration", **dict.fromkeys("iufc", "number")}
_POLARS_KINDS = {"Boolean": "boolean", "Date": "datetime", "Datetime": "datetime", "Duration": "duration"}
_WORDS = ("number", "datetime", "duration", "boolean", "text")


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


def kinds_of(data: Any) -> dict[str, str]:
    """What the columns of a table with names hold, by their types; those of which a type says nothing are left out."""
    names = column_names(data) or ()
    if is_arrow(data):
        from vff.sources.arrow import UNKNOWN, kind_of

        found = {name: kind_of(kind) for name, kind in zip(names, data.schema.types, strict=True)}
        return {name: kind if kind in _WORDS else "text" for name, kind in found.items() if kind != UNKNOWN}
    dtypes = dict(zip(names, data.dtypes, strict=True))
    return {name: _kind_of(dtype) for name, dtype in dtypes.items() if str(dtype) != "Null"}


def _kind_of(dtype: Any) -> str:
    """Of pandas or polars."""
    if hasattr(dtype, "is_numeric"):
        return "number" if dtype.is_numeric() else _POLARS_KINDS.get(str(dtype).split("(")[0], "text")
    return _NUMPY_KINDS.get(getattr(dtype, "kind", "O"), "text")
