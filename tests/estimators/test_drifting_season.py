"""A season that drifts, two factors of one column: against the exact process, ten periods ahead, and by default."""

from typing import Any

import numpy as np
import pytest

from vff import GPRegressor, Matern32, Periodic

NOISE, PERIOD = 0.09, 24.0
pytestmark = pytest.mark.filterwarnings("ignore::vff.ExtrapolationWarning")


def season(drift: float, **more: Any) -> Any:
    shape = {"lengthscale": 8.0, **more}
    return Periodic(0, PERIOD, variance=1.0, **shape) * Matern32(0, variance=1.0, lengthscale=drift)


def dense(kernel: Any, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    one, other = kernel.factors
    return one(x, z) * other(x, z)


def drawn(drift: float, t: np.ndarray, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """A function of the prior at t, and noisy rows of it."""
    rng = np.random.default_rng(seed)
    K = dense(season(drift), t, t) + 1e-8 * np.eye(t.size)
    f = np.linalg.cholesky(K) @ rng.normal(size=t.size)
    return f, f + np.sqrt(NOISE) * rng.normal(size=t.size)


def exact(kernel: Any, t: np.ndarray, y: np.ndarray, at: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Evidence, and mean and variance of the function elsewhere."""
    L = np.linalg.cholesky(dense(kernel, t, t) + NOISE * np.eye(t.size))
    white, cross = np.linalg.solve(L, y), np.linalg.solve(L, dense(kernel, t, at))
    evidence = -0.5 * white @ white - np.log(np.diag(L)).sum() - 0.5 * t.size * np.log(2.0 * np.pi)
    return evidence, cross.T @ white, 1.0 - np.sum(cross**2, axis=0)


HOURS = np.arange(480.0)
HELD: dict[str, Any] = {"noise_variance": NOISE, "optimizer": None, "normalize_y": False}


@pytest.mark.parametrize("drift", [60.0, 300.0, 5000.0])
@pytest.mark.parametrize("more", [{}, {"order": 2}, {"kind": "exponential-sine", "lengthscale": 1.0}], ids=str)
def test_the_bound_and_forecasts_are_those_of_the_exact_process(drift: float, more: dict[str, Any]) -> None:
    """Inside, and up to ten periods beyond the rows."""
    kernel, y = season(drift, **more), drawn(drift, HOURS)[1]
    at = np.concatenate([np.linspace(0.0, 479.0, 7), 479.0 + PERIOD * np.array([0.1, 1.0, 2.3, 5.0, 10.0]), [-100.0]])
    evidence, mean, variance = exact(kernel, HOURS, y, at)
    few, many = (
        GPRegressor(kernel, frequencies={"0 * 0": M}, **HELD).fit(HOURS[:, None], y) for M in ((5, 5), (16, 30))
    )
    assert few.elbo_ < many.elbo_ < evidence
    assert many.elbo_ > evidence - 1.5
    found = many.predict_f(at[:, None])
    np.testing.assert_allclose(found[0], mean, atol=0.02)
    np.testing.assert_allclose(found[1], variance, atol=0.01)


def test_a_forecast_keeps_its_shape_and_widens() -> None:
    """A signal that comes again exactly: ten periods ahead it is still there, a little lower, with wider bands."""
    rng = np.random.default_rng(0)

    def shape(t: np.ndarray) -> np.ndarray:
        return np.sin(2 * np.pi * t / PERIOD) + 0.5 * np.cos(4 * np.pi * t / PERIOD)

    model = GPRegressor(Periodic(0, PERIOD) * Matern32(0))
    model.fit(HOURS[:, None], shape(HOURS) + 0.2 * rng.normal(size=HOURS.size))
    sds = []
    for periods in (0, 3, 6, 10):
        ahead = 480.0 + PERIOD * periods + np.linspace(0.0, PERIOD, 25)
        mean, variance = model.predict_f(ahead[:, None])
        assert np.corrcoef(mean, shape(ahead))[0, 1] > 0.98
        sds.append(np.sqrt(variance).mean())
    assert sds == sorted(sds)
    assert sds[-1] > 1.5 * sds[0]
    assert np.std(mean) > 0.5 * np.std(shape(ahead))


def test_far_ahead_nothing_is_known() -> None:
    kernel, y = season(60.0), drawn(60.0, HOURS)[1]
    model = GPRegressor(kernel, frequencies={"0 * 0": (12, 30)}, **HELD).fit(HOURS[:, None], y)
    mean, variance = model.predict_f(np.array([[480.0 + 40 * PERIOD]]))
    assert abs(mean[0]) < 1e-3
    assert variance[0] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("drift", [100.0, 400.0, 5000.0])
def test_defaults_share_the_features_between_the_season_and_its_drift(drift: float) -> None:
    """Learnt without advice from 1,000 hours: nearly as good as the exact process that knows all hyperparameters."""
    t = np.arange(1000.0)
    f, y = drawn(drift, t)
    _, best, _ = exact(season(drift), t, y, t)
    model = GPRegressor(Periodic(0, PERIOD) * Matern32(0)).fit(t[:, None], y)
    error, least = (np.sqrt(np.mean((own - f) ** 2)) for own in (model.predict(t[:, None]), best))
    assert error < 1.06 * least
    assert model.noise_variance_ == pytest.approx(NOISE, rel=0.12)
    shape, change = model.frequencies_["0 * 0"]
    assert (2 * shape + 1) * (2 * change + 1 + 3) <= 1600


def test_frequencies_of_two_factors_of_one_column_are_taken_in_their_order() -> None:
    model = GPRegressor(season(300.0), frequencies={"0 * 0": (3, 7)}, **HELD).fit(HOURS[:, None], np.sin(HOURS))
    assert model.frequencies_ == {"0 * 0": (3, 7)}
