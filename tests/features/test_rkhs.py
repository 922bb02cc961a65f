"""K_uu, features and tails against the definition of the RKHS inner product on [a, b], by quadrature."""

from math import comb

import mpmath
import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

from vff.basis import ColumnBasis
from vff.features import ColumnPrior, tail_features
from vff.kernels import HalfInteger

CASES = [(p, q, rate) for p in range(4) for q in sorted({0, 1, p + 2, p + 3}) for rate in (0.5, 3.0, 60.0)]


def _operator(values, p, rate):
    """(D + rate)^(p+1) from a function giving derivatives."""
    return sum(comb(p + 1, i) * rate ** (p + 1 - i) * values(i) for i in range(p + 2))


def _inner_product_gram(prior: ColumnPrior, rate: float) -> np.ndarray:
    """<phi_i, phi_j> for the features of ``prior``, under the kernel with this rate."""
    basis, p, kernel = prior.basis, prior.p, HalfInteger(prior.p, rate)
    t, w = leggauss(120)
    image = prior.transform.forward(_operator(lambda i: basis.evaluate(t, i), p, rate).T)
    edge = [prior.transform.forward(basis.evaluate(np.array([-1.0]), j)[0]) for j in range(p + 1)]
    Z = np.stack(edge, axis=1)
    return Z @ np.linalg.inv(kernel.state_covariance()) @ Z.T + (image * w) @ image.T / kernel.diffusion


@pytest.mark.parametrize(("p", "q", "rate"), CASES)
def test_gram_matrix_is_the_inner_product(p, q, rate):
    prior = ColumnPrior(ColumnBasis(5, q), p, rate)
    expected = _inner_product_gram(prior, rate)
    scale = 1.0 / np.sqrt(np.diagonal(expected))
    np.testing.assert_allclose(
        prior.matrix().to_dense() * scale * scale[:, None], expected * scale * scale[:, None], atol=1e-9
    )


@pytest.mark.parametrize(("p", "q", "rate"), CASES)
def test_rate_derivative_at_fixed_functions(p, q, rate):
    prior, h = ColumnPrior(ColumnBasis(5, q), p, rate), 1e-5
    difference = _inner_product_gram(prior, rate * np.exp(h)) - _inner_product_gram(prior, rate * np.exp(-h))
    scale = 1.0 / np.sqrt(np.diagonal(prior.matrix().to_dense()))
    error = (-prior.derivative("lengthscale").to_dense() - difference / (2 * h)) * scale * scale[:, None]
    assert np.abs(error).max() < 1e-6


@pytest.mark.parametrize("p", [0, 1, 2])
@pytest.mark.parametrize("rate", ["0.002", "2", "1500"])
def test_extreme_lengthscales_against_fifty_digits(p, rate):
    """Where float64 quadrature of the definition is hopeless, the structured entries still hold."""
    M, q = 4, p + 2
    prior = ColumnPrior(ColumnBasis(M, q), p, float(rate))
    with mpmath.workdps(50):
        expected = _mpmath_gram(M, q, p, mpmath.mpf(rate))
    scale = 1.0 / np.sqrt(np.diagonal(expected))
    error = (prior.matrix().to_dense() - expected) * scale * scale[:, None]
    assert np.abs(error).max() < 1e-9


