"""Every formula of the half-integer Matérns against its definition."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import expm
from scipy.special import comb, gamma, kv
from tests.makers.factors import covariance_derivative

from vff.kernels import HalfInteger

ORDERS = range(5)


@pytest.mark.parametrize("p", ORDERS)
def test_covariance_is_the_bessel_form(p):
    kernel, nu = HalfInteger.from_lengthscale(p, 0.7), p + 0.5
    r = np.linspace(0.01, 3.0, 40)
    z = np.sqrt(2 * nu) * r / 0.7
    np.testing.assert_allclose(kernel.covariance(r), 2 ** (1 - nu) / gamma(nu) * z**nu * kv(nu, z), rtol=1e-10)
    assert kernel.covariance(np.zeros(1))[0] == 1.0


@pytest.mark.parametrize("p", ORDERS)
def test_spectral_density_is_the_fourier_transform(p):
    kernel = HalfInteger(p, 1.7)
    for omega in (0.0, 0.4, 3.0):
        transform = (
            2.0 * quad(lambda r, w=omega: kernel.covariance(np.array([r]))[0] * np.cos(w * r), 0, 40, limit=400)[0]
        )
        assert kernel.spectral_density(np.array([omega]))[0] == pytest.approx(transform, rel=1e-8)


@pytest.mark.parametrize("p", ORDERS)
def test_state_covariance_is_made_of_derivatives_of_the_kernel(p):
    kernel = HalfInteger(p, 1.3)
    P = kernel.state_covariance()
    for i in range(p + 1):
        for j in range(p + 1):
            # cov(f^(i)(x), f^(j)(x)) = (-1)^j k^(i+j)(0)
            derivative = covariance_derivative(kernel, np.array([1e-12]), i + j)[0]
            assert P[i, j] == pytest.approx((-1) ** j * derivative, abs=1e-8)
    assert np.linalg.eigvalsh(P).min() > 0.0


@pytest.mark.parametrize("p", ORDERS)
def test_covariance_derivatives_against_differences(p):
    kernel, r, h = HalfInteger(p, 1.3), np.array([-0.8, 0.3, 1.1]), 1e-5
    for order in range(1, 2 * p + 1):
        difference = covariance_derivative(kernel, r + h, order - 1) - covariance_derivative(kernel, r - h, order - 1)
        np.testing.assert_allclose(covariance_derivative(kernel, r, order), difference / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("p", ORDERS)
def test_tail_is_the_first_row_of_the_matrix_exponential(p):
    rate = 1.9
    F = np.diag(np.ones(p), 1)
    F[-1] = [-comb(p + 1, j) * rate ** (p + 1 - j) for j in range(p + 1)]
    kernel, r = HalfInteger(p, rate), np.array([0.0, 0.2, 1.4])
    np.testing.assert_allclose(kernel.tail(r), [expm(F * distance)[0] for distance in r], atol=1e-12)
    np.testing.assert_allclose(kernel.tail(r, 1), [(F @ expm(F * distance))[0] for distance in r], atol=1e-11)


@pytest.mark.parametrize("p", ORDERS)
def test_tail_is_the_regression_on_the_state(p):
    """E[f(b + r) | state at b] needs no more than the covariances."""
    kernel, r = HalfInteger(p, 1.4), 0.6
    cross = [(-1) ** j * covariance_derivative(kernel, np.array([r]), j)[0] for j in range(p + 1)]
    np.testing.assert_allclose(
        kernel.tail(np.array([r]))[0], np.linalg.solve(kernel.state_covariance(), cross), atol=1e-10
    )


@pytest.mark.parametrize("p", ORDERS)
def test_tail_rate_derivative(p):
    r, h = np.array([0.1, 0.9]), 1e-6
    difference = HalfInteger(p, 1.5 * np.exp(h)).tail(r) - HalfInteger(p, 1.5 * np.exp(-h)).tail(r)
    np.testing.assert_allclose(-HalfInteger(p, 1.5).tail_slopes(r)["lengthscale"], difference / (2 * h), atol=1e-8)
