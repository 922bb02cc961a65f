"""The log-densities that chains sample, in JAX: theory (12.1), whitened, or (7.2) where noise is Gaussian.

Hyperparameters are sampled by their logarithms, an intercept as it is. Numbers of the data are arguments and the
structure is what is compiled: a second fit of the same shape compiles nothing. A chain moves in coordinates z, in which
the posterior is about as wide as one in every direction: (hyperparameters, v) = centre + (root z, scale z). Where
features are few, v is also measured from the Gaussian that the sites of a fit make of it (``transported``): rows that
say much then no longer tie v to the hyperparameters.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, count, pairwise
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag, solve_triangular

from vff.inference.learning.model import SumModel
from vff.inference.methods.chains.points import RowData, TermShape
from vff.inference.methods.hyper import Parameter
from vff.inference.methods.structured.bound import expected_log_density
from vff.likelihoods import AbstractLikelihood
from vff.moments import Moments
from vff.priors import AbstractPrior
from vff.priors.base import from_t, log_slope


class Hyper(NamedTuple):
    """Numbers of the hyperparameters: t of a value, its ``lower`` and ``unit`` are those of ``hyper.Parameter``."""

    held: Any
    """t of every one, (L,): where it is held, and where a chain starts from elsewhere."""
    lower: Any
    unit: Any
    numbers: tuple[tuple[Any, ...], ...]
    """Of the priors of those that are sampled."""

    @classmethod
    def of(cls, parameters: Sequence[Parameter]) -> "Hyper":
        """From where chains begin."""
        held, lower, unit = (np.array([getattr(own, name) for own in parameters]) for name in ("t", "lower", "unit"))
        return cls(held, lower, unit, tuple(own.prior.numbers for own in parameters if own.prior is not None))


class Sums(NamedTuple):
    """Gaussian factors of the coefficients of all terms and of the constant: rows under Gaussian noise, or sites."""

    G: Any
    """Phi' W Phi, (P + 1, P + 1), the constant last."""
    b: Any
    """Phi' W y."""
    yy: Any = 0.0
    weight: Any = 0.0
    intercept: Any = None
    """Prior standard deviation of the constant; None where there is none, or where a hyperparameter says it."""
    varying: tuple[Any, ...] = ()
    """What sum w k(x, x) of every term is made of, None where k(x, x) is constant; empty where nobody asks."""

    @classmethod
    def of(
        cls, moments: Moments, intercept: float | None = None, varying: tuple[np.ndarray | None, ...] = ()
    ) -> "Sums":
        """Those of rows inside the domain, and the prior variance of the constant."""
        h = np.concatenate(moments.features_sums)
        G = np.block([[moments.gram().dense(), h[:, None]], [h, np.array([[moments.weight]])]])
        others = moments.target_squared, moments.weight, None if intercept is None else np.sqrt(intercept)
        return cls(G, np.append(moments.project, moments.target), *others, varying)

    def factored(self, maps: Sequence[Any], tau: Any = 1.0) -> tuple[Any, Any, Any, Any]:
        """B from white variables to coefficients, C = B'GB, L with LL' = I + tau C, and L^-1 B'b."""
        B = block_diag(*maps)
        P = len(B)
        C = B.T @ self.G[:P, :P] @ B
        L = jnp.linalg.cholesky(jnp.eye(len(C)) + tau * C)
        return B, C, L, solve_triangular(L, B.T @ self.b[:P], lower=True)


class Leading(NamedTuple):
    """The white variables of which the rows say most, measured along the Gaussian that they are near."""

    place: Any
    """Which, (m,)."""
    root: Any
    """Of their covariance, (m, m)."""
    slope: Any
    """How their mode follows the coordinates of the hyperparameters, (m, K)."""


