"""Closed-form regression in coefficient space: the collapsed bound, its cotangents, the posterior. Written once.

With prior precision K of the coefficients c (for variational features K = K_uu), b = Phi' W y, G = Phi' W Phi, noise
precision tau and n = sum w (paper, section 2.4.5; design Fact E):

    A    = K + tau G,     c | y ~ N(m, A^-1),     m = tau A^-1 b
    ELBO = -1/2 [ n log(2 pi / tau) + log|A| - log|K| + tau y'Wy - tau m'b ] - tau/2 [ sum w k(x,x) - tr(K^-1 G) ]

Its derivatives need one Cholesky factor of A and the inverse of that factor:

    dELBO/dK   = -1/2 [ A^-1 + m m' - K^-1 (K - tau G) K^-1 ]
    dELBO/dG   = -tau/2 [ A^-1 + m m' - K^-1 ]            dELBO/db = tau m
    dELBO/dtau = 1/2 [ n / tau - tr(A^-1 G) - y'Wy + 2 m'b - m'Gm - (sum w k(x,x) - tr(K^-1 G)) ]

Inducing points, random features and sparse spectrum reuse this with their own (K, b, G, sum w k(x,x)).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.linalg import AbstractInvertible, BlockDiagonal, Factor, InverseView, OuterView, Summary, factorise

_ROUNDING = 1e-12


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
    def tau(self) -> float:
        """Noise precision."""
        return 1.0 / self.noise

    @cached_property
    def factor(self) -> Factor:
        """Cholesky factor of the posterior precision A."""
        return factorise(self.prior.lower_plus(self.tau * self.equations.G))

    @cached_property
    def inverse(self) -> InverseView:
        """A^-1, written out when it is first asked for all of it."""
        return InverseView(self.factor)

    @cached_property
    def mean(self) -> np.ndarray:
        """Posterior mean m of the coefficients."""
        return self.tau * self.factor.solve(self.equations.b)

    @cached_property
    def residual(self) -> float:
        """sum w k(x, x) - tr(K^-1 G): prior variance at the rows that the features miss.

        The difference is known to better than 1e-12 of its terms; that much is added, so that the bound stays below the
        evidence where signal to noise is beyond what the sums resolve, and learning has no reason to go there.
        """
        return (1.0 + _ROUNDING) * self.prior_trace - self.prior.trace_solve(self.equations.G)

    @property
    def weight(self) -> float:
        """sum w."""
        return self.equations.weight

    @property
    def yy(self) -> float:
        """sum w y^2."""
        return self.equations.yy

    @property
    def jitter(self) -> float:
        """What rounding made the factor add to the diagonal."""
        return self.factor.jitter

    @property
    def error(self) -> float:
        """How far the bound may be off by its computation, nats: not at all."""
        return 0.0

    def _blocks(self) -> Iterator[tuple[AbstractInvertible, slice]]:
        assert isinstance(self.prior, BlockDiagonal)
        return zip(self.prior.blocks, self.prior.places, strict=True)

    @property
    def explained_by_term(self) -> list[float]:
        """tr(K_s^-1 G_ss) of every block of the prior."""
        return [block.trace_solve(self.equations.G[place, place]) for block, place in self._blocks()]

    def energies(self) -> list[float]:
        """m_s'G_ss m_s of every block of the prior."""
        m, G = self.mean, self.equations.G
        return [float(m[place] @ G[place, place] @ m[place]) for _, place in self._blocks()]

    @cached_property
    def quadratic(self) -> float:
        """y' (Q + noise)^-1 y as the minimum over m of |y - Phi m|^2 / noise + m' K m: an error in m only raises it."""
        eq, m = self.equations, self.mean
        misfit = eq.yy - 2.0 * float(m @ eq.b) + float(m @ eq.G @ m)
        return self.tau * max(0.0, misfit) + float(m @ self.prior.mv(m))

    @cached_property
    def _log_volume(self) -> float:
        """log |Q + noise|."""
        return self.equations.weight * np.log(self.noise) + self.factor.logdet() - self.prior.logdet()

    @cached_property
    def elbo(self) -> float:
        """The collapsed bound, nats."""
        n = self.equations.weight
        return -0.5 * (n * np.log(2.0 * np.pi) + self._log_volume + self.quadratic + self.tau * self.residual)

    def upper_bound(self) -> float:
        """An upper bound on the evidence from the same statistics (Titsias, 2014); one more factor."""
        missed = max(0.0, self.residual)
        louder = ClosedForm(self.prior, self.equations, self.prior_trace, self.noise + missed)
        n = self.equations.weight
        return -0.5 * (n * np.log(2.0 * np.pi) + self._log_volume + louder.quadratic)

    @property
    def allowance(self) -> float:
        """The part of ``missed`` that stands for rounding, nats."""
        return 0.5 * self.tau * _ROUNDING * self.prior_trace

    @property
    def missed(self) -> float:
        """T = [sum w k(x, x) - tr(K^-1 G)] / (2 noise), the part of the bound's gap that is known, nats."""
        return 0.5 * self.tau * max(0.0, self.residual)

    @cached_property
    def cotangents(self) -> "Cotangents":
        """Derivatives of ``elbo`` with respect to everything it is made of."""
        return Cotangents(self)

    @property
    def missed_cotangents(self) -> "MissedCotangents":
        """Derivatives of ``missed``; no factor is needed."""
        return MissedCotangents(self)


