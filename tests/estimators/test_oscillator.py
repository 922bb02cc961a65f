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


# --- beside celerite2, and sums --------------------------------------------------------------------------------------


@pytest.mark.parametrize("quality", [0.3, 3.0, 60.0])
def test_the_bound_is_below_the_likelihood_of_celerite(light, quality):
    celerite2 = pytest.importorskip("celerite2")
    t, y = light
    term = celerite2.terms.SHOTerm(sigma=np.sqrt(1.4), rho=PERIOD, Q=quality)
    gp = celerite2.GaussianProcess(term, mean=0.0)
    gp.compute(t, diag=np.full(t.size, NOISE))
    theirs = float(gp.log_likelihood(y))
    kernel = Oscillator(0, period=PERIOD, quality=quality, variance=1.4)
    np.testing.assert_allclose(kernel(t[:9], t[:50]), term.get_value(np.subtract.outer(t[:9], t[:50])), atol=1e-10)
    model = GPRegressor(kernel, noise_variance=NOISE, optimizer=None, frequencies=400, normalize_y=False)
    ours = model.fit(t[:, None], y).elbo_
    assert theirs - 0.5 < ours < theirs
    at = np.linspace(1.0, 470.0, 9)
    mean, variance = gp.predict(y, t=at, return_var=True)
    np.testing.assert_allclose(model.predict_f(at[:, None]), [mean, variance], atol=5e-3)


def mode(period, quality, variance):
    """By the period of the damped oscillation, which is a little longer than that without damping."""
    return Oscillator(0, period=period * np.sqrt(1.0 - 0.25 / quality**2), quality=quality, variance=variance)


def rotation(period, quality, depth, mix):
    """celerite2's ``RotationTerm`` of unit variance: qualities and shares of the two modes as it defines them."""
    first = mode(period, 0.5 + quality + depth, 1.0 / (1.0 + mix))
    return first + mode(0.5 * period, 0.5 + quality, mix / (1.0 + mix))


SUMS = {
    "a rotation": rotation(20.0, 6.0, 4.0, 0.5),
    "a spectral mixture": Oscillator(0, period=40.0, quality=2.0, variance=1.0)
    + Oscillator(0, period=13.0, quality=9.0, variance=0.6)
    + Oscillator(0, period=7.0, quality=30.0, variance=0.3),
}


@pytest.mark.parametrize("kernel", SUMS.values(), ids=SUMS)
def test_a_sum_of_oscillators_is_that_of_the_dense_kernel(light, kernel):
    t, rng = light[0], np.random.default_rng(4)
    K = sum(own(t, t) for own in kernel.terms) + NOISE * np.eye(t.size)
    L = np.linalg.cholesky(K)
    y = L @ rng.normal(size=t.size)
    white = np.linalg.solve(L, y)
    exact = -0.5 * white @ white - np.log(np.diag(L)).sum() - 0.5 * t.size * np.log(2.0 * np.pi)
    model = GPRegressor(kernel, noise_variance=NOISE, optimizer=None, frequencies=250, normalize_y=False)
    model.fit(t[:, None], y)
    assert exact - 1.0 < model.elbo_ < exact
    at = np.linspace(0.0, 474.0, 12)
    cross = sum(own(at, t) for own in kernel.terms)
    variance = sum(own.variance for own in kernel.terms) - np.sum(cross.T * np.linalg.solve(K, cross.T), axis=0)
    np.testing.assert_allclose(model.predict_f(at[:, None]), [cross @ np.linalg.solve(K, y), variance], atol=0.01)


def test_a_rotation_is_that_of_celerite():
    celerite2 = pytest.importorskip("celerite2")
    r = np.linspace(0.0, 90.0, 50)
    theirs = celerite2.terms.RotationTerm(sigma=1.0, period=20.0, Q0=6.0, dQ=4.0, f=0.5).get_value(r)
    ours = sum(own(np.zeros(1), r)[0] for own in rotation(20.0, 6.0, 4.0, 0.5).terms)
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_the_prior_of_a_quality_knows_no_units():
    for own in Oscillator(0).factor.parameters:
        scaled = [own.prior(length).quantile(np.array([0.5]))[0] for length in (1.0, 1000.0)]
        assert scaled[1] / scaled[0] == pytest.approx(1000.0 if own.unit == "length" else 1.0)
