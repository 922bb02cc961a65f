"""The sums for a smaller basis from those for a larger: R_n at a smaller M is R_n at the larger and a few harmonics."""

from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np

from vff.basis import ColumnBasis, harmonic_part
from vff.moments.waves import pad, trim


def _extra(small: ColumnBasis, large: ColumnBasis) -> np.ndarray:
    """Coefficients of R_n(small) - R_n(large): the harmonics small.M + 1 ... large.M of B_n, (q, H of large)."""
    coefficients = harmonic_part(large.M, large.q)
    coefficients[:, : small.M + 1] = 0.0
    coefficients[:, large.M + 1 : large.M + 1 + small.M] = 0.0
    return coefficients


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


def restrict_rows(small: ColumnBasis, large: ColumnBasis, block: np.ndarray) -> np.ndarray:
    """From sums w y phi (P,), or w phi z' (P, Z), of the larger basis to those of the smaller."""
    H, q = large.harmonics, small.q
    edges = block[H : H + q] + _extra(small, large)[:q] @ block[:H]
    return np.concatenate([trim(block[:H], large.M, small.M), edges])


def embed_rows(small: ColumnBasis, large: ColumnBasis, coefficients: np.ndarray) -> np.ndarray:
    """From coefficients (P, ...) in the smaller basis to those of the same function in the larger; the transpose."""
    H, q = small.harmonics, small.q
    edges = coefficients[H:]
    waves = pad(coefficients[:H], small.M, large.M) + _extra(small, large)[:q].T @ edges
    unused = np.zeros((large.q - q, *coefficients.shape[1:]))
    return np.concatenate([waves, edges, unused])


def restrict_gram(small: ColumnBasis, large: ColumnBasis, gram: np.ndarray) -> np.ndarray:
    """sum w psi for the smaller basis, (Q,) or (Q, Z)."""
    if gram.ndim > 1:
        return _gram_map(small, large) @ gram
    q, places = small.q, {sheet.edges: place for sheet, place in large.double.slices()}
    extra = _extra(small, large)
    harmonics = gram[places[()]]
    crosses = [gram[places[j + 1,]] for j in range(q)]  # sums of R_j times harmonics up to the larger M
    products = [_wave_product(harmonics, extra[j], large.M) for j in range(q)]
    letters = [trim(harmonics, 2 * large.M, 2 * small.M)]
    letters += [trim(crosses[j] + products[j], large.M, small.M) for j in range(q)]
    for i, j in combinations_with_replacement(range(q), 2):
        mixed = extra[j] @ crosses[i] + extra[i] @ crosses[j] + extra[i] @ products[j]
        letters.append(gram[places[i + 1, j + 1]] + mixed)
    return np.concatenate(letters)


@lru_cache(maxsize=32)
def _gram_map(small: ColumnBasis, large: ColumnBasis) -> np.ndarray:
    """``restrict_gram`` written out, (Q of small, Q of large), for many sums at once."""
    return np.stack([restrict_gram(small, large, letter) for letter in np.eye(large.double.size)], axis=1)