def _mpmath_gram(M, q, p, lam):
    """The Gram matrix of harmonics and E_n with everything, E_n included, in extended precision."""
    mp = mpmath.mp
    omega = [mp.pi * m for m in range(M + 1)]

    def bernoulli(n, s, j):
        k = n - j
        if k == 0:
            return mp.mpf(-1) / 2
        return mp.mpf(0) if k < 0 else -(mp.mpf(2) ** (k - 1)) / mp.factorial(k) * mp.bernpoly(k, s / 2)

    def feature(index, s, j):
        if index <= M:
            return mp.re((1j * omega[index]) ** j * mp.expj(omega[index] * s)) if j or index else mp.mpf(1)
        if index <= 2 * M:
            w = omega[index - M]
            return mp.im((1j * w) ** j * mp.expj(w * s))
        n = index - 2 * M
        total = bernoulli(n, s, j)
        for w in omega[1:]:
            e = -mp.fsum(mp.binomial(p + 1, i) * lam ** (p + 1 - i) * (1j * w) ** (i - n) for i in range(min(n, p + 2)))
            total += mp.re(e / (lam + 1j * w) ** (p + 1) * (1j * w) ** j * mp.expj(w * s))
        return total

    P = 2 * M + 1 + q
    nodes, weights = _mp_gauss(48)  # exact for the polynomials, and far beyond 1e-12 for the waves
    kernel_beta = mp.beta(mp.mpf(1) / 2, p + mp.mpf(1) / 2)
    diffusion = lam ** (2 * p + 1) * 2 * mp.pi / kernel_beta
    image = np.empty((P, len(nodes)), object)
    for i in range(P):
        for k, t in enumerate(nodes):
            image[i, k] = mp.fsum(
                mp.binomial(p + 1, j) * lam ** (p + 1 - j) * feature(i, t + 1, j) for j in range(p + 2)
            )
    state = mp.matrix(
        [[lam ** (i + j) * _unit_state(i, j, p, kernel_beta) for j in range(p + 1)] for i in range(p + 1)]
    )
    precision = state**-1
    Z = [[feature(i, mp.mpf(0), j) for j in range(p + 1)] for i in range(P)]
    gram = np.empty((P, P))
    for i in range(P):
        for j in range(P):
            edge = mp.fsum(Z[i][a] * precision[a, b] * Z[j][b] for a in range(p + 1) for b in range(p + 1))
            integral = mp.fsum(w * x * y for w, x, y in zip(weights, image[i], image[j], strict=True))
            gram[i, j] = float(edge + integral / diffusion)
    return gram


def _unit_state(i, j, p, normaliser):
    if (i + j) % 2:
        return mpmath.mpf(0)
    n = (i + j) // 2
    half = mpmath.mpf(1) / 2
    return (-1) ** ((i - j) // 2) * mpmath.beta(n + half, p + half - n) / normaliser


def _mp_gauss(count):
    """Gauss-Legendre nodes and weights in the working precision: Newton from the float64 nodes."""
    nodes, weights = [], []
    for start in leggauss(count)[0]:
        x = mpmath.mpf(float(start))
        for _ in range(3):
            value, before = mpmath.legendre(count, x), mpmath.legendre(count - 1, x)
            slope = count * (x * value - before) / (x**2 - 1)
            x -= value / slope
        before = mpmath.legendre(count - 1, x)
        slope = -count * before / (x**2 - 1)
        nodes.append(x)
        weights.append(2 / ((1 - x**2) * slope**2))
    return nodes, weights


@pytest.mark.parametrize("r", [0.0, 0.3, 2.0])
def test_table_one_of_the_paper(r):
    """The printed tails of cosines and sines for the three Matérns (lambda per half domain)."""
    basis, rate = ColumnBasis(3, 0), 1.8
    m = np.pi * np.arange(4)
    decay = np.exp(-rate * r)
    cosine = {0: 1.0 + 0 * m, 1: 1 + rate * r + 0 * m, 2: 1 + rate * r + 0.5 * (rate**2 - m**2) * r**2}
    sine = {0: 0 * m, 1: r * m, 2: r * m * (1 + rate * r)}
    for p in range(3):
        for side, sign in ((-1, -1.0), (1, 1.0)):
            got = tail_features(ColumnPrior(basis, p, rate), np.array([side * (1.0 + r + 1e-15)]))[0]
            # walking out of b the derivative counts as it is, walking out of a with its sign changed
            expected = np.concatenate([cosine[p], sign * sine[p][1:]]) * decay
            np.testing.assert_allclose(got, expected, atol=1e-10)


@pytest.mark.parametrize("p", [1, 2])
def test_tails_join_the_features_smoothly(p):
    prior = ColumnPrior(ColumnBasis(4, p + 2), p, 2.0)
    for side in (-1.0, 1.0):
        for derivative in range(p + 1):
            inside = prior.transform.forward(prior.basis.evaluate(np.array([side]), derivative)[0])
            outside = tail_features(prior, np.array([side * (1 + 1e-12)]), derivative)[0]
            np.testing.assert_allclose(outside, inside, atol=1e-8 * (4 * np.pi) ** derivative)


@pytest.mark.parametrize("p", [0, 1, 2])
def test_conditioning_does_not_depend_on_the_lengthscale(p):
    for rate in (1e-3, 1.0, 1e3):
        for M in (5, 40, 200):
            K = ColumnPrior(ColumnBasis(M, p + 2), p, rate).matrix()
            dense, scale = K.to_dense(), 1.0 / np.sqrt(np.diagonal(K.to_dense()))
            assert np.linalg.cond(dense * scale * scale[:, None]) < 100.0
