"""Tables as users have them, turned into checked float64 columns. Every refusal is one sentence that teaches."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_array

from vff.data.conversion import Origin, codes_into, encode, find_levels, finite_floats
from vff.data.frames import column, column_at, declared_order, is_arrow, is_frame, is_series, kind_of
from vff.data.schema import Kind
from vff.words import listed, perhaps, shown

Column = str | int

_PIECE = 1 << 20  # rows looked at together when levels are sought
_KEPT = 2**30  # bytes of converted columns that are kept
_ALL = slice(None)
_FETCH = {"duckdb": "X.to_arrow_table()", "_duckdb": "X.to_arrow_table()", "ibis": "X.to_pyarrow()"}
_FETCH |= {"dask": "X.compute()", "dask_expr": "X.compute()"}


@dataclass(frozen=True)
class Table:
    """Rows of named or numbered columns; a column is converted when it is asked for."""

    data: Any
    names: tuple[str, ...] | None
    n_rows: int
    n_columns: int
    positions: tuple[int | None, ...] | None = None
    """Where the columns stand in the data, None for one that is not there; None where all do as they come."""
    first: int = 0
    """The row of the data that this begins with."""
    converted: dict[tuple[str, int], Any] = field(default_factory=dict, repr=False, compare=False)
    """Columns that were converted, by where they stand in the data: nobody does it twice."""

    @classmethod
    def of(cls, X: Any) -> "Table":
        """Wrap a pandas or polars frame or an Arrow table as it is; anything else becomes a 2D NumPy array."""
        if isinstance(X, Table):
            return X
        _refuse_what_is_no_table(X)
        if is_frame(X):
            table = cls(X, _names_of(tuple(X.column_names if is_arrow(X) else X.columns)), *X.shape)
        else:
            array = _two_dimensional(X)
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
        check_columns(names, known, names if needed is None else needed)
        positions = [self._position_in_data(known.index(name)) if name in known else None for name in names]
        return replace(self, names=tuple(names), n_columns=len(names), positions=tuple(positions))

    def sliced(self, start: int, stop: int) -> "Table":
        """Some of the rows, one after another; messages go on counting from the first of all."""
        return replace(self, first=self.first + start, n_rows=stop - start, converted={})

    def _position_in_data(self, index: int) -> Any:
        return index if self.positions is None else self.positions[index]

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
                    f"the kernel names column {shown(column)}, which X {found}; its columns are "
                    f"{listed(self.names)}{perhaps(column, self.names)}"
                )
            return self.names.index(column)
        if not -self.n_columns <= column < self.n_columns:
            raise ValueError(f"the kernel asks for column {column}, but X has {self.n_columns} column(s), from 0")
        return column % self.n_columns

    def label(self, index: int) -> str:
        """How a column is called in messages."""
        return shown(self.names[index]) if self.names else str(index)

    def kind(self, index: int) -> Kind:
        """What a column holds.

        Strings, objects, and what a library keeps as categories (whatever these are) are text. Python objects that are
        all numbers, or all times, are what they are.
        """
        return self._kept("kind", index, lambda: kind_of(self.raw(index)))

    def numbers(self, index: int, rows: slice = _ALL, *, missing: bool = False, role: str | None = None) -> np.ndarray:
        """One column, or some of its rows, as contiguous finite float64.

        Booleans become 0 and 1. Integers, floats and decimals of every width and library become float64. Times become
        days since 1970-01-01 00:00 UTC (those without a time zone are taken as they are), durations days. Text,
        categories, missing and infinite values are refused; with ``missing``, missing ones are NaN. The result may be
        a view of X: do not write to it. A column that no term models is read for some ``role``, as refusals say.
        """
        start, stop = self._bounds(rows)
        if self._keeps:
            try:
                key = "numbers or missing" if missing else "numbers"
                return self._kept(key, index, lambda: self._floats(index, _ALL, missing, role))[start:stop]
            except ValueError:
                if stop - start == self.n_rows:
                    raise  # else what is wrong may lie elsewhere
        return self._floats(index, rows, missing, role)

    def _floats(self, index: int, rows: slice, missing: bool, role: str | None) -> np.ndarray:
        origin = self.origin(index, rows)
        if role is not None:  # no kernel can take it
            origin = replace(origin, what=f"column {self.label(index)} of X, which is {role},", column=None)
        try:
            return finite_floats(self.raw(index, rows), origin, missing=missing)
        except ValueError:
            # count over the whole column before refusing it
            whole = replace(origin, first_row=0)
            finite_floats(self._stretch(index, 0, None), whole, missing=missing)
            raise

    @property
    def _keeps(self) -> bool:
        return self.n_rows <= _PIECE or 8 * self.n_rows * self.n_columns <= _KEPT

    def _kept(self, what: str, index: int, convert: Callable[[], Any]) -> Any:
        """What was worked out about a column, by whoever asked first."""
        key = what, self._position_in_data(index)
        if key not in self.converted:
            self.converted[key] = convert()
        return self.converted[key]

    def raw(self, index: int, rows: slice = _ALL) -> Any:
        """One column, or some of its rows, as its library keeps it, without a copy."""
        start, stop = self._bounds(rows)
        return self._stretch(index, self.first + start, self.first + stop)

    def levels(self, index: int, rows: slice = _ALL) -> tuple:
        """The distinct values of a column as Python scalars (times as ``datetime64`` in UTC, or ``timedelta64``).

        They are sorted when they can be, else in order of appearance. None stands for missing and is last.
        """
        return find_levels(self._encoded(index, rows))

    def order(self, index: int) -> tuple[Any, ...] | None:
        """The levels of a column whose type says in which order they stand, those without rows too; None for others."""
        return declared_order(self.raw(index))

    def codes(self, index: int, levels: Sequence[Any], rows: slice = _ALL, *, missing: bool = False) -> np.ndarray:
        """Where the rows of a column stand in ``levels``, as float64; -1 for a value that is not among them.

        With ``missing``, NaN for what is missing, unless that is a level.
        """
        pieces = [codes_into(*piece, levels, missing=missing) for piece in self._encoded(index, rows)]
        return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0), *pieces])

    def _encoded(self, index: int, rows: slice) -> Iterator[tuple[np.ndarray, list[Any]]]:
        """Codes of the rows and the values they point to, a piece at a time where there are very many."""
        start, stop = self._bounds(rows)
        if self._keeps:
            codes, values = self._kept("codes", index, lambda: encode(self.raw(index), self.origin(index)))
            yield codes[start:stop], values
            return
        for first in range(start, stop, _PIECE):
            some = slice(first, min(first + _PIECE, stop))
            yield encode(self.raw(index, some), self.origin(index, some))

    def origin(self, index: int, rows: slice = _ALL) -> Origin:
        """How messages speak of a column, or of some rows of it."""
        label = self.label(index)
        return Origin(f"column {label} of X", self.first + self._bounds(rows)[0], label)

    def _bounds(self, rows: slice) -> tuple[int, int]:
        start, stop, step = rows.indices(self.n_rows)
        if step != 1:
            raise ValueError(f"rows are read one after another, got {rows}; give a slice with step 1")
        return start, max(start, stop)

    def _stretch(self, index: int, start: int, stop: int | None) -> Any:
        position = self._position_in_data(index)
        if isinstance(self.data, np.ndarray):
            return column(self.data[start:stop, position])
        return column_at(self.data, position, start, stop)


def check_columns(names: Sequence[str], known: Sequence[str], needed: Collection[str]) -> None:
    """Refuse a table in which columns that a model needs are absent, or there more than once."""
    absent = [name for name in names if name not in known and name in needed]
    if absent:
        columns = f"column{'s' if len(absent) > 1 else ''} {listed(absent)}"
        raise ValueError(
            f"X has no {columns}, which the model was fitted to; its feature names are "
            f"{listed(known)}{perhaps(absent[0], known)}"
        )
    twice = [name for name in needed or names if known.count(name) > 1]
    if twice:
        raise ValueError(f"X has more than one column {twice[0]!r}, and columns go by name; rename or drop one")


def _names_of(labels: tuple[Any, ...]) -> tuple[str, ...] | None:
    """Names of columns; None where these are numbered in order, so that a number is a label and a position alike."""
    texts = [isinstance(label, str) for label in labels]
    if all(texts):
        return labels
    if all(isinstance(label, Real) and label == position for position, label in enumerate(labels)):
        return None
    raise (TypeError if any(texts) else ValueError)(
        "X was expected to have columns that are named by text, or numbered 0, 1, 2, ... in order, found the labels "
        f"{listed(labels)}; call them by text, X.columns = X.columns.map(str), also in the kernel"
    )


def _refuse_what_is_no_table(X: Any) -> None:
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


def _two_dimensional(X: Any) -> np.ndarray:
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
