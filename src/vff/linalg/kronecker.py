"""Kronecker products of structured matrices: the prior of a product of kernels over columns.

A matrix of size P = P_1 ... P_D acts on vectors read as tensors (P_1, ..., P_D), one factor per axis. What it keeps of
another matrix M are its D partial contractions R_d (P_d, P_d): M read as (P_1, ..., P_D, P_1, ..., P_D) and contracted
with all factors but the d-th. Then <scale K_1 x ... x K_D, M> = scale <K_d, R_d> for every d, and a derivative of one
factor is contracted with its own R_d.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from vff.linalg.operators import AbstractInvertible, AbstractOperator
from vff.linalg.symmetric import AbstractSymmetric, contracted
from vff.linalg.views import BlockView, DenseView, StructuredCotangent


def apply_along(v: np.ndarray, shape: Sequence[int], maps: Sequence[Callable[[np.ndarray], np.ndarray]]) -> np.ndarray:
    """Apply maps of (P_d, S) to (P'_d, S) along the axes of v (P,) or (P, S), read as a tensor."""
    more, sizes = v.shape[1:], list(shape)
    for d, one in enumerate(maps):
        tensor = v.reshape(prod(sizes[:d]), sizes[d], -1)
        image = one(np.ascontiguousarray(tensor.transpose(1, 0, 2)).reshape(sizes[d], -1))
        sizes[d] = image.shape[0]
        v = image.reshape(sizes[d], tensor.shape[0], -1).transpose(1, 0, 2)
    return np.ascontiguousarray(v).reshape(-1, *more)


def product_rows(columns: Sequence[np.ndarray]) -> np.ndarray:
    """All products of entries, one of every matrix (N, P_d), row by row, (N, P); the last matrix runs fastest."""
    total = columns[0]
    for column in columns[1:]:
        total = (total[:, :, None] * column[:, None, :]).reshape(total.shape[0], -1)
    return total


@dataclass(frozen=True)
class Kronecker(AbstractInvertible):
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
        return self.scale * apply_along(v, self.sizes, [factor.mv for factor in self.factors])

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        total = np.asfortranarray(dense.T)
        shape = self.sizes
        rest = self.scale * self.to_dense_of(self.written[1:])
        size = rest.shape[0]
        first = self.written[0]
        for i in range(shape[0]):
            for j in range(i + 1):
                total[i * size : (i + 1) * size, j * size : (j + 1) * size] += first[i, j] * rest
        return total

    @staticmethod
    def to_dense_of(matrices: Sequence[np.ndarray]) -> np.ndarray:
        """The Kronecker product of matrices written out."""
        total = np.ones((1, 1))
        for matrix in matrices:
            total = np.kron(total, matrix)
        return total

    @property
    def probes(self) -> None:
        return None

    def project_block(self, block_view: BlockView) -> StructuredCotangent:
        if block_view.contractions is not None:
            return StructuredCotangent(block_view.contractions)
        if block_view.outer is not None:
            return StructuredCotangent(self._contracted_outer(*block_view.outer))
        assert block_view.matrix is not None
        return StructuredCotangent(tuple(contracted(block_view.matrix, self.written)))

    def _contracted_outer(self, X: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, ...]:
        """The partial contractions of (X Z' + Z X') / 2."""
        results = []
        for d, size in enumerate(self.sizes):
            maps = [factor.mv if e != d else _same for e, factor in enumerate(self.factors)]
            images = apply_along(X, self.sizes, maps)
            left, right = (
                v.reshape(prod(self.sizes[:d]), size, -1).transpose(1, 0, 2).reshape(size, -1) for v in (images, Z)
            )
            half = left @ right.T
            results.append(0.5 * (half + half.T))
        return tuple(results)

    def inner(self, other: StructuredCotangent) -> float:
        return self.scale * float(np.sum(self.written[0] * other.parts[0]))

    def inner_of_factor(self, derivative: AbstractOperator, other: StructuredCotangent, d: int) -> float:
        """<scale K_1 x ... x dK_d x ... x K_D, M> for a change of one factor."""
        contraction = other.arrays()[d]
        return self.scale * derivative.inner(derivative.project(DenseView(contraction)))

    def to_dense(self) -> np.ndarray:
        return self.scale * self.to_dense_of(self.written)

    def solve(self, v: np.ndarray) -> np.ndarray:
        return apply_along(v, self.sizes, [factor.solve for factor in self.factors]) / self.scale

    def logdet(self) -> float:
        P = self.shape[0]
        parts = (P // size * factor.logdet() for factor, size in zip(self.factors, self.sizes, strict=True))
        return P * float(np.log(self.scale)) + sum(parts)

    def trace_solve(self, G: AbstractSymmetric) -> float:
        return float(np.sum(self.inverses[0] * G.contracted(self.inverses)[0])) / self.scale

    def project_inverse(self) -> StructuredCotangent:
        P = self.shape[0]
        both = zip(self.inverses, self.sizes, strict=True)
        return StructuredCotangent(tuple(P // size / self.scale * inverse for inverse, size in both))

    def project_sandwich(self, G: AbstractSymmetric) -> StructuredCotangent:
        return self.sandwiched(G.contracted(self.inverses))

    def sandwiched(self, parts: Sequence[np.ndarray]) -> StructuredCotangent:
        """What it keeps of K^-1 G K^-1, given G contracted with the inverses of all factors but one."""
        both = zip(parts, self.inverses, strict=True)
        return StructuredCotangent(tuple(inverse @ part @ inverse / self.scale**2 for part, inverse in both))


def _same(v: np.ndarray) -> np.ndarray:
    return v
