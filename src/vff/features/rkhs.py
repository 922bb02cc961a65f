"""K_uu of one column as a bordered diagonal-plus-low-rank matrix, and its derivative in the rate."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.basis import ColumnBasis, polynomial_integrals
from vff.kernels.matern import HalfInteger, unit_state_precision
from vff.linalg import BorderedDiagonal

# When the lengthscale is short against the domain, a combination of the polynomials differs from the harmonics only
# in boundary layers of width 1/rate, by about rate^-(2p+3) of its norm: less than float64 resolves. Raising the corner
# of K_uu by this relative amount makes such directions fade out smoothly. It lowers Q = phi' K_uu^-1 phi, and the
# collapsed bound is valid for every Q below the true covariance, so the ELBO stays a lower bound.
_CORNER_MARGIN = 1e-11


@dataclass(frozen=True)
class ColumnPrior:
    """The constants of K_uu for one basis and order; ``at`` and ``rate_derivative`` fill in the rate.

    Every entry of K_uu is a Laurent polynomial in the rate: the integral part sum_s rate^(1-s) B_s, the edge part
    rate^-(j+k) times the derivatives j and k at a. Its derivative in log rate multiplies each power by its exponent.
    Unit variance: K_uu is inversely proportional to the variance.
    """

    basis: ColumnBasis
    p: int

    @cached_property
    def _state(self) -> np.ndarray:
        return self.basis.edge_state(-1.0, self.p)

    def at(self, rate: float) -> BorderedDiagonal:
        """K_uu for unit variance; ``rate`` is per half domain."""
        return self._assemble(rate, differentiate=False)

    def rate_derivative(self, rate: float) -> BorderedDiagonal:
        """d K_uu / d log rate, of the same structure (not positive definite)."""
        return self._assemble(rate, differentiate=True)

    def _assemble(self, rate: float, *, differentiate: bool) -> BorderedDiagonal:
        kernel, H = HalfInteger(self.p, rate), self.basis.harmonics
        # diagonal: (L/2) / S(omega) with L = 2, twice that at omega = 0
        omega = self.basis.omega
        d = 1.0 / kernel.spectral_density(omega)
        d[0] *= 2.0
        powers = 1.0 - np.arange(2 * self.p + 3)
        weights = rate**powers / (kernel.diffusion / rate ** (2 * self.p + 1))
        # low rank: Z diag(rate^-j) P1^-1 diag(rate^-k) Z'
        orders = np.arange(self.p + 1.0)
        C = unit_state_precision(self.p) * rate ** -np.add.outer(orders, orders)
        if differentiate:
            d *= 2 * (self.p + 1) * rate**2 / (rate**2 + omega**2) - (2 * self.p + 1)
            weights = weights * powers
            C = -np.add.outer(orders, orders) * C
        Z = self._state
        border, corner = polynomial_integrals(self.basis, self.p)
        edge = Z @ C @ Z[H:].T
        polynomials = np.tensordot(weights, corner, 1) + edge[H:]
        polynomials[np.diag_indices(self.basis.q)] *= 1.0 + _CORNER_MARGIN
        return BorderedDiagonal(d, Z[:H], C, np.tensordot(weights, border, 1) + edge[:H], polynomials)
