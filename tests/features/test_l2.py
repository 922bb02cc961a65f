"""L2 Fourier features against single and double quadrature of their definition."""

import itertools

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

from vff.basis import Interval
from vff.features import L2Features
from vff.kernels import HalfInteger

A, B = 0.3, 2.1


def _panels(cuts, count=40):
    nodes, weights = leggauss(count)
    for low, high in itertools.pairwise(cuts):
        yield low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2


def _real(waves):
    """Real parts, then imaginary parts without the zero frequency."""
    return np.concatenate([waves.real, waves.imag[1:]])


@pytest.mark.parametrize("p", range(4))
def test_cross_covariance(p):
    features = L2Features(Interval(A, B), 3, HalfInteger(p, 1.6))
    for x in (A, 0.9, B):
        total = 0.0
        for t, w in _panels(sorted({A, x, B})):
            waves = np.exp(-1j * np.outer(features.omega, t - A))
            total = total + waves @ (w * features.kernel.covariance(t - x))
        np.testing.assert_allclose(features.cross(np.array([x]))[:, 0], _real(total), atol=1e-11)


@pytest.mark.parametrize("p", range(4))
def test_covariance_of_two_variables(p):
    features = L2Features(Interval(A, B), 3, HalfInteger(p, 1.6))
    expected = np.zeros((7, 7))
    # u_cos = int f cos, u_sin = Im u = -int f sin
    for t, w in _panels([A, B], 80):
        rows = _real(np.exp(-1j * np.outer(features.omega, t - A)))
        inner = np.stack([features.cross(np.array([x]))[:, 0] for x in t], axis=1)
        expected += (rows * w) @ inner.T
    gram = features.gram()
    np.testing.assert_allclose(gram, expected, atol=1e-9)
    np.testing.assert_allclose(gram, gram.T, atol=1e-13)
    assert np.linalg.eigvalsh(gram).min() > 0.0
