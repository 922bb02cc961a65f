"""Arrays, frames and Arrow tables alike: their columns and rows, without importing any library that makes them."""

from collections.abc import Sequence
from typing import Any

from vff.data.schema import Kind

_NUMPY_KINDS = {"b": Kind.BOOLEAN, "M": Kind.DATETIME, "m": Kind.DURATION, **dict.fromkeys("iufc", Kind.NUMBER)}
_POLARS_KINDS = {"Boolean": Kind.BOOLEAN, "Date": Kind.DATETIME, "Datetime": Kind.DATETIME, "Duration": Kind.DURATION}


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
    return not isinstance(data, type) and (is_frame(data) or len(getattr(data, "shape", ())) == 2)


def kinds_of(data: Any) -> dict[str, Kind]:
    """What the columns of a table with names hold, by their types; those of which a type says nothing are left out."""
    names = column_names(data) or ()
    if is_arrow(data):
        from vff.data.arrow import kind_of

        found = {name: kind_of(kind) for name, kind in zip(names, data.schema.types, strict=True)}
        return {name: kind for name, kind in found.items() if kind != Kind.UNKNOWN}
    dtypes = dict(zip(names, data.dtypes, strict=True))
    return {name: _kind_of(dtype) for name, dtype in dtypes.items() if str(dtype) != "Null"}


def _kind_of(dtype: Any) -> Kind:
    """Of pandas or polars."""
    if hasattr(dtype, "is_numeric"):
        return Kind.NUMBER if dtype.is_numeric() else _POLARS_KINDS.get(str(dtype).split("(")[0], Kind.TEXT)
    return _NUMPY_KINDS.get(getattr(dtype, "kind", "O"), Kind.TEXT)
