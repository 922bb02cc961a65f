"""Functions of how wide a row is: polynomials in h that are one at a node and zero at the others."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.polynomial import chebyshev

from vff.basis import Basis, Change, Domain, Letters, Products

_MOST_NODES = 2**16  # that a file may ask for
_ROUNDING = 1e-14


@dataclass(frozen=True)
class Breadth(Domain):
    """From nothing to the widest, in units of a length."""

    length: float
    top: float
    held: ClassVar[float | None] = 0.0

    @property
    def ends(self) -> tuple[float, float] | None:
        """None where all rows are points."""
        return (0.0, self.top) if self.top else None

    def to_unit(self, x: np.ndarray) -> np.ndarray:
        return x / self.length

    def contains(self, t: np.ndarray) -> np.ndarray:
        return (t >= 0.0) & (t <= self.top / self.length)

    def holds(self, low: float, high: float) -> bool:
        return low >= 0.0 and high <= self.top

    @property
    def half_length(self) -> float:
        return self.length

    def describe(self) -> str:
        return f"[0, {self.top:g}]"

    def outside_text(self, label: str) -> str:
        return f"are so wide by column {label} that they reach beyond the domain of the function"

    def draw(self, rng: np.random.Generator, n: int, size: int) -> np.ndarray:
        return rng.uniform(0.0, self.top, n)

    def drawn(self, low: float, high: float, count: int, size: int) -> np.ndarray:
        """The function itself is drawn."""
        return np.zeros(1)

    def spread(self, share: np.ndarray, size: int) -> np.ndarray:
        """The last, which may lie far outside, is a point."""
        return np.append(self.top * share[:-1], 0.0)


def nodes(count: int, reach: float) -> np.ndarray:
    """Chebyshev's, zero and the widest among them, (count,)."""
    return reach * (0.5 - 0.5 * np.cos(np.pi * np.arange(count) / (count - 1))) if count > 1 else np.zeros(1)


@lru_cache(maxsize=64)
def _chebyshev(count: int) -> np.ndarray:
    """Coefficients of every polynomial in Chebyshev's, (degree, node)."""
    if count == 1:
        return np.ones((1, 1))
    angle = np.pi * np.outer(np.arange(count), np.arange(count)) / (count - 1)
    ends = np.where(np.isin(np.arange(count), (0, count - 1)), 0.5, 1.0)
    return 2.0 / (count - 1) * np.cos(angle) * np.outer(ends, ends) * (-1.0) ** np.arange(count)[:, None]


@dataclass(frozen=True)
class NodeLetters(Letters):
    """Polynomials of degree ``count`` - 1, one for every node on [0, reach]."""

    count: int
    reach: float

    @property
    def size(self) -> int:
        return self.count

    @property
    def keys(self) -> Sequence[Hashable]:
        return [("node", self.count, self.reach, k) for k in range(self.count)]

    @property
    def one(self) -> np.ndarray:
        """Which is one at every node."""
        return np.ones(self.count)

    def evaluate(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        if self.count == 1:
            return np.full((t.size, 1), float(derivative == 0))
        weights = _chebyshev(self.count)
        if derivative:
            weights = chebyshev.chebder(weights, derivative) * (2.0 / self.reach) ** derivative
        found = chebyshev.chebvander(2.0 * t / self.reach - 1.0, len(weights) - 1) @ weights
        found[np.abs(found) < _ROUNDING] = 0.0  # at a node, the other letters: who sums them need not
        return found


@lru_cache(maxsize=64)
def lagrange(small: NodeLetters, large: NodeLetters) -> np.ndarray:
    """The letters of few nodes at many, (many, few): they are so much of those of the many."""
    return small.evaluate(nodes(large.count, large.reach))


@dataclass(frozen=True)
class BreadthBasis(Basis):
    """The polynomials by themselves."""

    count: int
    reach: float
    family: ClassVar[str] = "breadth"

    @property
    def size(self) -> int:
        return self.count

    @property
    def single(self) -> NodeLetters:
        return NodeLetters(self.count, self.reach)

    @property
    def double(self) -> NodeLetters:
        """Products have twice the degree."""
        return NodeLetters(2 * self.count - 1, self.reach)

    def evaluate(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        return self.single.evaluate(t, derivative)

    def products(self) -> Products:
        P, at = self.size, lagrange(self.single, self.double)
        letter, row, column = (index.reshape(-1) for index in np.indices((len(at), P, P)))
        entries = letter, row, column, (at[:, :, None] * at[:, None]).reshape(-1)
        return Products.of(P, len(at), entries, everywhere=True)

    def features_sum(self, sums: np.ndarray) -> np.ndarray:
        return np.tensordot(lagrange(self.single, self.double).T, sums, axes=1)

    def joint(self, other: Basis) -> "BreadthBasis | None":
        if not isinstance(other, BreadthBasis) or other.reach != self.reach:
            return None
        return BreadthBasis(max(self.count, other.count), self.reach)

    def to(self, smaller: Basis) -> Change:
        if isinstance(smaller, BreadthBasis) and self.joint(smaller) == self:
            return FewerNodes(self, smaller)
        return super().to(smaller)

    @property
    def node_count(self) -> int:
        return self.double.size

    def nodes(self) -> np.ndarray:
        return nodes(self.double.count, self.reach)

    def check(self) -> None:
        if not (1 <= self.count <= _MOST_NODES and 0.0 <= self.reach < np.inf):
            raise ValueError(f"nodes on an interval were expected, found {self!r:.120}")


@dataclass(frozen=True)
class FewerNodes(Change):
    """Polynomials of low degree are among those of high degree."""

    large: BreadthBasis
    small: BreadthBasis

    def single(self, values: np.ndarray) -> np.ndarray:
        return np.tensordot(lagrange(self.small.single, self.large.single).T, values, axes=1)

    def single_transpose(self, values: np.ndarray) -> np.ndarray:
        return np.tensordot(lagrange(self.small.single, self.large.single), values, axes=1)

    def double(self, values: np.ndarray) -> np.ndarray:
        return np.tensordot(lagrange(self.small.double, self.large.double).T, values, axes=1)
