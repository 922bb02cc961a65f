"""One column's rows, prepared once for everything that is asked of them."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from vff.basis import Basis, Domain, Letters
from vff.moments.lattice import Codebook

_REMEMBERED = 2**21  # letters of one column, 16 MiB
_KEPT = 2**17  # letters of one column at its rows, 1 MiB


@dataclass(frozen=True)
class ColumnRequest:
    """What to sum for one column: its features, and where they live."""

    place: Domain
    basis: Basis


@dataclass(frozen=True)
class TermRequest:
    """What to sum for one term: products of the features of its columns, the last column's running fastest."""

    columns: tuple[int, ...]
    """Which columns of the rows, all different."""
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

    def factor_of(self, column: int) -> int | None:
        """Which factor is over this column of the rows; None when none is."""
        return self.columns.index(column) if column in self.columns else None

    def with_basis(self, d: int, basis: Basis) -> "TermRequest":
        """The same term with another basis for one factor."""
        factors = list(self.factors)
        factors[d] = replace(factors[d], basis=basis)
        return replace(self, factors=tuple(factors))


@dataclass(frozen=True)
class ColumnRows:
    """A stretch of one column."""

    request: ColumnRequest
    x: np.ndarray
    """In the column's own units, (N,)."""
    book: Codebook | None = None
    """Its distinct values, when these are few enough to work on."""
    remembered: dict[Any, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    """What was worked out about these rows, whatever features are asked of them, and will be needed again."""

    @property
    def basis(self) -> Basis:
        return self.request.basis

    @property
    def t(self) -> np.ndarray:
        """Where the rows lie in the unit interval, (N,)."""
        if "t" not in self.remembered:
            self.remembered["t"] = self.request.place.to_unit(self.x)
        return self.remembered["t"]

    @property
    def codebook(self) -> Codebook:
        """The book, by those who know that there is one."""
        assert self.book is not None
        return self.book

    @property
    def codes(self) -> np.ndarray:
        """Code of every row in the book, (N,)."""
        if "codes" not in self.remembered:
            self.remembered["codes"] = self.codebook.encode(self.x)
        return self.remembered["codes"]

    def asked(self, request: ColumnRequest) -> "ColumnRows":
        """The same rows for other features in the same place; what was worked out about them is shared."""
        return self if request == self.request else replace(self, request=request)

    @cached_property
    def values(self) -> np.ndarray:
        """Where the values of the book lie in the unit interval, (D,)."""
        return self.request.place.to_unit(self.codebook.values)

    def letters(self, alphabet: Letters) -> np.ndarray:
        """Letters at the values of the book, (D, size)."""
        if self.codebook.size * alphabet.size > _REMEMBERED:
            return alphabet.evaluate(self.values)
        found, key = self.codebook.remembered, (self.request.place, alphabet)
        if key not in found:
            found[key] = alphabet.evaluate(self.values)
        return found[key]

    def written(self, alphabet: Letters) -> np.ndarray:
        """Letters at the rows themselves, (N, size); kept when they are few, for the next set and the next walk."""
        if self.x.size * alphabet.size > _KEPT:
            return alphabet.evaluate(self.t)
        if alphabet not in self.remembered:
            self.remembered[alphabet] = alphabet.evaluate(self.t)
        return self.remembered[alphabet]

    @cached_property
    def features(self) -> np.ndarray:
        """The features written out, (N, P). For short stretches."""
        return self.basis.evaluate(self.t)
