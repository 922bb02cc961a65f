"""Averages of products of two features over a Gaussian: E psi = C^-1 Delta(s) C psi (theory (24.4)).

C leads from the double letters to those with B_n in place of R_n, where an average mixes few of them: with
exp(i omega t) goes a shift of the Gaussian by i omega s^2, and B_n goes to sums of B_n, B_(n-1), ....
"""

from functools import lru_cache
from itertools import combinations_with_replacement
from math import factorial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from vff.factors.interval.letters import CONSTANT, double_letters, harmonic_part, wave_product


class Mixing(NamedTuple):
    """Entries of Delta: which letter takes how much of which, at every s."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    """(entries, S)."""

    def matrix(self, size: int) -> sparse.csr_array:
        """(size, size * S), s running fastest: sums by letter and s to sums of averages."""
        S = self.values.shape[1]
        at = (np.repeat(self.rows, S), (self.columns[:, None] * S + np.arange(S)).reshape(-1))
        return sparse.csr_array((self.values.reshape(-1), at), shape=(size, size * S))


@lru_cache(maxsize=16)
def polynomial_letters(M: int, q: int) -> tuple[np.ndarray, np.ndarray]:
    """C and its inverse, (Q, Q): with R_n = B_n less harmonics, written out from the right."""
    letters = double_letters(M, q)
    slices, Q = {block.edges: part for block, part in letters.slices}, letters.size
    waves, out = harmonic_part(M, q), []
    for sign in (1.0, -1.0):
        C = np.eye(Q)
        harmonics = np.eye(4 * M + 1)
        for n in range(1, q + 1):
            # sums of H_n times harmonics up to M, from those of harmonics up to 2M
            C[slices[n,], slices[()]] = sign * np.stack([wave_product(e, waves[n - 1], M) for e in harmonics], axis=1)
        for n, m in combinations_with_replacement(range(1, q + 1), 2):
            row = C[slices[n, m].start]
            both = np.stack([wave_product(e, waves[n - 1], M) for e in harmonics], axis=1)
            row[slices[m,]] += sign * waves[n - 1]
            row[slices[n,]] += sign * waves[m - 1]
            row[slices[()]] += waves[m - 1] @ both
        out.append(C)
    return out[0], out[1]


def mixing(M: int, q: int, s: np.ndarray) -> Mixing:
    """Delta at some s, (S,)."""
    slices = {block.edges: part.start for block, part in double_letters(M, q).slices}
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    k = np.arange(2 * M + 1)
    decay = np.exp(-0.5 * np.multiply.outer(np.pi * k, s) ** 2)
    found.append((k, k, decay))
    found.append((2 * M + k[1:], 2 * M + k[1:], decay[1:]))
    for n in range(1, q + 1):
        found += _with_harmonics(M, n, s, decay[: M + 1], slices)
    for n, m in combinations_with_replacement(range(1, q + 1), 2):
        found += _products(n, m, s, slices)
    rows, columns, values = (np.concatenate(each) for each in zip(*found, strict=True))
    return Mixing(rows, columns, values)


def _with_harmonics(
    M: int, n: int, s: np.ndarray, decay: np.ndarray, slices: dict[tuple[int, ...], int]
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """E B_n exp(i omega t) = exp(-omega^2 s^2 / 2) exp(i omega t) sum_l beta_l B_(n-l).

    beta_l is the coefficient of y^l in exp(i omega s^2 y + s^2 y^2 / 2).
    """
    k, own, found = np.arange(M + 1), slices[n,], []
    shift = 1j * np.multiply.outer(np.pi * k, s**2)
    for order in range(n + 1):
        pairs = [(order - 2 * j, j) for j in range(order // 2 + 1)]
        parts = [shift**i / factorial(i) * (0.5 * s**2) ** j / factorial(j) for i, j in pairs]
        beta = decay * np.sum(parts, axis=0)
        m = n - order
        if m:
            cosines, sines = slices[m,] + k, slices[m,] + M + k
        else:
            beta, cosines, sines = CONSTANT * beta, slices[()] + k, slices[()] + 2 * M + k
        # Re and Im of beta exp: cosines of the average take Re beta cos - Im beta sin, sines Im beta cos + Re beta sin
        real, imaginary = np.real(beta), np.imag(beta)
        found.append((own + k, cosines, real))
        found.append((own + k[1:], sines[1:], -imaginary[1:]))
        found.append((own + M + k[1:], cosines[1:], imaginary[1:]))
        found.append((own + M + k[1:], sines[1:], real[1:]))
    return found


def _products(
    n: int, m: int, s: np.ndarray, slices: dict[tuple[int, ...], int]
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """E B_n B_m = sum over i + j even of E z^(i+j) s^(i+j) / (i! j!) B_(n-i) B_(m-j)."""
    found = []
    for i in range(n + 1):
        for j in range(i % 2, m + 1, 2):
            total = i + j
            moment = factorial(total) / (2.0 ** (total // 2) * factorial(total // 2))  # (total - 1)!!
            left = tuple(sorted(degree for degree in (n - i, m - j) if degree))
            value = moment * s**total / (factorial(i) * factorial(j)) * CONSTANT ** (2 - len(left))
            found.append((np.array([slices[n, m]]), np.array([slices[left]]), value[None]))
    return found
