"""Sentences about numbers that no prior has."""

import math
from numbers import Real

from vff.words import shown


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def require_finite(owner: str, name: str, value: float) -> None:
    """ValueError unless a finite number."""
    if not _is_finite(value):
        raise ValueError(
            f"{owner} expects a finite number as its {name}, but found {shown(value)}; give a finite {name}."
        )


def require_positive(owner: str, name: str, value: float) -> None:
    """ValueError unless a finite number above zero."""
    if not (_is_finite(value) and value > 0):
        raise ValueError(
            f"{owner} expects a finite number above zero as its {name}, but found {shown(value)}; give a {name} above "
            "zero."
        )


def require_probability(owner: str, value: float) -> None:
    """ValueError unless strictly between zero and one."""
    if not (_is_finite(value) and 0 < value < 1):
        raise ValueError(
            f"{owner} expects a probability between 0 and 1, but found {shown(value)}; give one such as 0.05."
        )
