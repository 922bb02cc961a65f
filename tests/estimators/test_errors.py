"""Bad input gets one sentence: what was expected, what was found, where, what to do."""

import numpy as np
import pandas as pd
import pytest

from vff import Categorical, GPRegressor, Matern32

X = np.linspace(0, 1, 30)[:, None]
Y = np.sin(X[:, 0])


def _with(array, index, value):
    copy = array.astype(float).copy()
    copy[index] = value
    return copy


FRAME = pd.DataFrame({"age": X[:, 0], "name": ["a"] * 30})

CASES = {
    "NaN in x": (
        lambda: GPRegressor(missing="refuse").fit(_with(X, 3, np.nan), Y),
        "column 0 of X contains NaN .*row 3.*drop or fill",
    ),
    "inf in x": (lambda: GPRegressor().fit(_with(X, 3, np.inf), Y), "column 0 of X contains inf"),
    "NaN in y": (lambda: GPRegressor().fit(X, _with(Y, 7, np.nan)), "y contains NaN .*row 7"),
    "inf in y": (lambda: GPRegressor().fit(X, _with(Y, 7, -np.inf)), "y contains inf"),
    "one row": (lambda: GPRegressor().fit([[1.0]], [1.0]), "1 sample.*minimum of 2"),
    "no rows": (lambda: GPRegressor().fit(np.empty((0, 1)), []), "0 sample.*minimum of 2"),
    "text column": (lambda: GPRegressor(Matern32("name")).fit(FRAME, Y), "column 'name' of X holds text.*'a'.*encode"),
    "one dimension": (lambda: GPRegressor().fit(X[:, 0], Y), "rows and columns.*reshape"),
    "three dimensions": (lambda: GPRegressor().fit(X[:, :, None], Y), "dim 3"),
    "lengths differ": (lambda: GPRegressor().fit(X, Y[:-1]), "y has 29 values and X has 30 rows"),
    "y of two columns": (lambda: GPRegressor().fit(X, np.ones((30, 2))), "y must be a vector.*one output at a time"),
    "no y": (lambda: GPRegressor().fit(X, None), "y is None"),
    "negative weight": (lambda: GPRegressor().fit(X, Y, -np.ones(30)), "sample_weight is negative"),
    "weights of zero": (lambda: GPRegressor().fit(X, Y, np.zeros(30)), "zero for every row"),
    "weights of other length": (lambda: GPRegressor().fit(X, Y, np.ones(5)), "inconsistent"),
    "empty domain": (lambda: GPRegressor(domain=(1.0, 1.0)).fit(X, Y), "column 0 must have a < b"),
    "reversed domain": (lambda: GPRegressor(domain=(2.0, 1.0)).fit(X, Y), "a < b.*got \\(2, 1\\)"),
    "odd domain": (lambda: GPRegressor(domain="wide").fit(X, Y), "'auto' or a pair"),
    "no frequencies": (
        lambda: GPRegressor(frequencies=0).fit(X, Y),
        "frequencies for column 0 .*positive integer, got 0",
    ),
    "negative frequencies": (lambda: GPRegressor(frequencies=-3).fit(X, Y), "positive integer, got -3"),
    "odd edges": (lambda: GPRegressor(edges=-1).fit(X, Y), "edges must be 'auto' or an integer"),
    "too many edges": (lambda: GPRegressor(edges=8, frequencies=500).fit(X, Y), "more than float64 resolves"),
    "unknown engine": (lambda: GPRegressor(engine="gpu").fit(X, Y), "engine must be one of 'auto', 'dense'"),
    "unknown optimizer": (lambda: GPRegressor(optimizer="adam").fit(X, Y), "optimizer must be one of 'lbfgs', None"),
    "unknown likelihood": (lambda: GPRegressor(likelihood="cauchy").fit(X, Y), "likelihood must be one of"),
    "bad noise": (lambda: GPRegressor(noise_variance=-1).fit(X, Y), "noise_variance must be None or a positive number"),
    "unknown column": (
        lambda: GPRegressor(Matern32("when")).fit(FRAME, Y),
        "column 'when', which X does not have.*'age'",
    ),
    "name without names": (lambda: GPRegressor(Matern32("age")).fit(X, Y), "no column names"),
    "index beyond": (lambda: GPRegressor(Matern32(3)).fit(X, Y), "asks for column 3, but X has 1"),
    "grid on scattered rows": (lambda: GPRegressor(engine="grid").fit(X**2, Y), "equally spaced"),
    "a product": (
        lambda: GPRegressor(Matern32("age") * Matern32(0)).fit(FRAME, Y),
        "uses column 'age' of X twice.*different columns; leave one",
    ),
    "text in an array": (
        lambda: GPRegressor().fit(np.array([["a"], ["b"]]), [1.0, 2.0]),
        "holds text.*Categorical\\(0\\)",
    ),
    "rows beyond the domain of a sum": (
        lambda: GPRegressor(domain={1: (0.0, 0.5)}).fit(np.hstack([X, X]), Y),
        "column 1 reaches \\[0, 1\\], beyond the domain \\[0, 0.5\\].*widen",
    ),
    "grid for two columns": (
        lambda: GPRegressor(engine="grid").fit(np.hstack([X, X]), Y),
        "every combination of their values exactly once.*'auto'",
    ),
    "slope of which column": (
        lambda: GPRegressor().fit(np.hstack([X, X]), Y).predict_derivative(np.hstack([X, X])),
        "along one column.*0, 1",
    ),
    "slope of levels": (
        lambda: GPRegressor(Categorical("name")).fit(FRAME, Y).predict_derivative(FRAME, "name"),
        "categorical and has no slope",
    ),
    "missing in a frame": (
        lambda: GPRegressor(missing="refuse").fit(FRAME.assign(age=FRAME["age"].where(FRAME.index != 4)), Y),
        "column 'age' of X contains NaN or another missing value .*row 4.*drop or fill",
    ),
    "missing in y of a frame": (
        lambda: GPRegressor().fit(FRAME, pd.Series(Y).where(FRAME.index != 4)),
        "y contains NaN or another missing value .*row 4",
    ),
    "other columns at predict": (lambda: GPRegressor().fit(X, Y).predict(np.ones((3, 2))), "expecting 1 features"),
    "unknown key": (
        lambda: GPRegressor(frequencies={"typo": 7}).fit(X, Y),
        "frequencies names column 'typo'.*it uses 0",
    ),
    "other key": (lambda: GPRegressor(domain={3: (0, 9)}).fit(X, Y), "domain names column 3"),
    "too many features": (
        lambda: GPRegressor(frequencies=10**6).fit(X, Y),
        "need .*GiB.*frequencies={0: .*would fit",
    ),
    "huge y": (lambda: GPRegressor().fit(X, 1e200 * Y), "its square leaves float64"),
    "not fitted": (lambda: GPRegressor().predict(X), "not fitted"),
    "not a kernel": (lambda: GPRegressor(1.5).fit(X, Y), "a kernel was expected.*1.5"),  # pyright: ignore[reportArgumentType]
    "a text of no column": (
        lambda: GPRegressor("rbf").fit(X, Y),
        "^kernel: at character 1, a column of the data was expected, found 'rbf', which is none; these have numbers",
    ),
    "unresolved column": (lambda: GPRegressor().fit(1e12 + 1e-3 * X, Y), "float64 barely resolves"),
    "joint over too many": (
        lambda: GPRegressor().fit(X, Y).sample_f(np.linspace(0, 1, 30_000)[:, None]),
        "needs 7 GiB.*at most 20000 rows",
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sentence(case):
    call, pattern = CASES[case]
    with pytest.raises((ValueError, TypeError), match=f"(?s){pattern}") as caught:
        call()
    assert len(str(caught.value)) < 400


def test_predicting_with_other_names():
    model = GPRegressor(Matern32("age")).fit(FRAME[["age"]], Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAME[["age"]].rename(columns={"age": "years"}))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_failed_fit_changes_nothing(method):
    model = GPRegressor(missing="refuse").fit(X, Y)
    before, n = model.predict(X), model.rows_.moments.n
    for bad in (_with(X, 3, np.nan), _with(X, 3, np.inf), np.full((30, 1), 1e12) + X * 1e-3):
        with pytest.raises(ValueError, match=r"NaN|inf|resolves|beyond"):
            getattr(model, method)(bad, Y)
        np.testing.assert_array_equal(model.predict(X), before)
        assert model.rows_.moments.n == n
        assert model.n_features_in_ == 1


def test_other_columns_are_refused_by_partial_fit_and_taken_by_fit():
    model = GPRegressor().fit(X, Y)
    with pytest.raises(ValueError, match="expecting 1 features"):
        model.partial_fit(np.hstack([X, X]), Y)
    assert model.n_features_in_ == 1
    assert model.fit(np.hstack([X, X]), Y).n_features_in_ == 2


def test_a_constant_column_fits_and_is_named():
    model = GPRegressor().fit(np.full((30, 1), 7.0), Y)
    assert any("column 0 holds one value, 7, in all rows" in note for note in model.notes_)
    mean, std = model.predict(np.full((3, 1), 7.0), return_std=True)
    np.testing.assert_allclose(mean, Y.mean(), rtol=1e-6)
    assert np.all(std > 0.5 * Y.std())
    both = GPRegressor().fit(np.hstack([X, np.full((30, 1), 7.0)]), Y)
    assert any("column 1 holds one value" in note for note in both.notes_)
    alone = GPRegressor().fit(X, Y)
    np.testing.assert_allclose(both.predict(np.hstack([X, np.full((30, 1), 7.0)])), alone.predict(X), atol=1e-2)