class Data(NamedTuple):
    """All numbers of a target."""

    rows: RowData | None
    hyper: Hyper
    centre: Any
    """(K + S,)."""
    scale: Any
    """Of the white variables, (S,)."""
    root: Any
    """Of the hyperparameters, (K, K)."""
    sums: Sums | None = None
    """That positions are transported by, or that the collapsed bound is written in."""
    number: Any = None
    """Under which a model is known while its bound is called back."""
    bounds: Any = None
    """Of the logarithms, (L, 2): beyond them there is no model."""
    leading: Leading | None = None
    """None where all white variables are measured by themselves."""

    @classmethod
    def of(cls, target: "HyperTarget", rows: RowData | None, hyper: Hyper, sums: Sums | None, **more: Any) -> "Data":
        """In coordinates that are measured from where chains begin."""
        K, S = target.free.size, target.white_size
        centre = np.concatenate([np.asarray(hyper.held)[target.free], np.zeros(S)])
        return cls(rows, hyper, centre, np.ones(S), np.eye(K), sums, **more)


@dataclass(frozen=True, kw_only=True)
class HyperTarget(ABC):
    """The structure of a log-density of hyperparameters, and of white variables beside them if there are any."""

    priors: tuple[AbstractPrior | None, ...]
    """Of every hyperparameter the form of its prior; None where it is held."""
    transported: bool = True
    """Whether positions are measured from the Gaussian that sums make of v, at every setting anew."""

    @property
    def intercept(self) -> int | None:
        """Place of the constant among them, where it is one."""
        return None

    @property
    def white_size(self) -> int:
        """S."""
        return 0

    @cached_property
    def _sampled(self) -> tuple[int, ...]:
        """Places of all that are sampled."""
        return tuple(number for number, prior in enumerate(self.priors) if prior is not None)

    @cached_property
    def free(self) -> np.ndarray:
        """Places of those that are sampled by their own coordinates, (K,): all but the constant."""
        return np.array([number for number in self._sampled if number != self.intercept], int)

    @property
    def n_hyper(self) -> int:
        """Coordinates that no Gaussian is known for: those of the hyperparameters."""
        return self.free.size

    @property
    def size(self) -> int:
        """Length of a position."""
        return self.free.size + self.white_size

    def hyperparameters(self, data: Data, z: Any) -> Any:
        """t of every one, (L,); that of a constant which is sampled is not known yet."""
        K = self.free.size
        return jnp.asarray(data.hyper.held).at[self.free].set(data.centre[:K] + data.root @ z[:K])

    def __call__(self, data: Data, z: Any) -> Any:
        """The log-density at z, up to a constant."""
        (value, t), total, hyper = self.without_prior(data, z), 0.0, data.hyper
        for place, numbers in zip(self._sampled, hyper.numbers, strict=True):
            prior = self.priors[place]
            if prior is not None and place != self.intercept:
                own = from_t(prior.support, t[place], hyper.lower[place], hyper.unit[place])
                total = total + prior.formula(own, *numbers) + log_slope(prior.support, t[place])
        return jnp.where(jnp.isfinite(value + total), value + total, -jnp.inf)

    @abstractmethod
    def without_prior(self, data: Data, z: Any) -> tuple[Any, Any]:
        """The log-density but for the priors of the hyperparameters, and t."""


class Position(NamedTuple):
    """What a chain's position says: hyperparameters, the constant, and coefficients of every term."""

    t: Any
    """(L,), with the constant in its place."""
    coefficients: tuple[Any, ...]
    """Of the functions at rows, with the variance of the term in them, a tensor each."""
    white: Any
    """v, (S,)."""
    roots: list[tuple[Any, ...]]
    log_jacobian: Any
    """log |dv / dz|, up to a constant."""


