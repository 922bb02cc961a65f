"""What is known of the coefficients under q: S, their covariance with the intercept held, of one kind or another.

var f = k(x, x) - phi'(K^-1 - S)phi, theory (7.3). A kind says what K^-1 - S, which the data *explained*, comes to at
rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.inference.posterior.term import Rows, TermProcess, Vectors, Written, split, stretches
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

Answers = tuple[Vectors, np.ndarray]

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

    def spread(self, v: np.ndarray, own: np.ndarray) -> float:
        """v'Sv, where S_ss v_s of every term s is known."""
        return float(v @ own)

    def apply(self, v: np.ndarray) -> np.ndarray | None:
        """S v, (P,); None where terms are independent of one another under q because they were taken to be."""
        return None

    @abstractmethod
    def answers(self, s: int, x: np.ndarray, rows: Rows, vectors: Vectors) -> Answers:
        """phi'c for every vector c of one term, and its phi'(K^-1 - S_ss)phi, at every row."""

    def explained(self, mean: np.ndarray, x: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """phi'mean and phi'(K^-1 - S)phi of all terms together at every row."""
        slices = enumerate(self.request.slices)
        answers = [self.alone(s, x, rows, [mean[place]]) for s, place in slices]
        return np.sum([values[0] for values, _ in answers], axis=0), np.sum([own for _, own in answers], axis=0)

    def alone(self, s: int, x: np.ndarray, rows: Rows, vectors: Vectors) -> Answers:
        """The part of a term's answers that adds up over terms."""
        return self.answers(s, x, rows, vectors)

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

    def prior_variance(self, s: int, x: np.ndarray, rows: Rows) -> np.ndarray | float:
        """k(x, x) of one term at every row; one number where it is the same at all."""
        return self.terms[s].prior_variance(x)

    def prior_variances(self, x: np.ndarray, rows: Rows) -> np.ndarray | float:
        """The same of all terms together."""
        return sum(self.prior_variance(s, x, rows) for s in range(len(self.terms)))

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
    def own_quad(self, s: int, weights: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        """phi'(K^-1 - S_ss)phi for features weights Z' of one term, (N,)."""

    @cached_property
    def _own_functions(self) -> list[LetterFunction]:
        return [self.explained_function(s) for s in range(len(self.terms))]

    @cached_property
    def pair_functions(self) -> list[LetterFunction]:
        """Functions whose sum is that of phi_s'S_st phi_t over pairs of terms."""
        term_pairs = {(s, t): TermPair(self.request.terms[s], self.request.terms[t]) for s, t in self.between}
        raw = {(s, t): self.terms[t].to_raw(self.terms[s].to_raw(block).T).T for (s, t), block in self.between.items()}
        return pair_functions(term_pairs, raw)

    def answers(self, s: int, x: np.ndarray, rows: Rows, vectors: Vectors) -> Answers:
        term = self.terms[s]
        functions = [*(term.function(c) for c in vectors), self._own_functions[s]]

        def beyond(x: np.ndarray) -> np.ndarray:
            found = np.zeros((len(functions), len(x)))
            for some, weights, Z in term.beyond(x):
                for value, c in zip(found, vectors, strict=False):
                    value[some] = weights @ (c if Z is None else Z.T @ c)
                found[-1, some] = self.own_quad(s, weights, Z)
            return found

        *values, explained = split(
            x, rows, term.numbers, term.inside(rows), lambda some: synthesise(some, functions), beyond
        )
        return values, explained

    def explained(self, mean: np.ndarray, x: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        values, total = super().explained(mean, x, rows)
        return values, total - 2.0 * self.pairs(x, rows) if self.between else total

    def pairs(self, x: np.ndarray, rows: Rows) -> np.ndarray:
        """sum over pairs of phi_s' S_st phi_t, (N,)."""
        inside = np.logical_and.reduce([term.inside(rows) for term in self.terms])

        def beyond(x: np.ndarray) -> np.ndarray:
            total = np.empty((1, len(x)))
            for some in stretches(len(x), self.request.size):
                total[0, some] = self._written_pairs([term.written(x[some]) for term in self.terms])
            return total

        return split(x, rows, range(len(rows)), inside, lambda some: [summed(some, self.pair_functions)], beyond)[0]

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

    def own_quad(self, s: int, weights: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        taken = self.taken[s] if Z is None else Z.T @ self.taken[s] @ Z
        return np.einsum("np,np->n", weights @ taken, weights)

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
        return super().spread(v, own) + 2.0 * sum(
            float(parts[s] @ block @ parts[t]) for (s, t), block in self.shared.items()
        )

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


@dataclass(frozen=True)
class Averaged(Direct):
    """S over draws of coefficients and hyperparameters, given the constant, and the draws that have it.

    The first two moments of f over draws are those of one Gaussian process, theory (12.2); what is not Gaussian about f
    is answered by the draws themselves. Beyond the domain, features go on as their tails at the median of the
    hyperparameters have it.
    """

    carried: tuple[np.ndarray, ...]
    """E[K^-1] of every term, (P_s, P_s)."""
    coefficients: np.ndarray
    """Draws of c, (S, P)."""
    intercepts: np.ndarray
    """How far the constant is from its average in every draw, (S,)."""
    varying: tuple[np.ndarray, ...] = ()
    """E of the weights of k(x, x) in its functions, of every term; without entries where it is the same everywhere."""

    @property
    def count(self) -> int:
        """Draws that are kept."""
        return len(self.coefficients)

    def arrays(self) -> Arrays:
        yield from super().arrays()
        for own, size in zip(self.carried, self.request.sizes, strict=True):
            yield own, (size, size), "a covariance of the prior"
        for own, term in zip(self.varying, self.terms, strict=False):
            yield own, term.variance_shape if own.size else (0,), "prior variances"
        yield self.coefficients, (self.count, self.request.size), "draws of the coefficients"
        yield self.intercepts, (self.count,), "draws of the constant"

    def check(self) -> None:
        super().check()
        if not self.count:
            raise ValueError("draws were expected, found none")
        if len(self.varying) not in (0, len(self.terms)):
            raise ValueError("prior variances of every term were expected, found some")

    def prior_variance(self, s: int, x: np.ndarray, rows: Rows) -> np.ndarray | float:
        """On average over draws."""
        if not self.varying or not self.varying[s].size:
            return super().prior_variance(s, x, rows)
        term, weights = self.terms[s], self.varying[s]
        own = [self._varying_functions[s]]
        return split(
            x, rows, term.numbers, term.inside(rows), lambda some: synthesise(some, own),
            lambda far: term.weighted_variance(weights, far)[None],
        )[0]  # fmt: skip

    @cached_property
    def _varying_functions(self) -> dict[int, LetterFunction]:
        """E[k(x, x)] of the terms in which it varies."""
        return {s: self.terms[s].weighted_letters(own) for s, own in enumerate(self.varying) if own.size}

    @cached_property
    def _rest(self) -> Direct:
        return Direct(self.terms, self.carried, {})

    def rest(self, x: np.ndarray) -> np.ndarray:
        """Variance of the part of f that features do not carry, on average over draws, (N,)."""
        rows = columns_of(self.request, x)
        _, explained = self._rest.explained(np.zeros(self.request.size), x, rows)
        # the difference is a variance; only rounding can carry it below zero
        return np.maximum(self.prior_variances(x, rows) - explained, 0.0)

    def values(self, x: np.ndarray, some: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """c0 + phi'c of some of the draws at every row, (N, S), and the variance of the rest, (N,)."""
        c = self.coefficients[some].T
        values = np.empty((len(x), c.shape[1]))
        for rows in stretches(len(x), self.request.size):
            values[rows] = np.concatenate([term.features(x[rows]) for term in self.terms], axis=1) @ c
        return values + self.intercepts[some], self.rest(x)


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
