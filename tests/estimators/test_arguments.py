"""Single numbers that users give are checked the same way everywhere, and a look at a model never raises."""

import copy
import inspect
import json
import pickle
from collections.abc import Mapping

import matplotlib
import numpy as np
import pandas as pd
import pytest

import vff.plot
from vff import Categorical, CoxProcess, GPClassifier, GPRegressor, Matern32, SlidingWindow
from vff.baselines import (
    ExactGP,
    InducingPointGP,
    InducingPointVGP,
    RandomFourierGP,
    SparseSpectrumGP,
    VariationalGP,
    regular_grid,
)
from vff.likelihoods import Bernoulli, Beta, Gamma, Gaussian, NegativeBinomial, Ordinal, StudentT

matplotlib.use("Agg")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(30, 1))
Y = np.sin(6 * X[:, 0]) + 0.1 * RNG.normal(size=30)
NO_COUNT = [np.nan, np.inf, 0, -1, 1.5, True, "3", None, [2], 1j]
NO_LEVEL = [np.nan, np.inf, 0.0, 1.0, -0.5, True, "0.5", None, [0.5], 1j]
NO_LEVELS = [
    np.nan,
    (np.nan,),
    (0.5, np.nan),
    (0.0,),
    (0.5, 1.0),
    (),
    "0.5",
    ("0.5",),
    None,
    [[0.5]],
    [[0.5], [0.1, 0.2]],
]
NO_SEED = [np.nan, -1, 2**32, 1.5, True, "7", [1], np.random.default_rng(0)]
NO_FLAG = ["False", "no", None, 2, np.nan, [True]]


@pytest.fixture(scope="module")
def model() -> GPRegressor:
    return GPRegressor(frequencies=6).fit(X, Y)


@pytest.fixture(scope="module")
def points() -> CoxProcess:
    return CoxProcess(grid=16, frequencies=6).fit(X[:, 0], (0, 1))


@pytest.mark.parametrize("levels", NO_LEVELS, ids=repr)
def test_levels_of_quantiles(model, levels):
    with pytest.raises(ValueError, match="levels must lie strictly between 0 and 1; got"):
        model.predict_quantiles(X, levels)


def test_more_draws_than_arrays_can_hold(model, points):
    for call in (model.sample_f, model.sample_y):
        with pytest.raises(ValueError, match=r"n_samples must be a whole number from 1 to 1,000,000,000, got"):
            call(X, 10**30)
    with pytest.raises(ValueError, match=r"n_samples must be a whole number from 1 to 1,000,000,000, got"):
        points.sample_points(10**30)


def test_more_frequencies_than_float64_resolves():
    with pytest.raises(ValueError, match=r"frequencies for column 0 are 10+, more than float64 resolves; use at most"):
        GPRegressor(frequencies=10**30).fit(X, Y)


@pytest.mark.parametrize("level", NO_LEVEL, ids=repr)
def test_levels_of_intervals(model, points, level):
    calls = [
        lambda: vff.plot.fit(model, level=level),
        lambda: vff.plot.effects(model, level=level),
        lambda: vff.plot.intensity(points, level=level),
        lambda: points.intensity(level=level),
        lambda: points.expected_count(level=level),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="level must lie between 0 and 1, got"):
            call()


@pytest.mark.parametrize("count", NO_COUNT, ids=repr)
def test_numbers_of_draws_and_their_kin(model, points, count):
    calls = [
        lambda: model.sample_f(X, count),
        lambda: model.sample_y(X, count),
        lambda: points.expected_count(n_samples=count),
        lambda: points.sample_points(count),
        lambda: regular_grid(count, [(0.0, 1.0)]),
        lambda: SlidingWindow(GPRegressor(), count),
        lambda: GPRegressor(frequencies=count).fit(X, Y),
        lambda: RandomFourierGP(n_frequencies=count).fit(X, Y),
        lambda: InducingPointVGP(n_inducing=count, likelihood="gaussian").fit(X, Y),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"must be .*(whole number|integer).*got"):
            call()
    if count is not None:
        for call in (
            lambda: vff.plot.effects(model, ncols=count),
            lambda: GPRegressor(batch_size=count).fit(X, Y),
            lambda: ExactGP(learn_rows=count).fit(X, Y),
        ):
            with pytest.raises(ValueError, match=r"must be .*got"):
                call()


def test_whole_numbers_of_numpy_are_whole_numbers(model, points):
    assert model.sample_f(X, np.int64(2)).shape == (30, 2)
    assert len(points.sample_points(np.uint8(2), np.int32(3))) == 2
    assert SlidingWindow(GPRegressor(), np.int64(2)).length == 2


@pytest.mark.parametrize("seed", NO_SEED, ids=lambda seed: type(seed).__name__)
def test_seeds(model, points, seed):
    for call in (
        lambda: model.sample_f(X, 1, seed),
        lambda: model.sample_y(X, 1, seed),
        lambda: points.sample_points(1, seed),
        lambda: points.expected_count(random_state=seed),
        lambda: RandomFourierGP(random_state=seed).fit(X, Y),
    ):
        with pytest.raises(ValueError, match=r"random_state must be None, a whole number from 0 to 2\*\*32 - 1"):
            call()
    np.testing.assert_array_equal(model.sample_y(X, 2, 5), model.sample_y(X, 2, np.random.RandomState(5)))


