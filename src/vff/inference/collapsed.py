"""Closed-form regression in coefficient space: the collapsed bound, its cotangents, the posterior. Written once.

With prior precision K of the coefficients c (for variational features K = K_uu), b = Phi' W y, G = Phi' W Phi, noise
precision tau and n = sum w (paper, section 2.4.5; design Fact E):

    A    = K + tau G,     c | y ~ N(m, A^-1),     m = tau A^-1 b
    ELBO = -1/2 [ n log(2 pi / tau) + log|A| - log|K| + tau y'Wy - tau m'b ] - tau/2 [ sum w k(x,x) - tr(K^-1 G) ]

Its derivatives need one Cholesky factor and one inverse of A:

    dELBO/dK   = -1/2 [ A^-1 + m m' - K^-1 (K - tau G) K^-1 ]
    dELBO/dG   = -tau/2 [ A^-1 + m m' - K^-1 ]            dELBO/db = tau m
    dELBO/dtau = 1/2 [ n / tau - tr(A^-1 G) - y'Wy + 2 m'b - m'Gm - (sum w k(x,x) - tr(K^-1 G)) ]

Inducing points, random features and sparse spectrum reuse this with their own (K, b, G, sum w k(x,x)).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.linalg import AbstractInvertible, Factor, factorise


@dataclass(frozen=True)
class NormalEquations:
    """What the rows contribute: sum w, sum w y^2, Phi' W y (P,) and Phi' W Phi (P, P)."""

    weight: float
    yy: float
    b: np.ndarray
    G: np.ndarray


@dataclass(frozen=True)
class ClosedForm:
    """A linear-Gaussian model at one setting of its hyperparameters."""

    prior: AbstractInvertible
    equations: NormalEquations
    prior_trace: float
    """sum w k(x, x)."""
    noise: float
    """Noise variance."""

    @property
    def _tau(self) -> float:
        return 1.0 / self.noise

    @cached_property
    def factor(self) -> Factor:
        """Cholesky factor of the posterior precision A."""
        return factorise(self.prior.add_to(self._tau * self.equations.G))

    @cached_property
    def mean(self) -> np.ndarray:
        """Posterior mean m of the coefficients."""
        return self._tau * self.factor.solve(self.equations.b)

    @cached_property
    def residual(self) -> float:
        """sum w k(x, x) - tr(K^-1 G): prior variance at the rows that the features miss."""
        return self.prior_trace - self.prior.trace_solve(self.equations.G)

    @cached_property
    def quadratic(self) -> float:
        """y' (Q + noise)^-1 y. Not below zero, whatever rounding says."""
        return max(0.0, self._tau * (self.equations.yy - float(self.mean @ self.equations.b)))

    @cached_property
    def _log_volume(self) -> float:
        """log |Q + noise|."""
        return self.equations.weight * np.log(self.noise) + self.factor.logdet() - self.prior.logdet()

    @cached_property
    def elbo(self) -> float:
        """The collapsed bound, nats."""
        n = self.equations.weight
        return -0.5 * (n * np.log(2.0 * np.pi) + self._log_volume + self.quadratic + self._tau * self.residual)

    def upper_bound(self) -> float:
        """An upper bound on the evidence from the same statistics (Titsias, 2014); one more factor."""
        missed = max(0.0, self.residual)
        louder = ClosedForm(self.prior, self.equations, self.prior_trace, self.noise + missed)
        n = self.equations.weight
        return -0.5 * (n * np.log(2.0 * np.pi) + self._log_volume + louder.quadratic)

    def cotangents(self) -> "Cotangents":
        """Derivatives of ``elbo`` with respect to everything it is made of."""
        tau, eq, m = self._tau, self.equations, self.mean
        second_moment = self.factor.inverse()
        trace_AG = float(np.sum(second_moment * eq.G))
        second_moment += np.multiply.outer(m, m)
        mGm = float(m @ eq.G @ m)
        d_tau = 0.5 * (eq.weight / tau - trace_AG - eq.yy + 2.0 * float(m @ eq.b) - mGm - self.residual)
        return Cotangents(self, second_moment, -d_tau * tau)


@dataclass(frozen=True)
class Cotangents:
    """Derivatives of the bound. Dense ones are formed when asked for."""

    model: ClosedForm
    second_moment: np.ndarray
    """A^-1 + m m'."""
    log_noise: float
    """dELBO / d log noise."""

    @cached_property
    def prior(self) -> np.ndarray:
        """dELBO / dK, (P, P) symmetric."""
        model = self.model
        gap = model.prior.add_to(-model._tau * model.equations.G)
        return -0.5 * (self.second_moment - model.prior.solve(model.prior.solve(gap).T))

    def inner_gram(self, Z: np.ndarray) -> np.ndarray:
        """Z' (dELBO/dG) Z for a few columns Z (P, R)."""
        model = self.model
        return -0.5 * model._tau * (Z.T @ self.second_moment @ Z - Z.T @ model.prior.solve(Z))

    @property
    def gram(self) -> np.ndarray:
        """dELBO / dG, (P, P)."""
        return self.inner_gram(np.eye(self.second_moment.shape[0]))

    @property
    def projection(self) -> np.ndarray:
        """dELBO / db, (P,)."""
        return self.model._tau * self.model.mean

    @property
    def prior_trace(self) -> float:
        """dELBO / d sum w k(x, x)."""
        return -0.5 * self.model._tau
