"""Single numbers that users give: of draws, levels, seeds, flags. All are checked here, each with one sentence."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from vff.words import shown

_SEEDS = 2**32
_MOST = 10**9
_JOINT_ROWS = 20_000  # a covariance matrix of this size takes 3.2 GB


def is_whole(value: Any, least: int) -> bool:
    """Whether this is a whole number from ``least`` on; a truth value is none."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def is_number(value: Any) -> bool:
    """Whether this is a number; a truth value is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_positive(value: Any) -> bool:
    """Whether this is a finite number above zero; a truth value is none."""
    return isinstance(value, Real) and not isinstance(value, bool) and 0.0 < float(value) < np.inf


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """A whole number from ``least`` on, of a size that arrays can have."""
    if not is_whole(value, least):
        raise ValueError(f"{name} must be a whole number from {least} on, got {shown(value)}")
    if int(value) > _MOST:
        raise ValueError(f"{name} must be a whole number from {least} to {_MOST:,}, got {shown(value)}")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """True or False. Text such as "False" counts as true in Python, and is refused."""
    if not isinstance(value, bool | np.bool_) and not (isinstance(value, Integral) and int(value) in (0, 1)):
        raise ValueError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def interval_level(level: Any, example: str = "0.9 gives 90 % intervals") -> float:
    """The share of a distribution that an interval holds."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {shown(level)}; {example}")
    return float(level)


def quantile_levels(levels: Any) -> np.ndarray:
    """Levels of quantiles, one or a vector of them, (L,)."""
    try:
        found = np.atleast_1d(np.asarray(levels))
    except ValueError:  # of different lengths
        found = np.empty(0)
    found = found.astype(float) if found.dtype.kind in "iuf" else np.empty(0)  # text that reads as a number is none
    if found.ndim != 1 or not found.size or not np.all((found > 0.0) & (found < 1.0)):
        raise ValueError(
            f"levels must lie strictly between 0 and 1; got {shown(levels)}: give one number or several, such as "
            "(0.05, 0.5, 0.95)"
        )
    return found


def seeded(random_state: Any) -> np.random.RandomState:
    """The source of random numbers that a seed, a ``RandomState`` or None stands for."""
    number: Any = random_state
    known = random_state is None or isinstance(random_state, np.random.RandomState) or random_state is np.random
    if not known and not (is_whole(number, 0) and int(number) < _SEEDS):
        raise ValueError(
            f"random_state must be None, a whole number from 0 to 2**32 - 1 or a numpy.random.RandomState, got "
            f"{shown(random_state)}"
        )
    return check_random_state(random_state)


def check_joint(n: int) -> None:
    """Refuse more rows than a joint distribution can be written out for."""
    if n > _JOINT_ROWS:
        raise ValueError(
            f"a joint distribution over {n} rows needs {8 * n**2 / 2**30:.0f} GiB; ask for "
            f"at most {_JOINT_ROWS} rows at a time, or use predict_f(X) for every row by itself"
        )
