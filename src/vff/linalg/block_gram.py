"""The Gram matrix of a sum of terms: a block for every term, which knows its structure, and one for every pair."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.linalg.arrays import slices_of
from vff.linalg.dense import Dense
from vff.linalg.symmetric import AbstractSymmetric
from vff.linalg.views import EntryView


@dataclass(frozen=True)
class BlockGram(AbstractSymmetric):
    """Blocks on the diagonal, each with its own structure, and those between them."""

    blocks: tuple[AbstractSymmetric, ...]
    between: Mapping[tuple[int, int], np.ndarray]
    """(P_s, P_t) by pairs s < t."""

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Rows and columns of every block."""
        return slices_of(block.shape[0] for block in self.blocks)

    @property
    def shape(self) -> tuple[int, int]:
        P = self.slices[-1].stop
        return P, P

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
        gram = np.empty(self.shape)
        for block, own in zip(self.blocks, self.slices, strict=True):
            gram[own, own] = block.dense()
        for (s, t), block in self.between.items():
            gram[self.slices[s], self.slices[t]] = block
            gram[self.slices[t], self.slices[s]] = block.T
        return gram

    def part(self, own: slice) -> AbstractSymmetric:
        if own in self.slices:
            return self.blocks[self.slices.index(own)]
        return Dense(self.dense()[own, own])

    def contract(self, view: EntryView) -> float:
        every = zip(self.blocks, self.slices, strict=True)
        diagonal = sum(block.contract(view.part(own)) for block, own in every)
        both = ((block, view.block(self.slices[s], self.slices[t])) for (s, t), block in self.between.items())
        return diagonal + 2.0 * sum(float(np.sum(block * other)) for block, other in both)
