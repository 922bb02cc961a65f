"""Bases over several columns: their letters are sums of products of letters, one per column.

The pass over the rows sums the products, column by column and by any engine; a sparse map leads from there to the
letters themselves, and its transpose back.
"""

from abc import abstractmethod
from collections.abc import Sequence
from math import prod

import numpy as np
from scipy import sparse

from vff.basis.protocol import Domain, Letters


class SeveralColumns(Domain):
    """A domain over several columns: inputs (N, D), each column of which has a domain of its own."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Domain, ...]: ...

    def _by_part(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        return np.stack(columns, axis=-1)

    def to_unit(self, x: np.ndarray) -> np.ndarray:
        return self._by_part([part.to_unit(x[..., d]) for d, part in enumerate(self.parts)])

    def contains(self, t: np.ndarray) -> np.ndarray:
        return np.logical_and.reduce([part.contains(t[..., d]) for d, part in enumerate(self.parts)])

    def draw(self, rng: np.random.Generator, n: int, size: int) -> np.ndarray:
        return self._by_part([part.draw(rng, n, size) for part in self.parts])

    def drawn(self, low: float, high: float, count: int, size: int) -> np.ndarray:
        raise TypeError(f"{self.describe()} is drawn column by column")

    def spread(self, share: np.ndarray, size: int) -> np.ndarray:
        """Every column in an order of its own, so that all of the domain is seen."""
        turns = [(share + np.arange(share.size) * (0.618034 * d)) % 1.0 if d else share for d in range(len(self.parts))]
        return self._by_part([part.spread(own, size) for part, own in zip(self.parts, turns, strict=True)])


class SeveralLetters(Letters):
    """Letters of several columns."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Letters, ...]: ...

    @property
    @abstractmethod
    def map(self) -> sparse.csr_array:
        """Every letter in products of letters of the parts, those of the last running fastest, (size, product)."""

    def merged(self, sums: np.ndarray) -> np.ndarray:
        return self.map @ sums

    def split(self, coefficients: np.ndarray) -> np.ndarray:
        return self.map.T @ coefficients


def parts_of(letters: Sequence[Letters]) -> tuple[Letters, ...]:
    """Of some axes, column after column."""
    return tuple(part for own in letters for part in own.parts)


def merged(letters: Sequence[Letters], tensor: np.ndarray) -> np.ndarray:
    """Sums with an axis for every column to sums with an axis for every one of the letters."""
    return _along_axes(letters, tensor, [[part.size for part in own.parts] for own in letters], split=False)


def split(letters: Sequence[Letters], tensor: np.ndarray) -> np.ndarray:
    """The transpose: coefficients of products of letters to those of products of their parts."""
    return _along_axes(letters, tensor, [[part.size for part in own.parts] for own in letters], split=True)


def _along_axes(letters: Sequence[Letters], tensor: np.ndarray, sizes: list[list[int]], *, split: bool) -> np.ndarray:
    if all(len(own.parts) == 1 for own in letters):
        return tensor
    shape = [own.size if split else prod(some) for own, some in zip(letters, sizes, strict=True)]
    tensor = tensor.reshape(shape)
    for d, own in enumerate(letters):
        if len(own.parts) > 1:
            front = np.moveaxis(tensor, d, 0)
            flat = np.ascontiguousarray(front).reshape(front.shape[0], -1)
            image = own.split(flat) if split else own.merged(flat)
            tensor = np.moveaxis(image.reshape(-1, *front.shape[1:]), 0, d)
    return tensor.reshape([n for some in sizes for n in some]) if split else tensor
