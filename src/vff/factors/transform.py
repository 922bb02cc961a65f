"""Coordinates: from the functions that are summed over rows to those that a prior is written in.

A factor whose prior has coordinates of its own says so by a shear, T = [[I, 0], [X, I]]: the first functions stay, and
each of the others takes some of the first with it. Where X has no rows, the two are the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from vff.linalg import slices_of


@dataclass(frozen=True)
class EdgeTransform:
    """T = [[I, 0], [X, I]]: the last q functions take multiples X (q, H) of the first H with them."""

    X: np.ndarray

    @classmethod
    def identity(cls, size: int) -> "EdgeTransform":
        """The functions as they are."""
        return cls(np.zeros((0, size)))

    @property
    def inverse(self) -> "EdgeTransform":
        return EdgeTransform(-self.X)

    def forward(self, v: np.ndarray) -> np.ndarray:
        """T v for v (P,) or (P, S)."""
        H = self.X.shape[1]
        return np.concatenate([v[:H], self.X @ v[:H] + v[H:]])

    def transpose(self, v: np.ndarray) -> np.ndarray:
        """T' v: coefficients of the new functions to coefficients of the old."""
        H = self.X.shape[1]
        return np.concatenate([v[:H] + self.X.T @ v[H:], v[H:]])


@dataclass(frozen=True)
class TermTransform:
    """T_1 x ... x T_D: the transforms of the columns of one term, one per axis of its coefficients."""

    factors: tuple[EdgeTransform, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(sum(factor.X.shape) for factor in self.factors)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def _axes(self, v: np.ndarray) -> Iterator[tuple[EdgeTransform, np.ndarray, np.ndarray]]:
        """Every factor that does something, with views of v on the harmonics and on the edge functions of its axis."""
        for d, factor in enumerate(self.factors):
            q, H = factor.X.shape
            if q:
                tensor = v.reshape(prod(self.shape[:d]), H + q, -1)
                yield factor, tensor[:, :H], tensor[:, H:]

    def forward_in_place(self, v: np.ndarray) -> None:
        """T v for v (P, S), C-contiguous."""
        for factor, harmonics, edges in self._axes(v):
            edges += factor.X @ harmonics

    def forward(self, v: np.ndarray) -> np.ndarray:
        """T v for v (P,) or (P, S)."""
        image = np.array(v, order="C")
        self.forward_in_place(image)
        return image

    def transpose(self, v: np.ndarray) -> np.ndarray:
        """T' v: coefficients of the new functions to coefficients of the old."""
        image = np.array(v, order="C")
        for factor, harmonics, edges in self._axes(image):
            harmonics += factor.X.T @ edges
        return image


@dataclass(frozen=True)
class StackedTransform:
    """diag(T_1, ..., T_S): the transforms of several terms, side by side."""

    transforms: tuple[TermTransform, ...]

    @property
    def inverse(self) -> "StackedTransform":
        own = (TermTransform(tuple(factor.inverse for factor in one.factors)) for one in self.transforms)
        return StackedTransform(tuple(own))

    @cached_property
    def _slices(self) -> list[tuple[TermTransform, slice]]:
        sizes = (transform.size for transform in self.transforms)
        return list(zip(self.transforms, slices_of(sizes), strict=True))

    def forward(self, v: np.ndarray) -> np.ndarray:
        """T v for v (P,) or (P, S)."""
        image = np.array(v, order="C")
        for transform, own in self._slices:
            transform.forward_in_place(image[own])
        return image

    def transpose(self, v: np.ndarray) -> np.ndarray:
        """T' v."""
        return np.concatenate([v[:0], *(transform.transpose(v[own]) for transform, own in self._slices)])

    def gram(self, G: np.ndarray) -> np.ndarray:
        """T G T' for a symmetric G; exactly symmetric."""
        if not any(factor.X.size for transform in self.transforms for factor in transform.factors):
            return G
        if any(len(transform.factors) > 1 for transform in self.transforms):
            total = self.forward(self.forward(G).T)
            return 0.5 * (total + total.T)
        return self._gram_of_columns(G)

    def _gram_of_columns(self, G: np.ndarray) -> np.ndarray:
        """The same when every term has one column: only the rows of edge functions change."""
        singles = [(transform.factors[0].X, own) for transform, own in self._slices if transform.factors[0].X.size]
        parts = [(X, slice(p.start, p.start + X.shape[1]), slice(p.start + X.shape[1], p.stop)) for X, p in singles]
        edges = np.concatenate([np.arange(own.start, own.stop) for _, _, own in parts])
        rows = np.concatenate([X @ G[harmonics] + G[own] for X, harmonics, own in parts])
        corner = self.forward(rows.T)[edges]
        total = G.copy()
        total[edges] = rows
        total[:, edges] = rows.T
        total[np.ix_(edges, edges)] = 0.5 * (corner + corner.T)
        return total
