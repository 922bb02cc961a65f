"""The Gram matrix of cosines and sines from trigonometric moments, Toeplitz plus or minus Hankel: theory (2.1).

A trigonometric vector is laid out as C_0 ... C_K, S_1 ... S_K, sums of w cos(k theta) and w sin(k theta), K = 2M.
"""

from collections.abc import Iterator

import numpy as np


def _indices(M: int) -> tuple[np.ndarray, np.ndarray]:
    m = np.arange(M + 1)
    return m[:, None] - m[None, :], m[:, None] + m[None, :]


def trigonometric_gram(moments: np.ndarray, M: int) -> np.ndarray:
    """The (2M+1, 2M+1, ...) Gram matrix of C-then-S harmonics from the (4M+1, ...) moments of degree up to 2M."""
    more = moments.shape[1:]
    C, S = moments[: 2 * M + 1], np.concatenate([np.zeros((1, *more)), moments[2 * M + 1 :]])
    difference, total = _indices(M)
    sign = np.sign(-difference).reshape(M + 1, M + 1, *[1] * len(more))
    even, even_sum = C[np.abs(difference)], C[total]
    odd, odd_sum = sign * S[np.abs(difference)], S[total]
    gram = np.empty((2 * M + 1, 2 * M + 1, *more))
    gram[: M + 1, : M + 1] = 0.5 * (even + even_sum)
    gram[M + 1 :, M + 1 :] = 0.5 * (even - even_sum)[1:, 1:]
    gram[: M + 1, M + 1 :] = 0.5 * (odd_sum + odd)[:, 1:]
    gram[M + 1 :, : M + 1] = np.swapaxes(gram[: M + 1, M + 1 :], 0, 1)
    return gram


def trigonometric_gram_adjoint(S: np.ndarray) -> np.ndarray:
    """The transpose of ``trigonometric_gram``: <gram(m), S> = <m, adjoint(S)>. Sums along (anti)diagonals of S."""
    M = (S.shape[0] - 1) // 2
    difference, total = (index.ravel() for index in _indices(M))
    cc = S[: M + 1, : M + 1]
    ss = np.zeros_like(cc)
    ss[1:, 1:] = S[M + 1 :, M + 1 :]
    cs = np.zeros_like(cc)
    cs[:, 1:] = S[: M + 1, M + 1 :] + S[M + 1 :, : M + 1].T

    def collect(index: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.bincount(index, weights=values.ravel(), minlength=2 * M + 1)

    even = 0.5 * (collect(np.abs(difference), cc + ss) + collect(total, cc - ss))
    signed = np.sign(-difference).reshape(cs.shape) * cs
    odd = 0.5 * (collect(np.abs(difference), signed) + collect(total, cs))
    return np.concatenate([even, odd[1:]])


def trigonometric_entries(M: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """``trigonometric_gram`` entry by entry: (moment, row, column, factor), as vectors."""
    m, n = (index.ravel() for index in np.meshgrid(np.arange(M + 1), np.arange(M + 1), indexing="ij"))
    half, apart = np.full(m.size, 0.5), np.abs(m - n)
    sines = (m > 0) & (n > 0)
    yield apart, m, n, half
    yield m + n, m, n, half
    yield apart[sines], M + m[sines], M + n[sines], half[sines]
    yield (m + n)[sines], M + m[sines], M + n[sines], -half[sines]
    crossed = n > 0  # cosine m with sine n
    for row, column in ((m, M + n), (M + n, m)):
        yield (2 * M + m + n)[crossed], row[crossed], column[crossed], half[crossed]
        different = crossed & (m != n)
        sign = 0.5 * np.sign(n - m)
        yield (2 * M + apart)[different], row[different], column[different], sign[different]
