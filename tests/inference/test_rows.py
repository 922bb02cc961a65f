"""Learning from rows that are known themselves: the evidence of the process given them, theory (26.4)."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from vff import Categorical, GPRegressor, Linear, Matern12, Matern32, Matern52, Ordered, Periodic
from vff.inference.learning.optimise import maximise, rescale
from vff.inference.learning.rows import LearningRows, RowModel
from vff.inference.learning.solver import processes
from vff.inference.methods import collapsed
from vff.inference.posterior.exact import ExactPosterior, TrainingRows
from vff.moments import FewRows

N = 18
KERNELS = {
    "one column": Matern32(0),
    "product and levels": Matern52(0) * Matern12(1) + Categorical(2),
    "three in a product": Matern32(0) * Matern32(1) * Categorical(2),
    "line and circle": Linear(0) + Periodic(1, period=0.7),
    "order and slope": Ordered(2, levels=[0.0, 1.0, 2.0]) + Linear(0) * Matern32(1),
}


def _rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((N, 3))
    X[:, 2] = np.arange(N) % 3
    return X, np.sin(6.0 * X[:, 0]) + X[:, 2] + 0.1 * rng.standard_normal(N)


def _model(monkeypatch, kernel, X=None, y=None, *, errors=None, **options) -> tuple[RowModel, np.ndarray]:
    """What a fit climbs, and hyperparameters that are not the best."""
    found = []
    monkeypatch.setattr(collapsed, "learn_from_sums", lambda task, model, *_, **__: found.append(model) or _stop())
    X, y = _rows() if X is None else (X, y)
    column = None if errors is None else X.shape[1]
    X = X if errors is None else np.column_stack([X, errors])
    with pytest.raises(_Stopped):
        GPRegressor(kernel, noise_std=column).fit(X, y, **options)
    model = found[0].climbed
    assert isinstance(model, RowModel)
    rng = np.random.default_rng(1)
    return model, model.parameters.clip(np.log(0.3) + 0.5 * rng.standard_normal(len(model.parameters.names)))


class _Stopped(Exception):
    pass


def _stop() -> None:
    raise _Stopped


OPTIONS = {
    "plain": {},
    "weights": {"sample_weight": np.arange(N) % 3 + 1.0},
    "error bars": {"errors": 0.05 + 0.2 * (np.arange(N) % 4)},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_slopes_and_curvature_are_those_of_the_evidence(monkeypatch, kernel, options):
    model, theta = _model(monkeypatch, kernel, **options)
    form, step = model.at(theta), 1e-5
    slopes = model.slopes(theta, form)

    def objective(there: np.ndarray) -> float:
        return model.at(there).objective

    def gradient(there: np.ndarray) -> np.ndarray:
        return model.pull_back(there, model.at(there))

    units = step * np.eye(theta.size)
    first = [(objective(theta + unit) - objective(theta - unit)) / (2.0 * step) for unit in units]
    second = [(gradient(theta + unit) - gradient(theta - unit)) / (2.0 * step) for unit in units]
    np.testing.assert_allclose(slopes.gradient, first, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(slopes.gradient, gradient(theta), rtol=1e-12, atol=1e-12)
    # some kinds have their first derivatives by differences
    np.testing.assert_allclose(slopes.hessian, second, atol=1e-5 * np.abs(second).max())


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_the_evidence_is_that_with_which_rows_answer(monkeypatch, kernel, options):
    model, theta = _model(monkeypatch, kernel, **options)
    setting, rows = model.model.unpack(theta), model.rows
    known = TrainingRows(rows.x, rows.y, rows.w, setting.noise + rows.errors, model.model.intercept)
    exact = ExactPosterior(processes(model.model, setting), known)
    assert model.at(theta).elbo == pytest.approx(exact.evidence, abs=1e-9)


def test_the_evidence_is_a_gaussian_density(monkeypatch):
    X, y = _rows()
    model, theta = _model(monkeypatch, Matern12(0), X[:, :1], y)
    variance, lengthscale, noise = np.exp(theta)
    (domain,) = (own.domain for own in model.model.columns[0])
    t = domain.to_unit(model.rows.x[:, 0])
    covariance = (
        variance * np.exp(-np.abs(np.subtract.outer(t, t)) / lengthscale) + noise * np.eye(N) + model.model.intercept
    )
    assert model.at(theta).elbo == pytest.approx(multivariate_normal(cov=covariance).logpdf(model.rows.y), abs=1e-7)


def test_a_weight_is_a_number_of_rows(monkeypatch):
    model, theta = _model(monkeypatch, KERNELS["product and levels"], sample_weight=np.arange(N) % 3 + 1.0)
    rows = model.rows
    again = np.repeat(np.arange(N), rows.w.astype(int))
    repeated = replace(model, rows=LearningRows(rows.x[again], rows.y[again], np.ones(again.size), rows.errors[again]))
    assert model.at(theta).elbo == pytest.approx(repeated.at(theta).elbo, abs=1e-8)
    np.testing.assert_allclose(
        model.pull_back(theta, model.at(theta)), repeated.pull_back(theta, repeated.at(theta)), atol=1e-8
    )


def test_the_best_common_factor_is_found(monkeypatch):
    model, theta = _model(monkeypatch, Matern32(0))
    model = replace(model, model=replace(model.model, intercept=None))
    factor, best = rescale(model.at(theta))
    variances = np.array([1.0, 0.0, 1.0])
    around = [model.at(theta + (np.log(factor) + away) * variances).elbo for away in (-0.1, 0.0, 0.1)]
    assert around[1] == pytest.approx(best, abs=1e-9)
    assert around[1] == max(around)


def test_learning_ends_where_the_evidence_has_no_slope():
    X, y = _rows()
    twice, weighed = np.concatenate([X, X[:4]]), np.ones(N) + (np.arange(N) < 4)
    repeated = GPRegressor(Matern32(0) + Matern32(1), hyperparameters="maximise").fit(twice[:, :2], np.append(y, y[:4]))
    heavier = GPRegressor(Matern32(0) + Matern32(1), hyperparameters="maximise").fit(X[:, :2], y, sample_weight=weighed)
    for model in (repeated, heavier):
        optimum = model.fit_.history[-1].optimum
        assert optimum.converged
        assert optimum.slope < 1e-4
    assert heavier.noise_variance_ == pytest.approx(repeated.noise_variance_, rel=1e-5)


def test_missing_values_are_rows_like_others(monkeypatch):
    X, y = _rows()
    X[[2, 5, 7], 1] = np.nan
    model, theta = _model(monkeypatch, Matern32(0) + Matern32(1), X[:, :2], y)
    optimum, form = maximise(model, theta)
    assert optimum.converged
    assert np.isfinite(form.elbo)


def test_equal_rows_are_taken_together_in_an_order_of_their_own():
    x, y = np.array([[2.0, np.nan], [1.0, 0.0], [2.0, np.nan], [2.0, 1.0]]), np.array([0.5, 1.0, 0.5, 0.5])
    rows = FewRows(x, y, np.array([1.0, 2.0, 3.0, 1.0]), np.zeros(4)).different
    np.testing.assert_array_equal(rows.w, [2.0, 1.0, 4.0])
    np.testing.assert_array_equal(rows.y, [1.0, 0.5, 0.5])
    np.testing.assert_array_equal(rows.x, [[1.0, 0.0], [2.0, 1.0], [2.0, np.nan]])