@pytest.mark.parametrize("flag", NO_FLAG, ids=repr)
def test_flags_that_would_count_as_true(model, flag):
    for call in (
        lambda: model.predict(X, return_std=flag),
        lambda: model.predict_f(X, full_covariance=flag),
        lambda: GPRegressor(normalize_y=flag).fit(X, Y),
        lambda: GPClassifier(fit_intercept=flag).fit(X, Y > 0),
        lambda: ExactGP(normalize_y=flag).fit(X, Y),
    ):
        with pytest.raises(ValueError, match="must be True or False, got"):
            call()


@pytest.mark.parametrize("column", [np.nan, True, 0.0, [0], "nobody", -1], ids=repr)
def test_the_column_of_a_slope(model, column):
    with pytest.raises(ValueError, match="the slope is along one column, got column="):
        model.predict_derivative(X, column)


@pytest.mark.parametrize("domain", ["01", ("0", "1"), (0, None), (True,), 3.0, np.array(2.0), [1, [2]]], ids=repr)
def test_domains_are_pairs_of_numbers(domain):
    with pytest.raises(ValueError, match="'auto' or a pair"):
        GPRegressor(domain=domain).fit(X, Y)


@pytest.mark.parametrize(
    "likelihood", [Gaussian, StudentT, Gamma, Beta, NegativeBinomial], ids=lambda own: own.__name__
)
@pytest.mark.parametrize("value", ["err", "1.0", True, [1.0], 1j, np.nan, 0.0], ids=repr)
def test_parameters_of_likelihoods_are_numbers(likelihood, value):
    with pytest.raises(ValueError, match=r"must be a number above 0, or None to learn it; got"):
        likelihood(value)


def test_other_parameters_of_likelihoods():
    for cuts in ("ab", ("1", "2"), (0.0, np.nan), 3.0):
        with pytest.raises(ValueError, match="cuts must be finite numbers in increasing order"):
            Ordinal(cuts)
    for levels in ("3", 2.5, True, np.nan):
        with pytest.raises(ValueError, match="levels must be a whole number from two"):
            Ordinal(levels=levels)
    with pytest.raises(ValueError, match="squash must be"):
        Bernoulli(squash="0.1")


CASES = {
    "regression": lambda: GPRegressor(frequencies=5).fit(X, Y),
    "a sum": lambda: GPRegressor(frequencies=4).fit(np.hstack([X, X**2]), Y),
    "counts": lambda: GPRegressor(likelihood="poisson", frequencies=4).fit(X, np.arange(30) % 4),
    "structured": lambda: GPRegressor(likelihood="poisson", covariance="kronecker", frequencies=4).fit(X, Y > 0),
    "two classes": lambda: GPClassifier(frequencies=4).fit(X, Y > 0),
    "three classes": lambda: GPClassifier(frequencies=4).fit(X, np.arange(30) % 3),
    "points": lambda: CoxProcess(grid=8, frequencies=4).fit(X[:, 0], (0, 1)),
    "exact": lambda: ExactGP().fit(X, Y),
    "inducing points": lambda: InducingPointGP(inducing=5).fit(X, Y),
    "random features": lambda: RandomFourierGP(n_frequencies=5).fit(X, Y),
    "sparse spectrum": lambda: SparseSpectrumGP(n_frequencies=5, optimizer=None).fit(X, Y),
    "variational": lambda: VariationalGP(likelihood="gaussian", optimizer=None).fit(X, Y),
    "nothing fitted": GPRegressor,
    "no classifier fitted": GPClassifier,
    "no points": CoxProcess,
    "a kernel": lambda: Matern32("x") * Matern32("z") + Categorical("g"),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_look_at_a_model_never_raises(case):
    found = CASES[case]()
    assert inspect.getmembers(found)
    assert dir(found)
    assert all(hasattr(found, name) in (True, False) for name in dir(type(found)))
    if hasattr(found, "_repr_html_"):
        assert found._repr_html_()
    assert repr(found)


@pytest.mark.parametrize("case", ["a sum", "three classes", "counts"], ids=str)
def test_all_that_a_fitted_model_holds_can_be_written_by_name(case):
    """Formats of JSON, as skops and so MLflow write, have text and numbers for keys and follow no circles."""
    found = CASES[case]()
    rows = np.hstack([X, X**2])[:, : found.n_features_in_]
    before = found.predict_f(rows)
    found.predict(rows)
    _check_writable(found, ())
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        np.testing.assert_array_equal(again.predict_f(rows), before)


def _check_writable(value, above) -> None:
    assert id(value) not in above, "a circle"
    above = (*above, id(value))
    if isinstance(value, Mapping):
        json.dumps(dict.fromkeys(value))
        parts = list(value.values())
    elif isinstance(value, list | tuple):
        parts = list(value)
    elif hasattr(value, "__dict__") and not inspect.isroutine(value) and not isinstance(value, type | np.ndarray):
        parts = [value.__getstate__()]
    else:
        parts = []
    for part in parts:
        _check_writable(part, above)


def test_one_warning_and_no_other_however_far_away(model):
    exact = ExactGP().fit(pd.DataFrame({"x": X[:, 0]}), Y)
    for far in (1e308, -1.7e308, 1e200):
        for ask in (model.predict, model.predict_f, model.predict_quantiles, model.effects, model.sample_y):
            with pytest.warns(vff.ExtrapolationWarning, match="1 of 2 rows lie outside") as caught:
                answer = ask([[0.5], [far]])
            assert len(caught) == 1
            assert np.all(np.isfinite(getattr(answer, "mean", answer) if ask == model.effects else answer))
        _, covariance = exact.predict_f(pd.DataFrame({"x": [0.5, far, -far]}), full_covariance=True)
        assert np.all(np.isfinite(covariance))
