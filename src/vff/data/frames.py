"""Arrays, frames and Arrow tables alike: the one file that knows narwhals, and what sets its libraries apart.

A *column* is a NumPy array, or a ``Series`` of narwhals where its library keeps it in another way.
"""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from vff.data.schema import Kind

_KINDS = {"b": Kind.BOOLEAN, "M": Kind.DATETIME, "m": Kind.DURATION, **dict.fromkeys("iufc", Kind.NUMBER)}
_TIMES = {Kind.DATETIME: (date, np.datetime64), Kind.DURATION: (timedelta, np.timedelta64)}
_NULL = ("null", "Null")
_OF_ARROW = ("RecordBatch", "Array")
_FLOATS = (float, np.floating)
_WITH_NAN = (float, np.generic, Decimal)
_MISSING_TYPES = ("NoneType", "NAType", "NaTType")


def wrapped(data: Any) -> Any:
    """A frame or a series of narwhals; None for arrays, lists, and what no library that it knows has made."""
    if isinstance(data, np.ndarray | list | tuple) or data is None:
        return None
    if any(kind.__module__ == "pyarrow.lib" and kind.__name__ in _OF_ARROW for kind in type(data).__mro__):
        from vff.data.arrow import in_chunks  # there is Arrow, since this is its own

        data = in_chunks(data)
    try:
        found = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    except DuplicateError:  # columns go by their positions then
        names = [str(position) for position in range(data.shape[1])]
        renamed = data.rename_columns(names) if is_arrow(data) else data.set_axis(names, axis=1)
        found = nw.from_native(renamed, eager_only=True)
    return found if isinstance(found, nw.DataFrame | nw.Series) else None


def is_arrow(data: Any) -> bool:
    """Whether this is an Arrow table or record batch."""
    return hasattr(data, "column_names") and hasattr(data, "num_rows")


def is_series(data: Any) -> bool:
    """Whether this is one column of some library."""
    return isinstance(wrapped(data), nw.Series)


def is_frame(data: Any) -> bool:
    """Whether this is a table with names of columns, in memory."""
    return isinstance(wrapped(data), nw.DataFrame)


def is_table(data: Any) -> bool:
    """Whether this has rows and columns, in memory."""
    return is_frame(data) or (not isinstance(data, type) and len(getattr(data, "shape", ())) == 2)


def column_names(data: Any) -> tuple[str, ...] | None:
    """Columns of a table; None for an array, and for a frame whose columns are numbered."""
    labels: Any = data.column_names if is_arrow(data) else getattr(data, "columns", (None,))
    return tuple(labels) if all(isinstance(name, str) for name in labels) else None


def selected(data: Any, names: Sequence[str]) -> Any:
    """These columns of a table with names."""
    return wrapped(data).select(list(names)).to_native()


def sliced(data: Any, start: int, stop: int) -> Any:
    """Rows from ``start`` up to ``stop``, without a copy."""
    found = wrapped(data)
    return data[start:stop] if found is None else found[start:stop].to_native()


def filtered(data: Any, keep: np.ndarray) -> Any:
    """The rows that are to be kept."""
    found = wrapped(data)
    if found is None:
        return np.asarray(data)[keep]
    return found[np.flatnonzero(keep)].to_native()


