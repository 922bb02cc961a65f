"""What not knowing the hyperparameters adds to variances, against differences of predictions, and what follows."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from tests.inference.test_sums import THETA, _model, _rows

from vff import GPClassifier, GPRegressor, Linear, Matern32, fixed, load
from vff.inference.learning.doubt import _squares, doubt

NEW = 0.2 + 0.6 * np.random.default_rng(9).random((25, 3))


def _table(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, np.sin(5.0 * X).sum(axis=1) + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("intercept", [None, 3.0])
def test_how_the_mean_follows_hyperparameters(intercept):
    """tau J_i'G J_j is the product, over rows, of the slopes of the mean, in noise variances."""
    columns, y, _ = _rows(50, 0)
    model = replace(_model(columns, y, np.ones(50), M=5), intercept=intercept)

    def mean(theta: np.ndarray) -> np.ndarray:
        return model.posterior(model.at(theta), theta).mean_at(np.column_stack(columns))

    slopes = np.array([(mean(THETA + step) - mean(THETA - step)) / 2e-5 for step in 1e-5 * np.eye(THETA.size)])
    found = _squares(model, THETA, model.at(THETA))
    np.testing.assert_allclose(found, slopes @ slopes.T / np.exp(THETA[-1]), rtol=1e-5, atol=1e-7 * found.max())


def test_what_is_known_is_not_in_doubt():
    columns, y, w = _rows(200, 1)
    model = _model(columns, y, w, M=5)
    closed = model.at(THETA)
    nothing = np.zeros(THETA.size, dtype=bool)
    assert doubt(model, THETA, closed, nothing) == 0.0
    assert 0.0 < doubt(model, THETA, closed, np.arange(THETA.size) == 0) < doubt(model, THETA, closed, ~nothing)


def test_few_rows_are_averaged_over_hyperparameters_and_many_are_not():
    few, many = GPRegressor().fit(*_table(20, 3)), GPRegressor(frequencies=10).fit(*_table(3000, 3))
    assert few.fit_.method == "integrated"
    assert few.fit_.doubt > 0.1
    assert many.fit_.method == "collapsed"
    assert many.fit_.doubt < 0.05
    asked = GPRegressor(hyperparameters="integrate").fit(*_table(20, 3))
    np.testing.assert_array_equal(few.predict(NEW, return_std=True), asked.predict(NEW, return_std=True))
    best = GPRegressor(hyperparameters="maximise").fit(*_table(3000, 3))
    assert best.fit_.doubt is None


def test_hyperparameters_that_are_all_held_leave_nothing_open():
    X, y = _table(20, 1)
    kernel = Matern32(0, variance=fixed(1.0), lengthscale=fixed(0.3))
    model = GPRegressor(kernel, noise_variance=fixed(0.1)).fit(X, y)
    assert model.samples_ is None
    assert model.fit_.method == "collapsed"


def test_other_likelihoods():
    X, y = _table(20, 2)
    few, labelled = GPRegressor(likelihood="poisson").fit(X, np.round(np.exp(y))), GPClassifier().fit(X, y > 0.5)
    assert few.fit_.method == labelled.fit_.method == "integrated sites"
    assert 0.0 < labelled.predict_proba(X).min() < labelled.predict_proba(X).max() < 1.0
    X, y = _table(3000, 2)
    assert GPRegressor(likelihood="poisson").fit(X, np.round(np.exp(y))).fit_.method == "natural"
    structured = GPRegressor(likelihood="poisson", covariance="factorised", frequencies=5)
    assert structured.fit(X, np.round(np.exp(y))).samples_ is None


@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial", "bernoulli", "student-t", "gamma"])
def test_counts_and_labels_agree_with_chains(likelihood):
    """Intervals of f, and draws of hyperparameters and of the likelihood's own."""
    rng = np.random.default_rng(4)
    X = rng.random((60, 1))
    f = 1.0 + np.sin(6.0 * X[:, 0])
    targets = {
        "poisson": rng.poisson(np.exp(f)),
        "negative-binomial": rng.negative_binomial(4, 4 / (4 + np.exp(f))),
        "bernoulli": rng.random(60) < 1 / (1 + np.exp(-f)),
        "student-t": f + 0.2 * rng.standard_t(4, 60),
        "gamma": rng.gamma(4.0, np.exp(f) / 4.0),
    }
    how = {"likelihood": likelihood, "frequencies": 12, "domain": (0.0, 1.0)}
    y = targets[likelihood].astype(float)
    ours = GPRegressor(**how, hyperparameters="integrate").fit(X, y)
    best = GPRegressor(**how, hyperparameters="maximise").fit(X, y)
    chains = GPRegressor(**how, inference="mcmc", random_state=0, draws=400, warmup=400).fit(X, y)
    at = np.linspace(0.0, 1.0, 15)[:, None]
    (mean, variance), (true, spread), known = ours.predict_f(at), chains.predict_f(at), best.predict_f(at)[1]
    assert np.all(np.abs(mean - true) < 0.5 * np.sqrt(spread))
    apart, before = np.abs(np.log(variance / spread)), np.abs(np.log(known / spread))
    assert np.mean(apart) < max(0.3, np.mean(before))
    for name, draws in chains.samples_.values.items():
        if name in ours.samples_.values and name.startswith(("variance", "lengthscale")):
            gap = np.log(np.median(ours.samples_.values[name])) - np.log(np.median(draws))
            assert abs(gap) < 1.0 * np.log(draws).std(), name


