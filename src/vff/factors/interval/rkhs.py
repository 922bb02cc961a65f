"""K_uu of one column, its derivative in the rate, and what the features are beyond the edges.

Edge functions go by coordinates in which K_uu is known without cancellation, the E_n of theory (5.2):

    E_n = B_n + Re sum_(m=1..M) e_n(m) exp(i omega s)
    e_n(m) = -sum_(j<n)  C(p+1, j) rate^(p+1-j) (i omega)^(j-n) / (rate + i omega)^(p+1)

L E_n has a constant, C(p+1, n) rate^(p+1-n) (-1/2), and frequencies above M with coefficients
sum_k Lambda[n, k] (i omega)^-k, Lambda[n, k] = C(p+1, n-k) rate^(p+1-n+k).
Functions of the rate take a number, or one that JAX traces, and answer in its library.

Beyond an edge, features follow from the p + 1 numbers of their state there (theory (6.1); the paper's Table 1).
"""

from dataclasses import dataclass
from functools import cache, cached_property
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.special import zeta

from vff.factors.interval.basis import ColumnBasis
from vff.factors.interval.letters import CONSTANT, bernoulli_state
from vff.factors.interval.matern import HalfInteger, unit_state_precision
from vff.factors.transform import EdgeTransform
from vff.linalg import BorderedLowRank, PositiveBorderedLowRank, namespace


@cache
def tail_root(M: int, q: int) -> np.ndarray:
    """Lower triangular root of the Gram matrix of R_1 ... R_q in L2, (q, q)."""
    k = np.arange(1, q + 1)
    total, quarter_turns = np.add.outer(k, k), np.subtract.outer(k, k)
    sign = np.where(quarter_turns % 2 == 1, 0.0, np.where(quarter_turns % 4 == 0, 1.0, -1.0))
    # scaled by (pi (M + 1))^k first, so that the factorisation sees numbers near one
    gram = sign * (M + 1.0) ** total * zeta(total, M + 1.0)
    return cholesky(gram, lower=True) / (np.pi * (M + 1.0)) ** k[:, None] if q else np.zeros((0, 0))


