"""Small models for samplers, and their log-density as it is defined: dense matrices, rows one by one, no JAX."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy.stats import t as student

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.factors.interval.factor import MaternFactor
from vff.factors.levels.factor import LevelFactor
from vff.features import ColumnPrior
from vff.inference.methods.chains.density import Data, Hyper, Sums, Target
from vff.inference.methods.chains.design import Design, design
from vff.inference.methods.natural.row_sites import Observed
from vff.inference.model.term import Term
from vff.likelihoods import AbstractLikelihood
from vff.moments import ColumnRequest, MomentRequest, RowBlock, TermRequest
from vff.priors import AbstractPrior, Gamma, LogNormal, Normal, penalised_sd

DOMAIN = Interval(-0.5, 3.5)
PLACES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)


@dataclass(frozen=True)
class Smooth:
    column: int
    M: int = 3
    q: int = 2
    p: int = 1


@dataclass(frozen=True)
class Groups:
    column: int
    size: int = 3


Factor = Smooth | Groups


@dataclass(frozen=True)
class Model:
    """Terms, each a product of factors, rows, and a likelihood with priors of its parameters."""

    terms: tuple[tuple[Factor, ...], ...]
    x: np.ndarray
    observed: Observed
    likelihood: AbstractLikelihood
    expected: Callable[..., float]
    """(y, mean, variance, extra, values of the likelihood's parameters) -> E log p of one row."""
    psi_priors: tuple[tuple[AbstractPrior, float], ...] = ()
    """And the least value of each parameter."""

    @property
    def priors(self) -> list[AbstractPrior]:
        """Of variance and lengthscales of every term, the constant, and the likelihood's own, in the user's units."""
        found: list[AbstractPrior] = []
        for term in self.terms:
            found.append(penalised_sd(3.0, 0.05))
            found += [LogNormal(1.3, 0.8) for factor in term if isinstance(factor, Smooth)]
        return [*found, Normal(0.4, 2.0), *(prior for prior, _ in self.psi_priors)]

    @property
    def lower(self) -> np.ndarray:
        """The constant is measured from 0.3; likelihoods know where their parameters begin."""
        before = len(self.priors) - len(self.psi_priors) - 1
        return np.array([0.0] * before + [0.3] + [lower for _, lower in self.psi_priors])

    @property
    def unit(self) -> np.ndarray:
        """Lengthscales are in half domains; the constant in units of its own."""
        found = []
        for term in self.terms:
            found += [1.0] + [DOMAIN.half_length for factor in term if isinstance(factor, Smooth)]
        return np.array([*found, 1.7, *(1.0 for _ in self.psi_priors)])

    def design(self) -> Design:
        return design(*self.parts())

    def parts(self) -> tuple[list[Term], MomentRequest, RowBlock, Observed]:
        """What a design is made of."""
        terms, requests = [], []
        for own in self.terms:
            terms.append(Term(tuple(MaternFactor(f.p) if isinstance(f, Smooth) else LevelFactor() for f in own)))
            requests.append(TermRequest(tuple(f.column for f in own), tuple(_request(f) for f in own)))
        source = RowBlock(len(self.x), lambda c, rows: self.x[rows, c], self.observed.y, self.observed.w)
        return terms, MomentRequest(tuple(requests)), source, self.observed

    def target(self, nodes: int = 32, sites: Sums | None = None, own: Design | None = None) -> tuple[Target, Data]:
        """All is sampled; positions are (log hyperparameters, v) as they are, or transported by sites."""
        points = own or self.design()
        priors = self.priors
        held = np.zeros(len(priors))
        hyper = Hyper(held, self.lower, self.unit, tuple(prior.numbers for prior in priors))
        target = Target(
            priors=tuple(prior.form for prior in priors),
            transported=sites is not None,
            terms=points.shapes,
            likelihood=self.likelihood.form,
            nodes=nodes,
        )
        return target, Data.of(target, points.rows, hyper, sites)

    # --- the definition ------------------------------------------------------------------------------------------

    def log_density(self, x: np.ndarray) -> float:
        """Of (logarithms, v): the likelihood's expectation, -|v|^2 / 2, and priors with their Jacobians."""
        priors, at = self.priors, len(self.priors) - len(self.psi_priors) - 1
        v = x[len(priors) - 1 :]
        constant = priors[at].numbers[0] + priors[at].numbers[1] * v[-1]  # in the user's units
        t = np.insert(x[: len(priors) - 1], at, 0.0)
        value = -0.5 * float(v @ v)
        for number, (prior, lower, unit) in enumerate(zip(priors, self.lower, self.unit, strict=True)):
            if number != at:
                value += float(prior.log_density(lower + unit * np.exp(t[number]))) + t[number]
        psi = np.array([lower for _, lower in self.psi_priors]) + np.exp(t[at + 1 :])
        mean, rest = self.marginals(t, v, (constant - self.lower[at]) / self.unit[at])
        for n in range(len(self.x)):
            y, extra, w = self.observed.y[n], self.observed.extra[n], self.observed.w[n]
            value += w * self.expected(y, mean[n], rest[n], extra, psi)
        return value

    def marginals(self, t: np.ndarray, v: np.ndarray, constant: float) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row."""
        mean, rest, place, start = np.full(len(self.x), constant), np.zeros(len(self.x)), 0, 0
        for term in self.terms:
            variance, place, maps, features = float(np.exp(t[place])), place + 1, [], []
            for factor in term:
                if isinstance(factor, Smooth):
                    maps.append(dense_map(factor, float(np.exp(t[place]))))
                    place += 1
                else:
                    maps.append(np.eye(factor.size))
                features.append(features_of(factor, self.x[:, factor.column]))
            B = reduce(np.kron, maps)
            phi = np.array([reduce(np.kron, rows) for rows in zip(*features, strict=True)])
            mean += np.sqrt(variance) * phi @ B @ v[start : start + B.shape[1]]
            rest += variance * (1.0 - np.sum((phi @ B) ** 2, axis=1))
            start += B.shape[1]
        return mean, rest


def _request(factor: Factor) -> ColumnRequest:
    if isinstance(factor, Smooth):
        return ColumnRequest(DOMAIN, ColumnBasis(factor.M, factor.q))
    return ColumnRequest(Codes(), LevelBasis(tuple(range(factor.size))))


def features_of(factor: Factor, x: np.ndarray) -> np.ndarray:
    if isinstance(factor, Smooth):
        return ColumnBasis(factor.M, factor.q).evaluate(DOMAIN.to_unit(x))
    return np.array([[float(code == level) for level in range(factor.size)] for code in x])


def dense_map(factor: Smooth, lengthscale: float) -> np.ndarray:
    """T' K^-1 R with K = R R', all written out."""
    prior = ColumnPrior(ColumnBasis(factor.M, factor.q), factor.p, np.sqrt(2 * factor.p + 1) / lengthscale)
    d, constant, root, W = prior.parts()
    H, q = d.size, factor.q
    R = np.zeros((H + q, H + q + factor.p + 1))
    R[:H, :H] = np.diag(np.sqrt(d))
    R[H:, 0] = constant / np.sqrt(d[0])
    R[H:, H : H + q] = root
    R[:, H + q :] = W
    K = prior.matrix().to_dense()
    np.testing.assert_allclose(R @ R.T, K, rtol=1e-9, atol=1e-9 * np.abs(K).max())
    return prior.transform.forward(np.eye(H + q)).T @ np.linalg.solve(K, R)


def random_sites(P: int, rng: np.random.Generator) -> Sums:
    """Of P coefficients and the constant, as a few rows would leave them."""
    rows = rng.standard_normal((P // 2 + 2, P + 1))
    return Sums(rows.T @ rows, rng.standard_normal(P + 1))


# --- rows and likelihoods ------------------------------------------------------------------------------------------


def hermite(log_density: Callable[[np.ndarray], np.ndarray], mean: float, variance: float) -> float:
    """E log p(f), f ~ N(mean, variance), by 80 nodes."""
    return float(log_density(mean + np.sqrt(max(variance, 0.0)) * PLACES) @ WEIGHTS / np.sqrt(2.0 * np.pi))


def model(
    terms: Sequence[Sequence[Factor]], x: np.ndarray, likelihood: AbstractLikelihood, rng: np.random.Generator
) -> Model:
    """Rows of any targets, under Poisson, Bernoulli or Student's t."""
    N, name = len(x), type(likelihood).__name__
    w, extra = rng.uniform(0.5, 1.5, N), np.ones(N)
    psi_priors: tuple[tuple[AbstractPrior, float], ...] = ()
    if name == "Poisson":
        y, extra = rng.poisson(2.0, N).astype(float), rng.uniform(0.5, 2.0, N)

        def expected(y: float, mean: float, variance: float, extra: float, psi: Any) -> float:
            return y * (mean + math.log(extra)) - extra * math.exp(mean + variance / 2) - math.lgamma(y + 1)
    elif name == "Bernoulli":
        y = rng.integers(0, 2, N).astype(float)

        def expected(y: float, mean: float, variance: float, extra: float, psi: Any) -> float:
            return hermite(lambda f: -np.logaddexp(0.0, np.where(y > 0.5, -f, f)), mean, variance)
    else:
        y, psi_priors = rng.standard_normal(N), ((LogNormal(0.5, 1.0), 0.0), (Gamma(2.0, 10.0), 2.0))

        def expected(y: float, mean: float, variance: float, extra: float, psi: Any) -> float:
            return hermite(lambda f: student.logpdf(y, psi[1], f, psi[0]), mean, variance)

    shaped = tuple(tuple(term) for term in terms)
    return Model(shaped, x, Observed(y, extra, w), likelihood, expected, psi_priors)
