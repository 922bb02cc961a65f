"""A damped oscillation: against the exact process, celerite's formula, and a Matérn where it is one."""

import numpy as np
import pytest

from vff import GPRegressor, Matern32, Oscillator, load, parse_kernel
from vff.factors.oscillator.process import DampedOscillator

PERIOD, QUALITY, NOISE = 23.7, 150.0, 0.05


@pytest.fixture(scope="module")
def light():
    """A light curve of 20 periods, with a gap."""
    rng = np.random.default_rng(3)
    t = np.sort(np.concatenate([rng.uniform(0.0, 200.0, 250), rng.uniform(280.0, 474.0, 250)]))
    K = Oscillator(0, period=PERIOD, quality=QUALITY, variance=1.0)(t, t)
    f = np.linalg.cholesky(K + 1e-9 * np.eye(t.size)) @ rng.normal(size=t.size)
    return t, f + np.sqrt(NOISE) * rng.normal(size=t.size)


def evidence(kernel, noise, t, y):
    L = np.linalg.cholesky(kernel(t, t) + noise * np.eye(t.size))
    white = np.linalg.solve(L, y)
    return -0.5 * white @ white - np.log(np.diag(L)).sum() - 0.5 * t.size * np.log(2.0 * np.pi)


@pytest.mark.parametrize("quality", [0.3, 0.5, 0.7, 5.0, 40.0])
def test_the_covariance_is_that_of_celerite(quality):
    """Foreman-Mackey et al. 2017, eq. 23, with the variance made one."""
    r, omega = np.linspace(0.0, 9.0, 40), 2.0 * np.pi / 3.0
    eta = np.sqrt(complex(1.0 - 1.0 / (4.0 * quality**2)))
    swing = omega * r * eta
    rest = 1.0 / (2.0 * eta * quality) * np.sin(swing) if abs(eta) > 1e-8 else omega * r / (2.0 * quality)
    expected = np.real(np.exp(-omega * r / (2.0 * quality)) * (np.cos(swing) + rest))
    np.testing.assert_allclose(DampedOscillator(3.0, quality).covariance(r), expected, atol=1e-11)


def test_at_a_quality_of_one_half_it_is_a_matern(light):
    t, y = light
    given = {"noise_variance": NOISE, "optimizer": None, "frequencies": 60, "edges": 3}
    swings = GPRegressor(Oscillator(0, period=PERIOD, quality=0.5, variance=1.0), **given).fit(t[:, None], y)
    lengthscale = np.sqrt(3.0) * PERIOD / (2.0 * np.pi)
    falls = GPRegressor(Matern32(0, lengthscale=lengthscale, variance=1.0), **given).fit(t[:, None], y)
    assert swings.elbo_ == pytest.approx(falls.elbo_, abs=1e-4)


def test_the_bound_is_below_the_evidence_and_arrives_there(light):
    t, y = light
    kernel = Oscillator(0, period=PERIOD, quality=QUALITY, variance=1.0)
    exact, bounds = evidence(kernel, NOISE, t, y), []
    for M in (30, 60, 400):
        model = GPRegressor(kernel, noise_variance=NOISE, optimizer=None, frequencies=M, normalize_y=False)
        bounds.append(model.fit(t[:, None], y).elbo_)
    assert bounds[0] < bounds[1] < bounds[2] < exact
    assert bounds[2] > exact - 0.1


@pytest.mark.parametrize("start", [None, 0.7, 1.3])
def test_the_period_is_found(light, start):
    t, y = light
    kernel = Oscillator(0) if start is None else Oscillator(0, period=start * PERIOD)
    model = GPRegressor(kernel).fit(t[:, None], y)
    assert model.kernel_.period == pytest.approx(PERIOD, rel=0.01)


@pytest.mark.filterwarnings("ignore::vff.ExtrapolationWarning")
def test_a_forecast_is_that_of_the_exact_process(light):
    t, y = light
    kernel = Oscillator(0, period=PERIOD, quality=QUALITY, variance=1.0)
    model = GPRegressor(kernel, noise_variance=NOISE, optimizer=None, frequencies=200, normalize_y=False)
    model.fit(t[:, None], y)
    ahead = np.array([-40.0, 240.0, 480.0, 500.0, 700.0])
    mean, variance = model.predict_f(ahead[:, None])
    K, cross = kernel(t, t) + NOISE * np.eye(t.size), kernel(ahead, t)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(K, y), atol=2e-3)
    np.testing.assert_allclose(variance, 1.0 - np.sum(cross.T * np.linalg.solve(K, cross.T), axis=0), atol=2e-3)


def test_it_is_written_saved_and_read(light, tmp_path):
    t, y = light
    kernel = parse_kernel("Oscillator('t', period=20) + Matern32('t')")
    assert repr(kernel) == "Oscillator('t', period=20) + Matern32('t')"
    model = GPRegressor(Oscillator(0), frequencies=40).fit(t[:, None], y)
    model.save(tmp_path / "model.vff")
    again = load(tmp_path / "model.vff")
    assert np.array_equal(again.predict(t[:, None]), model.predict(t[:, None]))
