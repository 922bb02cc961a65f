"""Letters of harmonics and edge functions: the polynomials B_n, their Fourier series, and sums for fewer harmonics."""

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations_with_replacement

import numpy as np
from numpy.polynomial import legendre

from vff.basis import Change, HarmonicBlock, TrigonometricLetters
from vff.basis.trigonometric import pad, trim

_FEW = 256  # harmonics, beyond which a convolution is faster by way of transforms
CONSTANT = -0.5
"""The n-th derivative of B_n."""


@cache
def _legendre_series(n: int) -> np.ndarray:
    """Legendre coefficients of B_n in t."""
    if n == 1:
        return np.array([0.0, CONSTANT])
    series = legendre.legint(_legendre_series(n - 1))
    series[0] = 0.0
    return series


def _derivative(n: int, order: int) -> np.ndarray:
    if order < n:
        return _legendre_series(n - order)
    return np.array([CONSTANT if order == n else 0.0])


def bernoulli_rows(t: np.ndarray, q: int, derivative: int = 0) -> np.ndarray:
    """The given derivative of B_1 ... B_q at t, (q, N)."""
    rows = np.empty((q, t.size))
    for n in range(1, q + 1):
        rows[n - 1] = legendre.legval(t, _derivative(n, derivative))
    return rows


@cache
def bernoulli_state(side: int, q: int, p: int) -> np.ndarray:
    """Value and derivatives up to order p of B_1 ... B_q at the edge t = side, (q, p + 1); not to be written to."""
    edge = np.array([float(side)])
    return np.stack([bernoulli_rows(edge, q, j)[:, 0] for j in range(p + 1)], axis=1)


def harmonic_part(M: int, q: int, derivative: int = 0) -> np.ndarray:
    """Cosine-then-sine coefficients of the harmonics 1 ... M of the given derivative of B_1 ... B_q, (q, 2M + 1).

    Re (i omega)^(j-n) exp(i omega s) = Re a cos(omega s) - Im a sin(omega s).
    """
    wave = 1j * np.pi * np.arange(1, M + 1)
    coefficients = np.zeros((q, 2 * M + 1))
    for n in range(1, q + 1):
        a = wave ** float(derivative - n)
        coefficients[n - 1, 1 : M + 1] = a.real
        coefficients[n - 1, M + 1 :] = -a.imag
    return coefficients


def largest_resolved(q: int) -> int:
    """The largest M at which R_q, of size (pi M)^(1/2 - q), stands well above the error of B_q's harmonics."""
    return int((1e11 * np.pi**q) ** (1.0 / (q - 0.5)) / np.pi) if q > 1 else 10**9


