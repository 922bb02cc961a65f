"""Structured covariances behind the estimators: known bounds, agreement with the full covariance, size, refusals."""

import pickle
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import vff.estimators.options as options_module
from vff import Categorical, GPClassifier, GPRegressor, Matern32, Matern52
from vff.likelihoods import Bernoulli, Gaussian, StudentT

DATA = Path(__file__).parents[3] / "shared" / "data"
N = 150
RNG = np.random.default_rng(5)
X = RNG.uniform(-1.0, 1.0, (N, 2))
F = 2.0 * np.sin(3.0 * X[:, 0]) * X[:, 1] + X[:, 1]
LABELS = RNG.random(N) < 1.0 / (1.0 + np.exp(-F))
PRODUCT = Matern32(0, variance=3.0, lengthscale=0.8) * Matern32(1, lengthscale=1.2)
SUM = Matern32(0, variance=1.5, lengthscale=0.7) + Matern52(1, variance=2.0, lengthscale=1.0)
KEPT: dict[str, Any] = {"optimizer": None, "frequencies": 4}
ROWS = np.concatenate([RNG.uniform(-1.0, 1.0, (20, 2)), [[1.03, 0.2], [-1.05, 1.02]]])


@pytest.mark.skipif(not DATA.exists(), reason="the paper's data are not here")
@pytest.mark.parametrize(("kind", "bound"), [("kronecker", -148.7761), ("two kroneckers", -143.8995)])
def test_the_bounds_on_the_banana(kind, bound):
    x, y = (np.loadtxt(DATA / f"banana_{name}.csv", delimiter=",") for name in "Xy")
    model = GPClassifier(
        Matern32(0, variance=1.0, lengthscale=1.0) * Matern32(1, lengthscale=1.0),
        likelihood=Bernoulli("probit", 0.001),
        covariance=kind,
        frequencies=5,
        edges=0,
        domain={c: (x[:, c].min() - 1.5, x[:, c].max() + 1.5) for c in (0, 1)},
        optimizer=None,
        fit_intercept=False,
    ).fit(x, y)
    assert model.elbo_ == pytest.approx(bound, abs=2e-4)
    assert model.solver_ == kind
    assert model.notes_ == ()
    assert model.score(x, y) > 0.9


WEIGHTS = np.where(X[:, 0] > 0.0, 2.0, 0.5)
NODES, MASSES = np.polynomial.hermite_e.hermegauss(60)
MASSES = MASSES / MASSES.sum()


def _constant_is_settled(model: GPClassifier, w: np.ndarray) -> None:
    """q(c0) = N(m, v) is where the bound is flat: m = V sum w E[g] and 1 / v = 1 / V + sum w E[h], V = 100.

    The slope g and the curvature h of -log p are those of labels under a logit.
    """
    assert model.likelihood_.link == "logit"
    mean, variance = model.predict_f(X)
    p = 1.0 / (1.0 + np.exp(-(mean + np.multiply.outer(NODES, np.sqrt(variance)))))
    constant = model.posterior_.intercept
    assert not constant.answer.any()  # the terms do not know of it under q
    assert constant.mean == pytest.approx(100.0 * float(w @ (LABELS - MASSES @ p)), abs=1e-2)
    assert 1.0 / constant.variance == pytest.approx(0.01 + float(w @ (MASSES @ (p * (1.0 - p)))), rel=1e-4)


@pytest.mark.parametrize("intercept", [True, False])
def test_dense_within_the_only_term_is_the_full_covariance(intercept):
    """Edge functions, tails outside, joint draws, slopes, effects and the constant included."""
    full, other = (
        GPClassifier(PRODUCT, covariance=kind, fit_intercept=intercept, **KEPT).fit(X, LABELS, WEIGHTS)
        for kind in ("full", "factorised")
    )
    assert other.elbo_ == pytest.approx(full.elbo_, abs=1e-3)
    assert other.fit_.terms[0].edf == pytest.approx(full.fit_.terms[0].edf, rel=1e-2)
    close: dict[str, Any] = {"rtol": 2e-3, "atol": 2e-3}
    np.testing.assert_allclose(other.predict_f(ROWS), full.predict_f(ROWS), **close)
    np.testing.assert_allclose(other.predict_proba(ROWS), full.predict_proba(ROWS), **close)
    for mine, theirs in zip(other.predict_f(ROWS, True), full.predict_f(ROWS, True), strict=True):
        np.testing.assert_allclose(mine, theirs, **close)
    for mine, theirs in zip(other.predict_derivative(ROWS, 1), full.predict_derivative(ROWS, 1), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=5e-3, atol=5e-3)
    mine, theirs = other.effects(ROWS), full.effects(ROWS)
    np.testing.assert_allclose(mine.mean, theirs.mean, **close)
    np.testing.assert_allclose(mine.std, theirs.std, **close)


