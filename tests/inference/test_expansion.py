"""What learning climbs, to second order: against its slopes, and these against differences."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from tests.makers.solvers import problem

from vff import Categorical, GPRegressor, Linear, Matern12, Matern32, Matern52, Oscillator, Periodic, Trend, fixed
from vff.inference import SumModel
from vff.inference.learning.solver import DirectSolver, LowRankSolver
from vff.inference.methods import collapsed

rng = np.random.default_rng(0)
X = np.column_stack([rng.uniform(size=(160, 3)), rng.integers(0, 5, 160)])
Y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + np.sin(5 * X[:, 0] * X[:, 2]) + 0.1 * rng.standard_normal(160)
HOLES = np.where((rng.random(X.shape) < 0.1) & (np.arange(4) < 3), np.nan, X)
STEP = 1e-4


def differences(model: SumModel, theta: np.ndarray) -> np.ndarray:
    """Of fourth order, of the slopes."""

    def slope(at: np.ndarray) -> np.ndarray:
        return model.pull_back(at, model.at(at).objective_cotangents)

    rows = []
    for unit in STEP * np.eye(theta.size):
        near, far = slope(theta + unit) - slope(theta - unit), slope(theta + 2 * unit) - slope(theta - 2 * unit)
        rows.append((8.0 * near - far) / (12.0 * STEP))
    return np.array(rows)


def agrees(model: SumModel, theta: np.ndarray, tolerance: float = 1e-6) -> None:
    closed, learnt = model.at(theta), model.learnt
    assert model.expands(closed)
    found, slopes = model.slopes(theta, closed), model.pull_back(theta, closed.objective_cotangents)
    np.testing.assert_allclose(found.gradient[learnt], slopes[learnt], rtol=1e-9, atol=1e-8 * np.abs(slopes).max())
    expected, own = differences(model, theta)[np.ix_(learnt, learnt)], found.hessian[np.ix_(learnt, learnt)]
    np.testing.assert_allclose(own, own.T, atol=1e-9 * np.abs(own).max())
    np.testing.assert_allclose(own, expected, atol=tolerance * np.abs(expected).max())


def model_of(
    monkeypatch: pytest.MonkeyPatch, kernel, X: np.ndarray, y: np.ndarray, **how
) -> tuple[SumModel, np.ndarray]:
    """What learning had at its end, and a place beside it."""
    seen = []
    recorded = collapsed.record_of_stages
    monkeypatch.setattr(
        collapsed, "record_of_stages", lambda *own, **more: seen.append(own[1]) or recorded(*own, **more)
    )
    noise_std = how.pop("noise_std", None)
    GPRegressor(kernel, **how).fit(X, y, noise_std=noise_std)
    final = seen[-1][-1]
    beside = final.optimum.theta + 0.3 * np.random.default_rng(1).standard_normal(final.optimum.theta.size)
    return final.model, np.where(final.model.learnt, final.model.parameters.clip(beside), final.optimum.theta)


KERNELS = {
    "a column": (Matern32(0), {}),
    "two columns": (Matern32(0) + Matern52(1), {}),
    "a product": (Matern32(0) * Matern52(2) + Matern12(1), {"frequencies": 4}),
    "three columns": (Matern32(0) * Matern52(1) * Matern12(2), {"frequencies": 2}),
    "a circle, a line and a trend": (Periodic(0, 0.5) + Linear(1) + Trend(2), {}),
    "levels": (Categorical(3) + Matern32(0) * Categorical(3), {"frequencies": 6}),
    "slopes of groups": (Linear(1, intercept=True) * Categorical(3), {}),
    "priors": (Matern32(0) + Matern32(1), {"priors": {"noise_variance": 0.01}}),
}


@pytest.mark.parametrize("name", KERNELS)
def test_curvature_is_that_of_differences(name, monkeypatch):
    kernel, how = KERNELS[name]
    # slopes and intercepts that all but determine each other leave differences fewer digits
    agrees(*model_of(monkeypatch, kernel, X, Y, **how), tolerance=1e-5 if name == "slopes of groups" else 1e-6)


def test_an_oscillator_turns_sharply(monkeypatch):
    agrees(*model_of(monkeypatch, Oscillator(0, period=0.4) + Matern32(1), X, Y), tolerance=1e-3)


def test_missing_values(monkeypatch):
    kernel = Matern32(0) + Matern32(1) * Matern32(2)
    agrees(*model_of(monkeypatch, kernel, HOLES, Y, frequencies=4))


def test_error_bars(monkeypatch):
    kernel, err = Matern32(0) + Matern52(1), rng.uniform(0.05, 0.3, len(Y))
    model, theta = model_of(monkeypatch, kernel, X, Y, noise_std=err)
    assert model.noisy is not None
    theta[-1] = np.log(0.05)
    agrees(model, theta, tolerance=1e-3)  # one-sided along the noise


@pytest.mark.parametrize("kernel", [Matern32(0), Matern32(0) + Matern52(1), Matern32(0) * Matern12(1)], ids=str)
@pytest.mark.parametrize("noise", [None, fixed(1e-4)])
def test_few_rows(kernel, noise, monkeypatch):
    model, theta = model_of(monkeypatch, kernel, X[:20], Y[:20], noise_variance=noise)
    assert model.solver.name == "low-rank"
    agrees(model, theta)


def test_sites_have_no_noise_to_learn():
    model, theta, _ = problem("mains and product", 300)
    sites = SumModel(model.terms, model.moments, sites=True)
    agrees(sites, np.append(theta[:-1], 0.0))


@pytest.mark.parametrize("constant", [None, 5.0])
@pytest.mark.parametrize("name", ["levels crossed", "levels crossed alone"])
@patch("vff.moments.gram.SPARSE_FROM", 1)
@patch("vff.inference.learning.solver._CROSSING", 1.0)
def test_two_columns_of_levels(name, constant):
    model, theta, _ = problem("levels crossed")
    if name.endswith("alone"):
        model, theta = SumModel(model.terms[::2], model.moments.terms((0, 2))), theta[[0, 4, 5]]
    model = replace(model, intercept=constant)
    assert model.solver.name == "crossed"
    agrees(model, theta)


def test_few_rows_that_count_more_than_once_are_left_to_differences():
    model, theta, _ = problem("independent", 9)  # weighted
    setting = model.unpack(theta)
    assert LowRankSolver().at(model, setting).expansion is None
    assert DirectSolver().at(model, setting).expansion is not None
