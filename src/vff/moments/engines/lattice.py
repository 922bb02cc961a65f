"""Regularity of a column: equally spaced rows, and distinct values without sorting where a lattice allows it."""

import numpy as np

_ROUNDING = 16 * np.finfo(float).eps  # t is in [-1, 1]
_SAMPLE = 4096
_LARGEST_TABLE = 2**22


def spacing(t: np.ndarray) -> float | None:
    """The step of rows that lie on a regular lattice, in order; None when they do not."""
    if t.size < 2:
        return None
    step = (t[-1] - t[0]) / (t.size - 1)
    if step <= 0.0:
        return None
    for start in range(0, t.size, 2**20):
        index = np.arange(start, min(start + 2**20, t.size))
        if np.abs(t[index] - (t[0] + step * index)).max() > _ROUNDING:
            return None
    return float(step)


def _sample(t: np.ndarray) -> np.ndarray:
    """Some of the rows, picked at random with a fixed seed; regular picks would alias with periodic tables."""
    if t.size <= _SAMPLE:
        return t
    return t[np.random.default_rng(0).integers(t.size, size=_SAMPLE)]


def sample_distinct(t: np.ndarray) -> tuple[int, int]:
    """(distinct values, rows) in a sample: a cheap look before any sorting."""
    sample = _sample(t)
    return np.unique(sample).size, sample.size


def distinct(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, and for every row the code of its value."""
    return _distinct_on_lattice(t) or np.unique(t, return_inverse=True)


def _distinct_on_lattice(t: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Codes by division where all values are multiples of one step (integers, dates, rounded readings)."""
    sample = np.unique(_sample(t))
    if sample.size < 2:
        return None
    low, step = t.min(), np.diff(sample).min()
    if step * min(_LARGEST_TABLE, 4 * t.size) < t.max() - low:
        return None
    codes = np.rint((t - low) / step).astype(np.int64)
    if np.abs(t - (low + step * codes)).max() > _ROUNDING:
        return None
    seen = np.zeros(int(codes.max()) + 1, bool)
    seen[codes] = True
    values = np.empty(seen.size)
    values[codes] = t
    return values[seen], (np.cumsum(seen) - 1)[codes]
