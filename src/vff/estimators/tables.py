"""Tables as users have them, turned into checked float64 columns. Every refusal is one sentence that teaches."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length

Column = str | int


_LARGEST_TARGET = 1e140


class ExtrapolationWarning(UserWarning):
    """Predictions were asked for beyond the domain, where they return to the prior."""


@dataclass(frozen=True)
class Table:
    """Rows of named or numbered columns; a column is converted when it is asked for."""

    data: Any
    names: tuple[str, ...] | None
    n_rows: int
    n_columns: int

    @classmethod
    def of(cls, X: Any) -> "Table":
        """Wrap a pandas or polars frame as it is; anything else becomes a two-dimensional NumPy array."""
        if hasattr(X, "columns") and hasattr(X, "shape") and len(X.shape) == 2:
            names = tuple(X.columns)
            strings = all(isinstance(name, str) for name in names)
            table = cls(X, names if strings else None, *X.shape)
        else:
            loose: dict[str, Any] = {"dtype": None, "ensure_all_finite": False}
            array = check_array(X, ensure_2d=False, ensure_min_samples=0, ensure_min_features=0, **loose)
            if array.ndim < 2:
                raise ValueError(
                    f"X must be a table with rows and columns, got a {array.ndim}D array of {array.size} number(s). "
                    "Reshape your data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row"
                )
            table = cls(array, None, *array.shape)
        if table.n_columns == 0:
            raise ValueError(f"X has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required: give it a column")
        return table

    def index(self, column: Column) -> int:
        """Where a kernel's column stands."""
        if isinstance(column, str):
            if self.names is None:
                raise ValueError(
                    f"the kernel names column {column!r}, but X has no column names; "
                    "pass a pandas or polars frame, or give the kernel the index of the column"
                )
            if column not in self.names:
                raise ValueError(
                    f"the kernel names column {column!r}, which X does not have; its columns are "
                    f"{', '.join(map(repr, self.names[:12]))}{' ...' if len(self.names) > 12 else ''}"
                )
            return self.names.index(column)
        if not -self.n_columns <= column < self.n_columns:
            raise ValueError(f"the kernel asks for column {column}, but X has {self.n_columns} column(s), from 0")
        return column % self.n_columns

    def label(self, index: int) -> str:
        """How a column is called in messages."""
        return repr(self.names[index]) if self.names else str(index)

    def column(self, index: int) -> np.ndarray:
        """One column as finite float64."""
        if isinstance(self.data, np.ndarray):
            raw: Any = self.data[:, index]
        elif hasattr(self.data, "iloc"):
            raw = self.data.iloc[:, index]
        else:
            raw = self.data[self.data.columns[index]]
        return as_finite(raw, f"column {self.label(index)} of X")


def as_finite(raw: Any, what: str) -> np.ndarray:
    """A one-dimensional, finite float64 array, or a sentence about ``what``."""
    array = np.asarray(raw)
    if array.dtype.kind in "OSUT":
        array = _numbers_from_objects(array, what)
    if array.dtype.kind == "c":
        raise ValueError(
            f"{what}: real numbers were expected. Complex data not supported; use its real part or modulus"
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{what} holds {array.dtype}; numbers were expected: convert it to a number first")
    values = np.ascontiguousarray(array, dtype=np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        kind = "NaN" if np.isnan(values[row]) else "inf"
        raise ValueError(
            f"{what} contains {kind} ({np.count_nonzero(~finite)} of {values.size} values, first in row {row}); "
            "finite numbers were expected: drop or fill these rows first"
        )
    return values


def _numbers_from_objects(array: np.ndarray, what: str) -> np.ndarray:
    if array.dtype.kind == "O" and not any(isinstance(value, str | bytes) for value in array.ravel()):
        if any(isinstance(value, dict) for value in array.ravel()):
            raise TypeError(f"{what}: argument must be a string or a number, got dictionaries; give it numbers")
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):
            pass
    example = next((value for value in array.ravel() if not isinstance(value, int | float)), None)
    raise ValueError(
        f"{what} holds text or objects such as {example!r}; numbers were expected: "
        "drop the column, or encode it as numbers (could not convert string to float)"
    )


def check_target(y: Any, n_rows: int) -> np.ndarray:
    """y as a vector of the right length."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give fit one number per row")
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        _warn_column_vector()
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"y must be a vector of one number per row, got shape {array.shape}; fit one output at a time")
    if array.size != n_rows:
        raise ValueError(f"y has {array.size} values and X has {n_rows} rows (inconsistent numbers of samples)")
    values = as_finite(array, "y")
    if np.abs(values).max(initial=0.0) > _LARGEST_TARGET:
        raise ValueError(
            f"y reaches {np.abs(values).max():g}, and its square leaves float64; measure it in larger units"
        )
    return values


def _warn_column_vector() -> None:
    import warnings

    from sklearn.exceptions import DataConversionWarning

    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
        "for example using ravel().",
        DataConversionWarning,
        stacklevel=4,
    )


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Non-negative finite weights, one per row; ones when none are given."""
    if sample_weight is None:
        return np.broadcast_to(1.0, n_rows)  # one number, seen N times
    if isinstance(sample_weight, int | float):
        sample_weight = np.full(n_rows, float(sample_weight))
    weights = as_finite(sample_weight, "sample_weight")
    if weights.ndim != 1:
        raise ValueError(f"sample_weight must be 1D, one number per row; got shape {weights.shape}")
    check_consistent_length(weights, np.empty(n_rows))
    if weights.min(initial=0.0) < 0.0:
        row = int(np.argmin(weights))
        raise ValueError(f"sample_weight is negative ({weights[row]:g} in row {row}); weights are counts, zero or more")
    if weights.sum() == 0.0:
        raise ValueError("sample_weight is zero for every row; at least two rows need a positive weight")
    return weights
