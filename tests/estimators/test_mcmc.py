"""``inference="mcmc"`` as users meet it: likelihoods, classes, weights, priors, refusals, scikit-learn's rules."""

import pickle
import warnings
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from vff import CoxProcess, ExtrapolationWarning, GPClassifier, GPRegressor, Matern32
from vff import likelihoods as lk
from vff.priors import Gamma, LogNormal, Normal

N = 48
RNG = np.random.default_rng(21)
X = RNG.uniform(0.0, 4.0, (N, 1))
F = np.sin(2.0 * X[:, 0])
NEW = np.linspace(0.1, 3.9, 7)[:, None]
OPTIONS: dict[str, Any] = {
    "frequencies": 2, "inference": "mcmc", "draws": 100, "warmup": 60, "chains": 2, "sampler": "hmc", "random_state": 3,
}  # fmt: skip


def asymmetric(y: Any, f: Any, scale: Any) -> Any:
    """Logistic noise."""
    z = (y - f) / scale
    return -z - 2.0 * jnp.logaddexp(0.0, -z) - jnp.log(scale)


CUSTOM = lk.Custom(
    asymmetric, mean=lambda f, scale: f, variance=lambda f, scale: np.full_like(f, 3.29 * scale**2), scale=0.5
)
TRIALS = np.column_stack([X, RNG.integers(1, 9, N)])
CASES: dict[str, tuple[Any, np.ndarray, np.ndarray]] = {
    "poisson": ("poisson", X, RNG.poisson(np.exp(1.0 + F)).astype(float)),
    "student": ("student-t", X, 30.0 + 10.0 * F + 3.0 * RNG.standard_t(4, N)),
    "ordinal": ("ordinal", X, np.digitize(F + 0.5 * RNG.standard_normal(N), [-0.5, 0.5]).astype(float)),
    "custom": (CUSTOM, X, F + 0.2 * RNG.logistic(size=N)),
    "binomial": (
        lk.Binomial(trials=1),
        TRIALS,
        RNG.binomial(TRIALS[:, 1].astype(int), 1 / (1 + np.exp(-F))).astype(float),
    ),
}


@cache
def fitted(name: str) -> GPRegressor:
    likelihood, table, y = CASES[name]
    return GPRegressor(Matern32(0), likelihood=likelihood, **OPTIONS).fit(table, y)


def rows(name: str) -> np.ndarray:
    return NEW if name != "binomial" else np.column_stack([NEW, np.full(len(NEW), 5.0)])


@pytest.mark.parametrize("name", CASES)
def test_every_likelihood_answers(name):
    _, table, y = CASES[name]
    model, new = fitted(name), rows(name)
    assert model.samples_ is not None
    shapes = {draws.shape for draws in model.samples_.values.values()}
    assert shapes == {(2, 100)}
    names = set(model.samples_.values)
    assert {"variance[0]", "lengthscale[0]"} <= names
    assert ("constant" in names) == (name != "ordinal")
    assert "R-hat" in str(model.samples_)
    assert np.isnan(model.elbo_)
    mean, std = model.predict(new, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0.0)
    f, variance = model.predict_f(new)
    assert np.corrcoef(f, np.sin(2.0 * NEW[:, 0]))[0, 1] > 0.7
    assert np.all(variance > 0.0)
    assert np.all(np.isfinite(model.log_predictive_density(table[:5], y[:5])))
    if name != "custom":
        low, middle, high = model.predict_quantiles(new).T
        assert np.all((low <= middle) & (middle <= high))
        assert model.sample_y(new, 3, random_state=0).shape == (len(new), 3)


def test_what_is_in_units_of_y_is_in_units_of_y():
    values = fitted("student").samples_.values
    assert 1.0 < np.median(values["scale"]) < 6.0
    assert np.min(values["df"]) > 2.0
    assert 20.0 < np.median(values["variance[0]"]) < 2000.0
    assert 0.0 < np.median(values["constant"]) < 60.0
    assert fitted("student").likelihood_.values["scale"] == pytest.approx(np.median(values["scale"]), rel=0.05)


