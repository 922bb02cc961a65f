"""Blocks along the diagonal: the prior of a sum of independent terms. Every verb is the blocks' own, side by side."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.linalg.operators import AbstractInvertible, Summary


@dataclass(frozen=True)
class BlockDiagonal(AbstractInvertible):
    """diag(K_1, ..., K_T)."""

    blocks: tuple[AbstractInvertible, ...]

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Rows and columns of every block."""
        sizes = [block.shape[0] for block in self.blocks]
        ends = np.cumsum(sizes).tolist()
        return tuple(slice(end - size, end) for size, end in zip(sizes, ends, strict=True))

    @cached_property
    def probe_places(self) -> tuple[slice, ...]:
        """Columns of ``probes`` that belong to every block."""
        sizes = [block.probes.shape[1] for block in self.blocks]
        ends = np.cumsum(sizes).tolist()
        return tuple(slice(end - size, end) for size, end in zip(sizes, ends, strict=True))

    def _each(self) -> Iterator[tuple[AbstractInvertible, slice]]:
        return zip(self.blocks, self.places, strict=True)

    def _stack(self, part: Callable[[AbstractInvertible, slice], np.ndarray]) -> np.ndarray:
        return np.concatenate([part(block, place) for block, place in self._each()])

    @property
    def shape(self) -> tuple[int, int]:
        P = self.places[-1].stop
        return P, P

    def mv(self, v: np.ndarray) -> np.ndarray:
        return self._stack(lambda block, place: block.mv(v[place]))

    def diagonal(self) -> np.ndarray:
        return self._stack(lambda block, _: block.diagonal())

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        if len(self.blocks) == 1:
            return self.blocks[0].lower_plus(dense)
        total = np.asfortranarray(dense.T)
        for block, place in self._each():
            total[place, place] = block.lower_plus(np.ascontiguousarray(total[place, place].T))
        return total

    @property
    def probes(self) -> np.ndarray:
        return self._probes

    @cached_property
    def _probes(self) -> np.ndarray:
        V = np.zeros((self.shape[0], self.probe_places[-1].stop))
        for (block, place), columns in zip(self._each(), self.probe_places, strict=True):
            V[place, columns] = block.probes
        return V

    def part(self, other: Summary, number: int) -> Summary:
        """What the numbered block sees of another matrix's summary."""
        place, columns = self.places[number], self.probe_places[number]
        return Summary(other.diagonal[place], other.image[place, columns])

    def inner(self, other: Summary) -> float:
        return sum(block.inner(self.part(other, number)) for number, block in enumerate(self.blocks))

    def to_dense(self) -> np.ndarray:
        dense = np.zeros(self.shape)
        for block, place in self._each():
            dense[place, place] = block.to_dense()
        return dense

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self._stack(lambda block, place: block.solve(v[place]))

    def logdet(self) -> float:
        return sum(block.logdet() for block in self.blocks)

    def trace_solve(self, dense: np.ndarray) -> float:
        return sum(block.trace_solve(dense[place, place]) for block, place in self._each())

    def inverse_diagonal(self) -> np.ndarray:
        return self._stack(lambda block, _: block.inverse_diagonal())

    def sandwich_diagonal(self, dense: np.ndarray) -> np.ndarray:
        return self._stack(lambda block, place: block.sandwich_diagonal(dense[place, place]))

    @property
    def sqrt_size(self) -> int:
        return sum(block.sqrt_size for block in self.blocks)

    def sqrt_mv(self, v: np.ndarray) -> np.ndarray:
        ends = np.cumsum([block.sqrt_size for block in self.blocks])[:-1]
        pieces = zip(self.blocks, np.split(v, ends), strict=True)
        return np.concatenate([block.sqrt_mv(piece) for block, piece in pieces])