def test_the_constant_is_apart_from_terms_that_are_kronecker_products():
    full, other = (
        GPClassifier(PRODUCT, covariance=kind, **KEPT).fit(X, LABELS, WEIGHTS) for kind in ("full", "kronecker")
    )
    _constant_is_settled(other, WEIGHTS)
    assert full.elbo_ - 12.0 < other.elbo_ < full.elbo_
    assert other.target_.mean == pytest.approx(full.target_.mean)
    assert other.intercept_ == pytest.approx(full.intercept_, abs=0.02)
    np.testing.assert_allclose(other.predict_proba(ROWS), full.predict_proba(ROWS), atol=0.05)


@pytest.mark.parametrize("kind", ["kronecker", "two kroneckers", "factorised"])
def test_a_climb_does_not_begin_where_rates_overflow(kind):
    """exp(f) under the prior of the constant is beyond all counts."""
    counts = np.random.default_rng(3).poisson(np.exp(1.0 + 0.5 * F))
    full, model = (
        GPRegressor(PRODUCT, likelihood="poisson", covariance=kind, **KEPT).fit(X, counts) for kind in ("full", kind)
    )
    assert full.elbo_ - 20.0 < model.elbo_ < full.elbo_ + (1e-3 if kind == "factorised" else 0.0)
    assert model.notes_ == ()
    spread = np.sqrt(full.predict_f(ROWS)[1])
    assert np.all(np.abs(model.predict_f(ROWS)[0] - full.predict_f(ROWS)[0]) < 0.5 * spread)


@pytest.mark.parametrize("kind", ["kronecker", "two kroneckers"])
def test_products_agree_with_the_full_covariance_within_reason(kind):
    full, model = (
        GPClassifier(PRODUCT, covariance=kind, random_state=0, **KEPT).fit(X, LABELS) for kind in ("full", kind)
    )
    assert full.elbo_ - 12.0 < model.elbo_ < full.elbo_
    assert np.isnan(model.elbo_gap_).all()
    assert model.engine_ == "dense"
    assert np.abs(model.predict_proba(ROWS) - full.predict_proba(ROWS)).max() < 0.05
    mean, variance = model.predict_f(ROWS)
    ratio = variance / full.predict_f(ROWS)[1]
    assert 0.4 < ratio.min() <= ratio.max() < 2.5
    joint_mean, joint = model.predict_f(ROWS, full_covariance=True)
    np.testing.assert_allclose(joint_mean, mean)
    np.testing.assert_allclose(np.diag(joint), variance, atol=1e-12)
    assert np.linalg.eigvalsh(joint).min() > -1e-9
    draws = model.sample_f(ROWS, 4000)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=5.0 * np.sqrt(variance.max() / 4000))
    # centred on the rows of the fit, where the one term is the function less a constant
    effects = model.effects(np.concatenate([X, ROWS]))
    np.testing.assert_allclose(effects.mean[:N].mean(), 0.0, atol=1e-10)
    np.testing.assert_allclose(np.ptp(effects.mean[N:, 0] - mean), 0.0, atol=1e-10)
    with pytest.warns(UserWarning, match="lie outside the domain"):
        beyond = model.predict_f(np.array([[40.0, 0.0]]))[1]
    _constant_is_settled(model, np.ones(N))
    np.testing.assert_allclose(beyond, 3.0 + model.posterior_.intercept.variance, rtol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_f(ROWS)[1], variance)


def test_effects_are_those_of_the_covariance_written_out():
    table = {"0": X[:, 0], "1": X[:, 1], "group": np.array(["a", "b", "c"])[np.arange(N) % 3]}
    product = Matern32("0", variance=3.0, lengthscale=0.8) * Matern32("1", lengthscale=1.2)
    kernel = product + Matern32("0", variance=0.5, lengthscale=1.0) * Categorical("group")
    frame = pd.DataFrame(table)
    model = GPClassifier(kernel, covariance="kronecker", optimizer=None, frequencies=2).fit(frame, LABELS)
    found, posterior = model.effects(frame), model.posterior_
    x = np.column_stack([X, np.arange(N) % 3])
    for t, term in enumerate(posterior.terms):
        phi = term.features(x)
        S = sum(np.kron(*(L @ L.T for L in piece)) for piece in posterior.covariance.roots[t])
        prior = term.variance * np.kron(*(G @ G.T for G in posterior.covariance.whiteners[t]))
        away = phi - phi.mean(axis=0)
        variance = term.variance - np.sum((phi @ prior) * phi, axis=1) + np.sum((away @ S) * away, axis=1)
        np.testing.assert_allclose(found.std[:, t] ** 2, variance, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.mean[:, t], away @ posterior.mean[posterior.request.slices[t]], atol=1e-10)


def test_terms_apart_are_below_the_full_covariance_and_near_in_mean():
    full, model = (GPClassifier(SUM, covariance=kind, **KEPT).fit(X, LABELS) for kind in ("full", "factorised"))
    assert full.elbo_ - 5.0 < model.elbo_ < full.elbo_
    spread = np.sqrt(full.predict_f(ROWS)[1])
    assert np.all(np.abs(model.predict_f(ROWS)[0] - full.predict_f(ROWS)[0]) < 0.3 * spread)
    assert [term.name for term in model.fit_.terms] == [term.name for term in full.fit_.terms]
    assert np.abs(model.effects(ROWS).mean - full.effects(ROWS).mean).max() < 0.3


