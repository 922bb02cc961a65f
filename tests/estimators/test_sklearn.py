"""The contract of scikit-learn, and tables of every make."""

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from vff import Categorical, ExtrapolationWarning, GPRegressor, Matern32, Matern52

KERNEL = Matern32("u") + Matern52("v") + Categorical("g")

CHECKS = """
import sys, warnings
from unittest import SkipTest
from sklearn.utils.estimator_checks import estimator_checks_generator
from vff import GPRegressor
warnings.simplefilter("ignore")
part, parts = map(int, sys.argv[1:])
checks = list(estimator_checks_generator(GPRegressor()))[part::parts]
for estimator, check in checks:
    try:
        check(estimator)
    except SkipTest as reason:
        sys.exit(f"{check} was skipped: {reason}")
print(len(checks))
"""
PARTS = 2


def _frame(N: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"u": rng.uniform(0, 5, N), "v": rng.uniform(-1, 1, N), "g": rng.choice(list("abc"), N)})
    y = 7 + 3 * np.sin(frame["u"]) + frame["v"] + (frame["g"] == "b") + 0.3 * rng.normal(size=N)
    return frame, y.to_numpy()


@pytest.fixture
def _beyond_is_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        yield


@pytest.mark.parametrize("part", range(PARTS))
def test_every_check_of_scikit_learn_passes_and_none_is_skipped(part: int):
    """One check is skipped unless SciPy knew of SCIPY_ARRAY_API when it was imported: hence another process."""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-c", CHECKS, str(part), str(PARTS)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) * PARTS > 40


def test_clone_pickle_and_names():
    frame, y = _frame()
    model = GPRegressor(KERNEL, frequencies=10)
    copy = clone(model)
    assert repr(copy) == repr(model)
    assert str(copy.get_params()) == str(model.get_params())
    assert model.fit(frame, y) is model
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["u", "v", "g"]
    again = pickle.loads(pickle.dumps(model))
    for got, expected in zip(again.predict(frame, return_std=True), model.predict(frame, return_std=True), strict=True):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(again.effects(frame).std, model.effects(frame).std)
    assert not hasattr(clone(model), "fit_")
    assert model.score(frame, y) > 0.9


@pytest.mark.usefixtures("_beyond_is_fine")
def test_pipelines_scores_and_searches():
    frame, y = _frame()
    X = frame[["u", "v"]].to_numpy()
    assert cross_val_score(make_pipeline(StandardScaler(), GPRegressor()), X, y, cv=3).min() > 0.8
    by_length = GridSearchCV(
        GPRegressor(Matern32(0, variance=4.0, lengthscale=1.0), noise_variance=0.3, optimizer=None),
        {"kernel__lengthscale": [0.01, 1.0, 100.0]},
        cv=3,
    ).fit(X, y)
    assert by_length.best_params_ == {"kernel__lengthscale": 1.0}
    assert by_length.best_estimator_.kernel_.lengthscale == pytest.approx(1.0)
    by_term = GridSearchCV(
        GPRegressor(
            Matern32("u", variance=4.0, lengthscale=1.0) + Matern52("v", variance=1.0, lengthscale=1.0),
            noise_variance=0.3,
            optimizer=None,
        ),
        {"kernel__u__lengthscale": [0.01, 1.0]},
        cv=3,
    ).fit(frame, y)
    assert by_term.best_params_ == {"kernel__u__lengthscale": 1.0}
    by_frequencies = GridSearchCV(GPRegressor(), {"frequencies": [1, 12], "edges": [0]}, cv=3).fit(X, y)
    assert set(by_frequencies.best_estimator_.frequencies_.values()) <= {1, 12}
    assert by_frequencies.best_score_ > 0.8


def test_a_pipeline_that_keeps_names_feeds_kernels_by_name():
    frame, y = _frame()
    kernel = Matern32("v") + Matern52("u")
    pipe = make_pipeline(StandardScaler(), GPRegressor(kernel, frequencies=8)).set_output(transform="pandas")
    pipe.fit(frame[["u", "v"]], y)
    assert pipe[-1].feature_names_in_.tolist() == ["u", "v"]
    plain = GPRegressor(kernel, frequencies=8).fit(frame[["u", "v"]], y)
    np.testing.assert_allclose(pipe.predict(frame[["u", "v"]]), plain.predict(frame[["u", "v"]]), atol=1e-5)


