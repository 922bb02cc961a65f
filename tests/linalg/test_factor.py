"""The Cholesky factor, and the one place that may add to a diagonal."""

import numpy as np
import pytest

from vff.linalg import factorise


def test_factor_answers_like_dense_algebra(rng):
    X = rng.normal(size=(12, 8))
    A = X.T @ X
    factor = factorise(A)
    inverse = np.linalg.inv(A)
    assert factor.jitter == 0.0
    np.testing.assert_allclose(factor.inverse(), inverse, rtol=1e-9)
    np.testing.assert_allclose(factor.inverse_diagonal(), np.diagonal(inverse), rtol=1e-9)
    np.testing.assert_allclose(factor.solve(X.T), inverse @ X.T, rtol=1e-8, atol=1e-10)
    assert factor.logdet() == pytest.approx(np.linalg.slogdet(A)[1])
    L = factor.lower
    np.testing.assert_allclose(L @ L.T, A, rtol=1e-12)


def test_widely_scaled_matrices_need_no_help():
    scale = 10.0 ** np.arange(-150, 150, 30)
    A = (np.eye(10) + 0.3) * np.outer(scale, scale)
    assert factorise(A).jitter == 0.0


def test_singular_matrix_reports_what_was_added(rng):
    x = rng.normal(size=(6, 2))
    factor = factorise(x @ x.T)
    assert 0.0 < factor.jitter <= 1e-9


def test_indefinite_matrix_is_refused_with_a_sentence():
    with pytest.raises(FloatingPointError, match="not positive definite"):
        factorise(np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(FloatingPointError, match="diagonal entry"):
        factorise(np.diag([1.0, np.nan]))
