"""Linear maps along one axis of an array."""

from collections.abc import Callable

import numpy as np


def along(array: np.ndarray, axis: int, map_of_rows: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply a map of (rows, ...) to (other rows, ...) to the given axis of an array, whose other axes stay."""
    if array.ndim == 1:
        return map_of_rows(array)
    moved = np.moveaxis(array, axis, 0)
    image = map_of_rows(np.ascontiguousarray(moved).reshape(moved.shape[0], -1))
    return np.moveaxis(image.reshape(-1, *moved.shape[1:]), 0, axis)
