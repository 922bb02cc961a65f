"""Symmetric matrices that are not written out, looked at as far as structured ones need to be contracted with them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Union

import numpy as np

from vff.linalg.arrays import slices_of
from vff.linalg.cholesky import Factor


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


@dataclass(frozen=True)
class BlockView:
    """A diagonal block of a matrix: its diagonal and image of some probes, or all of it, or two thin factors of it."""

    diagonal: np.ndarray | None = None
    image: np.ndarray | None = None
    matrix: np.ndarray | None = None
    outer: tuple[np.ndarray, np.ndarray] | None = None
    """(X, Z) with M = (X Z' + Z X') / 2."""
    contractions: tuple[np.ndarray, ...] | None = None
    """What a Kronecker product keeps, known already."""


Probes = np.ndarray | None
"""Directions V (P, R) in which a block is looked at beside its diagonal; None for all of it."""


class MatrixView(ABC):
    """A symmetric matrix to be looked at."""

    @abstractmethod
    def blocks(self, slices: Sequence[slice], probes: Sequence[Probes]) -> list[BlockView]:
        """What is asked of every diagonal block."""


class EntryView(MatrixView):
    """A symmetric matrix of which any entry can be asked for."""

    @abstractmethod
    def written(self) -> np.ndarray:
        """All of it, (P, P)."""

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Some of its entries."""
        return self.written()[rows, columns]

    def block(self, rows: slice, columns: slice) -> np.ndarray:
        """Some of its rows and columns."""
        return self.written()[rows, columns]

    def part(self, own: slice) -> "EntryView":
        """A block on the diagonal."""
        return DenseView(self.block(own, own))

    def diagonal(self) -> np.ndarray:
        """Its diagonal, (P,)."""
        return np.diagonal(self.written()).copy()


@dataclass(frozen=True)
class DenseView(EntryView):
    """A matrix written out."""

    matrix: np.ndarray

    def written(self) -> np.ndarray:
        return self.matrix

    def blocks(self, slices: Sequence[slice], probes: Sequence[Probes]) -> list[BlockView]:
        block_views = []
        for own, V in zip(slices, probes, strict=True):
            block = self.matrix[own, own]
            block_views.append(BlockView(matrix=block) if V is None else BlockView(np.diagonal(block), block @ V))
        return block_views


@dataclass(frozen=True)
class OuterView(EntryView):
    """(X Z' + Z X') / 2 for thin X and Z, (P, R)."""

    X: np.ndarray
    Z: np.ndarray

    def written(self) -> np.ndarray:
        half = self.X @ self.Z.T
        return 0.5 * (half + half.T)

    def part(self, own: slice) -> "OuterView":
        return OuterView(self.X[own], self.Z[own])

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return 0.5 * np.sum(self.X[rows] * self.Z[columns] + self.Z[rows] * self.X[columns], axis=-1)

    def diagonal(self) -> np.ndarray:
        return np.einsum("pr,pr->p", self.X, self.Z)

    def blocks(self, slices: Sequence[slice], probes: Sequence[Probes]) -> list[BlockView]:
        block_views = []
        for own, V in zip(slices, probes, strict=True):
            X, Z = self.X[own], self.Z[own]
            if V is None:
                block_views.append(BlockView(outer=(X, Z)))
            else:
                image = 0.5 * (X @ (Z.T @ V) + Z @ (X.T @ V))
                block_views.append(BlockView(np.einsum("pr,pr->p", X, Z), image))
        return block_views


@dataclass(frozen=True)
class InverseView(EntryView):
    """A^-1 from the factor of A; written out only when a block asks for all of it."""

    factor: Factor

    @cached_property
    def matrix(self) -> np.ndarray:
        return self.factor.inverse()

    def written(self) -> np.ndarray:
        return self.matrix

    def diagonal(self) -> np.ndarray:
        return self.factor.inverse_diagonal()

    def blocks(self, slices: Sequence[slice], probes: Sequence[Probes]) -> list[BlockView]:
        if any(V is None for V in probes):
            return DenseView(self.matrix).blocks(slices, probes)
        diagonal, thin = self.factor.inverse_diagonal(), [V for V in probes if V is not None]
        every = np.zeros((diagonal.size, sum(V.shape[1] for V in thin)))
        columns = slices_of(V.shape[1] for V in thin)
        for own, V, some in zip(slices, thin, columns, strict=True):
            every[own, some] = V
        images = self.factor.solve(every)
        return [BlockView(diagonal[own], images[own, some]) for own, some in zip(slices, columns, strict=True)]
