"""A trend that goes on: against the exact process, the smoothing spline, and forecasts of simulated walks."""

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import make_smoothing_spline
from scipy.stats import multivariate_normal

from vff import Categorical, GPClassifier, GPRegressor, Matern32, Periodic, Trend, load, parse_kernel
from vff.baselines import ExactGP

NOISE = 0.04


def draw(kernel, t, seed, noise=NOISE):
    rng = np.random.default_rng(seed)
    f = np.linalg.cholesky(kernel(t, t) + 1e-10 * np.eye(t.size)) @ rng.normal(size=t.size)
    return f + np.sqrt(noise) * rng.normal(size=t.size)


def evidence(K, y, noise=NOISE):
    return multivariate_normal(np.zeros(y.size), K + noise * np.eye(y.size)).logpdf(y)


@pytest.fixture(scope="module")
def t():
    return np.sort(np.random.default_rng(3).uniform(-3.0, 17.0, 120))


def held(kernel, **more):
    return GPRegressor(kernel, noise_variance=NOISE, optimizer=None, normalize_y=False, **more)


# --- the kernel ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
def test_the_covariance_is_that_of_integrated_noise(order):
    """k is the covariance of a state and of white noise integrated once or twice, by sums over small steps."""
    h, length = 1e-3, 0.7
    s = (np.arange(2000) + 0.5) * h
    x = np.array([0.0, 0.3, 0.4, 1.5, -0.2, -0.9])
    reach = np.where(x[:, None] < 0, np.maximum(-x[:, None] - s, 0.0), np.maximum(x[:, None] - s, 0.0)) ** (order - 1)
    reach = np.where(s < np.abs(x)[:, None], reach, 0.0)
    noise = (reach * h) @ reach.T * (np.sign(x)[:, None] * np.sign(x) > 0) / length ** (2 * order - 1)
    state = 1.0 + (np.multiply.outer(x, x) / length**2 if order == 2 else 0.0)
    kernel = Trend(0, variance=2.0, lengthscale=length, order=order, start=5.0)
    np.testing.assert_allclose(kernel(x + 5.0, x + 5.0), 2.0 * (state + noise), atol=2e-3)


def test_it_says_what_it_needs():
    with pytest.raises(ValueError, match="does not say where it starts: give start="):
        Trend("t", variance=1.0, lengthscale=1.0)([0.0], [1.0])
    with pytest.raises(ValueError, match=r"order must be 1 .* or 2 .*, got 3"):
        Trend("t", order=3)
    with pytest.raises(ValueError, match="start must be a number"):
        Trend("t", start=np.inf)
    with pytest.raises(ValueError, match="lengthscale must be a positive number"):
        Trend("t", start=-1.0, lengthscale=-1.0)
    with pytest.raises(ValueError, match="is not a trend"):
        Trend("t", start=0.0) * Matern32("t")


# --- the exact process -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "length", "M"), [(1, 60.0, (20, 80, 900)), (2, 6.0, (5, 20, 80))])
def test_the_bound_is_below_the_evidence_and_arrives_there(t, order, length, M):
    kernel = Trend(0, variance=1.5, lengthscale=length, order=order, start=t[0])
    y = draw(kernel, t, 1)
    exact = evidence(kernel(t, t), y)
    bounds = [held(kernel, frequencies=m).fit(t[:, None], y).elbo_ for m in M]
    assert bounds[0] < bounds[1] < bounds[2] < exact
    assert bounds[2] > exact - 0.1
    baseline = ExactGP(kernel, noise_variance=NOISE, optimizer=None, normalize_y=False).fit(t[:, None], y)
    assert baseline.elbo_ == pytest.approx(exact, abs=1e-6)
    assert baseline.kernel_ == kernel


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_of_the_bound_are_its_differences(t, order):
    from vff.inference.learning.model import SumModel

    kernel = Trend(0, variance=1.5, lengthscale=9.0, order=order)
    fitted = held(kernel, frequencies=20, domain=(-3.0, 14.0)).fit(t[:, None], draw(kernel.settled_at(t), t, 2))
    model = SumModel(tuple(term.inner for term in fitted.statistics_.terms), fitted.statistics_.moments)
    theta = np.log([1.3, 0.8, 0.05])
    gradient = model.gradient(model.at(theta), theta)
    for n in range(3):
        step = 1e-5 * (np.arange(3) == n)
        central = (model.at(theta + step).elbo - model.at(theta - step).elbo) / 2e-5
        assert gradient[n] == pytest.approx(central, rel=1e-5, abs=1e-5)
