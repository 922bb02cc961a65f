"""Products with levels: of coefficients of different levels, neither prior nor rows say anything together.

A term of products with levels has m features on every level. Its prior is I x K_m, ``Repeated``, its Gram matrix has a
block (m, m) per level, ``BlocksByLevel``, and nothing of the size of all levels squared is written out. Both are asked
in the order of the term's own coefficients, a tensor with an axis per factor; ``LevelAxes`` knows which are levels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from vff.linalg.dense import Dense
from vff.linalg.kronecker import AbstractProduct, Kronecker
from vff.linalg.operators import AbstractOperator, AbstractSymmetric
from vff.linalg.views import DenseView, MatrixView, StructuredCotangent


@dataclass(frozen=True)
class LevelAxes:
    """Which axes of the coefficients of a product are levels."""

    shape: tuple[int, ...]
    """Features of every factor."""
    levels: tuple[int, ...]
    """Factors that are levels."""

    @cached_property
    def within(self) -> tuple[int, ...]:
        """The other factors."""
        return tuple(d for d in range(len(self.shape)) if d not in self.levels)

    @property
    def count(self) -> int:
        """L, combinations of levels."""
        return prod(self.shape[d] for d in self.levels)

    @property
    def each(self) -> int:
        """m, features on every level."""
        return prod(self.shape[d] for d in self.within)

    @property
    def size(self) -> int:
        """P = L m."""
        return prod(self.shape)

    def apart(self, v: np.ndarray) -> np.ndarray:
        """(P, ...) to (L, m, ...)."""
        more = range(len(self.shape), len(self.shape) + v.ndim - 1)
        tensor = v.reshape(*self.shape, *v.shape[1:]).transpose(*self.levels, *self.within, *more)
        return tensor.reshape(self.count, self.each, *v.shape[1:])

    def together(self, v: np.ndarray) -> np.ndarray:
        """(L, m, ...) to (P, ...)."""
        order = (*self.levels, *self.within)
        more = range(len(order), len(order) + v.ndim - 2)
        tensor = v.reshape(*(self.shape[d] for d in order), *v.shape[2:])
        return tensor.transpose(*np.argsort(order), *more).reshape(self.size, *v.shape[2:])

    @cached_property
    def places(self) -> np.ndarray:
        """Where the coefficients of every level stand, (L, m)."""
        return self.apart(np.arange(self.size))

    @cached_property
    def stands(self) -> tuple[np.ndarray, np.ndarray]:
        """The level of every coefficient, and which of its features it is of, (P,) each."""
        level, feature = np.divmod(np.arange(self.size), self.each)
        return tuple(self.together(own.reshape(self.count, self.each)) for own in (level, feature))  # pyright: ignore

    def summed(self, view: MatrixView) -> np.ndarray:
        """The blocks of a matrix on the diagonal, summed over levels, (m, m)."""
        if isinstance(view, SummedView):
            return view.matrix
        X, Z = view.sides() or (None, None)
        if X is not None and Z is not None:
            left, right = (self.apart(own).transpose(1, 0, 2).reshape(self.each, -1) for own in (X, Z))
            half = left @ right.T
            return 0.5 * (half + half.T)
        return np.sum(view.at(self.places[:, :, None], self.places[:, None, :]), axis=0)


@dataclass(frozen=True)
class SummedView(MatrixView):
    """A matrix of which the blocks of all levels, summed, are all that is known."""

    matrix: np.ndarray

    def written(self) -> np.ndarray:
        raise TypeError("of a matrix over levels only the sum of its blocks is known")


@dataclass(frozen=True)
class BlockView(MatrixView):
    """A matrix over products with levels that is looked at within levels alone."""

    axes: LevelAxes
    blocks: np.ndarray
    """(L, m, m)."""

    def written(self) -> np.ndarray:
        return BlocksByLevel(self.axes, self.blocks).dense()

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        level, feature = self.axes.stands
        return np.where(level[rows] == level[columns], self.blocks[level[rows], feature[rows], feature[columns]], 0.0)

    def diagonal(self) -> np.ndarray:
        return self.axes.together(np.einsum("lii->li", self.blocks))


@dataclass(frozen=True)
class BlocksByLevel(AbstractSymmetric):
    """A block on the diagonal for every level, nothing between them."""

    axes: LevelAxes
    blocks: np.ndarray
    """(L, m, m)."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.axes.size, self.axes.size

    def mv(self, v: np.ndarray) -> np.ndarray:
        tensor = self.axes.apart(v).reshape(self.axes.count, self.axes.each, -1)
        image = self.axes.together(self.blocks @ tensor)
        return image.reshape(v.shape)

    def diagonal(self) -> np.ndarray:
        return self.axes.together(np.einsum("lii->li", self.blocks))

    def dense(self) -> np.ndarray:
        return self._dense

    @cached_property
    def _dense(self) -> np.ndarray:
        whole, places = np.zeros(self.shape), self.axes.places
        whole[places[:, :, None], places[:, None, :]] = self.blocks
        return whole

    to_dense = dense

    def part(self, own: slice) -> AbstractSymmetric:
        return self if own == slice(0, self.axes.size) else Dense(self.dense()[own, own])

    def by_level(self, axes: LevelAxes) -> np.ndarray:
        return self.blocks if axes == self.axes else super().by_level(axes)


