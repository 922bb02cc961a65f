"""Targets, labels and weights as users give them, as checked vectors. Every refusal is one sentence that teaches."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from vff.data.conversion import Origin, finite_floats
from vff.data.frames import column, is_missing
from vff.words import shown

LARGEST_TARGET = 1e140
_SMALLEST_TARGET = 1e-140
LARGEST_WEIGHT = 1e15


def as_finite(raw: Any, what: str) -> np.ndarray:
    """A finite float64 array of numbers, or a sentence about ``what``."""
    return finite_floats(raw, Origin(what))


def check_target(y: Any, n_rows: int) -> np.ndarray:
    """y as a vector of the right length."""
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: give fit one number per row, or the name of a column"
        )
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
        raise ValueError(
            f"y has {shape[0]} values and X has {n_rows} rows (inconsistent numbers of samples); give one number per "
            "row, of the same rows in the same order"
        )
    values = as_finite(raw, "y")
    largest = float(np.abs(values).max(initial=0.0))
    if largest > LARGEST_TARGET:
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
            f"sample_weight has {weights.size} values and X has {n_rows} rows (inconsistent numbers of samples); give "
            "one number per row, of the same rows in the same order"
        )
    if weights.min(initial=0.0) < 0.0:
        row = int(np.argmin(weights))
        raise ValueError(f"sample_weight is negative ({weights[row]:g} in row {row}); weights are counts, zero or more")
    if weights.max(initial=0.0) > LARGEST_WEIGHT:
        row = int(np.argmax(weights))
        raise ValueError(
            f"sample_weight reaches {weights[row]:g} in row {row}; weights count rows, and at most {LARGEST_WEIGHT:g} "
            "was expected: divide them by a constant"
        )
    if weights.sum() == 0.0:
        raise ValueError("sample_weight is zero for every row; at least two rows need a positive weight")
    return weights


def as_labels(y: Any) -> np.ndarray:
    """y as a vector of labels, checked to be discrete and without missing values."""
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: give fit one label per row, or the name of a column"
        )
    labels = column_or_1d(y.to_numpy() if hasattr(y, "to_numpy") else y, warn=True)
    missing = labels != labels if labels.dtype.kind in "fc" else np.zeros(labels.size, bool)
    if labels.dtype.kind == "O":
        missing = np.array(list(map(is_missing, labels)))
    if np.any(missing):
        row = int(np.flatnonzero(missing)[0])
        raise ValueError(
            f"y holds NaN or None in row {row}, and every row must have a label: drop it, or name a class for it"
        )
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError("y holds an infinite number, and labels must be finite")
    check_classification_targets(labels)
    return labels.astype(str) if labels.dtype.kind == "O" and all(isinstance(one, str) for one in labels) else labels


def coded(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Where each label stands among the sorted classes; one that is not among them is refused."""
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise ValueError(
            f"y holds class {shown(unknown.tolist()[0])}, which is not among the classes {shown(classes.tolist())}"
        )
    return np.searchsorted(classes, labels)


def label_text(label: Any) -> str:
    """A class as it is written; whole numbers of a CSV file are read as 2.0, and were 2."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
