"""Targets and weights as users give them, turned into checked vectors. Every refusal is one sentence that teaches."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from vff.data.conversion import Place, finite_floats
from vff.data.frames import column

_LARGEST_TARGET = 1e140
_SMALLEST_TARGET = 1e-140
_LARGEST_WEIGHT = 1e15


def as_finite(raw: Any, what: str) -> np.ndarray:
    """A finite float64 array of numbers, or a sentence about ``what``."""
    return finite_floats(raw, Place(what))


def check_target(y: Any, n_rows: int) -> np.ndarray:
    """y as a vector of the right length."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give fit one number per row")
    raw = column(y)
    shape = raw.shape if isinstance(raw, np.ndarray) else (len(raw),)
    if shape == ():
        raise ValueError(
            f"y must be a vector of one number per row, got {y!r:.60}; give a vector, or with a frame the name of a "
            "column"
        )
    if len(shape) == 2 and shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel().",
            DataConversionWarning,
            stacklevel=3,
        )
        raw, shape = raw.ravel(), shape[:1]
    if len(shape) != 1:
        raise ValueError(f"y must be a vector of one number per row, got shape {shape}; fit one output at a time")
    if shape[0] != n_rows:
        raise ValueError(f"y has {shape[0]} values and X has {n_rows} rows (inconsistent numbers of samples)")
    values = as_finite(raw, "y")
    largest = float(np.abs(values).max(initial=0.0))
    if largest > _LARGEST_TARGET:
        raise ValueError(f"y reaches {largest:g}, and its square leaves float64; measure it in larger units")
    if 0.0 < largest < _SMALLEST_TARGET:
        raise ValueError(
            f"y reaches no further than {largest:g}, and its square leaves float64; measure it in smaller units"
        )
    return values


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Non-negative finite weights, one per row; ones when none are given."""
    if sample_weight is None:
        return np.broadcast_to(1.0, n_rows)  # one number, seen N times
    if isinstance(sample_weight, int | float):
        sample_weight = np.full(n_rows, float(sample_weight))
    weights = as_finite(sample_weight, "sample_weight")
    if weights.ndim != 1:
        raise ValueError(f"sample_weight must be 1D, one number per row; got shape {weights.shape}")
    if weights.size != n_rows:
        raise ValueError(
            f"sample_weight has {weights.size} values and X has {n_rows} rows (inconsistent numbers of samples)"
        )
    if weights.min(initial=0.0) < 0.0:
        row = int(np.argmin(weights))
        raise ValueError(f"sample_weight is negative ({weights[row]:g} in row {row}); weights are counts, zero or more")
    if weights.max(initial=0.0) > _LARGEST_WEIGHT:
        row = int(np.argmax(weights))
        raise ValueError(
            f"sample_weight reaches {weights[row]:g} in row {row}; weights count rows, and at most {_LARGEST_WEIGHT:g} "
            "was expected: divide them by a constant"
        )
    if weights.sum() == 0.0:
        raise ValueError("sample_weight is zero for every row; at least two rows need a positive weight")
    return weights
