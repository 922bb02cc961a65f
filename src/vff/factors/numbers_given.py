"""Which numbers a user may give to the fields of a kernel."""

from collections.abc import Callable
from dataclasses import fields
from numbers import Real
from typing import Any

import numpy as np

from vff.parameters import Between, bounds_of, refuse_bounds
from vff.words import shown

CORRELATION = {"kind": "correlation"}
"""Metadata of a field that lies between -1 and 1."""
REAL = {"kind": "real"}
"""Metadata of a field that may be any number."""
_KINDS_OF_FIELDS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "positive": ("a positive number", lambda value: 0.0 < value < np.inf),
    "correlation": ("a number between -1 and 1", lambda value: -1.0 < value < 1.0),
    "real": ("a number in the column's own units", lambda value: bool(np.isfinite(value))),
}
"""Which numbers a field may hold: in words, and whether one is."""


def check_numbers(leaf: Any) -> None:
    """ValueError where a field holds what its metadata do not let it, or bounds between which nothing is learnt."""
    name = f"{type(leaf).__name__}({', '.join(map(shown, leaf.columns))})"
    own = [field for field in fields(leaf) if field.name not in (*leaf.column_fields, *leaf.choices)]
    for field in own:
        value, (wanted, fits) = getattr(leaf, field.name), _KINDS_OF_FIELDS[field.metadata.get("kind", "positive")]
        numbers = [] if value is None else [value, *(bounds_of(value) or ())]
        if not all(isinstance(number, Real) and fits(float(number)) for number in numbers):
            raise ValueError(
                f"{name}: {field.name} must be {wanted}, got {shown(value)}; leave it out to start from the data"
            )
    bounded = [field.name for field in own if isinstance(getattr(leaf, field.name), Between)]
    learnt = {"variance", *leaf.given} if bounded else ()
    for field in bounded:
        if field not in learnt:
            refuse_bounds(f"{name}: {field}", getattr(leaf, field))
