"""K_uu of one column, its derivatives, and what the features are beyond the edges.

Edge functions go by coordinates in which K_uu is known without cancellation, the E_n of theory (5.2):

    E_n = B_n + Re sum_(m=1..M) e_n(m) exp(i omega s)
    e_n(m) = -sum_(j<n)  a_j (i omega)^(j-n) / a(i omega)

for the process a(D) f = noise. a(D) E_n has a constant, -a_n / 2, and frequencies above M with coefficients
sum_k Lambda[n, k] (i omega)^-k, Lambda[n, k] = a_(n-k). For the Matérn a_j = C(p+1, j) rate^(p+1-j).
Functions of hyperparameters take numbers, or what JAX traces, and answer in its library.

Beyond an edge, features follow from the r numbers of their state there (theory (6.1); the paper's Table 1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.special import zeta

from vff.factors.interval.autoregressive import Autoregressive, Slope
from vff.factors.interval.basis import ColumnBasis
from vff.factors.interval.inner_product import Image, Parts, remaining
from vff.factors.interval.letters import CONSTANT, bernoulli_state
from vff.factors.interval.matern import HalfInteger
from vff.factors.transform import EdgeTransform
from vff.linalg import AbstractInvertible, BorderedLowRank, PositiveBorderedLowRank, namespace


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
def _shifts(q: int, r: int) -> np.ndarray:
    """[n - k == j] for j = 0 ... r, n = 1 ... q, k = 0 ... q, (r + 1, q, q + 1)."""
    steps = np.subtract.outer(np.arange(1, q + 1), np.arange(q + 1))
    return (steps == np.arange(r + 1)[:, None, None]).astype(float)


def _image(q: int, coefficients: Sequence[Any] | np.ndarray) -> tuple[Any, Any]:
    """Of E_1 ... E_q under a(D): the constant, (q,), and Lambda, (q, q), of the frequencies above M."""
    shifts = _shifts(q, len(coefficients) - 1)
    image: Any = sum(a * shift for a, shift in zip(coefficients, shifts, strict=True))
    return CONSTANT * image[:, 0], image[:, 1:]


@cache
def _wave_powers(M: int, q: int, r: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(i omega)^j for j = 0 ... r, (i omega)^-n for n = 1 ... q, and i omega itself."""
    wave = 1j * np.pi * np.arange(1, M + 1)
    up = np.array([wave ** float(j) for j in range(r + 1)]).reshape(r + 1, M)
    down = np.array([wave ** float(-n) for n in range(1, q + 1)]).reshape(q, M)
    return up, down, wave


def _expansion(basis: ColumnBasis, process: Autoregressive) -> Any:
    """a_j (i omega)^j / a(i omega), j = 0 ... r: they sum to one, (r + 1, M)."""
    up, _, wave = _wave_powers(basis.M, basis.q, process.order)
    response = process.response(wave)
    xp = namespace(response)
    return xp.stack([a * power for a, power in zip(process.coefficients, up, strict=True)]) / response


def _cosines_and_sines(waves: Any) -> Any:
    """Real coefficients (q, H) of Re(a exp(i omega s)) = Re a cos - Im a sin, none of the constant."""
    xp = namespace(waves)
    return xp.concatenate([np.zeros((len(waves), 1)), waves.real, -waves.imag], axis=1)


def _bernoulli_waves(basis: ColumnBasis, expansion: Any) -> Any:
    """e_n, (q, H): the harmonics of E_n beside B_n."""
    M, q, r = basis.M, basis.q, len(expansion) - 1
    if not q:
        return np.zeros((0, basis.harmonics))
    below = namespace(expansion).cumsum(expansion, axis=0)  # row j - 1: orders below j
    return _cosines_and_sines(-below[np.minimum(np.arange(q), r)] * _wave_powers(M, q, r)[1])


def _edge_transform(basis: ColumnBasis, expansion: Any) -> EdgeTransform:
    """T at these hyperparameters."""
    M, q, r = basis.M, basis.q, len(expansion) - 1
    used = min(q, r)  # x_n is zero for n > r
    if not used:
        return EdgeTransform(np.zeros((q, basis.harmonics)))
    xp = namespace(expansion)
    above = xp.cumsum(expansion[::-1], axis=0)[::-1]  # row j: orders j and above
    X = _cosines_and_sines(above[1 : used + 1] * _wave_powers(M, q, r)[1][:used])
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
    """Rank r of the state at the left edge, (P, r)."""