MAKERS = {
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
    "pandas categories": lambda frame: frame.astype({"g": "category"}),
    "single precision is not asked for": lambda frame: frame.convert_dtypes(),
}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("kernel", [None, KERNEL])
def test_tables_of_every_make_give_the_same_fit(make, kernel):
    frame, y = _frame()
    table = MAKERS[make](frame)
    expected = GPRegressor(kernel, frequencies=8).fit(frame, y)
    model = GPRegressor(kernel, frequencies=8).fit(table, y)
    assert model.elbo_ == pytest.approx(expected.elbo_, rel=1e-12)
    assert repr(model.kernel_) == repr(expected.kernel_)
    np.testing.assert_allclose(model.predict(table), expected.predict(frame), rtol=1e-12)
    np.testing.assert_allclose(expected.predict(table), expected.predict(frame), rtol=1e-12)
    assert model.effects(table).names == ("u", "v", "g")


def test_arrays_give_the_fit_of_frames():
    frame, y = _frame()
    numbers = frame[["u", "v"]]
    expected, model = GPRegressor(frequencies=8).fit(numbers, y), GPRegressor(frequencies=8).fit(numbers.to_numpy(), y)
    assert model.elbo_ == pytest.approx(expected.elbo_, rel=1e-12)
    np.testing.assert_allclose(model.predict(numbers.to_numpy()), expected.predict(numbers), rtol=1e-12)
    assert model.effects(numbers.to_numpy()).names == ("0", "1")


def test_times_and_truth_values_fit():
    frame, y = _frame()
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(frame["u"], unit="D")
    table = pd.DataFrame({"when": when, "flag": frame["g"] == "b", "lasts": pd.to_timedelta(frame["v"], unit="h")})
    model = GPRegressor(frequencies=8).fit(table, y)
    days = (when - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    numbers = pd.DataFrame(
        {"when": days, "flag": (frame["g"] == "b") * 1.0, "lasts": table["lasts"].dt.total_seconds() / 86400}
    )
    plain = GPRegressor(frequencies=8).fit(numbers, y)
    np.testing.assert_allclose(model.predict(table), plain.predict(numbers), atol=1e-4)
    assert model.score(table, y) > 0.9
    for make in (pl.from_pandas, pa.Table.from_pandas):
        np.testing.assert_allclose(model.predict(make(table)), model.predict(table), atol=1e-8)


def test_text_becomes_levels_and_missing_text_a_level():
    frame, y = _frame()
    frame.loc[::9, "g"] = None
    model = GPRegressor().fit(frame, y)
    assert [type(term).__name__ for term in model.kernel_.terms] == ["Matern32", "Matern32", "Categorical"]
    assert model.column_levels_[2] == ("a", "b", "c", None)
    assert model.column_indices_ == (0, 1, 2)
    assert np.all(np.isfinite(model.predict(frame)))


@pytest.mark.parametrize("make", ["pandas", "polars", "arrow"])
def test_missing_numbers_are_refused_with_a_sentence_where_that_is_asked_for(make):
    frame, y = _frame()
    as_table = {"pandas": lambda table: table, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}[make]
    frame.loc[5, "u"] = None
    with pytest.raises(
        ValueError, match=r"column 'u' of X contains NaN or another missing value .*row 5.*drop or fill"
    ):
        GPRegressor(missing="refuse").fit(as_table(frame), y)
    whole = frame.fillna({"u": 1.0})
    with pytest.raises(ValueError, match=r"y contains NaN or another missing value .*row 3.*drop or fill"):
        GPRegressor().fit(as_table(whole), np.where(np.arange(120) == 3, np.nan, y))
    model = GPRegressor(frequencies=5, missing="refuse").fit(as_table(whole), y)
    with pytest.raises(ValueError, match=r"column 'u' of X contains NaN"):
        model.predict(as_table(frame))


def _expected_failures(estimator) -> dict[str, str]:
    reason = "demands a good fit to ten columns, and this kernel sees the first alone"
    return {"check_regressors_train": reason}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([GPRegressor(Matern32(0))], expected_failed_checks=_expected_failures)
def test_checks_of_scikit_learn_for_a_kernel_of_one_column(estimator, check):
    check(estimator)
