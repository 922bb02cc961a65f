"""Sums over the levels of a product with levels that is eliminated, and the factors of its blocks (theory §29).

No row has two levels, so the coefficients of a product with levels have a block (m, m) per level in A. With G_l the
sums of products of its m features over the rows of a level and Z_l = (C_l, h_l, y_l) those with all other features, of
the features themselves and with targets, everything that the other terms see of levels is

    E = sum over levels of Z_l' B_l^-1 Z_l,      B_l = G_l + t K_m,      t the noise variance

with K_m the prior precision of the features of one level, which moves with their lengthscales: so every setting goes
through the levels once, a stretch of them at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vff.factors import TermTransform
from vff.linalg import Kronecker, LevelAxes, NotPositiveDefinite

_AT_ONCE = 2**21  # numbers of the other features that are worked with at a time
_JITTERS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9)  # of the diagonal, tried in turn


@dataclass(frozen=True)
class LevelBlocks:
    """What the rows of every level sum to, in the functions that are summed over rows."""

    axes: LevelAxes
    G: np.ndarray
    """Sums of products of the features of a level, (L, m, m)."""
    Z: np.ndarray
    """With those of all other terms, of the features themselves and with targets, (L, m, R + 2)."""

    @property
    def others(self) -> int:
        """R."""
        return self.Z.shape[2] - 2


class Stretch(NamedTuple):
    """Some levels at a setting, in the coordinates of the prior."""

    levels: slice
    root: np.ndarray
    """U with U'U = B^-1, (l, m, m)."""
    Z: np.ndarray
    """(l, m, R + 2)."""

    @property
    def reached(self) -> np.ndarray:
        """B^-1 Z."""
        return self.root.transpose(0, 2, 1) @ (self.root @ self.Z)

    @property
    def inverse(self) -> np.ndarray:
        """B^-1, (l, m, m)."""
        return self.root.transpose(0, 2, 1) @ self.root


