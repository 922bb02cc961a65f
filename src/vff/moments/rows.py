"""One column's rows, prepared once for everything that is asked of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from vff.basis.protocol import Axis, Basis, Domain, Letters
from vff.linalg import apply_along
from vff.moments.distinct import DistinctValues
from vff.words import shown

_REMEMBERED = 2**21  # letters of one column, 16 MiB
_KEPT = 2**17  # letters of one column at its rows, 1 MiB


Place = int | tuple[int, ...]
"""What a factor reads: a column of the rows, or several; rows x (N, C) hold it as x[:, place]."""


def numbers(places: Iterable[Place]) -> tuple[int, ...]:
    """All columns of some places, one after another."""
    return tuple(c for place in places for c in (place if isinstance(place, tuple) else (place,)))


def place_of(columns: Sequence[int]) -> Place:
    """A column by itself, or several as they are."""
    return tuple(columns) if len(columns) > 1 else next(iter(columns))


def codes_of_levels(t: np.ndarray, size: int) -> np.ndarray:
    """Which of the levels of a column rows have, the last where a value is missing; -1 for none."""
    codes = np.where(np.isnan(t), size - 1.0, t)
    known = (codes >= 0.0) & (codes < size) & (codes == np.floor(codes))
    return np.where(known, codes, -1.0).astype(np.int64)


@dataclass(frozen=True)
class ColumnRequest:
    """What to sum for one column, or for several that a factor reads together: its features, and where they live."""

    domain: Domain
    basis: Basis

    @property
    def parts(self) -> "tuple[ColumnRequest, ...]":
        """Column by column."""
        if len(self.basis.parts) == 1:
            return (self,)
        both = zip(self.domain.parts, self.basis.parts, strict=True)
        return tuple(ColumnRequest(domain, basis) for domain, basis in both)

    @property
    def numbers(self) -> "ColumnRequest":
        """What is asked of rows that are not missing."""
        return ColumnRequest(self.domain.numbers, self.basis.numbers) if self.domain.numbers != self.domain else self

    def check(self) -> None:
        """ValueError unless this is something that can be summed, wherever it came from."""
        self.domain.check()
        self.basis.check()
        if not self.basis.suits(self.domain):
            wanted = "an interval" if self.domain.discrete else "codes of levels"
            raise ValueError(f"{wanted} was expected, found {self.domain!r:.120}")


@dataclass(frozen=True)
class TermRequest:
    """What to sum for one term: products of the features of its columns, the last column's running fastest."""

    columns: tuple[Place, ...]
    """Which column of the rows, or which columns, every factor reads."""
    factors: tuple[ColumnRequest, ...]
    """The features of each."""

    @cached_property
    def bases(self) -> tuple[Basis, ...]:
        return tuple(factor.basis for factor in self.factors)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """P of every factor."""
        return tuple(basis.size for basis in self.bases)

    @cached_property
    def size(self) -> int:
        """P."""
        return prod(self.shape)

    @cached_property
    def double_shape(self) -> tuple[int, ...]:
        """Double letters of every factor."""
        return tuple(basis.double.size for basis in self.bases)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """All columns of the rows that it reads."""
        return numbers(self.columns)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """What every factor reads, all different; two may read one column."""
        both = zip(self.columns, self.factors, strict=True)
        return tuple(Axis(numbers((place,)), factor.domain, factor.basis.family) for place, factor in both)

    def basis_of(self, axis: Axis) -> Basis | None:
        """Of the factor over this axis; None when there is none."""
        return self.bases[self.axes.index(axis)] if axis in self.axes else None

    def with_factor(self, d: int, request: ColumnRequest) -> "TermRequest":
        """The same term with other features for one factor."""
        factors = list(self.factors)
        factors[d] = request
        return replace(self, factors=tuple(factors))

    def change(self, other: "TermRequest") -> Callable[[np.ndarray], np.ndarray]:
        """What takes sums over its features, (P, S), to those over fewer harmonics of the same factors."""
        maps = [one.to(two).single if one != two else None for one, two in zip(self.bases, other.bases, strict=True)]
        return lambda rows: apply_along(rows, self.shape, maps)

    def with_basis(self, d: int, basis: Basis) -> "TermRequest":
        """The same term with another basis for one factor."""
        return self.with_factor(d, replace(self.factors[d], basis=basis))


def joint(one: Basis, other: Basis) -> Basis:
    """The smallest basis that holds both."""
    both = one.joint(other)
    if both is None:
        raise ValueError(
            f"a column has one set of levels, or one interval, and here has {shown(one)} and {shown(other)}"
        )
    return both