@cache
def _binomials(q: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """C(order, n - k), n = 1 ... q, k = 0 ... q, and the powers order - n + k of the rate beside them, (q, q + 1)."""
    steps = np.subtract.outer(np.arange(1, q + 1), np.arange(q + 1))
    numbers = np.array([[comb(order, step) if step >= 0 else 0 for step in row] for row in steps.tolist()], float)
    return numbers.reshape(q, q + 1), np.maximum(order - steps, 0.0)


def _image(q: int, order: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Of E_1 ... E_q under (D + rate)^order: the constant, (q,), and Lambda, (q, q), of the frequencies above M."""
    numbers, powers = _binomials(q, order)
    image = numbers * rate**powers
    return CONSTANT * image[:, 0], image[:, 1:]


@cache
def _wave_powers(M: int, q: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(i omega)^j for j = 0 ... p + 1 times C(p + 1, j), (i omega)^-n for n = 1 ... q, and i omega itself."""
    wave = 1j * np.pi * np.arange(1, M + 1)
    up = np.array([comb(p + 1, j) * wave ** float(j) for j in range(p + 2)]).reshape(p + 2, M)
    down = np.array([wave ** float(-n) for n in range(1, q + 1)]).reshape(q, M)
    return up, down, wave


def _expansion(M: int, q: int, p: int, rate: float) -> np.ndarray:
    """C(p+1, j) rate^(p+1-j) (i omega)^j / (rate + i omega)^(p+1), j = 0 ... p + 1: they sum to one, (p + 2, M)."""
    up, _, wave = _wave_powers(M, q, p)
    return up * rate ** np.arange(p + 1.0, -1.0, -1.0)[:, None] / (rate + wave) ** (p + 1)


def _cosines_and_sines(waves: Any) -> Any:
    """Real coefficients (q, H) of Re(a exp(i omega s)) = Re a cos - Im a sin, none of the constant."""
    xp = namespace(waves)
    return xp.concatenate([np.zeros((len(waves), 1)), waves.real, -waves.imag], axis=1)


def bernoulli_waves(basis: ColumnBasis, p: int, rate: float) -> np.ndarray:
    """e_n, (q, H): the harmonics of E_n beside B_n."""
    M, q = basis.M, basis.q
    if not q:
        return np.zeros((0, basis.harmonics))
    below = namespace(rate).cumsum(_expansion(M, q, p, rate), axis=0)  # row j - 1: orders below j
    orders = np.minimum(np.arange(q), p + 1)
    return _cosines_and_sines(-below[orders] * _wave_powers(M, q, p)[1])


def edge_transform(basis: ColumnBasis, p: int, rate: float) -> EdgeTransform:
    """T at this rate."""
    M, q = basis.M, basis.q
    used = min(q, p + 1)  # x_n is zero for n > p + 1
    if not used:
        return EdgeTransform(np.zeros((q, basis.harmonics)))
    xp = namespace(rate)
    above = xp.cumsum(_expansion(M, q, p, rate)[::-1], axis=0)[::-1]  # row j: orders j and above
    X = _cosines_and_sines(above[1 : used + 1] * _wave_powers(M, q, p)[1][:used])
    return EdgeTransform(xp.concatenate([X, np.zeros((q - used, basis.harmonics))]))


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

    Its features are T phi: the harmonics, and the edge functions E_n; T is ``transform``. With L E_n
    orthogonal to all harmonics but the constant, the integral part of the inner product is diagonal but for the row of
    the constant feature and the corner; the state at the left edge adds rank p + 1. K_uu is inversely proportional to
    the variance. ``parts``, ``state`` and ``transform`` are also known for a rate that JAX traces.
    """

    basis: ColumnBasis
    p: int
    rate: float

    @cached_property
    def kernel(self) -> HalfInteger:
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
        return twice / self.kernel.spectral_density(self.basis.omega)

    def _edge_parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The border's row of the constant feature, (q,), and the root of the corner's remainder, (q, q)."""
        q, p, rate, diffusion = self.basis.q, self.p, self.rate, self.kernel.diffusion
        constant, remainder = _image(q, p + 1, rate)
        return 2.0 * rate ** (p + 1) * constant / diffusion, remainder @ tail_root(self.basis.M, q) / diffusion**0.5

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
        q, M, diffusion = basis.q, basis.M, self.kernel.diffusion
        omega = basis.omega
        d = self._diagonal() * (2 * (p + 1) * rate**2 / (rate**2 + omega**2) - (2 * p + 1))
        wave = 1j * omega[1 : M + 1]
        lower = np.array([comb(p, n) * rate ** float(p - n) for n in range(q)])
        image = np.multiply.outer((rate + wave).conj() ** (p + 1) / (rate + wave), lower)
        border = np.zeros((basis.harmonics, q))
        # cosines pair with the real part of (L1 E_n) conj(L exp), sines with minus the imaginary part
        border[1 : M + 1], border[M + 1 :] = np.real(image), -np.imag(image)
        (zero, remainder), (zero1, remainder1) = (_image(q, order, rate) for order in (p + 1, p))
        border[0] = 2.0 * rate**p * (zero + rate * zero1)
        border *= (p + 1) * rate / diffusion
        border[0] -= (2 * p + 1) * 2.0 * rate ** (p + 1) * zero / diffusion
        tails, tails1 = (own @ tail_root(M, q) for own in (remainder, remainder1))
        corner = tails1 @ tails.T + 2.0 * np.multiply.outer(zero1, zero)
        corner = (p + 1) * rate * (corner + corner.T)
        corner -= (2 * p + 1) * (tails @ tails.T + 2.0 * np.multiply.outer(zero, zero))
        orders = np.arange(p + 1.0)
        C = -np.add.outer(orders, orders) * self._state_precision()
        return BorderedLowRank(d, border, corner / diffusion, self._left, C)


def outward_state(prior: ColumnPrior, side: int) -> np.ndarray:
    """The state of every feature at the edge, with derivatives outwards, (P, p + 1)."""
    signs = np.where(np.arange(prior.p + 1) % 2 == 1, float(side), 1.0)
    return prior.state(side) * signs


def tail_features(prior: ColumnPrior, t: np.ndarray, derivative: int = 0) -> np.ndarray:
    """The given derivative (in t) of the features T phi at |t| > 1, (N, P)."""
    features = np.empty((t.size, prior.basis.size))
    for side in (-1, 1):
        rows = side * t > 1.0
        weights = prior.kernel.tail(np.abs(t[rows]) - 1.0, derivative) * float(side) ** derivative
        features[rows] = weights @ outward_state(prior, side).T
    return features
