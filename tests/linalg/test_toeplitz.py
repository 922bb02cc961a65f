"""Products of harmonics from moments, against loops; and the transpose of that map."""

import numpy as np
import pytest

from vff.linalg import trigonometric_gram, trigonometric_gram_adjoint


@pytest.mark.parametrize("M", [1, 2, 7])
def test_gram_is_the_sum_of_products(M, rng):
    theta, w = rng.uniform(0, 2 * np.pi, 9), rng.uniform(size=9)
    k = np.arange(2 * M + 1)
    moments = np.concatenate([w @ np.cos(np.outer(theta, k)), w @ np.sin(np.outer(theta, k[1:]))])
    expected = np.zeros((2 * M + 1, 2 * M + 1))
    for angle, weight in zip(theta, w, strict=True):
        waves = [np.cos(m * angle) for m in range(M + 1)] + [np.sin(m * angle) for m in range(1, M + 1)]
        expected += weight * np.outer(waves, waves)
    np.testing.assert_allclose(trigonometric_gram(moments, M), expected, atol=1e-13)


@pytest.mark.parametrize("M", [1, 3, 8])
def test_adjoint(M, rng):
    moments, S = rng.normal(size=4 * M + 1), rng.normal(size=(2 * M + 1, 2 * M + 1))
    assert np.sum(trigonometric_gram(moments, M) * S) == pytest.approx(moments @ trigonometric_gram_adjoint(S))
