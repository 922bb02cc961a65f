"""What a column of objects or of text means, where nobody said it: a default kernel must not guess.

Numbers with a stray word among them, numbers and dates written as text, periods, intervals and times of the day would
all be levels of a category that means nothing. Each is refused with what to write instead; a kernel that says
``Categorical`` takes them as they are.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple, NoReturn

import numpy as np

from vff.data.conversion import SEVERAL, Origin, refuse_nested
from vff.data.frames import is_missing, type_of, types_held

_NUMBER = re.compile(r"\s*[+-]?(\d+(?:[.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")
_DATE = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}([T ]\d.*)?")
_WRITTEN = (("numbers", _NUMBER, "pandas.to_numeric"), ("dates", _DATE, "pandas.to_datetime"))
_CLASSES: dict[str, tuple[type, ...]] = {
    "times": (date, np.datetime64),
    "durations": (timedelta, np.timedelta64),
    "times of the day": (time,),
    "numbers": (Real, Decimal, np.bool_),
    "text": (str, bytes),
}
_NAMED = {"Period": "periods", "Interval": "intervals"}  # of pandas, known by their names
_TYPES = {  # how libraries write the types of whole columns
    "periods": re.compile(r"period\["),
    "intervals": re.compile(r"interval\["),
    "times of the day": re.compile(r"Time$|time(32|64)\["),
}
_ADVICE = {
    "periods": "take their beginnings, X[{0}].dt.to_timestamp()",
    "intervals": "take their midpoints, pandas.arrays.IntervalArray(X[{0}]).mid",
    "times of the day": "count hours from midnight, hour + minute / 60",
}
_OTHERWISE = "write them as numbers or as text"


def refuse_to_guess(raw: Any, origin: Origin) -> None:
    """A sentence about a column that is neither numbers, nor times, nor text, but would pass for a category."""
    kind = type_of(raw)
    refuse_nested(raw, origin, (*SEVERAL, dict))
    held = next((word for word, pattern in _TYPES.items() if pattern.match(kind)), None)
    if held is None and (kind == "object" or kind.startswith("Object")):
        held = _held_by(raw.ravel().tolist() if isinstance(raw, np.ndarray) else raw.to_list(), origin)
    if held is None or held == "text":
        return
    advice = _ADVICE.get(held, _OTHERWISE).format(origin.column)
    raise ValueError(
        f"{origin.what} holds {held}, which kernel=None does not take for a category: {advice}, or write the kernel "
        f"with Categorical({origin.column}) if every value is a level of its own"
    )


def _held_by(values: list[Any], origin: Origin) -> str | None:
    """What Python objects are, if they all are the same; None where all are missing."""
    words = dict.fromkeys(_word(kind) for kind in types_held(values))
    if len(words) > 1:
        _refuse_mixture(values, origin)
    return next(iter(words), None)


def _refuse_mixture(values: list[Any], origin: Origin) -> NoReturn:
    words = [None if is_missing(value) else _word(type(value)) for value in values]
    found = Counter(word for word in words if word is not None)
    usual = found.most_common(1)[0][0]
    row = next(row for row, word in enumerate(words) if word not in (None, usual))
    others = f"something else in {found.total() - found[usual]} of {len(values)} rows"
    raise ValueError(
        f"{origin.what} holds {usual}, and {others}, first {values[row]!r:.60} in row {origin.first_row + row}; "
        "values of one kind were expected: mend or drop these rows, or write the kernel with "
        f"Categorical({origin.column}) to take every value for a level"
    )


def _word(kind: type) -> str:
    for word, classes in _CLASSES.items():
        if issubclass(kind, classes):
            return word
    return _NAMED.get(kind.__name__, f"objects of type {kind.__name__}")


class Written(NamedTuple):
    """Numbers or dates, written as text."""

    what: str
    call: str
    """What converts them."""
    example: str
    others: list[str]
    """Those that are none."""


def as_written(words: Iterable[Any]) -> Written | None:
    """What most of these words are; None for neither numbers nor dates."""
    for what, call, found, others in _written(dict.fromkeys(words)):
        return Written(what, call, found[0], others)
    return None


def are_written(levels: Iterable[Any]) -> bool:
    """Whether most of these levels are numbers or dates, written as text."""
    return next(_written(levels), None) is not None


def _written(levels: Iterable[Any]) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """What most levels are, what converts them, those that are, and those that are not."""
    words = [level for level in levels if isinstance(level, str) and level.strip()]
    for what, pattern, call in _WRITTEN:
        found = [word for word in words if pattern.fullmatch(word)]
        if 2 * len(found) > len(words):
            yield what, call, found, [word for word in words if not pattern.fullmatch(word)]


def refuse_written(levels: Iterable[Any], label: str) -> None:
    """The sentence about them."""
    for what, call, found, others in _written(levels):
        but = f", all but {len(others)} such as {others[0]!r:.60}" if others else ""
        raise ValueError(
            f"column {label} of X holds {what} written as text, such as {found[0]!r:.60}{but}, and kernel=None does "
            f"not take them for a category: convert the column, for instance with {call}(X[{label}]), or write the "
            f"kernel with Categorical({label}) if they are codes"
        )