def test_what_is_open_is_learnt_with_few_features():
    kernel = Matern32(0) * Matern32(1)
    model = GPClassifier(kernel, covariance="kronecker", frequencies=16).fit(X, LABELS)
    small = GPClassifier(kernel, frequencies=9).fit(X, LABELS)
    assert model.frequencies_ == {"0 * 1": (16, 16)}
    assert model.posterior_.request.size == 36**2
    assert any("hyperparameters were learnt with the full covariance" in note for note in model.notes_)
    assert model.fit_.terms[0].lengthscales == pytest.approx(small.fit_.terms[0].lengthscales, rel=0.3)
    assert np.abs(model.predict_proba(ROWS) - small.predict_proba(ROWS)).max() < 0.1
    # left open, harmonics are those that learning was content with
    free = GPClassifier(kernel, covariance="kronecker").fit(X, LABELS)
    assert max(free.frequencies_["0 * 1"]) <= 16


def test_targets_in_any_units_and_likelihoods_with_parameters():
    y = 100.0 + 10.0 * (F + 0.2 * RNG.standard_t(3, N))
    kernel = Matern32(0, variance=300.0, lengthscale=0.8) * Matern32(1, lengthscale=1.2)
    full, model = (
        GPRegressor(kernel, likelihood=StudentT(None, 4.0), covariance=kind, **KEPT).fit(X, y)
        for kind in ("full", "kronecker")
    )
    assert model.likelihood_.values["scale"] == pytest.approx(full.likelihood_.values["scale"], rel=1e-6)
    assert model.elbo_ < full.elbo_
    np.testing.assert_allclose(model.predict(ROWS), full.predict(ROWS), atol=4.0)
    assert np.all(np.diff(model.predict_quantiles(ROWS), axis=1) > 0.0)
    assert np.isfinite(model.log_predictive_density(X, y)).all()


def test_equal_rows_are_taken_together_and_weights_count():
    x, y = np.round(3.0 * X) / 3.0, LABELS
    twice = np.repeat(np.arange(N), 2)
    many = np.tile(np.arange(N), 8)
    how: dict[str, Any] = {"covariance": "kronecker", "optimizer": None, "frequencies": 2, "fit_intercept": False}
    one = GPClassifier(PRODUCT, **how).fit(x, y, np.full(N, 2.0))
    two = GPClassifier(PRODUCT, **how).fit(x[twice], y[twice])
    assert one.elbo_ == pytest.approx(two.elbo_, abs=1e-6)
    assert GPClassifier(PRODUCT, **how).fit(x[many], y[many]).fit_.n <= 2 * 49


def test_many_features_fit_without_a_matrix_of_their_size():
    """6,241 features: a P x P matrix would take 312 MB."""
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (400, 2))
    y = np.sin(8.0 * x[:, 0]) * np.cos(5.0 * x[:, 1]) > 0.0
    kernel = Matern32(0, variance=4.0, lengthscale=0.3) * Matern32(1, lengthscale=0.4)
    started = time.perf_counter()
    tracemalloc.start()
    model = GPClassifier(
        kernel, covariance="kronecker", frequencies=38, edges=2, optimizer=None, fit_intercept=False
    ).fit(x, y)
    mean, variance = model.predict_f(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.posterior_.request.size == 79**2
    assert peak < 60e6
    assert time.perf_counter() - started < 30.0
    assert model.notes_ == ()
    assert np.mean((mean > 0.0) == y) > 0.85
    assert 0.0 < variance.min() <= variance.max() < 4.0


def test_refusals(monkeypatch):
    with pytest.raises(ValueError, match="covariance must be one of 'full', 'kronecker'"):
        GPClassifier(PRODUCT, covariance="dense").fit(X, LABELS)
    for likelihood in ("gaussian", Gaussian(0.1)):
        with pytest.raises(ValueError, match="with Gaussian noise the full covariance has a closed form"):
            GPRegressor(PRODUCT, likelihood=likelihood, covariance="kronecker").fit(X, F)
    with pytest.raises(ValueError, match="partial_fit remembers rows by sums that covariance='factorised' does not"):
        GPClassifier(SUM, covariance="factorised").partial_fit(X, LABELS, classes=[False, True])
    fitted = GPClassifier(PRODUCT, covariance="kronecker", **KEPT).fit(X, LABELS)
    with pytest.raises(ValueError, match="covariance is now 'full'"):
        fitted.set_params(covariance="full").partial_fit(X, LABELS)
    monkeypatch.setattr(options_module, "installed_memory", lambda: 6_000_000)
    small: dict[str, Any] = {"optimizer": None, "frequencies": 20, "edges": 3}
    with pytest.raises(ValueError, match="for 1936 features at 150 different rows needs"):
        GPClassifier(PRODUCT, covariance="kronecker", **small).fit(X, LABELS)
    with pytest.raises(ValueError, match="for 1936 features needs"):
        GPClassifier(PRODUCT, covariance="factorised", **small).fit(X, LABELS)
