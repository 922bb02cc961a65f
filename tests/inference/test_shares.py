"""Shares and concurvity against covariances and regressions over the rows, by loops."""

import numpy as np
import pandas as pd
import pytest

import vff.inference.learning.solver as solvers_module
from vff import Categorical, GPClassifier, GPRegressor, Matern32


def _frame(N: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    u = rng.uniform(0, 5, N)
    g = rng.choice(list("abc"), N)
    frame = pd.DataFrame({"u": u, "v": 0.4 * u + rng.normal(size=N), "g": g})
    y = 3 + np.sin(2 * u) + 0.3 * frame["v"] + (g == "b") * np.cos(u) + 0.4 * rng.normal(size=N)
    return frame, y.to_numpy(), rng.uniform(0.2, 2.0, N)


U, V, G = (
    Matern32("u", lengthscale=2.0, variance=1.0),
    Matern32("v", lengthscale=2.0, variance=1.0),
    Categorical("g", variance=0.5),
)
KERNELS = {"sum": U + V + G, "by group": U + V + G + U * G, "product alone": U * V + G}


def _covariances(effects: np.ndarray, w: np.ndarray) -> np.ndarray:
    """cov(f_j, f) by loops over the rows."""
    total = effects.sum(axis=1)
    found = []
    for own in effects.T:
        mean, other = np.average(own, weights=w), np.average(total, weights=w)
        found.append(sum(w[n] * (own[n] - mean) * (total[n] - other) for n in range(len(w))) / w.sum())
    return np.array(found)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("solver", ["direct", "iterative"])
def test_shares_are_covariances_with_the_function_and_add_up(name, solver, monkeypatch):
    if solver == "iterative":
        if name == "sum":
            pytest.skip("terms of one column have a factor")
        monkeypatch.setattr(solvers_module, "LARGEST_DIRECT", 5)
    frame, y, w = _frame()
    model = GPRegressor(KERNELS[name], frequencies=6).fit(frame, y, sample_weight=w)
    assert model.solver_ == solver
    effects, shares = model.effects(frame).mean, np.array([term.variance_share for term in model.fit_.terms])
    variance = np.average((y - np.average(y, weights=w)) ** 2, weights=w)
    np.testing.assert_allclose(shares, _covariances(effects, w) / variance, atol=1e-6)
    f = model.predict(frame)
    explained = np.average((f - np.average(f, weights=w)) ** 2, weights=w) / variance
    assert shares.sum() == pytest.approx(explained, abs=1e-6)
    assert 0.5 < explained < 1.0
    concurvities = [term.concurvity for term in model.fit_.terms]
    assert all(one is None for one in concurvities) if solver == "iterative" else None not in concurvities


def test_columns_that_offset_one_another_have_shares_that_add_up():
    """Where variances of effects come to many times that of y."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 2000)
    z = x + 0.02 * rng.normal(size=2000)
    y = np.sin(x) + 30 * (x - z) + 0.5 * rng.normal(size=2000)
    kernel = Matern32(0, variance=100.0, lengthscale=30.0) + Matern32(1, variance=100.0, lengthscale=30.0)
    model = GPRegressor(kernel, optimizer=None, noise_variance=0.25, frequencies=20).fit(np.stack([x, z], 1), y)
    effects = model.effects(np.stack([x, z], 1)).mean
    assert np.all(effects.var(axis=0) > 5.0 * y.var())
    shares = [term.variance_share for term in model.fit_.terms]
    assert sum(shares) == pytest.approx(model.predict(np.stack([x, z], 1)).var() / y.var(), rel=1e-6)
    assert sum(shares) < 1.0
    assert all(term.concurvity > 0.95 for term in model.fit_.terms)


@pytest.mark.parametrize("options", [{}, {"covariance": "kronecker"}])
def test_under_another_likelihood_shares_add_up_to_one(options):
    frame, y, _ = _frame(150)
    model = GPRegressor(KERNELS["by group"], likelihood="poisson", frequencies=3, **options)
    model.fit(frame, np.floor(np.exp(0.4 * y)))
    shares = [term.variance_share for term in model.fit_.terms]
    assert sum(shares) == pytest.approx(1.0, abs=1e-6)
    if options:
        expected = _covariances(effects := model.effects(frame).mean, np.ones(150)) / effects.sum(axis=1).var()
        np.testing.assert_allclose(shares, expected, atol=1e-8)


def test_a_classifier_says_its_shares():
    frame, y, _ = _frame(200)
    model = GPClassifier(KERNELS["sum"], frequencies=4).fit(frame, y > 3.5)
    assert sum(term.variance_share for term in model.fit_.terms) == pytest.approx(1.0, abs=1e-6)


def _pure_features(model: GPRegressor, x: np.ndarray) -> list[np.ndarray]:
    """What every term could stand in with at the rows: its features, of products what is pure of them, centred."""
    found = []
    for term in model.posterior_.terms:
        phi = [f.features(x[:, c]) for c, f in zip(term.columns, term.factors, strict=True)]
        if len(phi) > 1:
            phi = [own - own.mean(axis=0) for own in phi]
        rows = np.array([np.kron(*row) if len(phi) > 1 else row[0] for row in zip(*phi, strict=True)])
        found.append(rows - rows.mean(axis=0))
    return found


@pytest.mark.parametrize("name", ["sum", "by group"])
def test_concurvity_is_a_regression_of_an_effect_on_the_other_terms(name):
    """Penalised by their priors at the noise of the model, on rows written out."""
    frame, y, _ = _frame(300)
    model = GPRegressor(KERNELS[name], frequencies=4, optimizer=None, noise_variance=0.16).fit(frame, y)
    (x,) = model._evaluate(frame, lambda rows: (rows.x,))
    phi, effects = _pure_features(model, x), model.effects(frame).mean / model.target_.scale
    noise = model.noise_variance_ / model.target_.scale**2
    precisions = [np.linalg.inv(term.prior_covariance()) for term in model.posterior_.terms]
    for j, term in enumerate(model.fit_.terms):
        others = [t for t in range(len(phi)) if t != j]
        Z = np.concatenate([phi[t] for t in others], axis=1)
        K, start = np.zeros((Z.shape[1],) * 2), 0
        for t in others:
            size = len(precisions[t])
            K[start : start + size, start : start + size] = precisions[t]
            start += size
        g = Z @ np.linalg.solve(K + Z.T @ Z / noise, Z.T @ effects[:, j] / noise)
        expected = 1.0 - np.var(effects[:, j] - g) / np.var(effects[:, j])
        assert term.concurvity == pytest.approx(expected, abs=1e-5)
    assert model.fit_.terms[1].concurvity < 0.9


def test_concurvity_tells_columns_apart_from_copies():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, (500, 3))
    X[:, 2] = X[:, 1]
    y = np.sin(6 * X[:, 0]) + np.cos(6 * X[:, 1]) + 0.1 * rng.normal(size=500)
    kernel = sum(Matern32(c, variance=1.0, lengthscale=0.4) for c in range(3))
    model = GPRegressor(kernel, optimizer=None, noise_variance=0.01, frequencies=10).fit(X, y)
    alone, one, other = (term.concurvity for term in model.fit_.terms)
    assert alone < 0.1  # by chance, about the edf of the others over the rows
    assert one == pytest.approx(other, abs=1e-6)
    assert one > 0.99