@pytest.mark.parametrize("count", [2, 3])
def test_classes(count):
    labels = np.array(["a", "b", "c"])[np.digitize(F, [-0.2, 0.6][: count - 1])]
    model = GPClassifier(Matern32(0), **OPTIONS).fit(X, labels)
    p = model.predict_proba(NEW)
    assert p.shape == (len(NEW), count)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(NEW)), p, rtol=1e-6)
    assert (model.predict(X) == labels).mean() > 0.8
    if count == 2:
        odds = model.decision_function(NEW)
        np.testing.assert_allclose(odds, np.log(p[:, 1] / p[:, 0]), rtol=1e-5)
        assert model.samples_ is not None
        assert set(model.sample_y(NEW, 4, random_state=1).ravel()) <= {"a", "b"}


def test_a_weight_is_a_number_of_rows():
    _, _, y = CASES["poisson"]
    times = np.random.default_rng(0).integers(1, 3, N)
    how = {**OPTIONS, "optimizer": None, "domain": (-0.5, 4.5), "draws": 400}
    kernel = Matern32(0, variance=1.0, lengthscale=0.8)
    one = GPRegressor(kernel, likelihood="poisson", **how).fit(X, y, times)
    other = GPRegressor(kernel, likelihood="poisson", **how).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    (mean, variance), (truth, its) = one.predict_f(NEW), other.predict_f(NEW)
    assert np.all(np.abs(mean - truth) < 5.0 * np.sqrt((variance + its) / 400))
    np.testing.assert_allclose(variance, its, rtol=5.0 * np.sqrt(4.0 / 400))


# --- priors --------------------------------------------------------------------------------------------------------


def asked(priors: Any, **how: Any) -> GPRegressor:
    return GPRegressor(Matern32(0), likelihood="poisson", priors=priors, **{**OPTIONS, **how})


def test_priors_by_name():
    _, _, y = CASES["poisson"]
    priors = {"lengthscale[0]": 0.75, "variance": LogNormal(1.0, 0.05), "constant": Normal(1.0, 0.01)}
    model = asked(priors).fit(X, y)
    assert model.kernel_.lengthscale == pytest.approx(0.75, rel=1e-12)
    assert "lengthscale[0]" not in model.samples_.values
    np.testing.assert_allclose(np.log(model.samples_.values["variance[0]"]).std(), 0.05, rtol=0.4)
    np.testing.assert_allclose(model.samples_.values["constant"].mean(), 1.0, atol=0.05)


@pytest.mark.parametrize(
    ("priors", "words"),
    [
        ({"lengthscale[x]": 1.0}, r"names 'lengthscale\[x\]'.*it has variance\[0\], lengthscale\[0\], constant"),
        ({"noise_variance": 1.0}, "does not have"),
        ({"lengthscale": Normal(0.0, 1.0)}, "positive number"),
        ({"constant": Gamma(2.0, 1.0)}, "real number"),
        ({"variance": -1.0}, "must be a prior"),
        ({"variance": "wide"}, "must be a prior"),
        ({"variance": True}, "must be a prior"),
        ([("variance", 1.0)], "dictionary"),
    ],
)
def test_priors_that_are_refused(priors, words):
    with pytest.raises(ValueError, match=words):
        asked(priors).fit(X, CASES["poisson"][2])


def test_a_prior_below_what_a_parameter_can_be_is_refused():
    _, _, y = CASES["student"]
    model = GPRegressor(Matern32(0), likelihood="student-t", priors={"df": LogNormal(1.0, 0.1)}, **OPTIONS)
    with pytest.raises(ValueError, match="stays above 2"):
        model.fit(X, y)


def test_a_prior_of_what_is_held_is_refused():
    model = GPRegressor(Matern32(0, variance=1.0, lengthscale=1.0), likelihood="poisson", optimizer=None,
                        priors={"variance": Gamma(2.0, 1.0)}, **OPTIONS)  # fmt: skip
    with pytest.raises(ValueError, match="held at"):
        model.fit(X, CASES["poisson"][2])