@dataclass(frozen=True)
class ColumnRows:
    """A stretch of one column."""

    request: ColumnRequest
    x: np.ndarray
    """In the column's own units, (N,)."""
    distinct: DistinctValues | None = None
    """Its distinct values, when these are few enough to work on."""
    remembered: dict[Any, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    """What was worked out about these rows, whatever features are asked of them, and will be needed again."""

    @property
    def basis(self) -> Basis:
        return self.request.basis

    @property
    def t(self) -> np.ndarray:
        """Where the rows lie in the unit domain, (N,)."""
        key = "t", self.request.domain
        if key not in self.remembered:
            self.remembered[key] = self.request.domain.to_unit(self.x)
        return self.remembered[key]

    @property
    def known_values(self) -> DistinctValues:
        """The distinct values, by those who know that there are few."""
        assert self.distinct is not None
        return self.distinct

    @property
    def codes(self) -> np.ndarray:
        """Code of every row, (N,)."""
        if "codes" not in self.remembered:
            self.remembered["codes"] = self.known_values.encode(self.x)
        return self.remembered["codes"]

    def for_request(self, request: ColumnRequest) -> "ColumnRows":
        """The same rows for other features, or on another domain; what was worked out about them is shared."""
        return self if request == self.request else replace(self, request=request)

    def on(self, domain: Domain) -> "ColumnRows":
        """The same rows on another domain."""
        return self if domain == self.request.domain else self.for_request(replace(self.request, domain=domain))

    @cached_property
    def values(self) -> np.ndarray:
        """Where the distinct values lie in the unit domain, (D,)."""
        return self.request.domain.to_unit(self.known_values.values)

    def taken(self, rows: np.ndarray | slice) -> "ColumnRows":
        """Some of the rows."""
        return ColumnRows(self.request, self.x[rows], self.distinct)

    @property
    def inside(self) -> np.ndarray:
        """Which rows lie inside their domain, (N,): what is missing does, if the domain knows of it."""
        domain = self.request.domain
        found = domain.contains(self.t)
        return found if domain.numbers is not domain else found & ~self.missing

    @property
    def missing(self) -> np.ndarray:
        """Which rows are missing, (N,)."""
        if "missing" not in self.remembered:
            self.remembered["missing"] = np.isnan(self.x)
        return self.remembered["missing"]

    def numbers(self, rows: np.ndarray) -> "ColumnRows":
        """Some of the rows, none of which is missing."""
        distinct = None if self.distinct is None else self.distinct.numbers
        return ColumnRows(self.request.numbers, self.x[rows], distinct)

    def letters(self, letters: Letters) -> np.ndarray:
        """Letters at the distinct values, (D, size)."""
        if self.known_values.size * letters.size > _REMEMBERED:
            return letters.evaluate(self.values)
        found, key = self.known_values.remembered, (self.request.domain, letters)
        if key not in found:
            found[key] = letters.evaluate(self.values)
        return found[key]

    def letters_are_values(self, letters: Letters) -> bool:
        """Whether every letter is the indicator of a distinct value, in the same order."""
        values = self.known_values.values
        codes = self.request.domain.discrete and letters.local == 1 and values.size == letters.size
        codes = codes and letters.numbers is letters
        return codes and bool(values.size == 0 or (values[0] == 0.0 and values[-1] == values.size - 1.0))

    def _codes_of(self, letters: Letters) -> np.ndarray | None:
        """Which letter is one at every distinct value, -1 for none, (D,); None unless letters are of single levels."""
        if not (self.request.domain.discrete and letters.local == 1):
            return None
        return codes_of_levels(self.values, letters.size)

    def at_values(self, letters: Letters, coefficients: np.ndarray, d: int) -> np.ndarray:
        """Functions of the letters at the distinct values: an axis of coefficients, (size,), becomes one of (D,)."""
        codes = self._codes_of(letters)
        if codes is None:
            return np.moveaxis(np.tensordot(self.letters(letters), coefficients, axes=(1, d)), 0, d)
        found = np.take(coefficients, np.maximum(codes, 0), axis=d)
        if codes.size and codes.min() < 0:
            np.moveaxis(found, d, 0)[codes < 0] = 0.0
        return found

    def from_values(self, letters: Letters, sums: np.ndarray, d: int) -> np.ndarray:
        """Sums over letters from those over the distinct values, (D,) along an axis: the transpose."""
        codes = self._codes_of(letters)
        if codes is None:
            return np.moveaxis(np.tensordot(self.letters(letters), sums, axes=(0, d)), 0, d)
        moved, known = np.moveaxis(sums, d, 0), codes >= 0
        found = np.zeros((letters.size, *moved.shape[1:]))
        found[codes[known]] = moved[known]
        return np.moveaxis(found, 0, d)

    def written(self, letters: Letters) -> np.ndarray:
        """Letters at the rows themselves, (N, size); kept when they are few, for the next set and the next pass."""
        if self.x.size * letters.size > _KEPT:
            return letters.evaluate(self.t)
        key = self.request.domain, letters
        if key not in self.remembered:
            self.remembered[key] = letters.evaluate(self.t)
        return self.remembered[key]

    def outside(self) -> np.ndarray | None:
        """Which rows lie outside their domain; None when all are inside, by far the usual case."""
        domain = self.request.domain
        if self.distinct is None or domain.discrete:  # a level never seen has no code
            outside = ~domain.contains(self.t)
            return outside if outside.any() else None
        values = ~domain.contains(self.values)
        return values[self.codes] if values.any() else None