@dataclass(frozen=True)
class FactoredLevels:
    """Levels at a setting."""

    sums: LevelBlocks
    transform: TermTransform
    """Of the features of one level, to the coordinates of their prior."""
    K: Kronecker
    """Prior precision of the coefficients of one level."""
    noise: float

    @property
    def axes(self) -> LevelAxes:
        return self.sums.axes

    def _forward(self, v: np.ndarray) -> np.ndarray:
        """T v of every level, (l, m, S)."""
        moved = self.transform.forward(v.transpose(1, 0, 2).reshape(v.shape[1], -1))
        return np.ascontiguousarray(moved.reshape(v.shape[1], v.shape[0], -1).transpose(1, 0, 2))

    def _moved(self, v: np.ndarray) -> np.ndarray:
        return self._forward(v) if any(own.X.size for own in self.transform.factors) else v

    def gram(self, levels: slice = slice(None)) -> np.ndarray:
        """T G T' of some levels."""
        G = self.sums.G[levels]
        return self._moved(self._moved(G).transpose(0, 2, 1))

    @cached_property
    def total(self) -> np.ndarray:
        """G of all levels together, (m, m)."""
        whole = self._moved(np.sum(self.sums.G, axis=0)[None])
        return self._moved(whole.transpose(0, 2, 1))[0]

    @cached_property
    def written(self) -> np.ndarray:
        """K_m, (m, m)."""
        return self.K.to_dense()

    @cached_property
    def inverse(self) -> np.ndarray:
        """Its inverse."""
        found = self.K.solve(np.eye(self.axes.each))
        return 0.5 * (found + found.T)

    @cached_property
    def _factors(self) -> tuple[np.ndarray, float]:
        """U of every level, (L, m, m), and what rounding made them add to the diagonal, relative to it."""
        roots, worst = np.empty_like(self.sums.G), 0.0
        step = max(1, _AT_ONCE // self.axes.each**2)
        for start in range(0, self.axes.count, step):
            some = slice(start, start + step)
            roots[some], jitter = _roots(self.gram(some) + self.noise * self.written)
            worst = max(worst, jitter)
        return roots, worst

    @property
    def jitter(self) -> float:
        """What was added to the diagonal of some block, relative to it."""
        return self._factors[1]

    @property
    def roots(self) -> np.ndarray:
        """U of every level, (L, m, m)."""
        return self._factors[0]

    def stretches(self) -> Iterator[Stretch]:
        """All levels, a few at a time."""
        step = max(1, _AT_ONCE // (self.axes.each * max(self.axes.each, self.sums.Z.shape[2])))
        for start in range(0, self.axes.count, step):
            some = slice(start, min(start + step, self.axes.count))
            yield Stretch(some, self.roots[some], self._moved(self.sums.Z[some]))

    @cached_property
    def E(self) -> np.ndarray:
        """sum Z'B^-1 Z, (R + 2, R + 2); the other features as they are summed over rows."""
        found = np.zeros((self.sums.Z.shape[2],) * 2)
        for some in self.stretches():
            half = (some.root @ some.Z).reshape(-1, len(found))
            found += half.T @ half
        return 0.5 * (found + found.T)

    @cached_property
    def log_gain(self) -> float:
        """sum log|B| - log|t K|."""
        logs = -2.0 * float(np.sum(np.log(np.einsum("lii->li", self.roots))))
        return logs - self.axes.count * (self.K.logdet() + self.axes.each * float(np.log(self.noise)))

    def solve(self, v: np.ndarray) -> np.ndarray:
        """B^-1 v of every level, (L, m, S)."""
        return self.roots.transpose(0, 2, 1) @ (self.roots @ v)

    def across(self, c: np.ndarray) -> np.ndarray:
        """C c of every level, (L, m, S), for coefficients c (R, S) of the functions that are summed over rows."""
        columns = self.sums.Z.shape[2]
        c = np.concatenate([c, np.zeros((columns - len(c), c.shape[1]))])
        found = self.sums.Z.reshape(-1, columns) @ c
        return self._moved(found.reshape(self.axes.count, self.axes.each, -1))

    def onto(self, v: np.ndarray) -> np.ndarray:
        """sum C'v of all levels, (R, S), for v (L, m, S)."""
        columns = self.sums.Z.shape[2]
        back = self._backward(v).reshape(self.axes.size, v.shape[2])
        return self.sums.Z.reshape(self.axes.size, columns)[:, : self.sums.others].T @ back

    def _backward(self, v: np.ndarray) -> np.ndarray:
        """T'v of every level."""
        if not any(own.X.size for own in self.transform.factors):
            return v
        moved = self.transform.transpose(v.transpose(1, 0, 2).reshape(v.shape[1], -1))
        return np.ascontiguousarray(moved.reshape(v.shape[1], v.shape[0], -1).transpose(1, 0, 2))


def _roots(B: np.ndarray) -> tuple[np.ndarray, float]:
    """U with U'U = B^-1 for every matrix, and what was added to diagonals relative to them."""
    diagonal = np.einsum("lii->li", B)
    if not (np.isfinite(diagonal).all() and (diagonal > 0.0).all()):
        raise NotPositiveDefinite(
            "the posterior precision of a level has a diagonal entry that is not positive: a hyperparameter has left "
            "the range of float64; give one nearer to the scale of the data"
        )
    scale = 1.0 / np.sqrt(diagonal)
    scaled, eye = B * scale[:, :, None] * scale[:, None, :], np.eye(B.shape[1])
    for jitter in _JITTERS:
        try:
            lower = np.linalg.cholesky(scaled + jitter * eye)
        except np.linalg.LinAlgError:
            continue
        return np.linalg.solve(lower, np.broadcast_to(eye, lower.shape)) * scale[:, None, :], jitter
    raise NotPositiveDefinite(
        f"the posterior precision of a level is not positive definite even with {_JITTERS[-1]:g} of its diagonal "
        "added; use fewer frequencies, or a model with more noise"
    )
