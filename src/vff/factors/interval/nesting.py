"""The sums for a smaller basis from those for a larger: R_n at a smaller M is R_n at the larger and a few harmonics."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np

from vff.basis import Change
from vff.basis.waves import pad, trim
from vff.factors.interval.bernoulli import harmonic_part
from vff.factors.interval.letters import double_letters


@dataclass(frozen=True)
class FewerHarmonics(Change):
    """From M harmonics and q edge functions to m <= M and fewer edge functions."""

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
        q, places = self.fewer, {block.edges: place for block, place in double_letters(self.M, self.q).slices}
        extra = self._extra()
        harmonics = values[places[()]]
        crosses = [values[places[j + 1,]] for j in range(q)]  # sums of R_j times harmonics up to the larger M
        products = [_wave_product(harmonics, extra[j], self.M) for j in range(q)]
        letters = [trim(harmonics, 2 * self.M, 2 * self.m)]
        letters += [trim(crosses[j] + products[j], self.M, self.m) for j in range(q)]
        for i, j in combinations_with_replacement(range(q), 2):
            mixed = extra[j] @ crosses[i] + extra[i] @ crosses[j] + extra[i] @ products[j]
            letters.append(values[places[i + 1, j + 1]] + mixed)
        return np.concatenate(letters)

    def double_transpose(self, values: np.ndarray) -> np.ndarray:
        return _double_map(self).T @ values


@lru_cache(maxsize=32)
def _double_map(change: FewerHarmonics) -> np.ndarray:
    """``double`` written out, (Q of small, Q of large), for many sums at once."""
    return np.stack([change.double(letter) for letter in np.eye(double_letters(change.M, change.q).size)], axis=1)


def _wave_product(moments: np.ndarray, wave: np.ndarray, K: int) -> np.ndarray:
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
    forward = np.convolve(both[top : top + 2 * K + 1], a[::-1], mode="valid")
    backward = np.convolve(both[top - K : top + K + 1], a.conj(), mode="valid")
    total = 0.5 * (forward + backward)
    return np.concatenate([total.real, total[1:].imag])
