"""Labels of classes: any column of text, numbers or booleans without gaps."""

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from vff.data.conversion import is_missing
from vff.words import shown


def as_labels(y: Any) -> np.ndarray:
    """y as a vector of labels, checked to be discrete and without missing values."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give fit one label per row")
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
