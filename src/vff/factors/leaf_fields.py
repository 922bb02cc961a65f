"""What the fields of a kernel may be: positive numbers, and where their metadata say so correlations and switches."""

from collections.abc import Callable
from dataclasses import Field
from numbers import Real
from typing import Any

import numpy as np

from vff.words import shown

CORRELATION = {"kind": "correlation"}
"""Metadata of a field that lies between -1 and 1."""
SWITCH = {"kind": "switch"}
"""Metadata of a field that is True or False."""


_FROM_DATA = "leave it out to start from the data"
_KINDS_OF_FIELDS: dict[str, tuple[str, Callable[[Any], bool], str]] = {
    "positive": (
        "a positive number",
        lambda value: value is None or (isinstance(value, Real) and 0.0 < float(value) < np.inf),
        _FROM_DATA,
    ),
    "correlation": (
        "a number between -1 and 1",
        lambda value: value is None or (isinstance(value, Real) and -1.0 < float(value) < 1.0),
        _FROM_DATA,
    ),
    "switch": ("True or False", lambda value: isinstance(value, bool), "write one of the two, or leave it out"),
}
"""Of what a field may be: in words, whether a value is, and advice."""


def check_field(owner: str, field: Field[Any], value: Any) -> None:
    """ValueError unless a value may stand there."""
    wanted, fits, advice = _KINDS_OF_FIELDS[field.metadata.get("kind", "positive")]
    if not fits(value):
        raise ValueError(f"{owner}: {field.name} must be {wanted}, got {shown(value)}; {advice}")
