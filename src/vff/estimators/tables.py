"""Tables as users have them, turned into checked float64 columns. Every refusal is one sentence that teaches."""

import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from vff.estimators.conversion import Place, finite_floats, kind_of, unwrapped
from vff.estimators.levels import codes_into, find_levels
from vff.estimators.shapes import refuse_what_is_no_table, two_dimensional
from vff.sources.frames import is_arrow, is_frame
from vff.words import listed, shown

Column = str | int

_LARGEST_TARGET = 1e140
_SMALLEST_TARGET = 1e-140
_LARGEST_WEIGHT = 1e15
_PIECE = 1 << 20  # rows looked at together when levels are sought
_ALL = slice(None)


class ExtrapolationWarning(UserWarning):
    """Predictions were asked for beyond the domain, where they return to the prior."""


@dataclass(frozen=True)
class Table:
    """Rows of named or numbered columns; a column is converted when it is asked for."""

    data: Any
    names: tuple[str, ...] | None
    n_rows: int
    n_columns: int
    places: tuple[int | None, ...] | None = None
    """Where the columns stand in the data, None for one that is not there; None where all do as they come."""

    @classmethod
    def of(cls, X: Any) -> "Table":
        """Wrap a pandas or polars frame or an Arrow table as it is; anything else becomes a 2D NumPy array."""
        if isinstance(X, Table):
            return X
        refuse_what_is_no_table(X)
        if is_frame(X):
            table = cls(X, _names_of(tuple(X.column_names if is_arrow(X) else X.columns)), *X.shape)
        else:
            array = two_dimensional(X)
            table = cls(array, None, *array.shape)
        if table.n_columns == 0:
            shape = (table.n_rows, table.n_columns)
            raise ValueError(f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required: give it a column")
        return table

    def arranged(self, names: Sequence[str], needed: Collection[str] | None = None) -> "Table":
        """The columns of these names in this order, wherever they stand and whatever stands beside them.

        Those that are not ``needed`` may be absent, if nobody asks for them.
        """
        known = self.names or ()
        absent = [name for name in names if name not in known and (needed is None or name in needed)]
        if absent:
            said = f"column{'s' if len(absent) > 1 else ''} {listed(absent)}"
            raise ValueError(f"X has no {said}, which the model was fitted to; its feature names are {listed(known)}")
        twice = [name for name in needed or names if known.count(name) > 1]
        if twice:
            raise ValueError(f"X has more than one column {twice[0]!r}, and columns go by name; rename or drop one")
        places = [self._place_in_data(known.index(name)) if name in known else None for name in names]
        return replace(self, names=tuple(names), n_columns=len(names), places=tuple(places))

    def _place_in_data(self, index: int) -> Any:
        return index if self.places is None else self.places[index]

    def index(self, column: Column) -> int:
        """Where a kernel's column stands."""
        if isinstance(column, str):
            if self.names is None:
                raise ValueError(
                    f"the kernel names column {shown(column)}, but X has no column names; "
                    "pass a pandas or polars frame, or give the kernel the index of the column"
                )
            if self.names.count(column) != 1:
                found = "does not have" if column not in self.names else "has more than once"
                raise ValueError(
                    f"the kernel names column {shown(column)}, which X {found}; its columns are {listed(self.names)}"
                )
            return self.names.index(column)
        if not -self.n_columns <= column < self.n_columns:
            raise ValueError(f"the kernel asks for column {column}, but X has {self.n_columns} column(s), from 0")
        return column % self.n_columns

    def label(self, index: int) -> str:
        """How a column is called in messages."""
        return shown(self.names[index]) if self.names else str(index)

    def kind(self, index: int) -> str:
        """ "number", "datetime", "duration", "boolean" or "text".

        Strings, objects, and what a library keeps as categories (whatever these are) are text. Python objects that are
        all numbers, or all times, are what they are.
        """
        return kind_of(self._piece(index, _ALL))

    def numbers(self, index: int, rows: slice = _ALL) -> np.ndarray:
        """One column, or some of its rows, as contiguous finite float64; only these rows are converted.

        Booleans become 0 and 1. Integers, floats and decimals of every width and library become float64. Times become
        days since 1970-01-01 00:00 UTC (those without a time zone are taken as they are), durations days. Text,
        categories, missing and infinite values are refused. The result may be a view of X: do not write to it.
        """
        try:
            return finite_floats(self._piece(index, rows), self.place(index, rows))
        except ValueError:
            # count over the whole column before refusing it
            finite_floats(self._piece(index, _ALL), self.place(index, _ALL))
            raise

    def raw(self, index: int) -> Any:
        """One column as its library keeps it."""
        return self._piece(index, _ALL)

    def column(self, index: int) -> np.ndarray:
        """The whole column, as ``numbers`` gives it."""
        return self.numbers(index)

    def levels(self, index: int, rows: slice = _ALL) -> tuple:
        """The distinct values of a column as Python scalars (times as ``datetime64`` in UTC, or ``timedelta64``).

        They are sorted when they can be, else in order of appearance. None stands for missing and is last.
        """
        return find_levels(self._pieces(index, rows), self.place(index, rows))

    def codes(self, index: int, levels: Sequence[Any], rows: slice = _ALL) -> np.ndarray:
        """Where the rows of a column stand in ``levels``, as float64; -1 for a value that is not among them."""
        return codes_into(self._piece(index, rows), levels, self.place(index, rows))

    def place(self, index: int, rows: slice = _ALL) -> Place:
        """How messages speak of a column, or of some rows of it."""
        label = self.label(index)
        return Place(f"column {label} of X", self._bounds(rows)[0], label)

    def _bounds(self, rows: slice) -> tuple[int, int]:
        start, stop, step = rows.indices(self.n_rows)
        if step != 1:
            raise ValueError(f"rows are read one after another, got {rows}; give a slice with step 1")
        return start, max(start, stop)

    def _pieces(self, index: int, rows: slice) -> Iterator[Any]:
        start, stop = self._bounds(rows)
        for first in range(start, stop, _PIECE):
            yield self._piece(index, slice(first, min(first + _PIECE, stop)))

    def _piece(self, index: int, rows: slice) -> Any:
        """Rows of one column as its library keeps them, without a copy."""
        start, stop = self._bounds(rows)
        index = self._place_in_data(index)
        if isinstance(self.data, np.ndarray):
            raw: Any = self.data[start:stop, index]
        elif is_arrow(self.data):
            raw = self.data.column(index).slice(start, stop - start)
        elif hasattr(self.data, "iloc"):
            raw = self.data.iloc[start:stop, index]
        else:
            raw = self.data[self.data.columns[index]][start:stop]
        return unwrapped(raw)


def _names_of(labels: tuple[Any, ...]) -> tuple[str, ...] | None:
    """Names of columns; None where these are numbered in order, so that a number is a label and a place alike."""
    texts = [isinstance(label, str) for label in labels]
    if all(texts):
        return labels
    if all(isinstance(label, Real) and label == place for place, label in enumerate(labels)):
        return None
    raise (TypeError if any(texts) else ValueError)(
        "X was expected to have columns that are named by text, or numbered 0, 1, 2, ... in order, found the labels "
        f"{listed(labels)}; call them by text, X.columns = X.columns.map(str), also in the kernel"
    )


def as_finite(raw: Any, what: str) -> np.ndarray:
    """A finite float64 array of numbers, or a sentence about ``what``."""
    return finite_floats(raw, Place(what))


def check_target(y: Any, n_rows: int) -> np.ndarray:
    """y as a vector of the right length."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give fit one number per row")
    raw = unwrapped(y)
    shape = raw.shape if isinstance(raw, np.ndarray) else (len(raw),)
    if shape == ():
        raise ValueError(
            f"y must be a vector of one number per row, got {y!r:.60}; give a vector, or with a frame the name of a "
            "column"
        )
    if len(shape) == 2 and shape[1] == 1:
        _warn_column_vector()
        raw, shape = raw.ravel(), shape[:1]
    if len(shape) != 1:
        raise ValueError(f"y must be a vector of one number per row, got shape {shape}; fit one output at a time")
    if shape[0] != n_rows:
        raise ValueError(f"y has {shape[0]} values and X has {n_rows} rows (inconsistent numbers of samples)")
    values = as_finite(raw, "y")
    largest = float(np.abs(values).max(initial=0.0))
    if largest > _LARGEST_TARGET:
        raise ValueError(f"y reaches {largest:g}, and its square leaves float64; measure it in larger units")
    if 0.0 < largest < _SMALLEST_TARGET:
        raise ValueError(
            f"y reaches no further than {largest:g}, and its square leaves float64; measure it in smaller units"
        )
    return values


def _warn_column_vector() -> None:
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
    if weights.size != n_rows:
        raise ValueError(
            f"sample_weight has {weights.size} values and X has {n_rows} rows (inconsistent numbers of samples)"
        )
    if weights.min(initial=0.0) < 0.0:
        row = int(np.argmin(weights))
        raise ValueError(f"sample_weight is negative ({weights[row]:g} in row {row}); weights are counts, zero or more")
    if weights.max(initial=0.0) > _LARGEST_WEIGHT:
        row = int(np.argmax(weights))
        raise ValueError(
            f"sample_weight reaches {weights[row]:g} in row {row}; weights count rows, and at most {_LARGEST_WEIGHT:g} "
            "was expected: divide them by a constant"
        )
    if weights.sum() == 0.0:
        raise ValueError("sample_weight is zero for every row; at least two rows need a positive weight")
    return weights
