"""S of a model that is too large for a factor of A, exact where that is cheap and probed where it is not.

A^-1 = W'W + W'(A~^-1 - I)W with the preconditioner W of ``iterative``. The first part has letters of its own. Variances
of a few rows, and covariances, are solved for; for many rows the second part is an average over random signs z of
(phi'W'(A~^-1 z - z)) (phi'W'z): small, and known with a standard error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from vff.basis import Basis
from vff.inference.posterior.covariance import Answers, Arrays, Features, WrittenCovariance, columns_of
from vff.inference.posterior.pure import Keep, Part, PureEffect
from vff.inference.posterior.term import Rows, TermProcess, Vectors, stretches
from vff.inference.solvers.iterative import IterativeLinearGaussian
from vff.inference.solvers.whitening import WhitenedTerm
from vff.moments import (
    LetterFunction,
    Pair,
    contract,
    gram_columns_adjoint,
)

FEW_ROWS = 64  # whose variances are solved for one by one
_MOST_JOINT = 2000
_AT_ONCE = 128
_MOST_PROBES = 2**12  # that a file may have
_POOR_VARIANCE = 0.01  # relative standard error that is worth a note


@dataclass(frozen=True)
class Probed(WrittenCovariance):
    """S = A^-1 behind a form that never writes it."""

    form: IterativeLinearGaussian
    away: np.ndarray
    """W'(A~^-1 z - z), (P, S)."""
    signs: np.ndarray
    """W'z, (P, S)."""

    @classmethod
    def of(cls, form: IterativeLinearGaussian, terms: tuple[TermProcess, ...]) -> "Probed":
        """With the probes that the form has."""
        return cls(terms, form, form.to_prior(form.probed.X - form.signs), form.to_prior(form.signs))

    def arrays(self) -> Arrays:
        P, form = self.request.size, self.form
        for probes in (self.away, self.signs):
            yield probes, (P, form.probes), "probes"
        yield form.b, (P,), "projections"
        for white, own in zip(form.terms, self.request.terms, strict=True):
            yield white.weights, tuple(len(F) for F in white.features), "weights of the nodes"
            for F, G, size in zip(white.features, white.by_column, own.shape, strict=True):
                yield F, (len(F), size), "functions at the nodes"
                yield G, (size, size), "a Gram matrix"
        for (s, t), block in form.blocks.items():
            yield block, (self.request.sizes[s], self.request.sizes[t]), "sums between terms"

    def check(self) -> None:
        form = self.form
        if not 1 <= form.probes <= _MOST_PROBES:
            raise ValueError(f"a number of probes was expected, found {form.probes}")
        if not form.noise > 0.0 or not all(white.scale > 0.0 for white in form.terms):
            raise ValueError("a positive noise variance and positive scales were expected, found others")
        if any(white.shape != own.shape for white, own in zip(form.terms, self.request.terms, strict=True)):
            raise ValueError("every term in the solver was expected, found others")
        if form.blocks and set(form.blocks) != set(self.request.pairs):
            raise ValueError("sums between all terms were expected, found some")

    def _white(self, s: int) -> WhitenedTerm:
        return self.form.terms[s]

    def _gain(self, s: int) -> np.ndarray:
        """K^-1 - U D^-1 U' in the coordinates of U, where it is diagonal; an axis per factor."""
        return 1.0 / self._white(s).scale - 1.0 / self._white(s).D

    @cached_property
    def _excesses(self) -> list[np.ndarray]:
        """What W'W has in the corner beside U D^-1 U', in the coordinates of U, of every term."""
        return [self.form.corner_excess(s, s) for s in range(len(self.terms))]

    def explained_function(self, s: int) -> LetterFunction:
        """phi'(K^-1 - W'W)phi; the probes' part is not in it."""
        term = self.terms[s]
        bases = [factor.basis for factor in term.factors]
        letters = self._letters(s, bases, self._raw(s), self._raw(s))
        return LetterFunction.of(term.columns, [basis.double for basis in bases], letters, term.domains)

    def pure_function(self, part: Part) -> LetterFunction:
        """The same of a part of an effect."""
        s, own = part.term, part.process
        bases = [factor.basis if d in part.over else None for d, factor in enumerate(self.terms[s].factors)]
        kept = [self._raw(s, part, monomial) for monomial in part.monomials]
        letters = np.sum([self._letters(s, bases, one, other) for one in kept for other in kept], axis=0)
        double = [factor.basis.double for factor in own.factors]
        return LetterFunction.of(own.columns, double, letters.reshape([one.size for one in double]), own.domains)

    def _raw(self, s: int, part: Part | None = None, monomial: Sequence[Keep] = ()) -> list[np.ndarray]:
        """What is kept of U by factor, in coefficients of what is summed over rows, (P_d, R_d); averages, (1, R_d)."""
        found = []
        for d, (T, U) in enumerate(zip(self.terms[s].transform.factors, self._white(s).U, strict=True)):
            kept = U if part is None else part.factor_map(d, monomial[d], U)
            found.append(T.transpose(kept) if part is None or d in part.over else kept)
        return found

    def _letters(
        self, s: int, bases: Sequence[Basis | None], one: Sequence[np.ndarray], other: Sequence[np.ndarray]
    ) -> np.ndarray:
        """K^-1 - W'W between functions of two kinds in double letters, an axis per factor; of averages, one number."""
        squares = [_products(*own) for own in zip(bases, one, other, strict=True)]
        return contract(self._gain(s), squares) - self._corner_letters(s, bases, one, other)

    def _corner_letters(
        self, s: int, bases: Sequence[Basis | None], one: Sequence[np.ndarray], other: Sequence[np.ndarray]
    ) -> np.ndarray:
        sizes, D = self._white(s).corner, len(bases)
        order = [axis for d in range(D) for axis in (d, D + d)]
        tensor = self._excesses[s].reshape(*sizes, *sizes).transpose(order).reshape([size**2 for size in sizes])
        maps = []
        for basis, U, V, size in zip(bases, one, other, sizes, strict=True):
            left, right = np.repeat(np.arange(size), size), np.tile(np.arange(size), size)
            maps.append(_products(basis, U[:, left], V[:, right]))
        return contract(tensor, maps)

    @property
    def between(self) -> dict[Pair, np.ndarray]:
        return self._between

    @cached_property
    def _between(self) -> dict[Pair, np.ndarray]:
        """W'W between terms, in the coordinates of the prior, (P_s, P_t)."""
        pairs = self.request.pairs
        corners = [self._corner_functions(s) for s in range(len(self.terms))] if pairs else []
        return {(s, t): corners[s] @ self.form.corner_excess(s, t) @ corners[t].T for s, t in pairs}

    def _corner_functions(self, s: int) -> np.ndarray:
        """The corner's functions in the coordinates of the prior, (P, J)."""
        white = self._white(s)
        return reduce(np.kron, [columns[:, :size] for columns, size in zip(white.U, white.corner, strict=True)])

    def own_quad(self, s: int, weights: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        white, features = self._white(s), weights if Z is None else weights @ Z.T
        rotated = np.asarray(white.rotated(features.T)).T
        corner = rotated[:, white.corner_places]
        total = rotated**2 @ self._gain(s).reshape(-1)
        return total - np.einsum("np,np->n", corner @ self._excesses[s], corner)

    def alone(self, s: int, x: np.ndarray, rows: Rows, vectors: Vectors) -> Answers:
        return super().answers(s, x, rows, vectors)  # probes see all terms together

    def answers(self, s: int, x: np.ndarray, rows: Rows, vectors: Vectors) -> Answers:
        values, explained = self.alone(s, x, rows, vectors)
        return values, explained - np.mean(np.multiply(*self._probe_values(s, x, rows)), axis=0)

    def pure(self, effect: PureEffect, x: np.ndarray, rows: Rows, vectors: Vectors) -> Answers:
        probes = [*self.away.T, *self.signs.T]
        values, explained = super().pure(effect, x, rows, [*vectors, *probes])
        away, signs = np.reshape(values[len(vectors) :], (2, -1, len(x)))
        return values[: len(vectors)], explained - np.mean(away * signs, axis=0)

    def explained(self, mean: np.ndarray, x: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        if len(x) <= FEW_ROWS:
            features = [term.written(x) for term in self.terms]
            every = np.concatenate([own.product for own in features], axis=1)
            return every @ mean, np.diagonal(self.outer(features))
        values, total = super().explained(mean, x, rows)
        for some in stretches(len(x), 2 * self.form.probes):
            total[some] -= np.mean(np.multiply(*self.probe_values(x[some])), axis=0)
        return values, total

    def probe_values(self, x: np.ndarray) -> np.ndarray:
        """phi'W'(A~^-1 z - z) and phi'W'z of all terms together, (2, S, N)."""
        rows = columns_of(self.request, x)
        return np.sum([self._probe_values(s, x, rows) for s in range(len(self.terms))], axis=0)

    def _probe_values(self, s: int, x: np.ndarray, rows: Rows) -> np.ndarray:
        """The same of one term."""
        place = self.request.slices[s]
        probes = np.concatenate([self.away[place], self.signs[place]], axis=1)
        return np.reshape(self.terms[s].linear(x, rows, list(probes.T)), (2, -1, len(x)))

    def outer(self, features: Features) -> np.ndarray:
        """By solutions of their own."""
        N = len(next(own for own in features if own is not None).product)
        self._check_few(N)
        total, parts = np.zeros((N, N)), []
        for s, own in enumerate(features):
            phi = np.zeros((N, self.terms[s].size)) if own is None else own.product
            parts.append(phi)
            if own is not None:
                total += phi @ self._white(s).prior.solve(phi.T)
        every = np.concatenate(parts, axis=1)
        for start in range(0, N, _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            total[:, some] -= every @ self.form.solve(every[some].T)
        return 0.5 * (total + total.T)

    def quad(self, features: Features) -> np.ndarray:
        return np.diagonal(self.outer(features))

    def _check_few(self, N: int) -> None:
        if N > _MOST_JOINT:
            raise ValueError(
                f"a joint distribution over {N} rows of a model with {self.request.size} features needs a "
                f"solution per row; ask for at most {_MOST_JOINT} rows at a time, or use predict_f(X) for every row by "
                "itself"
            )

    def spread(self, v: np.ndarray, own: np.ndarray) -> float:
        return float(v @ self.apply(v))

    def apply(self, v: np.ndarray) -> np.ndarray:
        return self.form.solve(v[:, None])[:, 0]

    def times(self, v: np.ndarray) -> np.ndarray:
        """S_ss v_s of every term s as the probes have it, (P,)."""
        found = []
        for s, place in enumerate(self.request.slices):
            own, X, Z = v[place], self.away[place], self.signs[place]
            found.append(self._exact_times(s, own) + 0.5 * (X @ (Z.T @ own) + Z @ (X.T @ own)) / self.form.probes)
        return np.concatenate(found)

    def _exact_times(self, s: int, v: np.ndarray) -> np.ndarray:
        """W'W v of one term."""
        white = self._white(s)
        rotated = white.rotated(v[:, None])[:, 0]
        weighed = rotated / white.D.reshape(-1)
        weighed[white.corner_places] += self._excesses[s] @ rotated[white.corner_places]
        return white.turned_back(weighed[:, None])[:, 0]

    def product(self, v: np.ndarray) -> np.ndarray:
        parts = [v[place] for place in self.request.slices]
        found = [self._exact_times(s, own) for s, own in enumerate(parts)]
        for (s, t), block in self.between.items():
            found[s], found[t] = found[s] + block @ parts[t], found[t] + block.T @ parts[s]
        X, Z = self.away, self.signs
        return np.concatenate(found) + 0.5 * (X @ (Z.T @ v) + Z @ (X.T @ v)) / self.form.probes

    @cached_property
    def relative_error(self) -> float:
        """Standard error of the latent variance over the probes, relative to it; 95 % of rows inside stay below."""
        rng, columns = np.random.default_rng(0), self.request.columns
        x = np.stack([column.domain.draw(rng, 200, column.basis.size) for column in columns], axis=1)
        away, signs = self.probe_values(x)
        error = np.std(away * signs, axis=0, ddof=1) / np.sqrt(self.form.probes)
        rows = columns_of(self.request, x)
        _, explained = self.explained(self.form.mean, x, rows)
        variance = self.prior_variances(x, rows) - explained + self._of_intercept(x)
        return float(np.quantile(error / np.maximum(variance, 1e-300), 0.95))

    def _of_intercept(self, x: np.ndarray) -> np.ndarray:
        """What the constant adds to the variance."""
        known = self.form.intercept_posterior
        if known is None:
            return np.zeros(len(x))
        parts = zip(self.terms, self.request.slices, strict=True)
        follows = 1.0 - np.sum([term.features(x) @ known.answer[own] for term, own in parts], axis=0)
        return known.variance * follows**2

    def notes(self) -> tuple[str, ...]:
        notes = []
        if not self.form.converged:
            notes.append(
                "the iterations for so many features stopped at their limit before they converged: mean, bound and "
                "variances are rough; use fewer frequencies, or a larger noise_variance"
            )
        if self.relative_error > _POOR_VARIANCE:
            notes.append(
                f"variances of the function at more than {FEW_ROWS} rows at a time carry a standard error of about "
                f"{100 * self.relative_error:.2g} %; ask for fewer rows at a time, which are solved for exactly, or "
                "use fewer frequencies"
            )
        return tuple(notes)


def _products(basis: Basis | None, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(phi'u_r)(phi'v_r) in the double letters of a column, (Q, R); without a basis, of numbers, (1, R)."""
    return U * V if basis is None else gram_columns_adjoint(basis, U, V)
