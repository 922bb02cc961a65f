"""Symmetric matrices that are not written out, looked at as far as structured ones need to be contracted with them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Union

import numpy as np

from vff.linalg.arrays import apply_along, contracted, slices_of
from vff.linalg.cholesky import Factor

if TYPE_CHECKING:
    from vff.linalg.kronecker import Kronecker


@dataclass(frozen=True)
class StructuredCotangent:
    """As much of a symmetric matrix M as a structure keeps of it. Linear in M: cotangents add and scale."""

    parts: tuple[Union[np.ndarray, "StructuredCotangent"], ...]

    def __add__(self, other: "StructuredCotangent") -> "StructuredCotangent":
        return StructuredCotangent(tuple(mine + theirs for mine, theirs in zip(self.parts, other.parts, strict=True)))

    def __rmul__(self, factor: float) -> "StructuredCotangent":
        return StructuredCotangent(tuple(factor * part for part in self.parts))

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The parts of one that holds no others."""
        return tuple(part for part in self.parts if isinstance(part, np.ndarray))


Probes = np.ndarray | None
"""Directions V (P, R) in which a block is looked at beside its diagonal; None for all of it."""


class MatrixView(ABC):
    """A symmetric matrix M to be looked at."""

    @abstractmethod
    def written(self) -> np.ndarray:
        """All of it, (P, P)."""

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Some of its entries."""
        return self.written()[rows, columns]

    def diagonal(self) -> np.ndarray:
        """Its diagonal, (P,)."""
        return np.diagonal(self.written())

    def times(self, V: np.ndarray) -> np.ndarray:
        """M V, (P, R)."""
        return self.written() @ V

    def sides(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Thin X and Z (P, R) with M = (X Z' + Z X') / 2; None where there are none."""
        return None

    def contracted(self, K: "Kronecker") -> Sequence[np.ndarray]:
        """For every d, M contracted with all factors of K but the d-th, (P_d, P_d)."""
        return contracted(self.written(), K.written)

    def parts(self, slices: Sequence[slice], probes: Sequence[Probes]) -> Sequence["MatrixView"]:
        """Its blocks on the diagonal, which will be asked for their diagonal and these images, or for all."""
        return [DenseView(self.written()[own, own]) for own in slices]


@dataclass(frozen=True)
class DenseView(MatrixView):
    """A matrix written out."""

    matrix: np.ndarray

    def written(self) -> np.ndarray:
        return self.matrix


@dataclass(frozen=True)
class OuterView(MatrixView):
    """(X Z' + Z X') / 2 for thin X and Z, (P, R)."""

    X: np.ndarray
    Z: np.ndarray

    def written(self) -> np.ndarray:
        half = self.X @ self.Z.T
        return 0.5 * (half + half.T)

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return 0.5 * np.sum(self.X[rows] * self.Z[columns] + self.Z[rows] * self.X[columns], axis=-1)

    def diagonal(self) -> np.ndarray:
        return np.einsum("pr,pr->p", self.X, self.Z)

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        return self.X, self.Z

    def times(self, V: np.ndarray) -> np.ndarray:
        return 0.5 * (self.X @ (self.Z.T @ V) + self.Z @ (self.X.T @ V))

    def contracted(self, K: "Kronecker") -> Sequence[np.ndarray]:
        results = []
        for d, size in enumerate(K.sizes):
            maps = [product if e != d else None for e, product in enumerate(K.products)]
            images = apply_along(self.X, K.sizes, maps)
            left, right = (
                v.reshape(prod(K.sizes[:d]), size, -1).transpose(1, 0, 2).reshape(size, -1) for v in (images, self.Z)
            )
            results.append(OuterView(left, right).written())
        return results

    def parts(self, slices: Sequence[slice], probes: Sequence[Probes]) -> Sequence["OuterView"]:
        return [OuterView(self.X[own], self.Z[own]) for own in slices]


@dataclass(frozen=True)
class _Thin(MatrixView):
    """A block of which only what will be asked is known: its diagonal, and the image of the probes."""

    d: np.ndarray
    image: np.ndarray

    def written(self) -> np.ndarray:
        raise TypeError("only the diagonal and the image of the probes are known")

    def diagonal(self) -> np.ndarray:
        return self.d

    def times(self, V: np.ndarray) -> np.ndarray:
        return self.image

    def parts(self, slices: Sequence[slice], probes: Sequence[Probes]) -> Sequence[MatrixView]:
        """Of a block that is made of blocks: the probes of each are zero in the others."""
        columns = slices_of(V.shape[1] for V in probes if V is not None)
        return [_Thin(self.d[own], self.image[own, some]) for own, some in zip(slices, columns, strict=True)]


@dataclass(frozen=True)
class InverseView(MatrixView):
    """A^-1 from the factor of A; written out only when a block asks for all of it."""

    factor: Factor

    @cached_property
    def matrix(self) -> np.ndarray:
        return self.factor.inverse()

    def written(self) -> np.ndarray:
        return self.matrix

    def diagonal(self) -> np.ndarray:
        return self.factor.inverse_diagonal()

    def times(self, V: np.ndarray) -> np.ndarray:
        return self.factor.solve(V)

    def parts(self, slices: Sequence[slice], probes: Sequence[Probes]) -> Sequence[MatrixView]:
        thin = [V for V in probes if V is not None]
        if len(thin) < len(probes):
            return super().parts(slices, probes)
        diagonal, columns = self.diagonal(), slices_of(V.shape[1] for V in thin)
        every = np.zeros((diagonal.size, columns[-1].stop))
        for own, V, some in zip(slices, thin, columns, strict=True):
            every[own, some] = V
        images = self.times(every)
        return [_Thin(diagonal[own], images[own, some]) for own, some in zip(slices, columns, strict=True)]
