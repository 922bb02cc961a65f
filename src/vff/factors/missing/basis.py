"""Inputs that may be missing, which are NaN: the features of a number are its own and a zero, those of a missing value
zeros and a one. Of a factor over several columns, a row is missing when any of its inputs is.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from scipy import sparse

from vff.basis import Basis, Change, Domain, Letters, Products
from vff.linalg import AbstractSymmetric, BlockGram, Diagonal, MatrixView


def are_missing(t: np.ndarray) -> np.ndarray:
    """Which rows, (N,) or (N, D), are missing, (N,)."""
    gone: np.ndarray = np.isnan(t)
    return gone if gone.ndim == 1 else np.any(gone, axis=1)


@dataclass(frozen=True)
class MissingDomain(Domain):
    """A domain, and missing values beside it."""

    base: Domain

    @property
    def numbers(self) -> Domain:
        return self.base

    @property
    def discrete(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.discrete

    @property
    def held(self) -> float | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.held

    @property
    def compass(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.compass

    @property
    def closed(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.closed

    @property
    def parts(self) -> tuple[Domain, ...]:
        several = len(self.base.parts) > 1
        return tuple(MissingDomain(part) for part in self.base.parts) if several else (self,)

    def refuse(self, extents: Sequence[tuple[float, float]], labels: Sequence[str]) -> None:
        self.base.refuse(extents, labels)

    @property
    def variable(self) -> Hashable:
        return self.base.variable

    @property
    def ends(self) -> tuple[float, float] | None:
        return self.base.ends

    def to_unit(self, x: np.ndarray) -> np.ndarray:
        return self.base.to_unit(x)

    def contains(self, t: np.ndarray) -> np.ndarray:
        return are_missing(t) | self.base.contains(t)

    def holds(self, low: float, high: float) -> bool:
        return self.base.holds(low, high)

    @property
    def half_length(self) -> float:
        return self.base.half_length

    def unit(self, kind: str = "length") -> float:
        return self.base.unit(kind)

    def describe(self) -> str:
        return self.base.describe()

    def outside_text(self, label: str) -> str:
        return self.base.outside_text(label)

    def draw(self, rng: np.random.Generator, n: int, size: int) -> np.ndarray:
        """One in eight of them missing."""
        x = np.array(self.base.draw(rng, n, size - 1), float)
        x[rng.random(n) < 0.125] = np.nan
        return x

    def drawn(self, low: float, high: float, count: int, size: int) -> np.ndarray:
        return self.base.drawn(low, high, count, size - 1)

    def spread(self, share: np.ndarray, size: int) -> np.ndarray:
        x = np.array(self.base.spread(share, size - 1), float)
        x[: len(x) // 2 : 5] = np.nan
        return x

    def check(self) -> None:
        if self.base.numbers is not self.base:
            raise ValueError(f"a domain of numbers was expected, found {self.base!r:.120}")
        self.base.check()


@dataclass(frozen=True)
class MissingLetters(Letters):
    """Letters that are zero where a value is missing, and then one that is one there and zero elsewhere."""

    base: Letters

    @property
    def size(self) -> int:
        return self.base.size + 1

    @property
    def numbers(self) -> Letters:
        return self.base

    @property
    def parts(self) -> tuple[Letters, ...]:
        several = len(self.base.parts) > 1
        return tuple(MissingLetters(part) for part in self.base.parts) if several else (self,)

    def merged(self, sums: np.ndarray) -> np.ndarray:
        if len(self.base.parts) == 1:
            return sums
        by_part = sums.reshape(*(part.size for part in self.parts), *sums.shape[1:])
        numbers = by_part[tuple(slice(0, part.size) for part in self.base.parts)]
        gone = np.tensordot(_some_gone(self.base), by_part, axes=len(self.parts))
        return np.concatenate([self.base.merged(numbers.reshape(-1, *sums.shape[1:])), gone[None]])

    def split(self, coefficients: np.ndarray) -> np.ndarray:
        if len(self.base.parts) == 1:
            return coefficients
        found, sizes = np.multiply.outer(_some_gone(self.base), coefficients[-1]), [own.size for own in self.base.parts]
        own = self.base.split(coefficients[:-1]).reshape(*sizes, *coefficients.shape[1:])
        found[tuple(slice(0, size) for size in sizes)] += own
        return found.reshape(-1, *coefficients.shape[1:])

    @property
    def local(self) -> int | None:
        return self.base.local

    @property
    def keys(self) -> Sequence[Hashable]:
        return [*(("number", key) for key in self.base.keys), "missing"]

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        return with_indicator(t, self.base.size, self.base.evaluate)


def with_indicator(t: np.ndarray, size: int, evaluate: Any, one: float = 1.0) -> np.ndarray:
    """Functions (N, size) at rows that are there, and then one that is ``one`` at the others."""
    gone = are_missing(t)
    values = np.zeros((len(t), size + 1))
    if gone.any():
        values[~gone, :-1] = evaluate(t[~gone])
        values[gone, -1] = one
    else:
        values[:, :-1] = evaluate(t)
    return values


@lru_cache(maxsize=16)
def _some_gone(base: Letters) -> np.ndarray:
    """That an input is missing, in products of letters of the parts, which may be missing each, (size + 1, ...).

    A product of letters of numbers vanishes unless all are there. That all are there is the product of the functions
    that are one at numbers, so that some are not is the product of those that are one everywhere less this one.
    """
    ones = [part.one for part in base.parts]
    if any(one is None for one in ones):
        raise TypeError("a factor over several columns with missing values must have letters that make up a constant")
    there = [np.append(one, 0.0) for one in ones if one is not None]
    anything = [np.append(own[:-1], 1.0) for own in there]
    return reduce(np.multiply.outer, anything) - reduce(np.multiply.outer, there)


@dataclass(frozen=True)
class MissingBasis(Basis):
    """A basis, and the indicator of missing values as its last function."""

    base: Basis

    @property
    def family(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.family

    @property
    def numbers(self) -> Basis:
        return self.base

    @property
    def size(self) -> int:
        return self.base.size + 1

    @property
    def scattered(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.scattered

    @property
    def detail(self) -> int | None:
        return self.base.detail

    @property
    def single(self) -> MissingLetters:
        return MissingLetters(self.base.single)

    @property
    def double(self) -> MissingLetters:
        """A product with the indicator is zero, or the indicator."""
        return MissingLetters(self.base.double)

    @property
    def parts(self) -> tuple[Basis, ...]:
        several = len(self.base.parts) > 1
        return tuple(MissingBasis(part) for part in self.base.parts) if several else (self,)

    def evaluate(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        return with_indicator(t, self.base.size, lambda own: self.base.evaluate(own, derivative), float(not derivative))

    def products(self) -> Products:
        return _products(self.base)

    @property
    def orthogonal(self) -> bool:
        return self.base.orthogonal

    def pairs(self, sums: np.ndarray) -> np.ndarray:
        P = self.base.size
        written = np.zeros((P + 1, P + 1, *sums.shape[1:]))
        written[:P, :P], written[P, P] = self.base.pairs(sums[:-1]), sums[-1]
        return written

    def gram(self, sums: np.ndarray) -> AbstractSymmetric:
        own, one = self.base.gram(sums[:-1]), sums[-1:]
        return Diagonal(np.append(own.diagonal(), one)) if self.orthogonal else BlockGram((own, Diagonal(one)), {})

    def project(self, S: MatrixView) -> np.ndarray:
        P = self.base.size
        own, one = S.parts((slice(0, P), slice(P, P + 1)), (None, np.zeros((1, 0))))
        return np.append(self.base.project(own), one.diagonal())

    def contracted(self, cells: np.ndarray) -> np.ndarray:
        return np.concatenate([self.base.contracted(cells[:-1]), cells[-1:]])

    def features_sum(self, sums: np.ndarray) -> np.ndarray:
        return np.concatenate([self.base.features_sum(sums[:-1]), sums[-1:]])

    def joint(self, other: Basis) -> "MissingBasis | None":
        both = self.base.joint(other.base) if isinstance(other, MissingBasis) else None
        return None if both is None else MissingBasis(both)

    def to(self, smaller: Basis) -> Change:
        return Beside(self.base.to(smaller.base)) if isinstance(smaller, MissingBasis) else super().to(smaller)

    def resized(self, detail: int) -> "MissingBasis":
        return MissingBasis(self.base.resized(detail))

    def within(self, domain: Domain) -> "MissingBasis":
        return MissingBasis(self.base.within(domain.numbers))

    def extended(self, values: Sequence[Any]) -> tuple["MissingBasis", Change]:
        basis, change = self.base.extended(values)
        return MissingBasis(basis), Beside(change)

    def nodes(self) -> np.ndarray:
        own = self.base.nodes()
        return np.concatenate([own, np.full((1, *own.shape[1:]), np.nan)])

    @property
    def node_count(self) -> int:
        return self.base.node_count + 1

    def suits(self, domain: Domain) -> bool:
        return domain.numbers is not domain and self.base.suits(domain.numbers)

    def check(self) -> None:
        if self.base.numbers is not self.base:
            raise ValueError(f"a basis of numbers was expected, found {self.base!r:.120}")
        self.base.check()


@lru_cache(maxsize=16)
def _products(base: Basis) -> Products:
    found, P = base.products(), base.size
    rows, columns = np.append(found.rows, P), np.append(found.columns, P)
    both = sparse.csr_array(sparse.block_diag([found.map, np.ones((1, 1))]))
    return Products(rows, columns, both, sparse.csr_array(both.T))


@dataclass(frozen=True)
class Beside(Change):
    """A change of the functions of numbers; the indicator stays."""

    base: Change

    def single(self, values: np.ndarray) -> np.ndarray:
        return np.concatenate([self.base.single(values[:-1]), values[-1:]])

    def single_transpose(self, values: np.ndarray) -> np.ndarray:
        return np.concatenate([self.base.single_transpose(values[:-1]), values[-1:]])

    def double(self, values: np.ndarray) -> np.ndarray:
        return np.concatenate([self.base.double(values[:-1]), values[-1:]])


class FirstMissing(Change):
    """From rows without a missing value to the functions of rows that may have some."""

    def single(self, values: np.ndarray) -> np.ndarray:
        return np.concatenate([values, np.zeros((1, *values.shape[1:]))])

    double = single

    def single_transpose(self, values: np.ndarray) -> np.ndarray:
        return values[:-1]
