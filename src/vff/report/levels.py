"""In which order levels stand in a picture: that of their type, of a calendar, of numbers, or else of their effect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)")
LABELLED = 5
"""Of very many levels, so many of the largest and of the smallest are named."""


def places(levels: Sequence[Any], order: Sequence[Any] | None) -> np.ndarray | None:
    """The levels in an order of their own, as numbers into them; None where they have none. Missing ones are last."""
    known = [(number, level) for number, level in enumerate(levels) if level is not None]
    keys = _keys([level for _, level in known], order)
    if keys is None:
        return None
    there = [number for _, (number, _) in sorted(zip(keys, known, strict=True), key=lambda pair: pair[0])]
    return np.array([*there, *(number for number, level in enumerate(levels) if level is None)], int)


def _keys(levels: Sequence[Any], order: Sequence[Any] | None) -> Sequence[Any] | None:
    """What to sort them by."""
    if order is not None and set(levels) <= set(order):
        return [list(order).index(level) for level in levels]
    if not all(isinstance(level, str) for level in levels):
        numbers = all(isinstance(level, bool | int | float | np.number) for level in levels)
        alike = len({type(level) for level in levels}) == 1
        return levels if numbers or (alike and isinstance(levels[0], np.datetime64 | np.timedelta64)) else None
    words = [level.strip().lower().rstrip(".") for level in levels]
    for calendar in (_DAYS, _MONTHS):
        found = [_in_calendar(word, calendar) for word in words]
        if None not in found:
            return found
    parts = [_NUMBER.split(word) for word in words]
    # the text around the numbers must be the same, else these count different things
    if all(len(part) > 1 for part in parts) and len({tuple(part[::2]) for part in parts}) == 1:
        return [[float(number) for number in part[1::2]] for part in parts]
    return None


def _in_calendar(word: str, calendar: Sequence[str]) -> int | None:
    """Which day or month a word is, in full or by three letters or four."""
    for number, name in enumerate(calendar):
        if word == name or (3 <= len(word) <= 4 and name.startswith(word)):
            return number
    return None


def named_extremes(mean: np.ndarray) -> np.ndarray:
    """Numbers of the largest and the smallest, in the order in which they stand."""
    order = np.argsort(mean, kind="stable")
    return np.sort(np.concatenate([order[:LABELLED], order[-LABELLED:]]))
