"""Sums over the levels of a term that is eliminated, for any ratio of noise to the variance of the term (theory §29).

No row has two levels, so the block of their coefficients in A is diagonal. With n the weighted square of its feature
over the rows of a level, h its sum, a the sums of its products with the other features and y with the targets (of an
indicator, n = h is the weight of the level), everything that learning asks is made of

    E_p(t) = sum over levels of z z' / (n + t)^p,     z = (a, h, y),     t = noise / variance,     p = 1, 2, 3

and n / (n + t)^p is a smooth function of log n whatever t: interpolated at few nodes n_k, it is a sum over these,

    E_p(t) = sum_k n_k / (n_k + t)^p B_k,       B_k = sum over levels of l_k(log n) z z' / n

so that a setting sees neither rows nor levels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from vff.moments.noise_nodes import stretches

_AT_ONCE = 2**22  # numbers that are multiplied at a time
MOST_AT_NODES = 2**27  # numbers in all B_k together, a gibibyte
_WORTH_NODES = 4  # levels per node

Change = Callable[[np.ndarray], np.ndarray]
"""Of the rows of a matrix, (R, S) to (R', S)."""


@dataclass(frozen=True)
class LevelSums:
    """What the rows of every level sum to, in the functions that are summed over rows."""

    n: np.ndarray
    """Weighted squares of the feature of every level, (L,)."""
    h: np.ndarray
    """Its weighted sums, (L,)."""
    y: np.ndarray
    """Sums of targets, (L,)."""
    a: np.ndarray
    """Sums of the features of all other terms, (L, R)."""
    interpolated: bool = True
    """Whether sums are taken once, at nodes; those of sites live for one setting."""

    @property
    def size(self) -> int:
        """L."""
        return self.n.size

    @cached_property
    def _occupied(self) -> np.ndarray:
        """Levels that have rows; the others have their prior."""
        return np.flatnonzero(self.n)

    def _columns(self, levels: np.ndarray | slice) -> np.ndarray:
        """z of some levels, (L', R + 2)."""
        return np.concatenate([self.a[levels], self.h[levels, None], self.y[levels, None]], axis=1)

    @cached_property
    def nodes(self) -> tuple[np.ndarray, np.ndarray] | None:
        """n_k (K,) and B_k (K, R + 2, R + 2); None where levels are too few, or weights below zero."""
        some = self._occupied
        if not self.interpolated or not some.size or self.n[some].min() <= 0.0:
            return None
        every = list(stretches(self.n[some]))
        K, Z = sum(own.variances.size for own in every), self.a.shape[1] + 2
        if some.size < _WORTH_NODES * K or K * Z**2 > MOST_AT_NODES:
            return None
        places, B, k = [], np.empty((K, Z, Z)), 0
        for own in every:
            B[k : k + own.variances.size] = self._at_nodes(some[own.rows], own.shares)
            places.append(own.variances)
            k += own.variances.size
        return np.concatenate(places), B

    def _at_nodes(self, levels: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """sum share z z' / n for every node of a stretch, (K, R + 2, R + 2)."""
        Z = self.a.shape[1] + 2
        total, step = np.zeros((shares.shape[1], Z, Z)), max(1, _AT_ONCE // Z)
        for start in range(0, levels.size, step):
            some = levels[start : start + step]
            z = self._columns(some)
            weights = shares[start : start + step] / self.n[some, None]
            for k in range(shares.shape[1]):
                total[k] += z.T @ (weights[:, k, None] * z)
        return total

    def total(self, t: float, power: int) -> np.ndarray:
        """E_p(t), (R + 2, R + 2)."""
        if self.nodes is not None:
            n, B = self.nodes
            return np.tensordot(n / (n + t) ** power, B, axes=1)
        Z = self.a.shape[1] + 2
        found, step, some = np.zeros((Z, Z)), max(1, _AT_ONCE // Z), self._occupied
        for start in range(0, some.size, step):
            own = some[start : start + step]
            z = self._columns(own)
            found += z.T @ (z / (self.n[own, None] + t) ** power)
        return 0.5 * (found + found.T)

    @cached_property
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        """Different weights of levels, and how many levels have each."""
        return np.unique(self.n, return_counts=True)

    def log_gain(self, t: float) -> float:
        """sum log((n + t) / t)."""
        n, times = self._counted
        return float(times @ np.log1p(n / t))

    def seen(self, t: float, power: int = 1) -> float:
        """sum n / (n + t)^power."""
        n, times = self._counted
        return float(times @ (n / (n + t) ** power))

    def with_nodes_of(self, other: "LevelSums", changes: Sequence[tuple[slice, Change]]) -> "LevelSums":
        """The same levels, whose sums at nodes are linear maps of those of others, term by term."""
        found, known = replace(self), other.nodes
        vars(found)["nodes"] = known and (known[0], _both_sides(changes, known[1]))
        return found


def _mapped(changes: Sequence[tuple[slice, Change]], rows: np.ndarray) -> np.ndarray:
    """A change of rows (R, S), term by term."""
    return np.concatenate([change(rows[own]) for own, change in changes])


def _both_sides(changes: Sequence[tuple[slice, Change]], B: np.ndarray) -> np.ndarray:
    """The same of matrices (K, R + 2, R + 2) from both sides; h and y stay."""
    R, K = changes[-1][0].stop, len(B)
    every = [*changes, (slice(R, R + 2), lambda rows: rows)]
    for _ in range(2):  # rows, then columns, which are rows once the matrices are turned
        flat = np.ascontiguousarray(B.transpose(1, 0, 2)).reshape(B.shape[1], -1)
        flat = _mapped(every, flat)
        B = flat.reshape(flat.shape[0], K, -1).transpose(1, 2, 0)
    return np.ascontiguousarray(B)