@pytest.fixture(scope="module")
def mixed() -> GPRegressor:
    """Twenty rows, which answer by themselves at every setting."""
    return GPRegressor().fit(*_table(20, 3))


def test_moments_of_the_mixture_are_those_of_its_parts(mixed):
    found, x = mixed.posterior_.mixture, NEW
    joint = [part.joint(x) for part in found.parts]
    means = np.array([mean for mean, _ in joint])
    mean, covariance = found.joint(x)
    np.testing.assert_allclose(mean, means.mean(axis=0) - found.offset, atol=1e-12)
    expected = sum(c + np.outer(m, m) for m, c in joint) / len(joint) - np.outer(means.mean(0), means.mean(0))
    np.testing.assert_allclose(covariance, expected, atol=1e-10)
    np.testing.assert_allclose(found.marginals(x)[0], mean, atol=1e-12)
    np.testing.assert_allclose(found.marginals(x)[1], np.diag(covariance), rtol=1e-9)
    np.testing.assert_allclose(found.mean(x), mean, atol=1e-12)


def test_draws_of_the_mixture_have_its_moments(mixed):
    found, S = mixed.posterior_.mixture, len(mixed.samples_.kept)
    mean, covariance = found.joint(NEW)
    values = found.values(NEW, slice(None))
    assert values.shape == (len(NEW), S)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(values.mean(axis=1), mean, atol=0.25 * sd.max())
    np.testing.assert_allclose(values.std(axis=1), sd, rtol=0.3)
    many = found.sample(NEW, np.tile(np.arange(S), 50), np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(many), covariance, atol=0.1 * covariance.max())


def test_features_say_the_same(mixed):
    """The posterior of the same draws of hyperparameters, from sums over the rows."""
    features = replace(mixed.posterior_, mixture=None)
    exact, close = mixed.posterior_.marginals(NEW), features.marginals(NEW)
    np.testing.assert_allclose(close[0], exact[0], atol=0.05 * np.sqrt(exact[1].max()))
    np.testing.assert_allclose(np.sqrt(close[1]), np.sqrt(exact[1]), rtol=0.05)


def test_it_is_saved(mixed, tmp_path):
    mixed.save(tmp_path / "few.vff")
    loaded = load(tmp_path / "few.vff")
    np.testing.assert_allclose(
        loaded.predict(NEW, return_std=True), mixed.predict(NEW, return_std=True), rtol=1e-10, atol=1e-12
    )
    assert loaded.fit_.doubt == mixed.fit_.doubt


@pytest.mark.parametrize("kernel", [Linear(0) + Matern32(1), Matern32(0) + Matern32(1), Matern32(0) * Matern32(1)])
def test_averaged_covariances_are_those_of_the_draws(kernel):
    """Of f at rows together, and of its slopes, against the moments of the settings that are averaged over."""
    X, y = _table(80, 2)
    with patch("vff.inference.methods.averaged.EACH", 40), patch("vff.inference.methods.integrated.method.EACH", 40):
        model = GPRegressor(kernel, frequencies=8, hyperparameters="integrate").fit(X, y)
    rows = NEW[:, :2]
    mean, covariance = model.posterior_.joint(rows)
    np.testing.assert_allclose(np.diag(covariance), model.posterior_.marginals(rows)[1], rtol=1e-9)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9
    drawn, rest = model.posterior_.values(rows)
    assert np.abs(np.cov(drawn) - covariance + np.diag(rest)).max() < 0.3 * covariance.max()
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=0.3 * np.sqrt(covariance.max()))
    step = 1e-3 * np.array([0.0, 1.0])
    difference = (model.posterior_.values(rows + step)[0] - model.posterior_.values(rows - step)[0]) / 2e-3
    slope, variance = model.posterior_.slope(rows, 1)
    np.testing.assert_allclose(slope, difference.mean(axis=1), atol=0.4 * np.sqrt(variance.max()))
    assert np.all(variance > 0.6 * difference.var(axis=1))
