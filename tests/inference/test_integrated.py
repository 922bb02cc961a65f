"""Hyperparameters integrated, against quadrature over a grid of them and against Markov chains."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from vff import GPRegressor, Matern32, between, fixed, load
from vff.inference.methods.integrated import draws
from vff.priors import LogNormal

PRIORS = {
    "variance": LogNormal(1.0, 0.8),
    "lengthscale": LogNormal(0.3, 0.6),
    "noise_variance": LogNormal(0.1, 0.8),
}
NEW = np.linspace(0.0, 1.0, 23)[:, None]


def _rows(n: int = 14, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 1))
    return X, np.sin(7.0 * X[:, 0]) + 0.3 * rng.standard_normal(n)


def _model(**more) -> GPRegressor:
    return GPRegressor(Matern32(0), **{"priors": PRIORS, "domain": (0.0, 1.0), "hyperparameters": "integrate", **more})


def _by_quadrature(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of f over a grid of hyperparameters, each weighted by evidence and prior."""
    grids = [np.linspace(-2.4, 2.4, 9) * own.sigma + np.log(own.median) for own in PRIORS.values()]
    weights, means, variances = [], [], []
    for t in product(*grids):
        variance, lengthscale, noise = np.exp(t)
        kernel = Matern32(0, variance=variance, lengthscale=lengthscale)
        model = GPRegressor(kernel, noise_variance=noise, optimizer=None, domain=(0.0, 1.0), frequencies=60).fit(X, y)
        own = zip(PRIORS.values(), t, strict=True)
        log_prior = sum(prior.log_density(np.exp(at)) + at for prior, at in own)
        mean, var = model.predict_f(NEW)
        weights.append(model.elbo_ + log_prior)
        means.append(mean)
        variances.append(var)
    w = np.exp(np.array(weights) - max(weights))
    w /= w.sum()
    mean = w @ np.array(means)
    return mean, w @ (np.array(variances) + (np.array(means) - mean) ** 2)


@pytest.fixture(scope="module")
def truth() -> tuple[np.ndarray, np.ndarray]:
    return _by_quadrature(*_rows())


def test_moments_are_those_of_quadrature(truth):
    mean, variance = _model(frequencies=60).fit(*_rows()).predict_f(NEW)
    np.testing.assert_allclose(mean, truth[0], atol=0.15 * np.sqrt(truth[1].max()))
    np.testing.assert_allclose(np.sqrt(variance), np.sqrt(truth[1]), rtol=0.15)
    _, known = _model(frequencies=60, hyperparameters="maximise").fit(*_rows()).predict_f(NEW)
    assert np.mean(known) < np.mean(variance)


def test_draws_are_weighted():
    """Medians and spreads of the logarithms, as chains have them."""
    model = _model(frequencies=30).fit(*_rows())
    chains = _model(frequencies=30, hyperparameters="maximise", inference="mcmc", random_state=0).fit(*_rows())
    for name, own in model.samples_.values.items():
        ours, theirs = np.log(own).ravel(), np.log(chains.samples_.values[name]).ravel()
        assert abs(ours.mean() - theirs.mean()) < 0.35 * theirs.std(), name
        assert ours.std() == pytest.approx(theirs.std(), rel=0.4), name
    assert 6.0 < model.samples_.effective <= 64.0


def test_what_is_held_stays_and_what_is_bounded_stays_between():
    X, y = _rows()
    kernel = Matern32(0, lengthscale=fixed(0.25), variance=between(0.5, 1.5))
    model = GPRegressor(kernel, domain=(0.0, 1.0), hyperparameters="integrate").fit(X, y)
    assert set(model.samples_.values) == {"variance[0]", "noise_variance"}
    drawn = model.samples_.values["variance[0]"]
    assert drawn.min() >= 0.5 * (1.0 - 1e-9)
    assert drawn.max() <= 1.5 * (1.0 + 1e-9)
    assert model.kernel_.lengthscale == pytest.approx(0.25)


