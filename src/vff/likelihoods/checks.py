"""Sentences about rows that a likelihood cannot explain."""

from collections.abc import Hashable
from numbers import Real
from typing import Any

import numpy as np

from vff.words import shown


def require(good: np.ndarray, y: np.ndarray, name: str, expected: str, advice: str) -> None:
    """ValueError naming the first row that is not good."""
    if not np.all(good):
        row = int(np.argmin(good))
        raise ValueError(f"{name} expects {expected}, but y is {y[row]:g} at row {row}; {advice}.")


def require_extra(good: np.ndarray, extra: np.ndarray, name: str, column: Hashable | None, expected: str) -> None:
    """ValueError naming the first row whose extra column is not good."""
    if not np.all(good):
        row = int(np.argmin(good))
        raise ValueError(
            f"{name} expects {expected} in column {shown(column)}, but it is {extra[row]:g} at row {row}; "
            "leave such rows out or correct the column."
        )


def whole(values: np.ndarray) -> np.ndarray:
    """Finite and without a fraction."""
    return np.isfinite(values) & (values == np.floor(values))


def is_number(value: Any) -> bool:
    """Whether this is one finite number; text, truth values and lists are none."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


def positive_or_none(name: str, value: float | None, above: float = 0.0) -> None:
    """ValueError unless None or a finite number above ``above``."""
    if value is not None and not (is_number(value) and value > above):
        raise ValueError(f"{name} must be a number above {above:g}, or None to learn it; got {shown(value)}.")


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """ValueError unless among the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(shown, choices))}; got {shown(value)}.")
