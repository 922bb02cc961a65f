"""From columns as libraries keep them to float64, or to levels: distinct values, and rows that point into them.

Every library has a fast way to number the distinct values of its own columns. ``encode`` asks for it and translates
only the distinct values, so that a model fitted to a pandas frame reads a polars frame or an array the same way.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NoReturn

import numpy as np

from vff.data.frames import as_numpy, column, factorized, is_grouped, is_missing, kind_of, type_of
from vff.data.schema import Kind
from vff.words import shown

_NESTED = re.compile(r"(large_|fixed_size_)?list|List\(|Array\(|struct|Struct\(|map<|\[\(")
SEVERAL = (list, tuple, set, frozenset, np.ndarray, np.void)
_PER_DAY = {"D": 1, "h": 24, "m": 1440, "s": 86400, "ms": 86400 * 10**3, "us": 86400 * 10**6, "ns": 86400 * 10**9}
_EXACT = 2.0**53  # from here on, float64 does not hold every whole number
_LATTICE = 1 << 16  # integers in so short a range are their own codes


@dataclass(frozen=True)
class Origin:
    """Where values come from, for messages."""

    what: str
    first_row: int = 0
    """The row of the table that the first value stands in."""
    column: str | None = None
    """How a kernel writes the column; None for y and for weights, which no kernel can take."""


def finite_floats(raw: Any, origin: Origin, *, missing: bool = False) -> np.ndarray:
    """Finite float64 of the shape of ``raw``, or a sentence. Times are taken from columns of X alone.

    With ``missing``, NaN stands for missing values, always the same.
    """
    raw = column(raw)
    refuse_nested(raw, origin)
    kind = kind_of(raw)
    grouped = is_grouped(raw)
    if not grouped and kind != Kind.TEXT:
        array = as_numpy(raw, kind)
    else:  # as Python objects, or as NumPy has its text
        array = raw if isinstance(raw, np.ndarray) else np.array(raw.to_list(), dtype=object)
    if kind == Kind.TEXT or array.dtype.kind == "O":
        array = _from_objects(array, kind, origin, grouped=grouped)
    if array.dtype.kind == "c":
        raise ValueError(
            f"{origin.what}: real numbers were expected. Complex data not supported; use its real part or modulus"
        )
    if array.dtype.kind in "mM":
        array = _days(array, origin)
    values = np.ascontiguousarray(array, dtype=np.float64)
    gone = np.isnan(values) if missing else np.zeros(0, bool)
    if gone.any():
        values = np.where(gone, np.nan, values)
    _check_finite(values, origin, missing=missing)
    if kind == Kind.NUMBER:
        _check_told_apart(values, raw, origin)
    return values


def refuse_nested(raw: Any, origin: Origin, several: tuple[type, ...] = SEVERAL) -> None:
    """A sentence about columns whose values hold several values each."""
    name = type_of(raw) if is_nested(raw) else None
    if type_of(raw) == "object":
        kinds = dict.fromkeys(map(type, np.asarray(raw).flat))  # millions of rows have few types
        name = next((kind.__name__ for kind in kinds if issubclass(kind, several)), None)
    if name is not None:
        raise TypeError(
            f"{origin.what} holds several values in one ({name:.60}); one number per row was expected: give every "
            "part a column of its own"
        )


def is_nested(raw: Any) -> bool:
    """Whether the type of an unwrapped column says that its values are lists or records."""
    return bool(_NESTED.match(type_of(raw)))


def _from_objects(array: np.ndarray, kind: Kind, origin: Origin, *, grouped: bool) -> np.ndarray:
    """Numbers or times out of Python objects; never out of text, not even text that looks like numbers."""
    if kind.is_time:
        nat = np.datetime64("NaT", "us") if kind == Kind.DATETIME else np.timedelta64("NaT", "us")
        return np.array([nat if value is None else value for value in map(plain, array.flat)])
    flat = array.ravel().tolist() if array.dtype.kind == "O" else []
    if array.dtype.kind == "O" and not grouped and not any(isinstance(value, str | bytes) for value in flat):
        if any(isinstance(value, dict) for value in flat):
            raise TypeError(f"{origin.what}: argument must be a string or a number, got dictionaries; give it numbers")
        try:
            return np.array([np.nan if is_missing(value) else value for value in flat], float).reshape(array.shape)
        except (TypeError, ValueError):
            pass
    _refuse_text(array, origin, grouped=grouped)


def _refuse_text(array: np.ndarray, origin: Origin, *, grouped: bool) -> NoReturn:
    values = [value for value in map(plain, array.flat) if value is not None]
    example = next((value for value in values if not isinstance(value, int | float)), values[0] if values else None)
    among = ""
    if array.ndim == 1 and any(isinstance(value, int | float) for value in values) and not grouped:
        row = next(row for row, value in enumerate(array) if plain(value) is not None and plain(value) == example)
        among = f" among numbers, first in row {origin.first_row + row}"
    advice = "encode it as numbers"
    if origin.column is not None:
        _refuse_written([value for value in array.flat if isinstance(value, str)], array, origin)
        advice = f"use Categorical({origin.column}) for the effects of its levels, drop the column, or {advice}"
    raise ValueError(
        f"{origin.what} holds {'categories' if grouped else 'text or objects'} such as {shown(example)}{among}; "
        f"numbers were expected: {advice} (could not convert string to float)"
    )


def _refuse_written(words: list[str], array: np.ndarray, origin: Origin) -> None:
    """The sentence about numbers or dates that are written as text, and about the first value that is none."""
    from vff.data.meaning import as_written  # which knows columns

    found = as_written(words)
    if found is None or len(words) < sum(not is_missing(value) for value in array.flat):
        return
    row = next((row for row, value in enumerate(array.flat) if value in found.others), None)
    but = "" if row is None else f", all but {len(found.others)} such as {shown(found.others[0])}, first in row "
    but += "" if row is None else f"{origin.first_row + row}"
    raise ValueError(
        f"{origin.what} holds {found.what} written as text, such as {shown(found.example)}{but}; numbers were "
        f"expected: convert the column, for instance with {found.call}(X[{origin.column}])"
        f"{' after such values are mended' if but else ''}, or use Categorical({origin.column}) for the effects of its "
        "levels (could not convert string to float)"
    )


def _days(times: np.ndarray, origin: Origin) -> np.ndarray:
    """Days since 1970-01-01 00:00, or days that durations last; NaN for NaT. The same whatever the unit of storage."""
    name, (unit, count) = "datetime64" if times.dtype.kind == "M" else "timedelta64", np.datetime_data(times.dtype)
    if origin.column is None or (name == "timedelta64" and unit in ("Y", "M", "generic")):
        raise ValueError(
            f"{origin.what} holds {times.dtype}; numbers were expected: subtract a start if it is a time, and divide "
            "by the unit you want to count in"
        )
    if count != 1 or unit not in _PER_DAY:
        unit = unit if unit in _PER_DAY else "D" if unit in ("Y", "M", "W") else "ns"
        times = times.astype(f"{name}[{unit}]")
    whole, part = np.divmod(times.astype(np.int64), _PER_DAY[unit])  # exact, so that units cannot disagree
    values = whole + part / _PER_DAY[unit]
    values[np.isnat(times)] = np.nan
    return values


def _check_finite(values: np.ndarray, origin: Origin, *, missing: bool) -> None:
    finite = ~np.isinf(values) if missing else np.isfinite(values)
    if finite.all():
        return
    row = int(np.argmin(finite.reshape(len(finite), -1).all(axis=1)))
    found = bool(np.isnan(values[row]).any())
    advice = "drop or fill these rows first"
    if found and origin.column is not None:
        advice = (
            "drop or fill these rows (vff.scan(X, missing='drop') leaves them out), or fit a model with "
            "missing='effect', to which missing values have an effect of their own"
        )
    raise ValueError(
        f"{origin.what} contains {'NaN or another missing value' if found else 'inf'} "
        f"({np.count_nonzero(~finite)} of {values.size} values, first in row {origin.first_row + row}); "
        f"finite numbers were expected: {advice}"
    )


def _check_told_apart(values: np.ndarray, raw: Any, origin: Origin) -> None:
    """Refuse whole numbers that differ, and are one and the same in float64."""
    if not values.size or abs(values.flat[0]) < _EXACT or values.min() != values.max():
        return
    whole = {int(value) for value in (raw.flat if isinstance(raw, np.ndarray) else raw.to_list())}
    if len(whole) > 1:
        raise ValueError(
            f"{origin.what} holds whole numbers from {min(whole)} to {max(whole)}, which float64 does not tell "
            "apart; subtract a constant from them first"
        )


def plain(value: Any) -> Any:
    """A value as all containers agree on it: a Python scalar, a ``datetime64`` in UTC, a ``timedelta64``, or None.

    Microseconds unless nanoseconds are needed: equal times are equal levels whatever unit they were stored in.
    """
    if is_missing(value):
        return None
    if isinstance(value, date | np.datetime64):
        if isinstance(value, datetime) and value.tzinfo is not None and not hasattr(value, "to_datetime64"):
            value = value.astimezone(UTC).replace(tzinfo=None)
        # pandas' own scalars know nanoseconds, which the datetime they pretend to be does not
        return _coarsest(np.datetime64(getattr(value, "to_datetime64", lambda: value)()), "datetime64[us]")
    if isinstance(value, timedelta | np.timedelta64):
        return _coarsest(np.timedelta64(getattr(value, "to_timedelta64", lambda: value)()), "timedelta64[us]")
    return value.item() if isinstance(value, np.generic) else value


def _coarsest(time: Any, unit: str) -> Any:
    rounded = time.astype(unit)
    return rounded if rounded == time else time


def find_levels(pieces: Iterable[tuple[np.ndarray, list[Any]]]) -> tuple:
    """The distinct values of a column encoded in pieces: sorted if they can be, else as they appear; None is last."""
    found: dict[Any, None] = {}
    for codes, values in pieces:
        used = np.flatnonzero(np.bincount(codes + 1, minlength=1)) - 1
        found.update(dict.fromkeys(values[code] for code in used))
    return in_order(found)


def in_order(levels: Iterable[Any]) -> tuple:
    """Sorted if they can be, else as they come; None is last."""
    found = dict.fromkeys(levels)
    missing = (None,) if None in found else ()
    found.pop(None, None)
    try:
        return (*sorted(found), *missing)
    except TypeError:
        return (*found, *missing)


def codes_into(codes: np.ndarray, values: Sequence[Any], levels: Sequence[Any], *, missing: bool = False) -> np.ndarray:
    """Where each row of an encoded column stands in ``levels``, as float64; -1 for values that are not there.

    With ``missing``, NaN for what is missing, unless that is a level.
    """
    position: dict[Any, float] = {None: np.nan} if missing else {}
    position.update({level: code for code, level in enumerate(map(plain, levels))})
    return np.array([position.get(value, -1) for value in values], dtype=np.float64)[codes]


def encode(raw: Any, origin: Origin) -> tuple[np.ndarray, list[Any]]:
    """Integer codes of the rows of an unwrapped column and the values they point to.

    The last value is None, so that code -1, which libraries give to what is missing, points to it.
    """
    try:
        if is_nested(raw):
            raise TypeError(f"lists or records, {type_of(raw):.60}")
        if isinstance(raw, np.ndarray):
            codes, values = _encode_numpy(raw)
        else:
            codes, values = factorized(raw) or _encode_objects(raw.to_list())
        values = list(map(plain, values))
        hash(tuple(values))
    except TypeError as error:
        raise TypeError(
            f"{origin.what} holds values that cannot be told apart as levels ({error}); text, numbers or times were "
            "expected: convert the column first"
        ) from error
    return codes, [*values, None]


def _encode_numpy(array: np.ndarray) -> tuple[np.ndarray, Iterable[Any]]:
    if array.dtype.kind in "OSUTV":
        return _encode_objects(array.tolist())
    if array.dtype.kind in "biu" and array.size:
        low, high = int(array.min()), int(array.max())
        if high - low < _LATTICE and max(-low, high) < 2**62:
            values = range(low, high + 1)
            return array.astype(np.intp) - low, map(bool, values) if array.dtype.kind == "b" else values
    values, codes = np.unique(array, return_inverse=True)
    return codes, values


def _encode_objects(values: list[Any]) -> tuple[np.ndarray, Iterable[Any]]:
    positions = {value: code for code, value in enumerate(dict.fromkeys(values))}
    return np.fromiter(map(positions.__getitem__, values), np.intp, len(values)), list(positions)
