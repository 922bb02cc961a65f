"""What was given as a table, before anything in it is looked at: rows and columns, or a sentence."""

from typing import Any

import numpy as np
from sklearn.utils import check_array

from vff.data.frames import column, is_series

_FETCH = {"duckdb": "X.to_arrow_table()", "_duckdb": "X.to_arrow_table()", "ibis": "X.to_pyarrow()"}
_FETCH |= {"dask": "X.compute()", "dask_expr": "X.compute()"}


def refuse_what_is_no_table(X: Any) -> None:
    """Things that hold columns but are no table yet, each with the call that makes it one."""
    from vff.data.opening import is_chunked  # which knows what tables are

    owner, advice = type(X).__module__.split(".")[0], None
    if hasattr(type(X), "collect_schema") and not hasattr(type(X), "shape"):
        advice = "its rows are not there yet: pass X.collect()"
    elif isinstance(X, dict) and not hasattr(X, "tocsr"):  # sparse matrices of keys are dictionaries too
        advice = "pass pandas.DataFrame(X) or polars.DataFrame(X)"
    elif is_series(X):
        advice = "pass X.to_frame()" if hasattr(X, "to_frame") else "pass pyarrow.table({'x': X})"
    elif owner in _FETCH:
        advice = f"its rows are not there yet: pass {_FETCH[owner]}"
    elif isinstance(X, str):
        advice = "read the file first, for instance with pandas.read_csv(X)"
    elif is_chunked(X):
        advice = "rows in chunks are for fit: give one chunk after another"
    elif isinstance(X, list | tuple) and any(isinstance(row, dict) for row in X):
        advice = "its rows are dictionaries: pass pandas.DataFrame(X) or polars.DataFrame(X)"
    elif isinstance(X, np.ndarray) and X.dtype.names is not None:
        advice = (
            "its rows are records: pass pandas.DataFrame(X), or numpy.lib.recfunctions.structured_to_unstructured(X)"
        )
    if advice:
        name = f"{'' if owner == 'builtins' else owner.lstrip('_') + ' '}{type(X).__name__}"
        raise TypeError(f"X must be a table with rows and columns, got a {name}; {advice}")


def two_dimensional(X: Any) -> np.ndarray:
    """Anything but a frame as an array of rows and columns."""
    if isinstance(X, np.ma.MaskedArray):
        X = column(X)
    _refuse_ragged(X)
    if np.iscomplexobj(np.asarray(X)):  # of arrays of other libraries, too, which may not take functions of NumPy
        raise ValueError("X: real numbers were expected. Complex data not supported; use its real part or modulus")
    loose: dict[str, Any] = {"dtype": None, "ensure_all_finite": False}
    array = check_array(X, ensure_2d=False, ensure_min_samples=0, ensure_min_features=0, **loose)
    if array.ndim == 0:
        raise ValueError(
            f"X must be a table with rows and columns, got {type(X).__name__}; pass a frame, or an array of two "
            "dimensions"
        )
    if array.ndim < 2:
        raise ValueError(
            f"X must be a table with rows and columns, got a {array.ndim}D array of {array.size} number(s). "
            "Reshape your data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row"
        )
    if array.dtype.kind == "U" and not isinstance(X, np.ndarray):
        return np.array(X, dtype=object)  # in a list, numbers beside text are still numbers
    return array


def _refuse_ragged(X: Any) -> None:
    """Rows of different lengths, in lists or in an array of objects."""
    rows = X if isinstance(X, list | tuple) else X if isinstance(X, np.ndarray) and X.dtype == object else ()
    if getattr(rows, "ndim", 1) != 1:
        return
    sizes = [len(row) if isinstance(row, list | tuple) or getattr(row, "ndim", 0) else None for row in rows]
    other = next((number for number, size in enumerate(sizes) if size != sizes[0]), None)
    if other is not None:
        found = ["a single value" if size is None else f"{size} value(s)" for size in (sizes[0], sizes[other])]
        raise ValueError(
            f"X must have as many values in every row, and has {found[0]} in row 0 and {found[1]} in row {other}; fill "
            "up short rows, or leave them out"
        )
