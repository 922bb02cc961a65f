"""The constructor's options, checked at the door of ``fit`` and settled for one column."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from vff.basis import Interval, largest_resolved

ENGINE_NAMES = ("auto", "dense", "nufft", "table", "grid")
_MOST_EDGES = 8


def for_column(option: Any, column: str | int, index: int) -> Any:
    """One column's value of an option that may be a dictionary by column."""
    if not isinstance(option, dict):
        return option
    for key in (column, index):
        if key in option:
            return option[key]
    return "auto"


def check_frequencies(value: Any, label: str) -> int | None:
    """A positive number of harmonics, or None for 'auto'."""
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(
            f"frequencies for column {label} must be 'auto' or a positive integer, got {value!r}; "
            "30 is a common choice, 'auto' grows it until the bound stops gaining"
        )
    return int(value)


def check_edges(value: Any, p: int, M: int | None) -> int:
    """The number of edge functions; as many as float64 resolves beside M harmonics."""
    if isinstance(value, str) and value == "auto":
        wanted = range(p + 2, 0, -1)
        return next(q for q in wanted if M is None or largest_resolved(q) >= M)
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) <= _MOST_EDGES:
        raise ValueError(
            f"edges must be 'auto' or an integer from 0 (the paper) to {_MOST_EDGES}, got {value!r}; "
            f"'auto' is {p + 2} for this kernel"
        )
    if M is not None and largest_resolved(int(value)) < M:
        raise ValueError(
            f"edges={value} beside frequencies={M} is more than float64 resolves; "
            f"use frequencies of at most {largest_resolved(int(value))}, or edges='auto'"
        )
    return int(value)


def check_domain(value: Any, label: str) -> Interval | None:
    """An interval, or None for 'auto'."""
    if isinstance(value, str) and value == "auto":
        return None
    try:
        a, b = (float(end) for end in value)
    except (TypeError, ValueError):
        raise ValueError(
            f"domain for column {label} must be 'auto' or a pair (a, b) in the column's units, got {value!r}"
        ) from None
    if not (np.isfinite(a) and np.isfinite(b) and a < b):
        raise ValueError(f"domain for column {label} must have a < b, both finite; got ({a:g}, {b:g})")
    return Interval(a, b)


def check_noise(value: Any) -> float | None:
    if value is not None and not (isinstance(value, Real) and 0.0 < float(value) < np.inf):
        raise ValueError(f"noise_variance must be None or a positive number, got {value!r}")
    return None if value is None else float(value)


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}")
