"""K_uu of one column in the coordinates of ``edges``, and its derivative in the rate."""

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any, NamedTuple

import numpy as np

from vff.factors.interval.basis import ColumnBasis
from vff.factors.interval.bernoulli import bernoulli_state
from vff.factors.interval.edges import (
    bernoulli_waves,
    constant_part,
    edge_transform,
    remainder_matrix,
    tail_root,
)
from vff.factors.interval.matern import HalfInteger, unit_state_precision
from vff.factors.transform import EdgeTransform
from vff.linalg import BorderedLowRank, PositiveBorderedLowRank, namespace


class PriorParts(NamedTuple):
    """What R is made of in K_uu = R R', R = [[diag(d)^1/2, 0, W_h], [border' diag(d)^-1/2, root, W_e]]."""

    d: Any
    """Diagonal of the harmonics, (H,)."""
    constant: Any
    """The only row of the border that is not zero, that of the constant feature, (q,)."""
    root: Any
    """(q, q)."""
    W: Any
    """Rank p + 1 of the state at the left edge, (P, p + 1)."""


@dataclass(frozen=True)
class ColumnPrior:
    """K_uu for one basis, order and rate (per half domain), unit variance.

    Its features are T phi: the harmonics, and the edge functions E_n of ``edges``; T is ``transform``. With L E_n
    orthogonal to all harmonics but the constant, the integral part of the inner product is diagonal but for the row of
    the constant feature and the corner; the state at the left edge adds rank p + 1. K_uu is inversely proportional to
    the variance. ``parts``, ``state`` and ``transform`` are also known for a rate that JAX traces.
    """

    basis: ColumnBasis
    p: int
    rate: float

    @cached_property
    def _kernel(self) -> HalfInteger:
        return HalfInteger(self.p, self.rate)

    @cached_property
    def transform(self) -> EdgeTransform:
        return edge_transform(self.basis, self.p, self.rate)

    def state(self, side: int) -> np.ndarray:
        """Value and p derivatives of every feature at the edge t = side, (P, p + 1)."""
        harmonics = self.basis.harmonic_state(self.p)
        edges = bernoulli_state(side, self.basis.q, self.p)
        waves = bernoulli_waves(self.basis, self.p, self.rate)
        return namespace(self.rate).concatenate([harmonics, edges + waves @ harmonics])

    @cached_property
    def _left(self) -> np.ndarray:
        return self.state(-1)

    def _state_precision(self) -> np.ndarray:
        # P^-1 = diag(rate^-j) P1^-1 diag(rate^-j)
        scale = self.rate ** -np.arange(self.p + 1.0)
        return unit_state_precision(self.p) * np.multiply.outer(scale, scale)

    def _diagonal(self) -> np.ndarray:
        # (L/2) / S(omega) with L = 2, twice that at omega = 0
        twice = np.where(self.basis.omega == 0.0, 2.0, 1.0)
        return twice / self._kernel.spectral_density(self.basis.omega)

    def _edge_parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The border's row of the constant feature, (q,), and the root of the corner's remainder, (q, q)."""
        q, p, rate, diffusion = self.basis.q, self.p, self.rate, self._kernel.diffusion
        constant = 2.0 * rate ** (p + 1) * constant_part(q, p + 1, rate) / diffusion
        return constant, remainder_matrix(q, p + 1, rate) @ tail_root(self.basis.M, q) / diffusion**0.5

    def parts(self) -> PriorParts:
        """K_uu by its square root; P^-1 = S L L' S with S = diag(rate^-j) gives W = Z S L."""
        scale = self.rate ** -np.arange(self.p + 1.0)
        W = (self._left * scale) @ np.linalg.cholesky(unit_state_precision(self.p))
        return PriorParts(self._diagonal(), *self._edge_parts(), W)

    def matrix(self) -> PositiveBorderedLowRank:
        """K_uu."""
        constant, root = self._edge_parts()
        border = np.zeros((self.basis.harmonics, self.basis.q))
        border[0] = constant
        return PositiveBorderedLowRank(self._diagonal(), border, root, self._left, self._state_precision())

    def rate_derivative(self) -> BorderedLowRank:
        """d K_uu / d log rate with the functions held fixed (the edge functions frozen at this rate).

        The inner product is (1/diffusion) int (L g)(L h) plus the edge's; dL / d rate = (p+1) L1, L1 = (D + rate)^p.
        For an edge function and a harmonic 1 ... M only L1 E_n survives: C(p, n-1) rate^(p+1-n) / (rate + i omega).
        """
        basis, p, rate = self.basis, self.p, self.rate
        q, M, diffusion = basis.q, basis.M, self._kernel.diffusion
        omega = basis.omega
        d = self._diagonal() * (2 * (p + 1) * rate**2 / (rate**2 + omega**2) - (2 * p + 1))
        wave = 1j * omega[1 : M + 1]
        lower = np.array([comb(p, n) * rate ** float(p - n) for n in range(q)])
        image = np.multiply.outer((rate + wave).conj() ** (p + 1) / (rate + wave), lower)
        border = np.zeros((basis.harmonics, q))
        # cosines pair with the real part of (L1 E_n) conj(L exp), sines with minus the imaginary part
        border[1 : M + 1], border[M + 1 :] = np.real(image), -np.imag(image)
        zero, zero1 = constant_part(q, p + 1, rate), constant_part(q, p, rate)
        border[0] = 2.0 * rate**p * (zero + rate * zero1)
        border *= (p + 1) * rate / diffusion
        border[0] -= (2 * p + 1) * 2.0 * rate ** (p + 1) * zero / diffusion
        tails, tails1 = (remainder_matrix(q, order, rate) @ tail_root(M, q) for order in (p + 1, p))
        corner = tails1 @ tails.T + 2.0 * np.multiply.outer(zero1, zero)
        corner = (p + 1) * rate * (corner + corner.T)
        corner -= (2 * p + 1) * (tails @ tails.T + 2.0 * np.multiply.outer(zero, zero))
        orders = np.arange(p + 1.0)
        C = -np.add.outer(orders, orders) * self._state_precision()
        return BorderedLowRank(d, border, corner / diffusion, self._left, C)