@pytest.mark.parametrize(
    "wrong",
    [{"draws": 3}, {"draws": 10.5}, {"chains": 0}, {"warmup": -1}, {"warmup": "long"}, {"sampler": "gibbs"},
     {"inference": "exact"}, {"covariance": "kronecker"}],
)  # fmt: skip
def test_options_that_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        asked(None, **wrong).fit(X, CASES["poisson"][2])


# --- what scikit-learn asks ----------------------------------------------------------------------------------------


def test_partial_fit_is_refused():
    with pytest.raises(ValueError, match="partial_fit"):
        asked(None).partial_fit(X, CASES["poisson"][2])


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    fresh = asked({"nothing": 1.0})
    with pytest.raises(ValueError, match="nothing"):
        fresh.fit(X, CASES["poisson"][2])
    assert not [name for name in vars(fresh) if name.endswith("_")]
    model = pickle.loads(pickle.dumps(fitted("poisson")))
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    model.priors = {"nothing": 1.0}
    with pytest.raises(ValueError, match="nothing"):
        model.fit(X, CASES["poisson"][2])
    assert before == {name: value for name, value in vars(model).items() if name.endswith("_")}


def test_options_survive_cloning():
    model = asked({"variance": Gamma(2.0, 1.0)})
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert {"draws", "warmup", "chains", "sampler", "priors", "inference"} <= set(copy.get_params())


@pytest.mark.parametrize("name", ["poisson", "student"])
def test_pickles_predict_the_same(name):
    model = fitted(name)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(again.sample_y(NEW, 2, 5), model.sample_y(NEW, 2, 5))
    assert str(again.samples_) == str(model.samples_)


def test_random_state_decides_everything():
    _, _, y = CASES["poisson"]
    again, other = asked(None).fit(X, y), asked(None, random_state=4).fit(X, y)
    model = fitted("poisson")
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(model.predict(NEW), model.predict(NEW))
    assert not np.any(other.predict(NEW) == model.predict(NEW))


def test_a_row_is_predicted_the_same_in_any_company():
    model = fitted("poisson")
    alone = np.concatenate([model.predict(row[None]) for row in NEW])
    np.testing.assert_allclose(alone, model.predict(NEW), rtol=1e-9)


def test_beyond_the_domain():
    model = fitted("poisson")
    with pytest.warns(ExtrapolationWarning, match="outside the domain"):
        mean, std = model.predict(np.array([[-20.0], [2.0], [30.0]]), return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(std))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        _, variance = model.predict_f(np.array([[-20.0], [2.0]]))
        drawn = model.sample_f(np.array([[-20.0], [2.0]]), 4000, random_state=0)
    assert variance[0] > 0.9 * model.samples_.values["variance[0]"].mean()
    np.testing.assert_allclose(drawn.var(axis=1), variance, rtol=0.2)


def test_names_of_columns_are_names_of_draws():
    frame = pd.DataFrame({"depth": X[:, 0]})
    model = GPRegressor(Matern32("depth"), likelihood="poisson", **OPTIONS).fit(frame, CASES["poisson"][2])
    assert list(model.samples_.values) == ["variance[depth]", "lengthscale[depth]", "constant"]
    np.testing.assert_array_equal(model.predict(frame[:5]), fitted("poisson").predict(X[:5]))


def test_a_point_pattern():
    rng = np.random.default_rng(2)
    points = rng.beta(2.0, 5.0, 70)
    model = CoxProcess(grid=24, frequencies=2, inference="mcmc", random_state=1).fit(points, (0.0, 1.0))
    count = model.expected_count()
    assert count.mean == pytest.approx(70.0, rel=0.1)
    assert count.lower < 70.0 < count.upper
    assert 0.5 * np.sqrt(70.0) < count.std < 2.0 * np.sqrt(70.0)
    intensity = model.intensity(np.array([0.2, 0.9]))
    assert np.all((intensity.lower < intensity.mean) & (intensity.mean < intensity.upper))
    assert intensity.mean[0] > intensity.mean[1]