@dataclass(frozen=True)
class EdgeLetters(TrigonometricLetters):
    """Blocks of harmonics times products of R_1 ... R_q, what harmonics up to M leave of B_1 ... B_q.

    Without edges, q = 0, they are harmonics and nothing else.
    """

    M: int
    q: int
    blocks: tuple[HarmonicBlock, ...]

    @property
    def multipliers(self) -> tuple[int, int]:
        return self.M, self.q

    def polynomials(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        return bernoulli_rows(t, self.q, derivative)

    def harmonics(self) -> np.ndarray:
        return harmonic_part(self.M, self.q)


@cache
def single_letters(M: int, q: int) -> EdgeLetters:
    """The features themselves."""
    edges = (HarmonicBlock((n,), 0) for n in range(1, q + 1))
    return EdgeLetters(M, q, (HarmonicBlock((), M), *edges))


@cache
def double_letters(M: int, q: int) -> EdgeLetters:
    """A spanning set of all products of two features."""
    crossed = (HarmonicBlock((n,), M) for n in range(1, q + 1))
    pairs = (HarmonicBlock(pair, 0) for pair in combinations_with_replacement(range(1, q + 1), 2))
    return EdgeLetters(M, q, (HarmonicBlock((), 2 * M), *crossed, *pairs))


@dataclass(frozen=True)
class FewerHarmonics(Change):
    """From M harmonics and q edge functions to m <= M and fewer edge functions.

    R_n at a smaller M is R_n at the larger and a few harmonics.
    """

    M: int
    q: int
    m: int
    fewer: int
    """Edge functions of the smaller basis."""

    def _extra(self) -> np.ndarray:
        """Coefficients of R_n(small) - R_n(large): the harmonics m + 1 ... M of B_n, (q, 2M + 1)."""
        coefficients = harmonic_part(self.M, self.q)
        coefficients[:, : self.m + 1] = 0.0
        coefficients[:, self.M + 1 : self.M + 1 + self.m] = 0.0
        return coefficients

    def single(self, values: np.ndarray) -> np.ndarray:
        H, q = 2 * self.M + 1, self.fewer
        edges = values[H : H + q] + self._extra()[:q] @ values[:H]
        return np.concatenate([trim(values[:H], self.M, self.m), edges])

    def single_transpose(self, values: np.ndarray) -> np.ndarray:
        H, q = 2 * self.m + 1, self.fewer
        edges = values[H:]
        waves = pad(values[:H], self.m, self.M) + self._extra()[:q].T @ edges
        unused = np.zeros((self.q - q, *values.shape[1:]))
        return np.concatenate([waves, edges, unused])

    def double(self, values: np.ndarray) -> np.ndarray:
        if values.ndim > 1:
            return _double_map(self) @ values
        q, slices = self.fewer, {block.edges: part for block, part in double_letters(self.M, self.q).slices}
        extra = self._extra()
        harmonics = values[slices[()]]
        crosses = [values[slices[j + 1,]] for j in range(q)]  # sums of R_j times harmonics up to the larger M
        products = [wave_product(harmonics, extra[j], self.M) for j in range(q)]
        letters = [trim(harmonics, 2 * self.M, 2 * self.m)]
        letters += [trim(crosses[j] + products[j], self.M, self.m) for j in range(q)]
        for i, j in combinations_with_replacement(range(q), 2):
            mixed = extra[j] @ crosses[i] + extra[i] @ crosses[j] + extra[i] @ products[j]
            letters.append(values[slices[i + 1, j + 1]] + mixed)
        return np.concatenate(letters)


@lru_cache(maxsize=32)
def _double_map(change: FewerHarmonics) -> np.ndarray:
    """``double`` written out, (Q of small, Q of large), for many sums at once."""
    return np.stack([change.double(letter) for letter in np.eye(double_letters(change.M, change.q).size)], axis=1)


def wave_product(moments: np.ndarray, wave: np.ndarray, K: int) -> np.ndarray:
    """Sums of w f cos(k theta) and w f sin(k theta), k <= K, for f a trigonometric sum, from moments up to degree 2K.

    With mu_k = sum w exp(i k theta) and f = Re sum_m a_m exp(i m theta): 1/2 sum_m (a_m mu_(k+m) + conj(a_m) mu_(k-m)).
    """
    top = (moments.size - 1) // 2
    mu = moments[: top + 1].astype(complex)
    mu[1:] += 1j * moments[top + 1 :]
    both = np.concatenate([mu[:0:-1].conj(), mu])  # mu_-top ... mu_top
    a = wave[: K + 1].astype(complex)
    a[1:] -= 1j * wave[K + 1 :]
    # sum_m a_m mu_(k+m) is a correlation, sum_m conj(a_m) mu_(k-m) a convolution; both for k = 0 ... K
    forward = _convolved(both[top : top + 2 * K + 1], a[::-1])
    backward = _convolved(both[top - K : top + K + 1], a.conj())
    total = 0.5 * (forward + backward)
    return np.concatenate([total.real, total[1:].imag])


def _convolved(long: np.ndarray, short: np.ndarray) -> np.ndarray:
    """Their convolution where the short one lies within the long one."""
    if short.size <= _FEW:
        return np.convolve(long, short, mode="valid")
    size = 1 << (long.size - 1).bit_length()  # what wraps around falls on places that are not asked for
    found = np.fft.ifft(np.fft.fft(long, size) * np.fft.fft(short, size))
    return found[short.size - 1 : long.size]
