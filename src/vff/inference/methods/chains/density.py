"""The log-density that chains sample, theory (12.1), whitened, in JAX.

Hyperparameters are sampled by their logarithms, an intercept as it is. Numbers of the data are arguments and the
structure is what is compiled: a second fit of the same shape compiles nothing. A chain moves in coordinates z, in which
the posterior is about as wide as one in every direction: (hyperparameters, v) = centre + (root z, scale z). Where
features are few, v is also measured from the Gaussian that the sites of a fit make of it (``transported``): rows that
say much then no longer tie v to the hyperparameters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag, solve_triangular

from vff.inference.methods.chains.compiling import compiled
from vff.inference.methods.chains.hyper import Parameter
from vff.inference.methods.chains.points import Places, RowData, TermShape, maps_of, places_of, roots_of
from vff.inference.methods.structured.bound import expected_log_density
from vff.likelihoods import AbstractLikelihood
from vff.priors import AbstractPrior

MOST_FACTORED = 500  # white variables, beyond which a factor of their covariance at every step takes too long
OVERDISPERSED = 2.0  # starts of hyperparameters, in units of the posterior's width as far as it is known


@dataclass(frozen=True)
class Entry:
    """One hyperparameter: t is the logarithm of (value - lower) / unit, or (value - lower) / unit itself where real."""

    prior: AbstractPrior | None
    """Its form; None where the hyperparameter is held."""
    real: bool = False

    def log_density(self, t: Any, lower: Any, unit: Any, numbers: tuple[Any, ...]) -> Any:
        """Of t, up to a constant; the Jacobian of the logarithm is in it."""
        assert self.prior is not None
        if self.real:
            return self.prior.formula(lower + unit * t, *numbers)
        return self.prior.formula(lower + unit * jnp.exp(t), *numbers) + t


def entries_of(parameters: Sequence[Parameter]) -> tuple[Entry, ...]:
    """What compiled code depends on of them."""
    return tuple(Entry(None if own.prior is None else own.prior.form, own.real) for own in parameters)


class Hyper(NamedTuple):
    """Numbers of the hyperparameters, in the order of the entries."""

    held: Any
    """t of every entry, (L,): where it is held, and where a chain starts from elsewhere."""
    lower: Any
    unit: Any
    numbers: tuple[tuple[Any, ...], ...]
    """Of the priors of those that are sampled."""

    @classmethod
    def of(cls, parameters: Sequence[Parameter]) -> "Hyper":
        """From where chains begin."""
        held, lower, unit = (np.array([getattr(own, name) for own in parameters]) for name in ("t", "lower", "unit"))
        return cls(held, lower, unit, tuple(own.prior.numbers for own in parameters if own.prior is not None))


def log_prior(entries: Sequence[Entry], places: np.ndarray, numbers: Sequence[Any], hyper: Hyper, t: Any) -> Any:
    """Of the hyperparameters in these places, whose priors have these numbers."""
    total = 0.0
    for place, own in zip(places.tolist(), numbers, strict=True):
        total = total + entries[place].log_density(t[place], hyper.lower[place], hyper.unit[place], own)
    return total


class Sites(NamedTuple):
    """Gaussian factors that stand for the rows, as a fit left them: precision and pull of the coefficients."""

    G: Any
    """(P + 1, P + 1): of the coefficients of all terms, and of the constant, measured from its prior mean."""
    b: Any


class Data(NamedTuple):
    """All numbers of a target."""

    rows: RowData
    hyper: Hyper
    centre: Any
    """(K + S,)."""
    scale: Any
    """Of the white variables, (S,)."""
    root: Any
    """Of the hyperparameters, (K, K)."""
    sites: Sites | None = None


class _Observed(NamedTuple):
    y: Any
    extra: Any
    w: Any
    psi: Any


class Function(NamedTuple):
    """What a chain's position says: hyperparameters, the constant, and coefficients of every term."""

    t: Any
    """(L,), with the constant in its place."""
    coefficients: tuple[Any, ...]
    """Of the functions at rows, with the variance of the term in them, a tensor each."""
    white: Any
    """v, (S,)."""


class _Position(NamedTuple):
    function: Function
    roots: list[tuple[Any, ...]]
    log_jacobian: Any
    """log |dv / dz|, up to a constant."""


