"""Files from before the constant of the function had a posterior."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vff import Categorical, CoxProcess, GPClassifier, GPRegressor, Matern32
from vff.estimators.saving import load, save
from vff.inference.learning import solver as solvers_module
from vff.storage import container, read_file

RNG = np.random.default_rng(4)
X = np.column_stack([RNG.uniform(0.0, 3.0, 40), np.arange(40) % 3, RNG.uniform(0.0, 1.0, 40)])
Y = RNG.poisson(np.exp(1.0 + np.sin(X[:, 0]))).astype(float)
SUM = Matern32(0) + Categorical(1)
SHORT: dict[str, Any] = {"inference": "mcmc", "draws": 12, "warmup": 25, "chains": 2, "random_state": 0}
OLD = Path(__file__).parents[1] / "data" / "cox_1.vff"


def regressor(kernel: Any = SUM, likelihood: Any = "poisson", **how: Any) -> GPRegressor:
    return GPRegressor(kernel, likelihood=likelihood, **{"frequencies": 4, "hyperparameters": "maximise", **how}).fit(
        X, Y
    )


def iterative() -> GPRegressor:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solvers_module, "LARGEST_DIRECT", 100)
        kernel = Matern32(0, variance=1.0, lengthscale=1.0) * Matern32(2, lengthscale=1.0)
        model = regressor(kernel + Categorical(1, variance=1.0), frequencies=5, optimizer=None)
    assert model.solver_ == "iterative"
    return model


def aged(model: Any) -> Any:
    """The model as it would have been: targets are measured from the mean of its constant, and no more is known."""
    fit = model.fit_
    constant, posterior = fit.posterior.intercept, fit.posterior
    mean = fit.target.mean
    posterior, mean = replace(posterior, intercept=None), mean + fit.target.scale * constant.mean
    model.fit_ = replace(fit, posterior=posterior, target=replace(fit.target, mean=mean))
    return model


MAKERS: dict[str, Callable[[], Any]] = {
    "counts": regressor,
    "two classes": lambda: GPClassifier(SUM, frequencies=4, hyperparameters="maximise").fit(X, Y > 2.0),
    "iterative": iterative,
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_not_known_of_the_constant_is_worked_out(name, tmp_path):
    model = MAKERS[name]()
    (mean, variance), constant = model.predict_f(X[:9]), model.fit_.posterior.intercept
    intercept = model.intercept_, model.intercept_std_
    save(aged(model), tmp_path / "model.vff")
    loaded = load(tmp_path / "model.vff")
    found = loaded.fit_.posterior.intercept
    assert found.mean == 0.0
    assert found.variance == pytest.approx(constant.variance, rel=1e-5)
    np.testing.assert_allclose(found.answer, constant.answer, atol=1e-5 * np.abs(constant.answer).max())
    np.testing.assert_allclose(loaded.predict_f(X[:9]), (mean, variance), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose((loaded.intercept_, loaded.intercept_std_), intercept, rtol=1e-5)
    assert loaded.notes_ == model.notes_
    save(loaded, tmp_path / "again.vff")
    np.testing.assert_array_equal(load(tmp_path / "again.vff").predict_f(X[:9]), loaded.predict_f(X[:9]))


def test_a_pattern_from_a_file_of_version_1_is_as_uncertain_as_it_was():
    """Written in 2026, when its expected count was 15.05 with a standard deviation of 4.09."""
    model = load(OLD)
    assert isinstance(model, CoxProcess)
    count = model.expected_count()
    assert count.mean == pytest.approx(15.0536, rel=0.01)
    assert count.std == pytest.approx(4.0869, rel=0.05)
    assert (count.lower, count.upper) == pytest.approx((9.484, 22.483), rel=0.05)
    assert model.notes_ == ()


@pytest.mark.parametrize(
    "make",
    [
        lambda: regressor(covariance="factorised"),
        lambda: regressor(likelihood="gaussian"),
        lambda: regressor(likelihood="gaussian", **SHORT),
    ],
)
def test_where_it_cannot_be_worked_out_the_model_says_so(make, tmp_path):
    model = make()
    save(model, tmp_path / "new.vff")
    assert load(tmp_path / "new.vff").notes_ == model.notes_
    notes = model.notes_
    save(aged(model), tmp_path / "old.vff")
    loaded = load(tmp_path / "old.vff")
    *others, last = loaded.notes_
    assert tuple(others) == notes
    assert "took the constant of the function for known" in last
    save(loaded, tmp_path / "again.vff")
    assert load(tmp_path / "again.vff").notes_ == loaded.notes_  # once is enough


@pytest.mark.parametrize(
    "make",
    [
        lambda: regressor(likelihood="gaussian", normalize_y=False),
        lambda: regressor(normalize_y=False),
        lambda: regressor(likelihood="ordinal"),
        lambda: regressor(**SHORT),
    ],
)
def test_functions_without_a_constant_are_left_alone(make, tmp_path):
    model = make()
    assert model.fit_.posterior.intercept is None or model.samples_ is not None  # chains draw it
    save(model, tmp_path / "model.vff")
    loaded = load(tmp_path / "model.vff")
    assert loaded.notes_ == model.notes_
    np.testing.assert_array_equal(loaded.predict_f(X), model.predict_f(X))


def test_readers_that_do_not_know_the_constant_say_that_the_file_is_too_new(tmp_path, monkeypatch):
    path = tmp_path / "model.vff"
    save(regressor(likelihood="gaussian"), path)
    assert read_file(path, ["model"]).version == 5
    assert read_file(OLD, ["model"]).version == 1
    monkeypatch.setattr(container, "VERSION", 1)  # as they have it
    with pytest.raises(ValueError, match=r"version 1 to 1 was expected, found version 5; read it with a newer vff"):
        load(path)
