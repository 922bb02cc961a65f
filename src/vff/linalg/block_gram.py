"""The Gram matrix of a sum of terms: a block for every term, which knows its structure, and one for every pair."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

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
    def places(self) -> tuple[slice, ...]:
        """Rows and columns of every block."""
        sizes = [block.shape[0] for block in self.blocks]
        ends = np.cumsum(sizes).tolist()
        return tuple(slice(end - size, end) for size, end in zip(sizes, ends, strict=True))

    @property
    def shape(self) -> tuple[int, int]:
        P = self.places[-1].stop
        return P, P

    def mv(self, v: np.ndarray) -> np.ndarray:
        image = np.concatenate([block @ v[place] for block, place in zip(self.blocks, self.places, strict=True)])
        for (s, t), block in self.between.items():
            image[self.places[s]] += block @ v[self.places[t]]
            image[self.places[t]] += block.T @ v[self.places[s]]
        return image

    def diagonal(self) -> np.ndarray:
        return np.concatenate([block.diagonal() for block in self.blocks])

    def dense(self) -> np.ndarray:
        return self._dense

    @cached_property
    def _dense(self) -> np.ndarray:
        gram = np.empty(self.shape)
        for block, place in zip(self.blocks, self.places, strict=True):
            gram[place, place] = block.dense()
        for (s, t), block in self.between.items():
            gram[self.places[s], self.places[t]] = block
            gram[self.places[t], self.places[s]] = block.T
        return gram

    def part(self, place: slice) -> AbstractSymmetric:
        if place in self.places:
            return self.blocks[self.places.index(place)]
        return Dense(self.dense()[place, place])

    def contract(self, view: EntryView) -> float:
        every = zip(self.blocks, self.places, strict=True)
        own = sum(block.contract(view.part(place)) for block, place in every)
        both = ((block, view.block(self.places[s], self.places[t])) for (s, t), block in self.between.items())
        return own + 2.0 * sum(float(np.sum(block * other)) for block, other in both)