@dataclass(frozen=True, kw_only=True)
class Target(HyperTarget):
    """Hyperparameters: of every term its own; the constant; psi.

    White variables: of every term, then, where the constant is sampled, that of the constant, whose prior is normal.
    """

    terms: tuple[TermShape, ...]
    likelihood: AbstractLikelihood
    """Its form."""
    nodes: int

    @property
    def intercept(self) -> int:
        """Place of the constant; those of psi follow."""
        return self.terms[-1].end

    @property
    def centred(self) -> bool:
        """Whether the constant is sampled."""
        return self.priors[self.intercept] is not None

    @cached_property
    def white(self) -> tuple[tuple[int, int], ...]:
        """Where the white variables of every term begin and end."""
        return tuple(pairwise(accumulate((term.white_count for term in self.terms), initial=0)))

    @property
    def white_size(self) -> int:
        """S."""
        return self.white[-1][1] + int(self.centred)

    def intercept_prior(self, hyper: Hyper) -> tuple[Any, Any]:
        """Mean and standard deviation of the constant, in the units of t."""
        numbers = hyper.numbers[self._sampled.index(self.intercept)]
        lower, unit = hyper.lower[self.intercept], hyper.unit[self.intercept]
        return (numbers[0] - lower) / unit, numbers[1] / unit

    def at(self, data: Data, z: Any) -> Position:
        """What a position says."""
        white, t = self._white(data, z), self.hyperparameters(data, z)
        assert data.rows is not None
        roots = [term.roots(t, points) for term, points in zip(self.terms, data.rows.terms, strict=True)]
        v, tensors, log_jacobian = self._transport(data, t, roots, white) if self.transported else (white, None, 0.0)
        if self.centred:
            mean, sd = self.intercept_prior(data.hyper)
            t = t.at[self.intercept].set(mean + sd * v[-1])
        if tensors is None:
            tensors = [
                jnp.exp(0.5 * t[term.first]) * term.coefficients(own, v[slice(*place)])
                for term, place, own in zip(self.terms, self.white, roots, strict=True)
            ]
        return Position(t, tuple(tensors), v, roots, log_jacobian)

    def _white(self, data: Data, z: Any) -> Any:
        """White variables, or where these are transported what they are measured by, theory (12.4)."""
        K = self.free.size
        white, leading = jnp.asarray(data.scale * z[K:]), data.leading
        if leading is not None:
            white = white.at[leading.place].set(leading.root @ z[K:][leading.place] + leading.slope @ z[:K])
        return data.centre[K:] + white

    def _transport(self, data: Data, t: Any, roots: Any, z: Any) -> tuple[Any, list[Any], Any]:
        """v = A^-1 B'b + A^-T/2 z with A = I + B'GB, B the map from v to coefficients; and the coefficients of v.

        Were the likelihood those Gaussian factors, z would be white and independent of the hyperparameters.
        """
        assert data.sums is not None
        maps = [term.matrix(t, own) for term, own in zip(self.terms, roots, strict=True)]
        if self.centred:
            maps.append(jnp.reshape(self.intercept_prior(data.hyper)[1], (1, 1)))
        B, _, L, half = data.sums.factored(maps)
        v = solve_triangular(L, half + z, lower=True, trans=1)
        c = B @ v
        ends = accumulate((prod(term.shape) for term in self.terms), initial=0)
        tensors = [c[slice(*place)].reshape(term.shape) for place, term in zip(pairwise(ends), self.terms, strict=True)]
        return v, tensors, -jnp.sum(jnp.log(jnp.diagonal(L)))

    def marginals(self, data: Data, position: Position) -> tuple[Any, Any]:
        """Mean and variance of f at every row, its offset in it, given v."""
        assert data.rows is not None
        t, mean, rest = position.t, data.rows.offset + position.t[self.intercept], 0.0
        parts = zip(self.terms, data.rows.terms, position.roots, position.coefficients, strict=True)
        for term, points, own, c in parts:
            values, explained = term.at_points(points, own, c)
            mean = mean + term.at_rows(points, values)
            rest = rest + term.at_rows(points, term.prior_variance(points, t) - term.variance(t) * explained)
        # the difference is a variance; only rounding can carry it below zero
        return mean, jnp.maximum(rest, 0.0)

    def log_likelihood(self, data: Data, position: Position) -> Any:
        """sum_n w_n E log p(y_n | f_n)."""
        assert data.rows is not None
        y, extra, w = data.rows.y, data.rows.extra, data.rows.w
        marginals, expected = self.marginals(data, position), expected_log_density(self.likelihood, self.nodes)
        return expected(*marginals, y, w, extra, position.t[self.intercept + 1 :])

    def without_prior(self, data: Data, z: Any) -> tuple[Any, Any]:
        position = self.at(data, z)
        v = position.white
        return self.log_likelihood(data, position) - 0.5 * (v @ v) + position.log_jacobian, position.t