@dataclass(frozen=True)
class Repeated(AbstractProduct):
    """I x K_m over the levels of a product, K_m = scale K_1 x ... x K_D that of the other factors.

    Of another matrix it keeps what K_m keeps of the sum of its blocks. Products are with all coefficients, or with
    those of one level.
    """

    axes: LevelAxes
    one: Kronecker
    """K_m, that of one level."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.axes.size, self.axes.size

    def scaled(self, factor: float) -> "Repeated":
        return Repeated(self.axes, self.one.scaled(factor))

    def _each(self, verb: Callable[[np.ndarray], np.ndarray], v: np.ndarray) -> np.ndarray:
        if len(v) == self.axes.each:
            return verb(v)
        tensor = self.axes.apart(v).reshape(self.axes.count, self.axes.each, -1)
        image = verb(tensor.transpose(1, 0, 2).reshape(self.axes.each, -1))
        image = image.reshape(self.axes.each, self.axes.count, -1).transpose(1, 0, 2)
        return self.axes.together(image).reshape(v.shape)

    def mv(self, v: np.ndarray) -> np.ndarray:
        return self._each(self.one.mv, v)

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self._each(self.one.solve, v)

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        return np.asfortranarray(dense + self.to_dense())

    def project(self, view: MatrixView) -> StructuredCotangent:
        return self.one.project(DenseView(self.axes.summed(view)))

    def inner(self, other: StructuredCotangent) -> float:
        return self.one.inner(other)

    def inner_of_factor(self, derivative: AbstractOperator, other: StructuredCotangent, d: int) -> float:
        return self.one.inner_of_factor(derivative, other, self.axes.within.index(d))

    def with_factor(self, change: AbstractOperator, d: int) -> "Repeated":
        return Repeated(self.axes, self.one.with_factor(change, self.axes.within.index(d)))

    def to_dense(self) -> np.ndarray:
        blocks = np.broadcast_to(self.one.to_dense(), (self.axes.count, self.axes.each, self.axes.each))
        return BlocksByLevel(self.axes, blocks).dense()

    def logdet(self) -> float:
        return self.axes.count * self.one.logdet()

    def trace_solve(self, G: AbstractSymmetric) -> float:
        return self.one.trace_solve(self._summed(G))

    def _summed(self, G: AbstractSymmetric) -> Dense:
        return Dense(np.sum(G.by_level(self.axes), axis=0))

    def project_inverse(self) -> StructuredCotangent:
        return float(self.axes.count) * self.one.project_inverse()

    def project_sandwich(self, G: AbstractSymmetric) -> StructuredCotangent:
        return self.one.project_sandwich(self._summed(G))