def joined(parts: Sequence[Any]) -> Any:
    """Tables or columns of one library, one below the other."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, list):
        return [value for part in parts for value in part]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    found = [wrapped(part) for part in parts]
    if isinstance(found[0], nw.DataFrame):
        return nw.concat(found).to_native()
    return nw.concat([one.alias("one").to_frame() for one in found])["one"].alias(found[0].name).to_native()


def made_of(part: Any) -> tuple[Any, ...]:
    """What parts must share to be joined: their library, names and types; an empty tuple where nobody knows how to."""
    if part is None or type(part) is list:
        return (type(part),)
    if type(part) is np.ndarray:
        return (type(part), part.dtype, part.shape[1:])
    if wrapped(part) is None:
        return ()
    if hasattr(part, "columns") and not is_arrow(part):
        return (type(part), tuple(part.columns), tuple(part.dtypes))
    types = [getattr(part, name) for name in ("schema", "dtype", "type") if hasattr(part, name)]
    return (type(part), getattr(part, "name", None), types[0])


def column_at(data: Any, position: int, start: int, stop: int | None) -> Any:
    """Rows of one column, by its position in a frame, without a copy."""
    return column(wrapped(data)[start:stop, position].to_native())


def column(raw: Any) -> Any:
    """A column as NumPy has it, where its library keeps it so; lists and masked arrays of NumPy become arrays."""
    if isinstance(raw, np.ma.MaskedArray) and np.ma.is_masked(raw):
        array = np.array(raw.data, dtype=raw.dtype if raw.dtype.kind == "f" else object)
        array[np.ma.getmaskarray(raw)] = None  # NumPy writes NaN among floats
        return array
    found = raw if isinstance(raw, nw.Series) else wrapped(raw)
    if not isinstance(found, nw.Series):
        try:
            return np.asarray(raw)
        except ValueError:  # lists of different lengths: an array of lists, which has a sentence of its own
            array = np.empty(len(raw), dtype=object)
            array[:] = raw
            return array
    native = found.to_native()
    if not found.implementation.is_pandas_like():
        return found
    if isinstance(native.dtype, np.dtype):
        return native.to_numpy()
    if hasattr(native.dtype, "pyarrow_dtype"):  # Arrow in a coat
        return wrapped(native.array.__arrow_array__())
    return np.asarray(native) if found.dtype == nw.Unknown else found  # periods and the like are objects


def type_of(found: Any) -> str:
    """How its library writes the type of a column."""
    native = found.to_native() if isinstance(found, nw.Series) else found
    return str(getattr(native, "dtype", getattr(native, "type", None)))


def kind_of(found: Any) -> Kind:
    """What a column holds. Groupings are text, and Python objects what all of them are."""
    if isinstance(found, nw.Series):
        return Kind.NUMBER if type_of(found) in _NULL else _kind_of(found.dtype)
    if found.dtype.kind != "O":
        return _KINDS.get(found.dtype.kind, Kind.TEXT)
    types = {kind for kind in set(map(type, found.flat)) if kind.__name__ not in _MISSING_TYPES}
    if len(types) > 1 and float in types and not any(type(value) is float and value == value for value in found.flat):
        types.discard(float)  # NaN alone: how pandas marks what is missing among other objects
    for kind, classes in _TIMES.items():  # before numbers, for NumPy calls a timedelta an integer
        if types and all(issubclass(each, classes) for each in types):
            return kind
    if types and all(issubclass(each, bool | np.bool_) for each in types):
        return Kind.BOOLEAN
    return Kind.NUMBER if all(issubclass(each, Real | Decimal | np.bool_) for each in types) else Kind.TEXT


def _kind_of(dtype: Any) -> Kind:
    if dtype.is_numeric():
        return Kind.NUMBER
    times = {nw.Boolean: Kind.BOOLEAN, nw.Date: Kind.DATETIME, nw.Datetime: Kind.DATETIME, nw.Duration: Kind.DURATION}
    return next((kind for own, kind in times.items() if dtype == own), Kind.TEXT)


def kinds_of(data: Any) -> dict[str, Kind]:
    """What the columns of a table with names hold, by their types; where there are none but missing, it is unknown."""
    frame = wrapped(data)
    kinds = {name: _kind_of(dtype) for name, dtype in frame.schema.items()}
    empty = [name for name, dtype in frame.schema.items() if dtype == nw.Unknown and type_of(frame[name]) in _NULL]
    return {**kinds, **dict.fromkeys(empty, Kind.UNKNOWN)}


def known_kinds(data: Any) -> dict[str, Kind]:
    """The same without those that are unknown."""
    return {name: kind for name, kind in kinds_of(data).items() if kind != Kind.UNKNOWN}


def declared_order(found: Any) -> tuple[Any, ...] | None:
    """The categories of a column whose type puts them in an order; None for others."""
    if not (isinstance(found, nw.Series) and found.dtype == nw.Enum):
        return None
    native = found.to_native()
    return tuple(native.cat.categories) if found.implementation.is_pandas_like() else tuple(native.dtype.categories)


def is_grouped(found: Any) -> bool:
    """Whether the type of a column says that it is a category."""
    return isinstance(found, nw.Series) and found.dtype in (nw.Categorical, nw.Enum)


def as_numpy(found: Any, kind: Kind) -> np.ndarray:
    """A column as it is, with NaN or NaT (among objects anything) for what is missing; numbers as float64."""
    if not isinstance(found, nw.Series):
        return found
    if not kind.counts or found.implementation.is_pandas_like():
        return found.to_native().to_numpy(dtype="float64", na_value=np.nan) if kind.counts else found.to_numpy()
    # whole numbers that float64 does not hold are told apart later
    native = found.to_native()
    return (native.cast("float64", safe=False) if found.implementation.is_pyarrow() else native.cast(float)).to_numpy()


def present(found: Any) -> np.ndarray | None:
    """Where a column has a value that is not infinite; None where it has one everywhere, by its type."""
    if isinstance(found, nw.Series):
        there = ~found.is_null().to_numpy()
        return there & np.isfinite(as_numpy(found, Kind.NUMBER)) if found.dtype.is_float() else there
    if found.dtype.kind in "fc":
        there = np.isfinite(found)
    elif found.dtype.kind in "mM":
        there = ~np.isnat(found)
    elif found.dtype.kind == "O":
        infinite = (float("inf"), -float("inf"))
        gone = [is_missing(value) or (isinstance(value, _FLOATS) and value in infinite) for value in found.ravel()]
        there = ~np.array(gone, dtype=bool).reshape(found.shape)
    else:
        return None
    return there if there.ndim == 1 else np.all(there.reshape(len(there), -1), axis=1)


def is_missing(value: Any) -> bool:
    """Whether this is None, NaN, NaT or <NA>."""
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, _WITH_NAN) and bool(value != value)


def types_held(values: list[Any]) -> list[type]:
    """The types of the values that are not missing, in order of appearance; few values are looked at for that."""
    kinds = [kind for kind in dict.fromkeys(map(type, values)) if kind.__name__ not in _MISSING_TYPES]
    return [
        kind
        for kind in kinds
        if not issubclass(kind, _WITH_NAN) or any(type(value) is kind and not is_missing(value) for value in values)
    ]


def factorized(found: Any) -> tuple[np.ndarray, Iterable[Any]] | None:
    """Integer codes of the rows of a series, -1 for what is missing, and the values they point to.

    Every library has a fast way of its own. None where there is none, since the values are Python objects.
    """
    native = found.to_native()
    if found.implementation.is_pandas_like():
        if hasattr(native, "cat"):
            return native.cat.codes.to_numpy().astype(np.intp), native.cat.categories.tolist()
        codes, values = native.factorize()
        return codes, values.tolist()
    if found.implementation.is_pyarrow():
        native = native.dictionary_encode().unify_dictionaries().combine_chunks()  # leaves dictionaries as they are
        codes = native.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
        values = wrapped(native.dictionary)
        return codes, values.to_native().to_numpy() if _kind_of(values.dtype).is_time else values.to_list()
    if found.dtype == nw.Object:
        return None
    values, grouped = native.unique(maintain_order=True), is_grouped(found)
    keys, native = (values.to_physical(), native.to_physical()) if grouped else (values, native)
    codes = native.replace_strict(keys, np.arange(len(keys))).to_numpy()
    if grouped:
        return codes, values.cast(str).to_list()
    # to_list would cut nanoseconds off
    return codes, values.to_numpy() if _kind_of(found.dtype).is_time else values.to_list()
