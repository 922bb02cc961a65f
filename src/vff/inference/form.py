"""Closed-form regression in coefficient space: the collapsed bound and its cotangents. Written once, for every solver.

With prior precision K of the coefficients c (for variational features K = K_uu), b = Phi' W y, G = Phi' W Phi, noise
precision tau and n = sum w (paper, section 2.4.5; design Fact E):

    A    = K + tau G,     c | y ~ N(m, A^-1),     m = tau A^-1 b
    ELBO = -1/2 [ n log(2 pi / tau) + log|A| - log|K| + tau y'Wy - tau m'b ] - tau/2 [ sum w k(x,x) - tr(K^-1 G) ]

Its derivatives need what the prior's structure keeps of A^-1 and of K^-1 G K^-1:

    dELBO/dK   = -1/2 [ A^-1 + m m' - K^-1 (K - tau G) K^-1 ]
    dELBO/dG   = -tau/2 [ A^-1 + m m' - K^-1 ]            dELBO/db = tau m
    dELBO/dtau = 1/2 [ n / tau - tr(A^-1 G) - y'Wy + 2 m'b - m'Gm - (sum w k(x,x) - tr(K^-1 G)) ]

A form is such a model at one setting of its hyperparameters. How A is solved with is its own business: ``collapsed``
factors it, ``iterative`` does not.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from vff.linalg import AbstractInvertible, OuterView, Summary

_ROUNDING = 1e-12


@dataclass(frozen=True)
class AbstractForm(ABC):
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

    @property
    @abstractmethod
    def mean(self) -> np.ndarray:
        """Posterior mean m of the coefficients."""

    @abstractmethod
    def solve(self, v: np.ndarray) -> np.ndarray:
        """A^-1 v, (P, S)."""

    @property
    @abstractmethod
    def explained(self) -> float:
        """tr(K^-1 G)."""

    @property
    @abstractmethod
    def energy(self) -> float:
        """m'G m."""

    @property
    @abstractmethod
    def log_volume(self) -> float:
        """log |Q + noise| = n log noise + log |A| - log |K|."""

    @property
    @abstractmethod
    def error(self) -> float:
        """How far the bound may be off by its computation, nats."""

    @property
    @abstractmethod
    def jitter(self) -> float:
        """What rounding made a factor add to its diagonal."""

    @property
    @abstractmethod
    def seen_inverse(self) -> Summary:
        """What the prior's structure keeps of A^-1."""

    @property
    @abstractmethod
    def seen_sandwich(self) -> Summary:
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
        return (1.0 + _ROUNDING) * self.prior_trace - self.explained

    @cached_property
    def quadratic(self) -> float:
        """y' (Q + noise)^-1 y as the minimum over m of |y - Phi m|^2 / noise + m' K m: an error in m only raises it."""
        m = self.mean
        misfit = self.yy - 2.0 * float(m @ self.b) + self.energy
        least = -np.inf if self.sites else 0.0  # below zero there is only rounding
        return self.tau * max(least, misfit) + float(m @ self.prior.mv(m))

    @cached_property
    def elbo(self) -> float:
        """The collapsed bound, nats."""
        n = self.weight
        return -0.5 * (n * np.log(2.0 * np.pi) + self.log_volume + self.quadratic + self.tau * self.residual)

    @cached_property
    def divergence(self) -> float:
        """KL[q(c) || p(c)] = 1/2 [ tr(K A^-1) - P + m'Km + log|A| - log|K| ], nats, of a model with unit noise."""
        m = self.mean
        return 0.5 * (float(m @ self.prior.mv(m)) + self.log_volume - self.cotangents.effective)

    def upper_bound(self) -> float:
        """An upper bound on the evidence from the same statistics (Titsias, 2014); one more solution."""
        louder = self.with_noise(self.noise + max(0.0, self.residual))
        return -0.5 * (self.weight * np.log(2.0 * np.pi) + self.log_volume + louder.quadratic) + self.error

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
        """Derivatives of ``missed``; A is not solved with."""
        return MissedCotangents(self)


@dataclass(frozen=True)
class Cotangents:
    """Derivatives of the bound, as far as each structure needs them."""

    model: AbstractForm

    @property
    def inverse(self) -> Summary:
        """A^-1 as the prior's structure sees it."""
        return self.model.seen_inverse

    @cached_property
    def prior(self) -> Summary:
        """dELBO / dK."""
        K, m = self.model.prior, self.model.mean[:, None]
        seen = self.inverse + K.see(OuterView(m, m)) + -1.0 * K.see_inverse()
        return -0.5 * (seen + self.model.tau * self.model.seen_sandwich)

    @cached_property
    def effective(self) -> float:
        """tau tr(A^-1 G) = P - tr(A^-1 K): how many coefficients the data determine."""
        return self.model.mean.size - self.model.prior.inner(self.inverse)

    @cached_property
    def log_noise(self) -> float:
        """dELBO / d log noise."""
        model, m = self.model, self.model.mean
        # tau m'Gm = tau m'b - m'Km: the structure of K again
        mKm = float(m @ model.prior.mv(m))
        misfit = model.tau * (model.yy - float(m @ model.b) + model.residual) - mKm
        return -0.5 * (model.weight - self.effective - misfit)

    def gram(self, Z: np.ndarray) -> np.ndarray:
        """Z' (dELBO / dG) Z for a few columns Z (P, R); the identity gives all of it."""
        model = self.model
        moment = Z.T @ (model.solve(Z) - model.prior.solve(Z)) + np.multiply.outer(m := Z.T @ model.mean, m)
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

    model: AbstractForm

    @cached_property
    def prior(self) -> Summary:
        """dT / dK = tau/2 K^-1 G K^-1."""
        return 0.5 * self.model.tau * self.model.seen_sandwich

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
        return np.zeros(self.model.b.size)

    @property
    def prior_trace(self) -> float:
        """dT / d sum w k(x, x)."""
        return 0.5 * self.model.tau * (1.0 + _ROUNDING)
