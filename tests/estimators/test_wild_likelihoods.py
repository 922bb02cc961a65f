"""Targets and weights over many decades under likelihoods that are not Gaussian: numbers, or a sentence."""

import warnings
from typing import Any

import numpy as np
import pytest

from vff import ExtrapolationWarning, GPRegressor, Matern32, Matern52
from vff.likelihoods import Gamma, Poisson


def wild(seed: int, n: int, decades: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n, 2)), 10.0 ** rng.uniform(-decades / 2, decades / 2, n)


def far(model: GPRegressor, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of a new y far beyond the domain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        return model.predict(np.vstack([X - 3.0, X + 3.0]), return_std=True)  # pyright: ignore[reportReturnType]


def test_two_kroneckers_follow_counts_over_nine_decades():
    X, y = wild(2, 10, 9.0)
    kernel = Matern52(0) * Matern52(1)
    model = GPRegressor(kernel, likelihood="poisson", covariance="two kroneckers", frequencies=2)
    model.fit(X, np.round(y * 10**4.5))
    assert np.isfinite(model.sample_f(X, 2, random_state=0)).all()
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("likelihood", ["gamma", "student-t"])
def test_weights_over_eight_decades_leave_a_factorised_covariance(likelihood):
    X, y = wild(2, 12, 8.0)
    weights = 10.0 ** np.random.default_rng(3).uniform(-4.0, 4.0, y.size)
    kernel = Matern32(0) * Matern32(1)
    model = GPRegressor(kernel, likelihood=likelihood, covariance="factorised", frequencies=2)
    f, variance = model.fit(X, y, sample_weight=weights).predict_f(X)
    assert np.isfinite(f).all()
    assert (variance >= 0.0).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_row_of_weight_two_is_two_rows_under_student_t(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(9, 2))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_t(2.5, 9)
    options: dict[str, Any] = {"likelihood": "student-t", "covariance": "kronecker", "frequencies": 2}
    kernel = Matern32(0) * Matern32(1)
    twice = GPRegressor(kernel, **options).fit(np.vstack([X, X]), np.concatenate([y, y]))
    heavy = GPRegressor(kernel, **options).fit(X, y, sample_weight=np.full(9, 2.0))
    assert twice.elbo_ == pytest.approx(heavy.elbo_, abs=1e-4)
    np.testing.assert_allclose(twice.predict_f(X), heavy.predict_f(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", [0, 2])
def test_gamma_over_nineteen_decades(seed):
    X, y = wild(seed, 12, 19.0)
    model = GPRegressor(Matern32(0), likelihood="gamma", frequencies=8).fit(X[:, :1], y)
    assert model.elbo_ > -1e4  # it was -1e22: the climb stopped at its first step
    assert np.isfinite(far(model, X[:, :1])).all()


def test_gamma_of_rows_apart_ends_where_its_mean_is_a_number():
    x = np.linspace(0.0, 1.0, 30)[:, None]
    y = np.exp(22.0 * np.sign(np.sin(40.0 * x[:, 0])))
    model = GPRegressor(Matern32(0), likelihood=Gamma(50.0), frequencies=20).fit(x, y)
    assert model.posterior_.prior_variance(x) <= 200.0 * (1.0 + 1e-9)
    assert np.isfinite(far(model, x)).all()


def test_a_variance_that_no_mean_can_have_is_refused():
    X, y = wild(0, 12, 3.0)
    model = GPRegressor(Matern32(0, variance=5000.0, lengthscale=0.5), likelihood="gamma", optimizer=None)
    with pytest.raises(ValueError, match="at most 200, and the kernel was given 5000") as caught:
        model.fit(X, y)
    assert len(str(caught.value).splitlines()) == 1


def overdispersed(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(200, 1))
    return x, rng.poisson(np.exp(np.sin(6.0 * x[:, 0]) + 2.0) * rng.gamma(0.3, 1 / 0.3, 200)).astype(float)


def test_rows_outside_their_interval_are_told():
    x, y = overdispersed()
    told = GPRegressor(Matern32(0), likelihood="poisson", frequencies=6).fit(x, y).notes_
    (note,) = (own for own in told if "99.8 %" in own)
    assert "of the rows of the fit lie outside their own 99.8 % interval" in note
    assert "likelihood='negative-binomial'" in note
    suited = GPRegressor(Matern32(0), likelihood="negative-binomial", frequencies=6).fit(x, y).notes_
    assert not [own for own in suited if "99.8 %" in own]


def test_rows_of_small_weight_outside_are_told_apart():
    x = np.linspace(0.0, 1.0, 40)[:, None]
    y, weights = np.full(40, 100.0), np.ones(40)
    y[::4], weights[::4] = 4000.0, 1e-5
    told = GPRegressor(Matern32(0), likelihood=Poisson(), frequencies=4).fit(x, y, sample_weight=weights).notes_
    assert [own for own in told if "25 % of the rows" in own and "sample_weight" in own]