@dataclass(frozen=True, kw_only=True)
class CollapsedTarget(HyperTarget):
    """Of Gaussian noise: no step costs any rows. Hyperparameters: of every term its own, then the noise.

    With few features the bound is written in white variables, where JAX differentiates it. With many, or with rows
    beyond the domain, the algebra that learning uses gives bound and gradient, and JAX calls back: differentiating
    through a large Cholesky factor would take far longer.
    """

    terms: tuple[TermShape, ...] | None = None
    """Where the bound is written in white variables; None where it is called back."""

    def without_prior(self, data: Data, z: Any) -> tuple[Any, Any]:
        t = self.hyperparameters(data, z)
        bound = collapsed_bound(data.number, t) if self.terms is None else white_bound(self.terms, data.sums, t)
        inside = jnp.all((t >= data.bounds[:, 0]) & (t <= data.bounds[:, 1]))
        return jnp.where(inside, bound, -jnp.inf), t


def white_bound(terms: Sequence[TermShape], sums: Sums | None, t: Any) -> Any:
    """The collapsed bound (7.2) at log hyperparameters, those of the terms and the noise: with C = B'GB, A = I + tau C,

    -1/2 [W log(2 pi / tau) + log|A| + tau y'Wy - tau^2 b'B A^-1 B'b + tau (sum w k(x, x) - tr C)].
    """
    assert sums is not None
    maps, tau = [term.matrix(t, term.roots(t)) for term in terms], jnp.exp(-t[-1])
    features = sum(own.shape[1] for own in maps)
    if sums.intercept is not None:
        maps.append(jnp.reshape(sums.intercept, (1, 1)))
    _, C, L, half = sums.factored(maps, tau)
    pull = tau * half
    varying = sums.varying or (None,) * len(terms)
    total = sum(term.variance_total(own, sums.weight, t) for term, own in zip(terms, varying, strict=True))
    # the difference is a sum of variances; only rounding can carry it below zero
    bound_gap = jnp.maximum(total - jnp.trace(C[:features, :features]), 0.0)
    quadratic = tau * sums.yy - pull @ pull + tau * bound_gap
    return -0.5 * (sums.weight * (np.log(2.0 * np.pi) + t[-1]) + quadratic) - jnp.sum(jnp.log(jnp.diagonal(L)))


_MODELS: dict[int, SumModel] = {}
_numbers = count()


@contextmanager
def registered(model: SumModel) -> Iterator[np.ndarray]:
    """A model under a number, while it is sampled: what is compiled must not depend on it."""
    number = next(_numbers)
    _MODELS[number] = model
    try:
        yield np.array(float(number))
    finally:
        del _MODELS[number]


def _bound(number: float, theta: np.ndarray) -> tuple[float, np.ndarray]:
    """The collapsed bound and its gradient; minus infinity where there is none."""
    model, nothing = _MODELS[int(number)], (-np.inf, np.zeros(theta.size))
    if not np.array_equal(model.parameters.clip(theta), theta):
        return nothing
    try:
        with np.errstate(all="ignore"):
            closed = model.at(theta)
            value, gradient = float(closed.elbo), model.pull_back(theta, closed.cotangents)
    except FloatingPointError:
        return nothing
    return (value, gradient) if np.isfinite(value) and np.isfinite(gradient).all() else nothing


@jax.custom_vjp
def collapsed_bound(number: Any, theta: Any) -> Any:
    """The bound of a model that is known by number, at log hyperparameters."""
    return _called(number, theta)[0]


def _called(number: Any, theta: Any) -> tuple[Any, Any]:
    """Bound and gradient, by way of bits: the thread in which JAX calls back knows nothing of float64 in this one."""
    bits = jax.lax.bitcast_convert_type(jnp.append(theta, number), jnp.uint32)
    found = jax.pure_callback(_bound_in_bits, jax.ShapeDtypeStruct(bits.shape, bits.dtype), bits)
    both = jax.lax.bitcast_convert_type(found, theta.dtype)
    return both[-1], both[:-1]


def _bound_in_bits(bits: Any) -> np.ndarray:
    *theta, number = np.ascontiguousarray(bits).view(np.float64)[:, 0]
    value, gradient = _bound(number, np.array(theta))
    return np.append(gradient, value)[:, None].view(np.uint32)


collapsed_bound.defvjp(_called, lambda gradient, weight: (None, weight * gradient))
