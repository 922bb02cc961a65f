"""Matrices by blocks: the prior of a sum of independent terms, and the Gram matrix of their features."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vff.linalg.arrays import slices_of
from vff.linalg.dense import Dense
from vff.linalg.operators import AbstractInvertible, AbstractOperator, AbstractSymmetric
from vff.linalg.sparse import SparseBlock
from vff.linalg.views import MatrixView, Probes, StructuredCotangent


class _Blocks:
    """Where the blocks on the diagonal stand."""

    blocks: Any

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Rows and columns of every block."""
        return slices_of(block.shape[0] for block in self.blocks)

    @property
    def shape(self) -> tuple[int, int]:
        P = self.slices[-1].stop if self.slices else 0
        return P, P


@dataclass(frozen=True)
class BlockOperator(_Blocks, AbstractOperator):
    """diag(K_1, ..., K_T). Every verb is the blocks' own, side by side."""

    blocks: tuple[AbstractOperator, ...]

    def each(self) -> Iterator[tuple[Any, slice]]:
        """Every block with its rows and columns."""
        return zip(self.blocks, self.slices, strict=True)

    def _stack(self, part: Callable[[Any, slice], np.ndarray]) -> np.ndarray:
        return np.concatenate([part(block, own) for block, own in self.each()])

    @property
    def probes(self) -> Probes:
        """Those of the blocks, side by side."""
        every = [block.probes for block in self.blocks]
        known = [own for own in every if own is not None]
        return None if len(known) < len(every) else _side_by_side(known)

    def blended(self, own: float, other: "BlockOperator", weight: float) -> "BlockOperator":
        both = zip(self.blocks, other.blocks, strict=True)
        return BlockOperator(tuple(mine.blended(own, theirs, weight) for mine, theirs in both))

    def mv(self, v: np.ndarray) -> np.ndarray:
        return self._stack(lambda block, own: block.mv(v[own])) if self.blocks else v

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        if len(self.blocks) == 1:
            return self.blocks[0].lower_plus(dense)
        total = np.asfortranarray(dense.T)
        for block, own in self.each():
            total[own, own] = block.lower_plus(np.ascontiguousarray(total[own, own].T))
        return total

    def project(self, view: MatrixView) -> StructuredCotangent:
        parts = view.parts(self.slices, [block.probes for block in self.blocks]) if self.blocks else ()
        return StructuredCotangent(tuple(block.project(own) for block, own in zip(self.blocks, parts, strict=True)))

    def part(self, other: StructuredCotangent, number: int) -> StructuredCotangent:
        """What the numbered block keeps of another matrix."""
        part = other.parts[number]
        assert isinstance(part, StructuredCotangent)
        return part

    def inner(self, other: StructuredCotangent) -> float:
        return sum(block.inner(self.part(other, number)) for number, block in enumerate(self.blocks))

    def to_dense(self) -> np.ndarray:
        dense = np.zeros(self.shape)
        for block, own in self.each():
            dense[own, own] = block.to_dense()
        return dense


@dataclass(frozen=True)
class BlockDiagonal(BlockOperator, AbstractInvertible):
    """The same of blocks that are solved with."""

    blocks: tuple[AbstractInvertible, ...]  # pyright: ignore[reportIncompatibleVariableOverride]

    def scaled(self, factor: float) -> "BlockDiagonal":
        return BlockDiagonal(tuple(block.scaled(factor) for block in self.blocks))

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self._stack(lambda block, own: block.solve(v[own])) if self.blocks else v

    def logdet(self) -> float:
        return sum(block.logdet() for block in self.blocks)

    def trace_solve(self, G: AbstractSymmetric) -> float:
        return sum(self.trace_solve_by_block(G))

    def trace_solve_by_block(self, G: AbstractSymmetric) -> list[float]:
        """tr(K_s^-1 G_ss) of every block."""
        return [block.trace_solve(G.part(own)) for block, own in self.each()]

    def project_inverse(self) -> StructuredCotangent:
        return StructuredCotangent(tuple(block.project_inverse() for block in self.blocks))

    def project_sandwich(self, G: AbstractSymmetric) -> StructuredCotangent:
        return StructuredCotangent(tuple(block.project_sandwich(G.part(own)) for block, own in self.each()))


@dataclass(frozen=True)
class BlockGram(_Blocks, AbstractSymmetric):
    """Blocks on the diagonal, each with its own structure, and those between them."""

    blocks: tuple[AbstractSymmetric, ...]
    between: Mapping[tuple[int, int], np.ndarray | SparseBlock]
    """(P_s, P_t) by pairs s < t; those that are not there are zero."""

    def mv(self, v: np.ndarray) -> np.ndarray:
        image = np.concatenate([block @ v[own] for block, own in zip(self.blocks, self.slices, strict=True)])
        for (s, t), block in self.between.items():
            image[self.slices[s]] += block @ v[self.slices[t]]
            image[self.slices[t]] += block.T @ v[self.slices[s]]
        return image

    def diagonal(self) -> np.ndarray:
        return np.concatenate([block.diagonal() for block in self.blocks])

    def dense(self) -> np.ndarray:
        return self._dense

    @cached_property
    def _dense(self) -> np.ndarray:
        gram = np.zeros(self.shape)
        for block, own in zip(self.blocks, self.slices, strict=True):
            gram[own, own] = block.dense()
        for (s, t), block in self.between.items():
            gram[self.slices[s], self.slices[t]] = block
            gram[self.slices[t], self.slices[s]] = block.T
        return gram

    to_dense = dense

    def part(self, own: slice) -> AbstractSymmetric:
        if own in self.slices:
            return self.blocks[self.slices.index(own)]
        return Dense(self.dense()[own, own])


def _side_by_side(parts: Sequence[np.ndarray]) -> np.ndarray:
    """diag(V_1, ..., V_T) of matrices that need not be square."""
    whole = np.zeros((sum(len(own) for own in parts), sum(own.shape[1] for own in parts)))
    places = zip(parts, slices_of(map(len, parts)), slices_of(own.shape[1] for own in parts), strict=True)
    for own, rows, columns in places:
        whole[rows, columns] = own
    return whole
