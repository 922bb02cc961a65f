"""Kronecker products of structured matrices: the prior of a product of kernels over columns.

A matrix of size P = P_1 ... P_D acts on vectors read as tensors (P_1, ..., P_D), one factor per axis. What it keeps of
another matrix M are its D partial contractions R_d (P_d, P_d): M read as (P_1, ..., P_D, P_1, ..., P_D) and contracted
with all factors but the d-th. Then <scale K_1 x ... x K_D, M> = scale <K_d, R_d> for every d, and a derivative of one
factor is contracted with its own R_d.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import Any

import numpy as np

from vff.linalg.arrays import apply_along, contracted
from vff.linalg.operators import AbstractInvertible, AbstractOperator, AbstractSymmetric
from vff.linalg.views import DenseView, MatrixView, StructuredCotangent

_SMALL = 64


class AbstractProduct(AbstractInvertible):
    """The prior of a product of factors, one of which may change."""

    @abstractmethod
    def inner_of_factor(self, derivative: AbstractOperator, other: StructuredCotangent, d: int) -> float:
        """<scale K_1 x ... x dK_d x ... x K_D, M> for a change of one factor."""

    @abstractmethod
    def with_factor(self, change: AbstractOperator, d: int) -> "AbstractProduct":
        """scale K_1 x ... x change x ... x K_D, to be applied and contracted with."""

    def blended(self, own: float, other: Any, weight: float) -> AbstractOperator:
        raise TypeError("a sum of products is no product")


@dataclass(frozen=True)
class Kronecker(AbstractProduct):
    """scale K_1 x ... x K_D, scale > 0."""

    factors: tuple[AbstractInvertible, ...]
    scale: float = 1.0

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(factor.shape[0] for factor in self.factors)

    @property
    def shape(self) -> tuple[int, int]:
        return prod(self.sizes), prod(self.sizes)

    @cached_property
    def written(self) -> tuple[np.ndarray, ...]:
        """Every factor written out; they are small."""
        return tuple(factor.to_dense() for factor in self.factors)

    @cached_property
    def inverses(self) -> tuple[np.ndarray, ...]:
        """The inverse of every factor, written out and symmetric."""
        solved = [factor.solve(np.eye(size)) for factor, size in zip(self.factors, self.sizes, strict=True)]
        return tuple(0.5 * (inverse + inverse.T) for inverse in solved)

    def scaled(self, factor: float) -> "Kronecker":
        """factor times this matrix, factor > 0."""
        return Kronecker(self.factors, factor * self.scale)

    def mv(self, v: np.ndarray) -> np.ndarray:
        first, *others = self.products
        if isinstance(first, np.ndarray):  # scaling a small matrix is cheaper than scaling what it makes
            return apply_along(v, self.sizes, [self.scale * first, *others])
        return self.scale * apply_along(v, self.sizes, self.products)

    @cached_property
    def products(self) -> list[Callable[[np.ndarray], np.ndarray] | np.ndarray]:
        """Products with every factor; a small one is faster written out, as a matrix."""
        both = zip(self.factors, self.sizes, strict=True)
        return [self.written[d] if P <= _SMALL else factor.mv for d, (factor, P) in enumerate(both)]

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        total = np.asfortranarray(dense.T)
        first, rest = self.written[0], self.scale * reduce(np.kron, self.written[1:], np.ones((1, 1)))
        size = rest.shape[0]
        for i in range(self.sizes[0]):
            for j in range(i + 1):
                total[i * size : (i + 1) * size, j * size : (j + 1) * size] += first[i, j] * rest
        return total

    def project(self, view: MatrixView) -> StructuredCotangent:
        return StructuredCotangent(tuple(view.contracted(self)))

    def inner(self, other: StructuredCotangent) -> float:
        return self.scale * float(np.sum(self.written[0] * other.parts[0]))

    def inner_of_factor(self, derivative: AbstractOperator, other: StructuredCotangent, d: int) -> float:
        contraction = other.arrays()[d]
        return self.scale * derivative.inner(derivative.project(DenseView(contraction)))

    def with_factor(self, change: AbstractOperator, d: int) -> "Kronecker":
        changed = Kronecker((*self.factors[:d], change, *self.factors[d + 1 :]), self.scale)  # pyright: ignore
        vars(changed)["written"] = (*self.written[:d], change.to_dense(), *self.written[d + 1 :])
        return changed

    def to_dense(self) -> np.ndarray:
        return self.scale * reduce(np.kron, self.written)

    def solve(self, v: np.ndarray) -> np.ndarray:
        both = zip(self.factors, self.sizes, strict=True)
        maps = [self.inverses[d] if P <= _SMALL else factor.solve for d, (factor, P) in enumerate(both)]
        return apply_along(v, self.sizes, maps) / self.scale

    def logdet(self) -> float:
        P = self.shape[0]
        parts = (P // size * factor.logdet() for factor, size in zip(self.factors, self.sizes, strict=True))
        return P * float(np.log(self.scale)) + sum(parts)

    def trace_solve(self, G: AbstractSymmetric) -> float:
        return float(np.sum(self.inverses[0] * contracted(G.dense(), self.inverses)[0])) / self.scale

    def project_inverse(self) -> StructuredCotangent:
        P = self.shape[0]
        both = zip(self.inverses, self.sizes, strict=True)
        return StructuredCotangent(tuple(P // size / self.scale * inverse for inverse, size in both))

    def project_sandwich(self, G: AbstractSymmetric) -> StructuredCotangent:
        return self.sandwiched(contracted(G.dense(), self.inverses))

    def sandwiched(self, parts: Sequence[np.ndarray]) -> StructuredCotangent:
        """What it keeps of K^-1 G K^-1, given G contracted with the inverses of all factors but one."""
        both = zip(parts, self.inverses, strict=True)
        return StructuredCotangent(tuple(inverse @ part @ inverse / self.scale**2 for part, inverse in both))
