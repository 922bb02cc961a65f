"""The constant of the function is known as well as the rows tell it: coverage, files, chains, other likelihoods."""

from typing import Any

import numpy as np
import pytest

import vff
from vff import GPRegressor, Matern32
from vff.likelihoods import Bernoulli


def _noise(likelihood: str, seed: int, n: int = 60) -> tuple[np.ndarray, np.ndarray, float]:
    """A table in which nothing depends on x, and f everywhere."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 1))
    if likelihood == "gaussian":
        return x, 5.0 + rng.standard_normal(n), 5.0
    if likelihood == "poisson":
        return x, rng.poisson(3.0, n).astype(float), float(np.log(3.0))
    return x, (rng.uniform(size=n) < 0.4).astype(float), float(np.log(0.4 / 0.6))


@pytest.mark.parametrize(("likelihood", "tables"), [("gaussian", 120), ("poisson", 60), ("logit", 60)])
def test_pure_noise_is_covered(likelihood: Any, tables: int) -> None:
    """95 % intervals of f hold the truth in about 95 % of the tables; ``benchmarks/constant.py`` tries 400 of each."""
    covered = []
    for seed in range(tables):
        x, y, truth = _noise(likelihood, seed)
        how = Bernoulli("logit") if likelihood == "logit" else likelihood
        model = GPRegressor(Matern32(0), likelihood=how, frequencies=8).fit(x, y)
        mean, variance = model.predict_f(np.array([[0.5]]))
        covered.append(abs(mean[0] - truth) < 1.96 * np.sqrt(variance[0]))
    # four standard errors of a share of tables below what is promised
    assert np.mean(covered) > 0.95 - 4.0 * np.sqrt(0.05 * 0.95 / tables)


def test_an_effect_that_is_nothing_leaves_the_standard_error_of_the_mean() -> None:
    x, y, _ = _noise("gaussian", 3, 100)
    model = GPRegressor(Matern32(0), hyperparameters="maximise").fit(x, y)
    assert any("shrank to nothing" in note for note in model.notes_)
    mean, variance = model.predict_f(x)
    np.testing.assert_allclose(mean, y.mean(), atol=1e-3)
    np.testing.assert_allclose(np.sqrt(variance), y.std() / 10.0, rtol=0.02)
    assert model.intercept_ == pytest.approx(y.mean(), abs=1e-4)
    assert model.intercept_std_ == pytest.approx(y.std() / 10.0, rel=0.02)
    np.testing.assert_allclose(model.effects(x).std, 0.0, atol=1e-3)


def test_effects_and_intercept_make_the_function() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(80, 2))
    y = 7.0 + np.sin(6 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(80)
    model = GPRegressor(Matern32(0) + Matern32(1)).fit(X, y)
    function = model.effects(X).mean.sum(axis=1) + model.intercept_
    np.testing.assert_allclose(function, model.predict(X), rtol=1e-9)
    assert function.mean() == pytest.approx(model.intercept_, rel=1e-9)


@pytest.mark.parametrize("covariance", ["full", "factorised", "kronecker"])
def test_a_saved_model_keeps_it(covariance: str, tmp_path: Any) -> None:
    x, y, _ = _noise("poisson", 1)
    model = GPRegressor(Matern32(0), likelihood="poisson", covariance=covariance, frequencies=5).fit(x, y)
    model.save(tmp_path / "model.vff")
    loaded = vff.load(tmp_path / "model.vff")
    np.testing.assert_array_equal(loaded.predict_f(x), model.predict_f(x))
    assert (loaded.intercept_, loaded.intercept_std_) == (model.intercept_, model.intercept_std_)


def test_chains_know_it_as_well() -> None:
    """With Gaussian noise the constant is integrated in every draw; f where nothing matters is the mean of y."""
    x, y, _ = _noise("gaussian", 4, 50)
    how: dict[str, Any] = {"inference": "mcmc", "draws": 100, "warmup": 100, "chains": 2, "random_state": 0}
    model = GPRegressor(Matern32(0), frequencies=5, **how).fit(x, y)
    mean, variance = model.predict_f(np.array([[0.5]]))
    error = y.std() / np.sqrt(y.size)
    assert abs(mean[0] - y.mean()) < 2.0 * error
    assert 0.9 * error < np.sqrt(variance[0]) < 4.0 * error
    sampled = model.sample_f(np.array([[0.5]]), 500, 1)
    assert np.std(sampled) == pytest.approx(np.sqrt(variance[0]), rel=0.2)


def test_without_a_constant_there_is_none() -> None:
    x, y, _ = _noise("gaussian", 5)
    model = GPRegressor(Matern32(0), normalize_y=False).fit(x, y)
    assert model.posterior_.intercept is None
    assert model.target_.mean == 0.0


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson", "student-t"])
def test_the_intercept_is_a_number_of_python(likelihood) -> None:
    rng = np.random.default_rng(0)
    model = GPRegressor(frequencies=3, likelihood=likelihood).fit(rng.uniform(size=(40, 1)), rng.poisson(2.0, 40))
    assert type(model.intercept_) is type(model.intercept_std_) is float
