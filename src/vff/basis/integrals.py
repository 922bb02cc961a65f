"""Constant inner products of the edge polynomials with every feature: integrals of phi^(i) P^(j) over [-1, 1]."""

from functools import cache
from math import comb

import numpy as np
from numpy.polynomial import legendre
from scipy.special import spherical_jn

from vff.basis.alphabet import legendre_derivative
from vff.basis.column import ColumnBasis


def _harmonic_integral(coefficients: np.ndarray, M: int, derivative: int) -> np.ndarray:
    """Integral of (d/dt)^derivative exp(i pi m (t+1)) times a Legendre series, for m = 0 ... M, complex."""
    # int_-1^1 P_n(t) exp(i w t) dt = 2 i^n j_n(w);   exp(i pi m) = (-1)^m
    m = np.arange(M + 1)
    total = sum(
        (2.0 * c * 1j**n * spherical_jn(n, np.pi * m) for n, c in enumerate(coefficients)),
        start=np.zeros(M + 1, complex),
    )
    return (1j * np.pi * m) ** derivative * (-1.0) ** m * total


def _polynomial_integral(left: np.ndarray, right: np.ndarray) -> float:
    """Integral over [-1, 1] of the product of two Legendre series."""
    product = legendre.legmul(left, right)
    return 2.0 * float(product[0])


@cache
def polynomial_integrals(basis: ColumnBasis, p: int) -> tuple[np.ndarray, np.ndarray]:
    """The constants behind <phi, P_j>: (border, corner), (2p+3, H, q) and (2p+3, q, q).

    With L = (D + lambda)^(p+1), the integral of (L f)(L P_j) is a polynomial in lambda. Entry s of the result
    collects all pairs of derivatives i + j = s with their binomial factors; it is multiplied by lambda^(2p+2-s).
    """
    M, q, top = basis.M, basis.q, p + 1
    border = np.zeros((2 * p + 3, basis.harmonics, q))
    corner = np.zeros((2 * p + 3, q, q))
    series = [[legendre_derivative(degree, j) for j in range(top + 1)] for degree in range(1, q + 1)]
    for i in range(top + 1):
        for j in range(top + 1):
            weight = comb(top, i) * comb(top, j)
            for column in range(q):
                wave = weight * _harmonic_integral(series[column][j], M, i)
                border[i + j, : M + 1, column] += wave.real
                border[i + j, M + 1 :, column] += wave.imag[1:]
                for row in range(q):
                    corner[i + j, row, column] += weight * _polynomial_integral(series[row][i], series[column][j])
    return border, corner