@dataclass(frozen=True)
class Target:
    """The structure of a log-density.

    Entries: of every term its hyperparameters; the constant; psi. White variables: of every term, then, where
    the constant is sampled, that of the constant, whose prior is normal.
    """

    terms: tuple[TermShape, ...]
    likelihood: AbstractLikelihood
    """Its form."""
    nodes: int
    entries: tuple[Entry, ...]
    transported: bool
    """Whether positions are measured from the Gaussian that sites make of v, at every setting anew."""

    @cached_property
    def intercept(self) -> int:
        """Entry of the constant; those of psi follow."""
        return sum(1 + sum(axis.n_values for axis in term.axes) for term in self.terms)

    @property
    def centred(self) -> bool:
        """Whether the constant is sampled."""
        return self.entries[self.intercept].prior is not None

    @cached_property
    def free(self) -> np.ndarray:
        """Places of the entries that are sampled by their own coordinates, (K,): all but the constant."""
        return np.array([number for number in self._sampled if number != self.intercept], int)

    @cached_property
    def _sampled(self) -> tuple[int, ...]:
        """Places of all entries that are sampled."""
        return tuple(number for number, entry in enumerate(self.entries) if entry.prior is not None)

    @cached_property
    def white(self) -> tuple[tuple[int, int], ...]:
        """Where the white variables of every term begin and end."""
        ends = np.cumsum([0, *(int(np.prod(term.white_shape)) for term in self.terms)]).tolist()
        return tuple(pairwise(ends))

    @property
    def white_size(self) -> int:
        """S."""
        return self.white[-1][1] + int(self.centred)

    @cached_property
    def places(self) -> Places:
        """Entries of the hyperparameters, by term."""
        return places_of(self.terms)

    @property
    def n_hyper(self) -> int:
        """Coordinates that no Gaussian is known for: those of the hyperparameters."""
        return self.free.size

    @property
    def size(self) -> int:
        """Length of a position."""
        return self.free.size + self.white_size

    def intercept_prior(self, hyper: Hyper) -> tuple[Any, Any]:
        """Mean and standard deviation of the constant, in the units of t."""
        numbers = hyper.numbers[self._sampled.index(self.intercept)]
        lower, unit = hyper.lower[self.intercept], hyper.unit[self.intercept]
        return (numbers[0] - lower) / unit, numbers[1] / unit

    def at(self, data: Data, z: Any) -> _Position:
        """What a position says."""
        K = self.free.size
        white = data.centre[K:] + data.scale * z[K:]
        t = jnp.asarray(data.hyper.held).at[self.free].set(data.centre[:K] + data.root @ z[:K])
        roots = roots_of(self.terms, self.places, t)
        v, tensors, log_jacobian = self._transport(data, t, roots, white) if self.transported else (white, None, 0.0)
        if self.centred:
            mean, sd = self.intercept_prior(data.hyper)
            t = t.at[self.intercept].set(mean + sd * v[-1])
        if tensors is None:
            tensors = [
                jnp.exp(0.5 * t[places.variance]) * term.coefficients(own, v[slice(*place)])
                for term, places, place, own in zip(self.terms, self.places, self.white, roots, strict=True)
            ]
        return _Position(Function(t, tuple(tensors), v), roots, log_jacobian)

    def function(self, data: Data, z: Any) -> Function:
        """Hyperparameters and coefficients at a position."""
        return self.at(data, z).function

    def _transport(self, data: Data, t: Any, roots: Any, z: Any) -> tuple[Any, list[Any], Any]:
        """v = A^-1 B'b + A^-T/2 z with A = I + B'GB, B the map from v to coefficients; and the coefficients of v.

        Were the likelihood those Gaussian factors, z would be white and independent of the hyperparameters.
        """
        assert data.sites is not None
        blocks = maps_of(self.terms, self.places, t, roots)
        P = sum(len(block) for block in blocks)
        G, b = data.sites.G[: P + self.centred, : P + self.centred], data.sites.b[: P + self.centred]
        if self.centred:
            blocks.append(jnp.reshape(self.intercept_prior(data.hyper)[1], (1, 1)))
        B = block_diag(*blocks)
        L = jnp.linalg.cholesky(jnp.eye(B.shape[1]) + B.T @ G @ B)
        v = solve_triangular(L, solve_triangular(L, B.T @ b, lower=True) + z, lower=True, trans=1)
        c = B @ v
        ends = np.cumsum([0, *(int(np.prod(term.shape)) for term in self.terms)]).tolist()
        tensors = [c[slice(*place)].reshape(term.shape) for place, term in zip(pairwise(ends), self.terms, strict=True)]
        return v, tensors, -jnp.sum(jnp.log(jnp.diagonal(L)))

    def marginals(self, data: Data, position: _Position) -> tuple[Any, Any]:
        """Mean and variance of f at every row, given v."""
        t, tensors, _ = position.function
        mean, rest = t[self.intercept], 0.0
        parts = zip(self.terms, data.rows.terms, position.roots, tensors, self.places, strict=True)
        for term, points, own, c, places in parts:
            values, explained = term.at_points(points, own, c)
            mean = mean + term.at_rows(points, values)
            rest = rest + term.at_rows(points, jnp.exp(t[places.variance]) * (1.0 - explained))
        # the difference is a variance; only rounding can carry it below zero
        return mean, jnp.maximum(rest, 0.0)

    def log_likelihood(self, data: Data, position: _Position) -> Any:
        """sum_n w_n E log p(y_n | f_n)."""
        rows = data.rows
        observed = _Observed(rows.y, rows.extra, rows.w, position.function.t[self.intercept + 1 :])
        expected = expected_log_density(self.likelihood, self.nodes)
        return expected(observed, *self.marginals(data, position))

    def __call__(self, data: Data, z: Any) -> Any:
        """The log-density at z, up to a constant."""
        position = self.at(data, z)
        t, _, v = position.function
        value = self.log_likelihood(data, position) - 0.5 * (v @ v) + position.log_jacobian
        numbers = [own for place, own in zip(self._sampled, data.hyper.numbers, strict=True) if place != self.intercept]
        value = value + log_prior(self.entries, self.free, numbers, data.hyper, t)
        return jnp.where(jnp.isfinite(value), value, -jnp.inf)


LogDensity = Callable[[Any, Any], Any]
"""(data, position) -> log-density; hashable, since it is what compiled code is remembered by."""


@lru_cache(maxsize=32)
def slope_of(target: LogDensity) -> Callable[..., Any]:
    """(data, position) -> log-density and its gradient, compiled."""
    return compiled(jax.value_and_grad(target, argnums=1))
