"""Levels of a column: its distinct values, and rows as numbers that point into them.

Every library has a fast way to number the distinct values of its own columns. ``encode`` asks for it and translates
only the distinct values, so that a model fitted to a pandas frame reads a polars frame or an array the same way.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from vff.data.conversion import Place, is_nested, plain
from vff.data.frames import factorized, type_of

_LATTICE = 1 << 16  # integers in so short a range are their own codes


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


def codes_into(codes: np.ndarray, values: Sequence[Any], levels: Sequence[Any]) -> np.ndarray:
    """Where each row of an encoded column stands in ``levels``, as float64; -1 for values that are not there."""
    position = {level: code for code, level in enumerate(map(plain, levels))}
    return np.array([position.get(value, -1) for value in values], dtype=np.float64)[codes]


def encode(raw: Any, place: Place) -> tuple[np.ndarray, list[Any]]:
    """Integer codes of the rows of an unwrapped column and the values they point to.

    The last value is None, so that code -1, which libraries give to what is missing, points to it.
    """
    try:
        if is_nested(raw):
            raise TypeError(f"lists or records, {type_of(raw):.60}")
        codes, values = _encoded(raw)
        values = list(map(plain, values))
        hash(tuple(values))
    except TypeError as error:
        raise TypeError(
            f"{place.what} holds values that cannot be told apart as levels ({error}); text, numbers or times were "
            "expected: convert the column first"
        ) from error
    return codes, [*values, None]


def _encoded(raw: Any) -> tuple[np.ndarray, Iterable[Any]]:
    if isinstance(raw, np.ndarray):
        return _encode_numpy(raw)
    return factorized(raw) or _encode_objects(raw.to_list())


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
