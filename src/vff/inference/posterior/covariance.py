"""What is known of the coefficients under q: S, their covariance with the intercept held, of one kind or another.

var f = k(0) - phi'(K^-1 - S)phi, theory (7.3). A kind says what K^-1 - S, which the data *explained*, comes to at rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.inference.posterior.term import TermProcess, Written, stretches
from vff.linalg import factorise
from vff.moments import (
    ColumnRows,
    KeyedByPairs,
    LetterFunction,
    MomentRequest,
    Pair,
    TermPair,
    column_rows,
    pair_functions,
    summed,
    synthesise,
)


def columns_of(request: MomentRequest, x: np.ndarray) -> list[ColumnRows]:
    """The columns of rows x (N, C), ready for the engines."""
    return [column_rows(column, np.ascontiguousarray(x[:, c])) for c, column in enumerate(request.columns)]


Arrays = Iterator[tuple[np.ndarray, tuple[int, ...], str]]
"""An array of a record, the shape that it must have, and what it is."""

Features = Sequence[Written | None]
"""By term; None where a term has none."""


@dataclass(frozen=True)
class AbstractCovariance(KeyedByPairs, ABC):
    """S of all terms together."""

    terms: tuple[TermProcess, ...]

    @cached_property
    def request(self) -> MomentRequest:
        """The functions of all terms."""
        return MomentRequest(tuple(term.request for term in self.terms))

    @abstractmethod
    def quad(self, features: Features) -> np.ndarray:
        """phi'(K^-1 - S)phi of all terms together at rows with these features, (N,)."""

    @abstractmethod
    def outer(self, features: Features) -> np.ndarray:
        """phi'(K^-1 - S)phi between all rows, (N, N)."""

    @abstractmethod
    def spread(self, v: np.ndarray, own: np.ndarray) -> float:
        """v'Sv, where S_ss v_s of every term s is known."""

    def apply(self, v: np.ndarray) -> np.ndarray | None:
        """S v, (P,); None where terms are independent of one another under q because they were taken to be."""
        return None

    @abstractmethod
    def answers(
        self, s: int, x: np.ndarray, rows: Sequence[ColumnRows], vectors: Sequence[np.ndarray], engine: str = "auto"
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """phi'c for every vector c of one term, and its phi'(K^-1 - S_ss)phi, at every row."""

    @abstractmethod
    def explained(
        self, mean: np.ndarray, x: np.ndarray, rows: Sequence[ColumnRows], engine: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """phi'mean and phi'(K^-1 - S)phi of all terms together at every row."""

    @property
    def functions(self) -> tuple[list[LetterFunction], list[LetterFunction]] | None:
        """phi'(K^-1 - S_ss)phi of every term in letters, and functions that sum to phi_s'S_st phi_t over all pairs.

        None where rows are asked in another way.
        """
        return None

    def draws(self, n_samples: int, rng: np.random.Generator) -> np.ndarray | None:
        """Draws of c - mean, (P, n_samples); None where there is no cheap way to them."""
        return None

    @property
    def count(self) -> int:
        """Draws of f that it is made of; zero where it is made of none."""
        return 0

    def values(self, x: np.ndarray, some: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Some of these draws at every row, (N, S), but for a rest whose variance is (N,)."""
        raise TypeError(f"{type(self).__name__} is made of no draws")

    def rest(self, x: np.ndarray) -> np.ndarray:
        """Variance of the part of f that features do not carry, (N,)."""
        return np.sum([term.unseen(x) for term in self.terms], axis=0)

    def arrays(self) -> Arrays:
        """Its arrays, for whoever reads it from a file."""
        yield from ()

    def check(self) -> None:  # most have nothing to check beside their arrays
        """ValueError unless its fields make sense together, wherever they came from."""

    def notes(self) -> tuple[str, ...]:
        """Where its computation falls short of what it aims at."""
        return ()


@dataclass(frozen=True)
class WrittenCovariance(AbstractCovariance):
    """Kinds that are evaluated by letters inside."""

    @abstractmethod
    def explained_function(self, s: int) -> LetterFunction:
        """phi'(K^-1 - S_ss)phi in the double letters of a term's columns."""

    @property
    @abstractmethod
    def between(self) -> dict[Pair, np.ndarray]:
        """S_st for s < t, (P_s, P_t)."""

    @abstractmethod
    def own_quad(self, s: int, features: np.ndarray) -> np.ndarray:
        """phi'(K^-1 - S_ss)phi for features of one term written out, (N,)."""

    @cached_property
    def _own_functions(self) -> list[LetterFunction]:
        return [self.explained_function(s) for s in range(len(self.terms))]

    @cached_property
    def pair_functions(self) -> list[LetterFunction]:
        """Functions whose sum is that of phi_s'S_st phi_t over pairs of terms."""
        term_pairs = {(s, t): TermPair(self.request.terms[s], self.request.terms[t]) for s, t in self.between}
        raw = {(s, t): self.terms[t].to_raw(self.terms[s].to_raw(block).T).T for (s, t), block in self.between.items()}
        return pair_functions(term_pairs, raw)

    def answers(
        self, s: int, x: np.ndarray, rows: Sequence[ColumnRows], vectors: Sequence[np.ndarray], engine: str = "auto"
    ) -> tuple[list[np.ndarray], np.ndarray]:
        term = self.terms[s]
        inside = term.inside(rows)
        functions = [*(term.function(c) for c in vectors), self._own_functions[s]]
        if inside.all():
            *values, explained = synthesise(rows, functions, engine)
            return values, explained
        found = [np.empty(len(x)) for _ in functions]
        if inside.any():
            for value, part in zip(found, synthesise(term.within(rows, inside), functions, engine), strict=True):
                value[inside] = part
        for value, part in zip(found, self._beyond(s, x[~inside], vectors), strict=True):
            value[~inside] = part
        return found[:-1], found[-1]

    def _beyond(self, s: int, x: np.ndarray, vectors: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The answers with the features written out; the last is what was explained."""
        found = [np.empty(len(x)) for _ in range(len(vectors) + 1)]
        for rows in stretches(len(x), self.terms[s].size):
            features = self.terms[s].features(x[rows])
            for value, c in zip(found, vectors, strict=False):
                value[rows] = features @ c
            found[-1][rows] = self.own_quad(s, features)
        return found

    def explained(
        self, mean: np.ndarray, x: np.ndarray, rows: Sequence[ColumnRows], engine: str
    ) -> tuple[np.ndarray, np.ndarray]:
        slices = enumerate(self.request.slices)
        answers = [self.answers(s, x, rows, [mean[place]], engine) for s, place in slices]
        total = np.sum([explained for _, explained in answers], axis=0)
        if self.between:
            total = total - 2.0 * self.pairs(x, rows, engine)
        return np.sum([values[0] for values, _ in answers], axis=0), total

    def pairs(self, x: np.ndarray, rows: Sequence[ColumnRows], engine: str) -> np.ndarray:
        """sum over pairs of phi_s' S_st phi_t, (N,)."""
        inside = np.logical_and.reduce([term.inside(rows) for term in self.terms])
        if inside.all():
            return summed(rows, self.pair_functions, engine)
        total = np.empty(len(x))
        if inside.any():
            some = [ColumnRows(column.request, column.x[inside], column.distinct) for column in rows]
            total[inside] = summed(some, self.pair_functions, engine)
        beyond = np.flatnonzero(~inside)
        for some in stretches(beyond.size, self.request.size):
            features = [term.written(x[beyond[some]]) for term in self.terms]
            total[beyond[some]] = self._written_pairs(features)
        return total

    def _written_pairs(self, features: Features) -> np.ndarray:
        parts = [
            np.einsum("np,np->n", left.product @ block, right.product)
            for (s, t), block in self.between.items()
            if (left := features[s]) is not None and (right := features[t]) is not None
        ]
        return np.sum(parts, axis=0) if parts else np.zeros(())

    def quad(self, features: Features) -> np.ndarray:
        own = [self.own_quad(s, phi.product) for s, phi in enumerate(features) if phi is not None]
        return np.sum(own, axis=0) - 2.0 * self._written_pairs(features)


@dataclass(frozen=True)
class Direct(WrittenCovariance):
    """S written out."""

    taken: tuple[np.ndarray, ...]
    """K_s^-1 - S_ss of every term, (P_s, P_s): what the data took away from the prior."""
    shared: dict[Pair, np.ndarray]
    """S_st for s < t, (P_s, P_t)."""

    @property
    def between(self) -> dict[Pair, np.ndarray]:
        return self.shared

    def explained_function(self, s: int) -> LetterFunction:
        return self.terms[s].square(self.taken[s])

    @property
    def functions(self) -> tuple[list[LetterFunction], list[LetterFunction]]:
        return self._own_functions, self.pair_functions

    def own_quad(self, s: int, features: np.ndarray) -> np.ndarray:
        return np.einsum("np,np->n", features @ self.taken[s], features)

    def _beyond(self, s: int, x: np.ndarray, vectors: Sequence[np.ndarray]) -> list[np.ndarray]:
        term = self.terms[s]
        parts = term.factors[0].beyond(x[:, term.columns[0]]) if len(term.factors) == 1 else None
        if parts is None:
            return super()._beyond(s, x, vectors)
        found = [np.zeros(len(x)) for _ in range(len(vectors) + 1)]
        for rows, weights, Z in parts:
            for value, c in zip(found, vectors, strict=False):
                value[rows] = weights @ (Z.T @ c)
            found[-1][rows] = np.einsum("ni,ij,nj->n", weights, Z.T @ self.taken[s] @ Z, weights)
        return found

    def arrays(self) -> Arrays:
        sizes = self.request.sizes
        for own, size in zip(self.taken, sizes, strict=True):
            yield own, (size, size), "what was explained"
        for (s, t), block in self.shared.items():
            yield block, (sizes[s], sizes[t]), "a covariance between terms"

    def check(self) -> None:
        if self.shared and set(self.shared) != set(self.request.pairs):
            raise ValueError("a covariance for every pair of terms was expected, found some")

    def outer(self, features: Features) -> np.ndarray:
        own = (phi.product @ self.taken[s] @ phi.product.T for s, phi in enumerate(features) if phi is not None)
        total = np.sum(list(own), axis=0)
        for (s, t), block in self.shared.items():
            left, right = features[s], features[t]
            if left is not None and right is not None:
                half = left.product @ block @ right.product.T
                total -= half + half.T
        return total

    def spread(self, v: np.ndarray, own: np.ndarray) -> float:
        parts = [v[place] for place in self.request.slices]
        return float(v @ own) + 2.0 * sum(float(parts[s] @ block @ parts[t]) for (s, t), block in self.shared.items())

    def apply(self, v: np.ndarray) -> np.ndarray:
        return self.matrix() @ v

    def matrix(self) -> np.ndarray:
        """S, (P, P)."""
        places, S = self.request.slices, np.empty((self.request.size, self.request.size))
        for s, place in enumerate(places):
            S[place, place] = self.terms[s].prior_covariance() - self.taken[s]
        for (s, t), block in self.shared.items():
            S[places[s], places[t]], S[places[t], places[s]] = block, block.T
        return S

    def draws(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        return covariance_root(self.matrix()) @ rng.standard_normal((self.request.size, n_samples))


def covariance_root(covariance: np.ndarray) -> np.ndarray:
    """R with R R' = covariance, a factor unless the data leave so little open that rounding hides it."""
    try:
        return factorise(covariance).lower
    except FloatingPointError:
        return square_root(covariance)


def square_root(covariance: np.ndarray) -> np.ndarray:
    """R with R R' = covariance. Rows close to one another leave eigenvalues that rounding may carry below zero."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))