class SpectralPrior:
    """K_uu for one basis and one autoregressive process (in half domains), unit variance.

    Its features are T phi: the harmonics, and the edge functions E_n; T is ``transform``. With a(D) E_n
    orthogonal to all harmonics but the constant, the integral part of the inner product is diagonal but for the row of
    the constant feature and the corner; the state at the left edge adds rank r. K_uu is inversely proportional to
    the variance. ``parts``, ``state`` and ``transform`` are also known for hyperparameters that JAX traces.
    """

    if TYPE_CHECKING:

        @property
        def basis(self) -> ColumnBasis: ...

        @property
        def kernel(self) -> Autoregressive: ...

    @cached_property
    def _expansion(self) -> Any:
        return _expansion(self.basis, self.kernel)

    @cached_property
    def transform(self) -> EdgeTransform:
        return _edge_transform(self.basis, self._expansion)

    def state(self, side: int) -> np.ndarray:
        """Value and r - 1 derivatives of every feature at the edge t = side, (P, r)."""
        highest = self.kernel.order - 1
        harmonics = self.basis.harmonic_state(highest)
        edges = bernoulli_state(side, self.basis.q, highest)
        edges = edges + _bernoulli_waves(self.basis, self._expansion) @ harmonics
        return namespace(edges).concatenate([harmonics, edges])

    @cached_property
    def _left(self) -> np.ndarray:
        return self.state(-1)

    @cached_property
    def _diagonal(self) -> np.ndarray:
        # (L/2) / S(omega) with L = 2, twice that at omega = 0
        twice = np.where(self.basis.omega == 0.0, 2.0, 1.0)
        return twice / self.kernel.spectral_density(self.basis.omega)

    def _edge_parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The border's row of the constant feature, (q,), and the root of the corner's remainder, (q, q)."""
        q, a, diffusion = self.basis.q, self.kernel.coefficients, self.kernel.diffusion
        constant, remainder = _image(q, a)
        return 2.0 * a[0] * constant / diffusion, remainder @ tail_root(self.basis.M, q) / diffusion**0.5

    def parts(self) -> PriorParts:
        """K_uu by its square root."""
        return PriorParts(self._diagonal, *self._edge_parts(), self._left @ self.kernel.state_root())

    def matrix(self) -> AbstractInvertible:
        """K_uu."""
        constant, root = self._edge_parts()
        border = np.zeros((self.basis.harmonics, self.basis.q))
        border[0] = constant
        return PositiveBorderedLowRank(self._diagonal, border, root, self._left, self.kernel.state_precision())

    def _under(self, b: np.ndarray, *, own: bool = False) -> Image:
        """The functions under b(D), held where they are at these values; under a(D) nothing is left of E_n up to M."""
        basis, a = self.basis, np.array(self.kernel.coefficients)
        wave = _wave_powers(basis.M, basis.q, self.kernel.order)[2]
        response = self.kernel.response(wave)
        waves = response if own else np.polynomial.polynomial.polyval(wave, b)
        edges = np.zeros((basis.q, basis.M)) if own else remaining(basis, a, b, response)
        constants, remainder = _image(basis.q, b)
        return Image(b[0], waves, edges, constants, remainder @ tail_root(basis.M, basis.q))

    @cached_property
    def _as_is(self) -> Image:
        return self._under(np.array(self.kernel.coefficients), own=True)

    @cached_property
    def _moved(self) -> dict[str, Image]:
        """By hyperparameter, under what its logarithm moves a by."""
        return {name: self._under(slope.coefficients) for name, slope in self._slopes.items()}

    @cached_property
    def _slopes(self) -> Mapping[str, Slope]:
        return self.kernel.slopes()

    @cached_property
    def _still(self) -> Parts:
        """S(a, a)."""
        return self._as_is.paired(self._as_is)

    @cached_property
    def _turned(self) -> dict[str, Parts]:
        """S(a, b), by hyperparameter."""
        return {name: self._as_is.paired(moved) for name, moved in self._moved.items()}

    @cached_property
    def _derivatives(self) -> dict[str, BorderedLowRank]:
        return {}  # remembered, because slopes and curvature ask for the same ones

    def _made_of(self, parts: Parts, state_precision: np.ndarray) -> BorderedLowRank:
        d, border, corner = (part / self.kernel.diffusion for part in parts)
        return BorderedLowRank(d, border, corner, self._left, state_precision)

    def derivative(self, name: str) -> BorderedLowRank:
        """d K_uu / d log hyperparameter with the functions held fixed (the edge functions frozen at these values).

        The inner product is (1/diffusion) int (a(D) g)(a(D) h) plus the edge's, and a moves as b (theory (16.4)).
        """
        if name not in self._derivatives:
            slope = self._slopes[name]
            parts = Parts.sum((1.0, self._turned[name]), (-0.5 * slope.log_diffusion, self._still))
            self._derivatives[name] = self._made_of(parts, slope.state_precision)
        return self._derivatives[name]

    def second_derivative(self, name: str, other: str) -> BorderedLowRank | None:
        """d2 K_uu / d log hyperparameters, the functions held; None where the kernel does not know its own."""
        second = self.kernel.curvatures().get((name, other))
        if second is None:
            return None
        one, two = (self._slopes[own].log_diffusion for own in (name, other))
        parts = Parts.sum(
            (0.5 * (one * two - second.log_diffusion), self._still),
            (-one, self._turned[other]),
            (-two, self._turned[name]),
            (1.0, self._moved[name].paired(self._moved[other])),
            (1.0, self._as_is.paired(self._under(second.coefficients))),
        )
        return self._made_of(parts, second.state_precision)


@dataclass(frozen=True)
class ColumnPrior(SpectralPrior):
    """That of a Matérn, by order and rate (per half domain)."""

    basis: ColumnBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    p: int
    rate: float

    @cached_property
    def kernel(self) -> HalfInteger:  # pyright: ignore[reportIncompatibleMethodOverride]  # remembered
        return HalfInteger(self.p, self.rate)


def outward_state(prior: SpectralPrior, side: int) -> np.ndarray:
    """The state of every feature at the edge, with derivatives outwards, (P, r)."""
    signs = np.where(np.arange(prior.kernel.order) % 2 == 1, float(side), 1.0)
    return prior.state(side) * signs


def tail_features(prior: SpectralPrior, t: np.ndarray, derivative: int = 0) -> np.ndarray:
    """The given derivative (in t) of the features T phi at |t| > 1, (N, P)."""
    features = np.empty((t.size, prior.basis.size))
    for side in (-1, 1):
        rows = side * t > 1.0
        weights = prior.kernel.tail(np.abs(t[rows]) - 1.0, derivative) * float(side) ** derivative
        features[rows] = weights @ outward_state(prior, side).T
    return features