def test_with_everything_known_there_is_nothing_to_integrate():
    X, y = _rows()
    kernel = Matern32(0, variance=1.0, lengthscale=0.3)
    one, other = (
        GPRegressor(kernel, noise_variance=0.1, optimizer=None, domain=(0.0, 1.0), hyperparameters=how).fit(X, y)
        for how in ("integrate", "maximise")
    )
    np.testing.assert_array_equal(one.predict_f(NEW), other.predict_f(NEW))
    assert one.samples_ is None


def test_many_rows_leave_no_doubt():
    X, y = _rows(3000)
    one, other = (
        _model(frequencies=20, priors=None, hyperparameters=how).fit(X, y) for how in ("integrate", "maximise")
    )
    (mean, variance), (best, known) = one.predict_f(NEW), other.predict_f(NEW)
    assert np.all(np.abs(mean - best) < 0.3 * np.sqrt(known))
    np.testing.assert_allclose(np.sqrt(variance), np.sqrt(known), rtol=0.1)
    assert one.samples_.effective > 40.0


def test_the_same_every_time_saved_and_added_to(tmp_path):
    X, y = _rows(30)
    model = _model(frequencies=12).partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    again = _model(frequencies=12).fit(X, y)
    np.testing.assert_allclose(model.predict(NEW, return_std=True), again.predict(NEW, return_std=True), rtol=1e-3)
    again.save(tmp_path / "m.vff")
    loaded = load(tmp_path / "m.vff")
    np.testing.assert_array_equal(loaded.predict(NEW, return_std=True), again.predict(NEW, return_std=True))
    np.testing.assert_array_equal(loaded.samples_.t, again.samples_.t)
    assert loaded.hyperparameters == "integrate"


def test_error_bars():
    X, y = _rows(40)
    errors = np.full(40, 0.2)
    model = _model(frequencies=15, priors=None).fit(X, y, noise_std=errors)
    assert np.all(np.isfinite(model.predict_f(NEW)))
    with pytest.raises(ValueError, match="noise_variance=0 holds none"):
        _model(noise_variance=0, priors=None).fit(X, y, noise_std=errors)


def test_few_effective_draws_are_told():
    samples = replace(_model(frequencies=12).fit(*_rows()).samples_, effective=2.0)
    assert "worth 2.0 independent ones" in samples.notes()[0]


def test_what_is_refused():
    X, y = _rows()
    with pytest.raises(ValueError, match="hyperparameters='integrate' averages full covariances"):
        GPRegressor(likelihood="poisson", hyperparameters="integrate", covariance="factorised").fit(X, np.abs(y))
    with pytest.raises(ValueError, match="hyperparameters"):
        GPRegressor(hyperparameters="guess").fit(X, y)


@pytest.mark.parametrize("spread", [0.3, 3.0, 30.0])
def test_weights_are_tempered_until_enough_draws_count(spread):
    """Left alone where enough count as they are, in the same order otherwise."""
    log_weights = spread * np.random.default_rng(0).standard_normal(64)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    found = draws._tempered(log_weights, weights)
    count = draws._effective(weights)
    if count >= draws.SETTINGS:
        np.testing.assert_array_equal(found, weights)
    else:
        assert draws._effective(found) == pytest.approx(draws.SETTINGS, rel=1e-3)
        np.testing.assert_array_equal(np.argsort(found), np.argsort(weights))


def test_many_columns_are_averaged_over_too():
    rng = np.random.default_rng(0)
    X = rng.random((100, 20))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(100)
    model = GPRegressor().fit(X, y)
    assert model.fit_.method == "integrated"
    assert len({*model.samples_.values["noise_variance"].ravel()}) > 20


def test_nothing_is_averaged_over_where_nothing_is_in_doubt():
    X = np.random.default_rng(0).random((100, 2))
    model = GPRegressor().fit(X, np.ones(100))
    assert model.fit_.method == "collapsed"
    assert model.fit_.doubt < draws.MATTERS
