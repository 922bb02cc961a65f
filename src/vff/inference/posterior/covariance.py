"""What is known of the coefficients under q: S, their covariance with the intercept held, of one kind or another.

var f = k(x, x) - phi'(K^-1 - S)phi, theory (7.3). A kind says what K^-1 - S, which the data *explained*, comes to at
rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from vff.inference.posterior.pure import Part, PureEffect
from vff.inference.posterior.term import Rows, TermProcess, Vectors, Written, split, stretches
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

    def prior_joint(self, x: np.ndarray, features: Features) -> np.ndarray:
        """Of f a priori between all rows, which have these features, (N, N)."""
        return np.sum([term.covariance(x) for term in self.terms], axis=0)

    def prior_slopes(self, x: np.ndarray, along: Container[int], features: Features) -> np.ndarray:
        """Variance a priori of the derivative of f at every row, which has these features, (N,)."""
        own = (term.slope_variance(x, along) for term in self.terms if term.reads(along))
        return np.broadcast_to(sum(own), len(x))

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

    @abstractmethod
    def pure(self, effect: PureEffect, x: np.ndarray, rows: Rows, vectors: Vectors) -> Answers:
        """The effect of every vector (P,) of coefficients, and with w in place of phi, w'(K^-1 - S)w, at every row."""

    def pure_prior(self, effect: PureEffect, x: np.ndarray, rows: Rows) -> np.ndarray:
        """The variance of an effect without data, (N,)."""
        return np.sum([part.prior(x, rows) for part in effect.parts], axis=0)

    @abstractmethod
    def product(self, v: np.ndarray) -> np.ndarray:
        """S v, (P,), as variances at rows have it."""

    @property
    def functions(self) -> tuple[list[LetterFunction], list[LetterFunction]] | None:
        """phi'(K^-1 - S_ss)phi of every term in letters, and functions that sum to phi_s'S_st phi_t over all pairs.

        None where rows are asked in another way.
        """
        return None

    def coefficient_variances(self, s: int) -> np.ndarray:
        """S_ii of every coefficient of one term, (P,), with the intercept held."""
        term, found = self.terms[s], []
        shape = term.transform.shape
        for some in stretches(term.size, term.size):
            places = np.unravel_index(np.arange(some.start, some.stop), shape)
            unit = Written([np.eye(size)[place] for size, place in zip(shape, places, strict=True)])
            found.append(self.quad([unit if t == s else None for t in range(len(self.terms))]))
        return term.prior_variances() - np.concatenate(found)

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

    def kept(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Draws of c, (S, P), and of the constant less its average, (S,); None where it is made of none."""
        return None

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

    @abstractmethod
    def pure_function(self, part: Part) -> LetterFunction:
        """w'(K^-1 - S_ss)w of a part of an effect in the double letters of its columns."""

    @cached_property
    def _pure_functions(self) -> dict[PureEffect, list[LetterFunction]]:
        """Functions whose sum is w'(K^-1 - S)w, by effect, as they are asked for."""
        return {}

    def _functions_of(self, effect: PureEffect) -> list[LetterFunction]:
        if effect not in self._pure_functions:
            numbered = list(enumerate(effect.parts))
            pairs = {(i, j): (one, other) for i, one in numbered for j, other in numbered if i < j}
            blocks = {key: self._reduced(*pair) for key, pair in pairs.items() if self.between}
            term_pairs = {key: TermPair(*(part.process.request for part in pairs[key])) for key in blocks}
            own = [self.pure_function(part) for part in effect.parts]
            self._pure_functions[effect] = [*own, *pair_functions(term_pairs, blocks)]
        return self._pure_functions[effect]

    def _reduced(self, one: Part, other: Part) -> np.ndarray:
        """-2 times S between two parts, in coefficients of what is summed over rows."""
        s, t = one.term, other.term
        block = self.between[s, t] if s < t else self.between[t, s].T
        half = one.process.to_raw(one.reduced(block))
        return -2.0 * other.process.to_raw(other.reduced(half.T)).T

    def pure(self, effect: PureEffect, x: np.ndarray, rows: Rows, vectors: Vectors) -> Answers:
        parts, places = effect.parts, self.request.slices
        quadratic = self._functions_of(effect)
        linear = [part.process.function(part.reduced(v[places[part.term]])) for v in vectors for part in parts]

        def within(some: Rows) -> Vectors:
            values = synthesise(some, [*linear, *quadratic])
            ends = [*range(0, len(linear) + 1, len(parts)), len(values)]
            return [np.sum(values[i:j], axis=0) for i, j in pairwise(ends)]

        def beyond(x: np.ndarray) -> np.ndarray:
            found = np.zeros((len(vectors) + 1, len(x)))
            for some in stretches(len(x), self.request.size):
                written = {part.term: part.written(x[some]) for part in parts}
                for value, v in zip(found, vectors, strict=False):
                    value[some] = np.sum([w @ v[places[t]] for t, w in written.items()], axis=0)
                found[-1, some] = np.sum([self.own_quad(t, w) for t, w in written.items()], axis=0)
                for (s, t), block in self.between.items():
                    if s in written and t in written:
                        found[-1, some] -= 2.0 * np.einsum("np,np->n", written[s] @ block, written[t])
            return found

        inside = np.logical_and.reduce([part.process.inside(rows) for part in parts])
        columns = {c for part in parts for c in part.process.numbers}
        *values, explained = split(x, rows, columns, inside, within, beyond)
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
