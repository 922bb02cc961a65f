"""Tables that tempt a fit to be wrong without saying so."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from vff import GPRegressor, Matern32, Matern52


def _noisy_sine(N: int, cycles: float, seed: int = 0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (N, 1))
    return x, np.sin(2 * np.pi * cycles * x[:, 0]) + 0.1 * rng.normal(size=N)


LINE = np.linspace(0, 1, 300)[:, None]
NOISELESS = {
    "line": (LINE, 3 * LINE[:, 0]),
    "two points": (np.array([[0.0], [1.0]] * 50), np.array([0.0, 1.0] * 50)),
    "step": (LINE, (LINE[:, 0] > 0.5).astype(float)),
    "parabola": (LINE, 1e3 + LINE[:, 0] ** 2),
}


@pytest.mark.parametrize("Kernel", [Matern32, Matern52])
@pytest.mark.parametrize("table", NOISELESS, ids=str)
@pytest.mark.parametrize("normalize_y", [True, False])
def test_the_bound_stays_a_bound_where_noise_vanishes(Kernel, table, normalize_y):
    X, y = NOISELESS[table]
    model = GPRegressor(Kernel(), normalize_y=normalize_y).fit(X, y)
    assert model.elbo_ <= model.evidence_upper_bound_ + 1e-6 * abs(model.elbo_)
    # no density of n numbers can exceed that of n points without residuals
    assert model.elbo_ <= -0.5 * len(y) * np.log(2 * np.pi * model.noise_variance_) + 1e-6 * abs(model.elbo_)


def test_a_large_offset_without_normalisation_is_learnt_all_the_same():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (1000, 1))
    y = 1000 + np.sin(X[:, 0]) + 0.3 * rng.normal(size=1000)
    model = GPRegressor(normalize_y=False).fit(X, y)
    assert model.noise_variance_ == pytest.approx(0.09, rel=0.15)


def test_many_cycles_are_found():
    X, y = _noisy_sine(2000, 150)
    model = GPRegressor().fit(X, y)
    assert model.score(X, y) > 0.95


def test_cycles_that_cannot_be_followed_are_named():
    X, y = _noisy_sine(400, 150)
    model = GPRegressor(frequencies=160).fit(X, y)
    coarse = GPRegressor(Matern32(0, variance=0.01, lengthscale=1.0), noise_variance=0.5, optimizer=None).fit(X, y)
    assert model.score(X, y) > 0.9 or any("stand out of noise" in note for note in model.notes_)
    assert any("stand out of noise at harmonic" in note for note in coarse.notes_)
    assert not any("stand out" in note for note in GPRegressor().fit(*_noisy_sine(400, 5)).notes_)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": Matern32(0, lengthscale=1e-4)},
        {"kernel": Matern32(0, lengthscale=1e4)},
        {"kernel": Matern32(0, variance=1e-4)},
        {"noise_variance": 1e-8},
        {"kernel": Matern32(0, variance=1e-4, lengthscale=1e-4), "noise_variance": 1e-8},
    ],
    ids=str,
)
def test_a_bad_start_is_left_for_a_better_one(options):
    X, y = _noisy_sine(800, 2)
    assert GPRegressor(**options).fit(X, y).elbo_ == pytest.approx(GPRegressor().fit(X, y).elbo_, abs=2.0)


def test_rows_outside_and_wide_domains_are_named():
    X, y = _noisy_sine(300, 1)
    assert any("rows lie outside the domain" in n for n in GPRegressor(domain=(0.3, 0.6)).fit(X, y).notes_)
    wide = GPRegressor(domain=(-50, 50), frequencies=20).fit(X, y)
    assert any("% of the domain" in note for note in wide.notes_)


def test_batches_of_another_kind_get_another_engine():
    X, _ = _noisy_sine(3000, 1)
    lattice = np.linspace(0, 1, 50_000)[:, None]
    model = GPRegressor(domain=(0, 1), frequencies=10).partial_fit(lattice, np.sin(6 * lattice[:, 0]))
    for rows in (X, X[:2], X[:1], np.repeat(X[:3], 900, axis=0)):
        model.partial_fit(rows, np.sin(6 * rows[:, 0]))
    assert model.rows_.moments.n == 50_000 + 3000 + 3 + 2700


def test_a_small_first_batch_does_not_limit_the_rest():
    X, y = _noisy_sine(3000, 40)
    parts = GPRegressor(domain=(0, 1)).partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    assert parts.elbo_ == pytest.approx(GPRegressor(domain=(0, 1)).fit(X, y).elbo_, abs=5.0)


def test_batches_may_go_a_little_further_than_the_first():
    X, y = _noisy_sine(1000, 1)
    model = GPRegressor()
    for rows in np.array_split(np.arange(1000), 10):
        model.partial_fit(X[rows], y[rows])
    assert model.rows_.moments.n == 1000
    constant = GPRegressor(domain=(0, 1)).partial_fit(np.full((5, 1), 0.5), np.arange(5.0)).partial_fit(X, y)
    assert constant.rows_.moments.n == 1005


def test_periodic_tables_are_not_taken_for_a_few_values():
    x = np.tile(np.linspace(0, 1, 1000), 4096)[: 2**17]
    model = GPRegressor().fit(x[:, None], np.sin(200 * x))
    assert model.score(x[:5000, None], np.sin(200 * x[:5000])) > 0.9


@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1e100])
def test_any_units_of_y(scale):
    X, y = _noisy_sine(200, 2)
    assert GPRegressor().fit(X, scale * y).score(X, scale * y) > 0.9


def test_far_away_is_the_prior_and_not_nan():
    X, y = _noisy_sine(100, 1)
    model = GPRegressor(Matern52(), hyperparameters="maximise").fit(X, y)
    with pytest.warns(UserWarning, match="outside the domain"):
        mean, std = model.predict([[1e160], [-1e9]], return_std=True)
    # of the function only its constant is known there
    constant, scale = model.posterior_.intercept, model.target_.scale
    np.testing.assert_allclose(mean, y.mean() + scale * constant.mean, rtol=1e-9)
    spread = scale**2 * constant.variance
    np.testing.assert_allclose(std**2, model.kernel_.variance + model.noise_variance_ + spread)
    # and by generalised least squares, from what the bound without a constant loses when y moves
    kept = {"noise_variance": model.noise_variance_, "frequencies": model.frequencies_[0], "domain": model.domain_}
    without = GPRegressor(model.kernel_, optimizer=None, normalize_y=False, **kept)
    at, up, down = (without.fit(X, y - y.mean() - shift).elbo_ for shift in (0.0, 1.0, -1.0))
    expected = 1.0 / (2.0 * at - up - down + 1.0 / (10.0 * y.std()) ** 2)
    assert spread == pytest.approx(expected, rel=1e-9)
    assert mean[0] == pytest.approx(y.mean() + 0.5 * expected * (up - down), rel=1e-8)


def test_blas_threads_are_given_back():
    X, y = _noisy_sine(200, 2)
    GPRegressor().fit(X, y)
    before = [pool["num_threads"] for pool in threadpool_info()]
    threads = [threading.Thread(target=lambda: GPRegressor().fit(X, y)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_users_arrays_are_left_alone():
    X, y = _noisy_sine(200, 2)
    kept = X.copy(), y.copy()
    weights = np.ones(200)
    GPRegressor().fit(X, y, weights).predict(X, return_std=True)
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(y, kept[1])
    np.testing.assert_array_equal(weights, 1.0)
