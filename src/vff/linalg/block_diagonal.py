"""Blocks along the diagonal: the prior of a sum of independent terms. Every verb is the blocks' own, side by side."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.linalg.arrays import slices_of
from vff.linalg.operators import AbstractInvertible
from vff.linalg.symmetric import AbstractSymmetric
from vff.linalg.views import BlockView, DenseView, MatrixView, OuterView, StructuredCotangent


@dataclass(frozen=True)
class BlockDiagonal(AbstractInvertible):
    """diag(K_1, ..., K_T)."""

    blocks: tuple[AbstractInvertible, ...]

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Rows and columns of every block."""
        return slices_of(block.shape[0] for block in self.blocks)

    def _each(self) -> Iterator[tuple[AbstractInvertible, slice]]:
        return zip(self.blocks, self.slices, strict=True)

    def _stack(self, part: Callable[[AbstractInvertible, slice], np.ndarray]) -> np.ndarray:
        return np.concatenate([part(block, own) for block, own in self._each()])

    @property
    def shape(self) -> tuple[int, int]:
        P = self.slices[-1].stop
        return P, P

    def scaled(self, factor: float) -> "BlockDiagonal":
        return BlockDiagonal(tuple(block.scaled(factor) for block in self.blocks))

    def mv(self, v: np.ndarray) -> np.ndarray:
        return self._stack(lambda block, own: block.mv(v[own]))

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        if len(self.blocks) == 1:
            return self.blocks[0].lower_plus(dense)
        total = np.asfortranarray(dense.T)
        for block, own in self._each():
            total[own, own] = block.lower_plus(np.ascontiguousarray(total[own, own].T))
        return total

    @property
    def probes(self) -> None:
        return None

    def project_block(self, block_view: BlockView) -> StructuredCotangent:
        if block_view.outer is not None:
            return self.project(OuterView(*block_view.outer))
        assert block_view.matrix is not None
        return self.project(DenseView(block_view.matrix))

    def project(self, view: MatrixView) -> StructuredCotangent:
        block_views = view.blocks(self.slices, [block.probes for block in self.blocks])
        return StructuredCotangent(
            tuple(block.project_block(block_view) for block, block_view in zip(self.blocks, block_views, strict=True))
        )

    def part(self, other: StructuredCotangent, number: int) -> StructuredCotangent:
        """What the numbered block keeps of another matrix."""
        part = other.parts[number]
        assert isinstance(part, StructuredCotangent)
        return part

    def inner(self, other: StructuredCotangent) -> float:
        return sum(block.inner(self.part(other, number)) for number, block in enumerate(self.blocks))

    def to_dense(self) -> np.ndarray:
        dense = np.zeros(self.shape)
        for block, own in self._each():
            dense[own, own] = block.to_dense()
        return dense

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self._stack(lambda block, own: block.solve(v[own]))

    def logdet(self) -> float:
        return sum(block.logdet() for block in self.blocks)

    def trace_solve(self, G: AbstractSymmetric) -> float:
        return sum(block.trace_solve(G.part(own)) for block, own in self._each())

    def project_inverse(self) -> StructuredCotangent:
        return StructuredCotangent(tuple(block.project_inverse() for block in self.blocks))

    def project_sandwich(self, G: AbstractSymmetric) -> StructuredCotangent:
        return StructuredCotangent(tuple(block.project_sandwich(G.part(own)) for block, own in self._each()))
