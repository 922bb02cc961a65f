"""Closed-form regression in coefficient space: the collapsed bound and its cotangents, written once for every solver.

With prior precision K of the coefficients c, b = Phi' W y, G = Phi' W Phi and noise precision tau, A = K + tau G and
m = tau A^-1 b; the bound is theory (7.2), its derivatives (7.4) to (7.6). An intercept beside the features is a border
of one row and column, eliminated by theory (7.7) and (7.8); every formula holds with these in place of m and A^-1, and
the trace does not see it, since the features carry all of a constant. How A is solved with is a subclass's business.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from vff.inference.solvers.cotangents import ROUNDING, Cotangents, GapCotangents
from vff.inference.solvers.expansion import Expansion
from vff.inference.solvers.records import Intercept, InterceptPosterior, RowNoise
from vff.linalg import (
    AbstractInvertible,
    BlockDiagonal,
    NotPositiveDefinite,
    OuterView,
    StructuredCotangent,
)

_EPSILON = 0.5 * float(np.finfo(np.float64).eps)


class _Share(NamedTuple):
    """What the constant adds to the sums of a form."""

    pulled: float = 0.0
    energy: float = 0.0
    penalty: float = 0.0
    log_gain: float = 0.0
    edf: float = 0.0


@dataclass(frozen=True)
class LinearGaussian(ABC):
    """A linear-Gaussian model at one setting of its hyperparameters."""

    prior: AbstractInvertible
    """K."""
    b: np.ndarray
    """Phi' W y, (P,)."""
    yy: float
    """sum w y^2."""
    weight: float
    """sum w."""
    prior_trace: float
    """sum w k(x, x)."""
    noise: float
    """Noise variance."""
    sites: bool = field(default=False, kw_only=True)
    """Whether the targets stand for another likelihood (``natural``): their squares are unknown and left out."""
    intercept: Intercept | None = field(default=None, kw_only=True)
    """None where the function has no constant of its own."""
    log_prior: float = field(default=0.0, kw_only=True)
    """That of the hyperparameters, nats, where something is known of them."""
    row_noise: RowNoise | None = field(default=None, kw_only=True)
    """None where all rows have the same noise."""

    @property
    def count(self) -> float:
        """How many rows there are."""
        return self.weight if self.row_noise is None else self.row_noise.rows

    @property
    def block_prior(self) -> BlockDiagonal:
        """The prior of a sum of terms, which is block diagonal."""
        assert isinstance(self.prior, BlockDiagonal)
        return self.prior

    @abstractmethod
    def solve(self, v: np.ndarray) -> np.ndarray:
        """A^-1 v, (P, S); the constant held."""

    def covariance(self) -> np.ndarray:
        """A^-1 written out, (P, P); the constant held."""
        return self.solve(np.eye(self.b.size))

    @cached_property
    def solutions(self) -> np.ndarray:
        """A^-1 of the right sides, (P, 1 or 2)."""
        return self.solve(self.right_sides)

    @property
    def right_sides(self) -> np.ndarray:
        """tau b, and beside it tau h where there is a constant."""
        sides = [self.b] if self.intercept is None else [self.b, self.intercept.features]
        return self.tau * np.stack(sides, axis=1)

    @cached_property
    def intercept_posterior(self) -> InterceptPosterior | None:
        """The constant given the targets."""
        if self.intercept is None:
            return None
        h, u = self.intercept.features, self.solutions[:, 1].copy()  # as a file gives it back
        misfit = self.weight - 2.0 * float(h @ u) + self.energy_of(u)
        least = -np.inf if self.sites else 0.0  # below zero there is only rounding
        precision = 1.0 / self.intercept.variance + self.tau * max(least, misfit) + float(u @ self.prior.mv(u))
        if not precision > 0.0:
            raise NotPositiveDefinite(
                "these sites leave the constant of the function undetermined; try another likelihood"
            )
        mean = self.tau * (self.intercept.target - float(u @ self.b)) / precision
        return InterceptPosterior(mean, 1.0 / precision, u)

    @cached_property
    def of_intercept(self) -> _Share:
        """What the constant adds to the sums below."""
        own, known = self.intercept, self.intercept_posterior
        if own is None or known is None:
            return _Share()
        m0, shrunk = known.mean, known.variance / own.variance
        energy = 2.0 * m0 * float(own.features @ self.mean) + m0**2 * self.weight
        return _Share(m0 * own.target, energy, m0**2 / own.variance, -float(np.log(shrunk)), 1.0 - shrunk)

    @cached_property
    def mean(self) -> np.ndarray:
        """Posterior mean m of the coefficients."""
        alone, known = self.solutions[:, 0], self.intercept_posterior
        return alone if known is None else alone - known.mean * known.answer

    @property
    @abstractmethod
    def explained(self) -> float:
        """tr(K^-1 G)."""

    @abstractmethod
    def energy_of(self, c: np.ndarray) -> float:
        """c'G c."""

    @property
    def energy(self) -> float:
        """sum w f^2 of the posterior mean."""
        return self.energy_of(self.mean) + self.of_intercept.energy

    def written_gram(self) -> np.ndarray | None:
        """G, (P, P); None where it is never written out."""
        return None

    def spread_over(self, other: "LinearGaussian") -> float:
        """tr(G A^-1) with the Gram matrix of the same features over other rows."""
        raise ValueError("rows are added to models of at most 4,500 features; use fewer frequencies, or fit again")

    @property
    @abstractmethod
    def log_gain(self) -> float:
        """log |A| - log |K|; the constant held."""

    @cached_property
    def log_volume(self) -> float:
        """log |Q + noise| = n log noise + log |A| - log |K|."""
        of_rows = 0.0 if self.row_noise is None else self.row_noise.log_noise
        return of_rows + self.count * np.log(self.noise) + self.log_gain + self.of_intercept.log_gain

    @property
    @abstractmethod
    def error(self) -> float:
        """How far the bound may be off by its computation, nats."""

    @property
    @abstractmethod
    def jitter(self) -> float:
        """What rounding made a factor add to its diagonal."""

    @cached_property
    @abstractmethod
    def projected_alone(self) -> StructuredCotangent:
        """What the prior's structure keeps of A^-1; the intercept held."""

    @cached_property
    def projected_inverse(self) -> StructuredCotangent:
        """What the prior's structure keeps of the covariance of the coefficients."""
        if self.intercept_posterior is None:
            return self.projected_alone
        u = self.intercept_posterior.answer[:, None]
        return self.projected_alone + self.intercept_posterior.variance * self.prior.project(OuterView(u, u))

    @property
    @abstractmethod
    def projected_sandwich(self) -> StructuredCotangent:
        """What it keeps of K^-1 G K^-1."""

    @abstractmethod
    def with_noise(self, noise: float) -> Self:
        """The same model with another noise variance."""

    @property
    @abstractmethod
    def explained_by_term(self) -> list[float]:
        """tr(K_s^-1 G_ss) of every block of the prior."""

    @abstractmethod
    def energies(self) -> list[float]:
        """m_s'G_ss m_s of every block of the prior."""

    @property
    def tau(self) -> float:
        """Noise precision."""
        return 1.0 / self.noise

    @cached_property
    def residual(self) -> float:
        """sum w k(x, x) - tr(K^-1 G): prior variance at the rows that the features miss.

        The difference is known to better than 1e-12 of its terms; that much is added, so that the bound stays below the
        evidence where signal to noise is beyond what the sums resolve, and learning has no reason to go there.
        """
        return (1.0 + ROUNDING) * self.prior_trace - self.explained

    @cached_property
    def quadratic(self) -> float:
        """y' (Q + noise)^-1 y as the minimum over m of |y - Phi m|^2 / noise + m' K m: an error in m only raises it."""
        misfit = self.yy - 2.0 * self.pulled + self.energy
        least = -np.inf if self.sites else 0.0  # below zero there is only rounding
        return self.tau * max(least, misfit) + self.penalty

    @property
    def pulled(self) -> float:
        """sum w y f of the posterior mean."""
        return float(self.mean @ self.b) + self.of_intercept.pulled

    @property
    def penalty(self) -> float:
        """m'Km of the coefficients, and of the constant."""
        return float(self.mean @ self.prior.mv(self.mean)) + self.of_intercept.penalty

    @cached_property
    def elbo(self) -> float:
        """The collapsed bound, nats."""
        n = self.count
        return -0.5 * (n * np.log(2.0 * np.pi) + self.log_volume + self.quadratic + self.tau * self.residual)

    @cached_property
    def rounding(self) -> float:
        """How far float64 knows the bound, nats: its own of the numbers of which the bound is a difference."""
        sums = self.count * abs(np.log(self.noise)) + abs(self.log_volume) + 2.0 * abs(self.penalty)
        of_rows = 2.0 * abs(self.yy) + 4.0 * abs(self.pulled) + 2.0 * abs(self.prior_trace)
        return float(_EPSILON * (sums + self.tau * of_rows))

    @property
    def objective(self) -> float:
        """What learning climbs: the bound, and what is known of the hyperparameters beforehand."""
        return self.elbo + self.log_prior

    @property
    def objective_cotangents(self) -> Cotangents:
        """Its derivatives."""
        return self.cotangents

    @cached_property
    def as_learnt(self) -> "LinearGaussian":
        """The form whose bound learning climbs."""
        return self

    @property
    def expansion(self) -> Expansion | None:
        """What learning climbs to second order; None where only differences know it."""
        return None

    @cached_property
    def divergence(self) -> float:
        """KL[q(c) || p(c)] = 1/2 [ tr(K A^-1) - P + m'Km + log|A| - log|K| ], nats, of a model with unit noise."""
        return 0.5 * (self.penalty + self.log_volume - self.cotangents.edf)

    def upper_bound(self) -> float:
        """An upper bound on the evidence from the same statistics (Titsias, 2014); one more solution."""
        louder = self.with_noise(self.noise + max(0.0, self.residual))
        return -0.5 * (self.count * np.log(2.0 * np.pi) + self.log_volume + louder.quadratic) + self.error

    @property
    def allowance(self) -> float:
        """The part of ``bound_gap`` that stands for rounding, nats."""
        return 0.5 * self.tau * ROUNDING * self.prior_trace

    @property
    def bound_gap(self) -> float:
        """T = [sum w k(x, x) - tr(K^-1 G)] / (2 noise), the part of the bound's gap that is known, nats."""
        return 0.5 * self.tau * max(0.0, self.residual)

    @cached_property
    def cotangents(self) -> Cotangents:
        """Derivatives of ``elbo`` with respect to everything it is made of."""
        return Cotangents(self)

    @property
    def gap_cotangents(self) -> GapCotangents:
        """Derivatives of ``bound_gap``; A is not solved with."""
        return GapCotangents(self)
