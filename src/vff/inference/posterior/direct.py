"""S written out: of one setting of the hyperparameters, or over draws of them."""

from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.inference.posterior.covariance import Arrays, Features, WrittenCovariance, columns_of
from vff.inference.posterior.pure import Part, PureEffect
from vff.inference.posterior.term import Rows, split, stretches
from vff.linalg import Kronecker, factorise
from vff.moments import LetterFunction, Pair, synthesise

_LEAST = 1e-300


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

    def pure_function(self, part: Part) -> LetterFunction:
        return part.process.square(part.reduced(part.reduced(self.taken[part.term]).T))

    @property
    def functions(self) -> tuple[list[LetterFunction], list[LetterFunction]]:
        return self._own_functions, self.pair_functions

    def coefficient_variances(self, s: int) -> np.ndarray:
        return self.terms[s].prior_variances() - np.diagonal(self.taken[s])

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

    def product(self, v: np.ndarray) -> np.ndarray:
        parts = [v[place] for place in self.request.slices]
        found = [self._prior_times(s, own) - self.taken[s] @ own for s, own in enumerate(parts)]
        for (s, t), block in self.shared.items():
            found[s], found[t] = found[s] + block @ parts[t], found[t] + block.T @ parts[s]
        return np.concatenate(found)

    def _prior_times(self, s: int, v: np.ndarray) -> np.ndarray:
        """K^-1 v of one term."""
        return self.terms[s].variance * Kronecker(tuple(factor.K for factor in self.terms[s].factors)).solve(v)

    def _prior_block(self, s: int) -> np.ndarray:
        """K^-1 of one term, (P_s, P_s)."""
        return self.terms[s].prior_covariance()

    def matrix(self) -> np.ndarray:
        """S, (P, P)."""
        places, S = self.request.slices, np.empty((self.request.size, self.request.size))
        for s, place in enumerate(places):
            S[place, place] = self._prior_block(s) - self.taken[s]
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

    def kept(self) -> tuple[np.ndarray, np.ndarray]:
        return self.coefficients, self.intercepts

    def coefficient_variances(self, s: int) -> np.ndarray:
        return np.diagonal(self.carried[s] - self.taken[s])

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

    def _prior_times(self, s: int, v: np.ndarray) -> np.ndarray:
        return self.carried[s] @ v

    def _prior_block(self, s: int) -> np.ndarray:
        return self.carried[s]

    @cached_property
    def _at_median(self) -> Direct:
        """K^-1 at the median of the hyperparameters."""
        return Direct(self.terms, tuple(term.prior_covariance() for term in self.terms), {})

    def prior_joint(self, x: np.ndarray, features: Features) -> np.ndarray:
        """phi'E[K^-1]phi, and what features do not carry, of which the median says how rows share it."""
        rest, own = super().prior_joint(x, features) - self._at_median.outer(features), self.rest(x)
        scale = np.sqrt(np.minimum(own / np.maximum(np.diagonal(rest), _LEAST), 1.0))
        rest = scale[:, None] * rest * scale
        np.fill_diagonal(rest, own)
        return self._rest.outer(features) + rest

    def prior_slopes(self, x: np.ndarray, along: Container[int], features: Features) -> np.ndarray:
        """The same of slopes."""
        rest = super().prior_slopes(x, along, features) - self._at_median.quad(features)
        return self._rest.quad(features) + np.maximum(rest, 0.0)

    def pure_prior(self, effect: PureEffect, x: np.ndarray, rows: Rows) -> np.ndarray:
        """On average over draws; what features do not carry, as it is at the median of the hyperparameters."""
        _, carried = self._rest.pure(effect, x, rows, [])
        return carried + np.sum([part.unseen(x, rows) for part in effect.parts], axis=0)

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
