"""Trigonometric vectors, cosines 0 ... K then sines 1 ... K: fewer and more degrees."""

import numpy as np


def trim(waves: np.ndarray, K: int, k: int) -> np.ndarray:
    """Drop degrees above k from a vector of degree K."""
    return np.concatenate([waves[: k + 1], waves[K + 1 : K + 1 + k]])


def pad(waves: np.ndarray, k: int, K: int) -> np.ndarray:
    """The transpose of ``trim``."""
    padded = np.zeros((2 * K + 1, *waves.shape[1:]))
    padded[: k + 1] = waves[: k + 1]
    padded[K + 1 : K + 1 + k] = waves[k + 1 :]
    return padded