@dataclass(frozen=True)
class Cotangents:
    """Derivatives of the bound, as far as each structure needs them."""

    model: ClosedForm

    @cached_property
    def inverse(self) -> Summary:
        """A^-1 as the prior's structure sees it; written out only if that needs all of it."""
        return self.model.prior.see(self.model.inverse)

    @cached_property
    def prior(self) -> Summary:
        """dELBO / dK."""
        model = self.model
        K, m = model.prior, model.mean[:, None]
        seen = self.inverse + K.see(OuterView(m, m)) + -1.0 * K.see_inverse()
        return -0.5 * (seen + model.tau * K.see_sandwich(model.equations.G))

    @cached_property
    def effective(self) -> float:
        """tau tr(A^-1 G) = P - tr(A^-1 K): how many coefficients the data determine."""
        return self.model.mean.size - self.model.prior.inner(self.inverse)

    @cached_property
    def log_noise(self) -> float:
        """dELBO / d log noise."""
        model, eq, m = self.model, self.model.equations, self.model.mean
        # tau m'Gm = tau m'b - m'Km: the structure of K again
        mKm = float(m @ model.prior.mv(m))
        misfit = model.tau * (eq.yy - float(m @ eq.b) + model.residual) - mKm
        return -0.5 * (eq.weight - self.effective - misfit)

    def gram(self, Z: np.ndarray) -> np.ndarray:
        """Z' (dELBO / dG) Z for a few columns Z (P, R); the identity gives all of it."""
        model = self.model
        moment = Z.T @ (model.factor.solve(Z) - model.prior.solve(Z)) + np.multiply.outer(m := Z.T @ model.mean, m)
        return -0.5 * model.tau * moment

    @property
    def projection(self) -> np.ndarray:
        """dELBO / db, (P,)."""
        return self.model.tau * self.model.mean

    @property
    def prior_trace(self) -> float:
        """dELBO / d sum w k(x, x)."""
        return -0.5 * self.model.tau * (1.0 + _ROUNDING)


@dataclass(frozen=True)
class MissedCotangents:
    """Derivatives of T, answering to the same names as ``Cotangents``. O(P^2)."""

    model: ClosedForm

    @cached_property
    def prior(self) -> Summary:
        """dT / dK = tau/2 K^-1 G K^-1."""
        return 0.5 * self.model.tau * self.model.prior.see_sandwich(self.model.equations.G)

    @property
    def log_noise(self) -> float:
        """T is proportional to 1 / noise."""
        return -0.5 * self.model.tau * self.model.residual

    def gram(self, Z: np.ndarray) -> np.ndarray:
        """Z' (dT / dG) Z = -tau/2 Z' K^-1 Z."""
        return -0.5 * self.model.tau * (Z.T @ self.model.prior.solve(Z))

    @property
    def projection(self) -> np.ndarray:
        """T does not see the targets."""
        return np.zeros(self.model.equations.b.size)

    @property
    def prior_trace(self) -> float:
        """dT / d sum w k(x, x)."""
        return 0.5 * self.model.tau * (1.0 + _ROUNDING)
