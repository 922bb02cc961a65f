"""The posterior that draws stand for: against closed forms where noise is Gaussian, and against the draws."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import poisson

from vff import Categorical, GPRegressor, Matern12, Matern32
from vff.inference import Posterior
from vff.inference.learning.model import SumModel
from vff.inference.methods.averaged import averaged_posterior
from vff.inference.methods.chains.posterior import CoefficientDraws, sampled_posterior
from vff.inference.model.scale import standardised
from vff.likelihoods import Gaussian

N = 50
RNG = np.random.default_rng(12)
X = np.column_stack([RNG.uniform(0.0, 4.0, N), RNG.uniform(-1.0, 1.0, N), RNG.integers(0, 3, N)])
Y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 2] + X[:, 1] * X[:, 0] + 0.3 * RNG.standard_normal(N)
NEW = X[:8] + np.array([0.01, 0.01, 0.0])
COLUMN = Matern32(0, variance=1.2, lengthscale=0.8)
KERNELS: dict[str, Any] = {
    "column": COLUMN,
    "sum": COLUMN + Categorical(2, variance=0.7),
    "product": COLUMN * Matern12(1, lengthscale=1.5),
}
SIZE: dict[str, Any] = {"frequencies": 2, "optimizer": None, "normalize_y": False, "likelihood": Gaussian(0.1)}
CHAINS: dict[str, Any] = {"inference": "mcmc", "draws": 400, "warmup": 60, "chains": 2, "sampler": "hmc"}
KEPT = 800
SHARE = 5.0 / np.sqrt(KEPT)  # five Monte Carlo errors: draws are next to independent here


@cache
def sampled(name: str) -> GPRegressor:
    return GPRegressor(KERNELS[name], **SIZE, **CHAINS, random_state=5).fit(X, Y)


@cache
def closed(name: str) -> GPRegressor:
    return GPRegressor(KERNELS[name], **SIZE).fit(X, Y)


@cache
def counted() -> GPRegressor:
    y = np.random.default_rng(3).poisson(np.exp(0.5 + np.sin(2.0 * X[:, 0]))).astype(float)
    return GPRegressor(Matern32(0), likelihood="poisson", frequencies=3, **CHAINS, random_state=5).fit(X, y)


@pytest.mark.parametrize("name", KERNELS)
def test_sampled_function_has_the_closed_form(name):
    one, other = sampled(name), closed(name)
    assert len(one.samples_.kept) == KEPT
    assert one.samples_.values == {}  # nothing but the function is sampled
    (mean, covariance), (truth, its) = (model.predict_f(NEW, full_covariance=True) for model in (one, other))
    spread = np.diag(its)
    assert np.all(np.abs(mean - truth) < SHARE * np.sqrt(spread))
    assert np.all(np.abs(covariance - its) < SHARE * np.sqrt(np.outer(spread, spread) + its**2))
    np.testing.assert_allclose(one.predict_f(NEW)[1], np.diag(covariance), rtol=1e-8)
    mean, std = one.predict(NEW, return_std=True)
    np.testing.assert_allclose(std**2, one.predict_f(NEW)[1] + 0.1, rtol=1e-8)
    assert one.kernel_ == other.kernel_


@pytest.mark.parametrize("name", KERNELS)
def test_effects_have_the_closed_form(name):
    one, other = sampled(name).effects(NEW), closed(name).effects(NEW)
    assert one.names == other.names
    assert np.all(np.abs(one.mean - other.mean) < SHARE * other.std)
    np.testing.assert_allclose(one.std**2, other.std**2, rtol=np.sqrt(2.0) * SHARE)


@pytest.mark.parametrize("make", [lambda: sampled("column"), lambda: sampled("sum"), counted])
def test_moments_are_those_of_the_draws(make):
    model = make()
    rows = model._evaluate(NEW, lambda found: (found.x,))[0]
    values, rest = model.posterior_.values(rows)
    mean, variance = model.predict_f(NEW)
    scale = model.target_.scale
    np.testing.assert_allclose(mean, model.target_.mean + scale * values.mean(axis=1), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variance, scale**2 * (values.var(axis=1) + rest), rtol=1e-7)
    assert np.all(rest >= 0.0)
    drawn = model.sample_f(NEW, 4000, random_state=0)
    assert drawn.shape == (len(NEW), 4000)
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=5.0 * np.sqrt(variance.max() / 4000))
    np.testing.assert_allclose(drawn.var(axis=1), variance, rtol=5.0 * np.sqrt(2.0 / 4000))


def test_equal_rows_have_equal_draws():
    drawn = sampled("column").sample_f(NEW[[0, 1, 0]], 20, random_state=1)
    np.testing.assert_array_equal(drawn[0], drawn[2])
    assert np.all(drawn[0] != drawn[1])


def test_predictions_of_counts_are_averages_over_draws():
    model = counted()
    values, rest = model._function_draws(NEW, KEPT, 0)  # every draw once
    f = values + np.sqrt(rest)[:, None] * np.random.default_rng(1).standard_normal(values.shape)
    rate = np.exp(f)
    mean, std = model.predict(NEW, return_std=True)
    noise = 6.0 * np.sqrt(rest) / np.sqrt(KEPT)  # of the rest alone, which is simulated
    np.testing.assert_allclose(mean, np.exp(values + rest[:, None] / 2).mean(axis=1), rtol=noise.max() + 1e-9)
    np.testing.assert_allclose(std**2, rate.mean(axis=1) + rate.var(axis=1), rtol=2.0 * SHARE)
    y = np.arange(len(NEW), dtype=float) % 4
    truth = np.log(poisson.pmf(y[:, None], rate).mean(axis=1))
    np.testing.assert_allclose(model.log_predictive_density(NEW, y), truth, atol=0.1)
    every = [np.exp(model.log_predictive_density(NEW, np.full(len(NEW), float(k)))) for k in range(60)]
    np.testing.assert_allclose(np.sum(every, axis=0), 1.0, atol=1e-6)
    np.testing.assert_allclose(np.arange(60) @ np.array(every), mean, rtol=1e-4)
    cdf = np.cumsum(every, axis=0)
    for level, found in zip((0.05, 0.5, 0.95), model.predict_quantiles(NEW).T, strict=True):
        at = found.astype(int)
        rows = np.arange(len(NEW))
        assert np.all(cdf[at, rows] > level - SHARE)
        assert np.all((at == 0) | (cdf[np.maximum(at - 1, 0), rows] < level + SHARE))
    drawn = model.sample_y(NEW, 4000, random_state=2)
    np.testing.assert_allclose(
        drawn.mean(axis=1), mean, atol=5.0 * std.max() / np.sqrt(4000) + noise.max() * mean.max()
    )


def test_a_sampled_constant_is_in_the_function():
    """The constant of a draw is carried by the first term, and f has its spread."""
    model = counted()
    constant = model.samples_.values["constant"].reshape(-1)[model.samples_.kept]
    assert model.target_.mean == pytest.approx(constant.mean())


FAR = np.array([[0.0, 1.0], [-1.0, 1.0], [1.0, 4.3], [1.0, 90.0], [-1.0, 90.0]])  # a level, and a number


@cache
def averaged(levels: int) -> Posterior:
    """Over the same settings of the hyperparameters, with the levels as the first term or as the second."""
    terms = [Matern32(0)]
    terms.insert(levels, Categorical(2))
    fitted = GPRegressor(terms[0] + terms[1], frequencies=6).fit(X, Y)
    rows = fitted.rows_
    inner = tuple(term.inner for term in rows.terms)
    model = SumModel(inner, *standardised(rows.moments, rows.tails, fitted.fit_.target), intercept=1e10)
    theta = np.log([0.4, 2.0, 0.6, 0.1]) + 0.3 * np.random.default_rng(1).standard_normal((200, 4))
    order = [0, 1, 2, 3] if levels == 0 else [1, 2, 0, 3]
    return averaged_posterior(model, theta[:, order], np.random.default_rng(2))[0]


def test_it_does_not_matter_which_term_writes_the_constant():
    """Beyond its place the first term forgets the constant that it carries, and so must what is said of it."""
    one, other = averaged(0), averaged(1)
    x, turned = FAR, FAR[:, ::-1]
    for mine, theirs in ((0, 1), (1, 0)):
        effects = one.effect(mine, x, one.rows(x)), other.effect(theirs, turned, other.rows(turned))
        np.testing.assert_allclose(*effects, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.marginals(x), other.marginals(turned), rtol=1e-6, atol=1e-9)
    for whole, its in zip(one.joint(x), other.joint(turned), strict=True):
        np.testing.assert_allclose(whole, its, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.slope(x, 1), other.slope(turned, 0), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("levels", [0, 1])
def test_effects_of_the_first_term_are_those_of_its_draws(levels):
    posterior = averaged(levels)
    x, first = FAR[:, :: 1 - 2 * levels], posterior.terms[0]
    P, covariance = first.size, posterior.covariance
    drawn = (first.features(x) - posterior.centre[:P]) @ covariance.coefficients[:, :P].T
    unseen = first.variance - covariance._rest.answers(0, x, posterior.rows(x), [])[1]
    mean, variance = posterior.effect(0, x, posterior.rows(x))
    S = drawn.shape[1]
    np.testing.assert_allclose(drawn.var(axis=1) + unseen, variance, rtol=5.0 * np.sqrt(2.0 / S))
    assert np.all(np.abs(drawn.mean(axis=1) - mean) < 5.0 * np.sqrt(variance / S))


def test_sampled_effects_far_away_are_those_of_the_draws():
    posterior = counted().posterior_
    x, first = np.array([[-20.0], [2.0], [4.2], [30.0]]), posterior.terms[0]
    drawn = (first.features(x) - posterior.centre) @ posterior.covariance.coefficients.T
    mean, variance = posterior.effect(0, x, posterior.rows(x))
    np.testing.assert_allclose(mean, drawn.mean(axis=1), atol=1e-9)
    np.testing.assert_allclose(variance, drawn.var(axis=1) + posterior.values(x)[1], rtol=1e-7)


def test_a_constant_that_is_held_is_not_uncertain():
    """The average of many equal numbers differs from them by rounding, which says nothing about the function."""
    rows = closed("column").rows_
    model = SumModel(tuple(term.inner for term in rows.terms), rows.moments, sites=True)
    draws = np.random.default_rng(3).standard_normal((1000, model.size + 1))
    draws[:, -1] = 0.37
    settings = [model.unpack(np.log([1.0, 0.5, 1.0]))]
    averages = [np.zeros(model.size)]
    posterior, constant = sampled_posterior(model, settings, CoefficientDraws.of(draws), averages)
    assert constant == pytest.approx(0.37, rel=1e-12)
    assert posterior.intercept is None
