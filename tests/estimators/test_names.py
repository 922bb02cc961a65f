"""Columns go by name: in any order, beside others, and as targets and weights inside a frame."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import vff.plot
from vff import (
    Categorical,
    CoxProcess,
    GPClassifier,
    GPRegressor,
    Matern32,
    SlidingWindow,
    load,
    scan,
    suggest_interactions,
)
from vff.baselines import ExactGP
from vff.likelihoods import Poisson

N = 60
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.uniform(size=N), "b": RNG.uniform(size=N), "g": list("uvw") * 20})
Y = np.sin(6 * FRAME["a"].to_numpy()) + FRAME["b"].to_numpy() + 0.1 * RNG.normal(size=N)
KERNEL = Matern32("a") + Categorical("g")
MAKERS = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}
MOVED = FRAME.assign(other=1.0, words="x")[["words", "g", "other", "b", "a"]]
QUESTIONS = {
    "predict": lambda model, X: model.predict(X, return_std=True),
    "predict_f": lambda model, X: model.predict_f(X),
    "predict_f together": lambda model, X: model.predict_f(X, full_covariance=True)[1],
    "predict_quantiles": lambda model, X: model.predict_quantiles(X),
    "predict_derivative": lambda model, X: model.predict_derivative(X, "a"),
    "effects": lambda model, X: model.effects(X)[1:],
    "log_predictive_density": lambda model, X: model.log_predictive_density(X, Y),
    "score": lambda model, X: model.score(X, Y),
    "sample_f": lambda model, X: model.sample_f(X, 2, 0),
    "sample_y": lambda model, X: model.sample_y(X, 2, 0),
}


@pytest.fixture(scope="module")
def model() -> GPRegressor:
    return GPRegressor(KERNEL, frequencies=6).fit(FRAME, Y)


@pytest.mark.parametrize("make", MAKERS, ids=str)
@pytest.mark.parametrize("ask", QUESTIONS, ids=str)
def test_columns_in_any_order_beside_others(model, ask, make):
    expected = QUESTIONS[ask](model, FRAME)
    for X in (MOVED, FRAME[["g", "a"]]):  # b is in no term
        np.testing.assert_array_equal(QUESTIONS[ask](model, MAKERS[make](X)), expected)


@pytest.mark.parametrize("ask", QUESTIONS, ids=str)
def test_missing_columns_are_named_in_one_sentence(model, ask):
    with pytest.raises(
        ValueError, match=r"^X has no column 'g', which the model was fitted to; its feature names are 'a'"
    ):
        QUESTIONS[ask](model, FRAME[["a", "b"]])
    with pytest.raises(ValueError, match=r"^X has no columns 'a', 'g', which the model was fitted to"):
        QUESTIONS[ask](model, FRAME[["b"]])
    with pytest.raises(ValueError, match="more than one column 'a'"):
        QUESTIONS[ask](model, pd.concat([FRAME, FRAME[["a"]]], axis=1))


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([2020, 2021], ValueError),
        ([1, 0], ValueError),
        ([1, 2], ValueError),
        ([0.5, 1.5], ValueError),
        ([("a", 1), ("a", 2)], ValueError),
        ([pd.NA, 1], ValueError),
        ([0, "a"], TypeError),
    ],
    ids=str,
)
def test_labels_that_are_neither_text_nor_places(labels, kind):
    numbered = FRAME[["a", "b"]].set_axis([0, 1], axis=1)
    labelled = FRAME[["a", "b"]].set_axis(pd.Index(labels, tupleize_cols=False), axis=1)
    fitted = GPRegressor(Matern32(1), frequencies=4).fit(numbered, Y)
    np.testing.assert_array_equal(fitted.predict(numbered), fitted.predict(FRAME[["a", "b"]].to_numpy()))
    sentence = r"columns that are named by text, or numbered 0, 1, 2, ... in order, found the labels .*\.map\(str\)"
    for act in (
        lambda: GPRegressor(Matern32(1), frequencies=4).fit(labelled, Y),
        lambda: GPRegressor(frequencies=4).fit(lambda: iter([(labelled, Y)])),
        lambda: fitted.predict(labelled),
        lambda: GPClassifier(frequencies=4).fit(labelled, Y > 0.5),
    ):
        with pytest.raises(kind, match=sentence):
            act()
    named = labelled.set_axis(labelled.columns.map(str), axis=1)
    again = GPRegressor(frequencies=4).fit(named, Y)
    np.testing.assert_array_equal(again.predict(named[named.columns[::-1]]), again.predict(named))


def test_all_columns_are_needed_where_all_have_terms():
    model = GPRegressor(frequencies=4).fit(FRAME, Y)
    np.testing.assert_array_equal(model.predict(MOVED), model.predict(FRAME))
    with pytest.raises(ValueError, match="X has no column 'b'"):
        model.predict(FRAME[["a", "g"]])


def test_arrays_have_as_many_columns_as_before(model):
    plain = GPRegressor(Matern32(0), frequencies=4).fit(FRAME[["a", "b"]].to_numpy(), Y)
    with pytest.raises(ValueError, match="X has 3 features, but GPRegressor is expecting 2"):
        plain.predict(np.ones((2, 3)))
    with pytest.warns(UserWarning, match="fitted without feature names"):
        plain.predict(FRAME[["a", "b"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(FRAME.to_numpy())


def test_the_column_of_the_likelihood_goes_by_name():
    counts = RNG.poisson(3.0, N)
    frame = FRAME.assign(hours=RNG.uniform(1, 2, N))
    for likelihood in (Poisson(exposure="hours"), Poisson(exposure=3)):
        model = GPRegressor(Matern32("a"), likelihood=likelihood, frequencies=4).fit(frame, counts)
        moved = frame[["hours", "a"]]
        np.testing.assert_array_equal(model.predict(moved), model.predict(frame))
        np.testing.assert_array_equal(model.sample_y(moved, 2, 0), model.sample_y(frame, 2, 0))
        with pytest.raises(ValueError, match="X has no column 'hours'"):
            model.predict(frame[["a"]])


def test_more_rows_with_their_columns_in_another_order():
    options = {"kernel": KERNEL, "frequencies": 5, "domain": {"a": (0, 1)}}
    whole = GPRegressor(**options).partial_fit(FRAME[:30], Y[:30]).partial_fit(FRAME[30:], Y[30:])
    moved = GPRegressor(**options).partial_fit(FRAME[:30], Y[:30]).partial_fit(MOVED[30:], Y[30:])
    assert moved.feature_names_in_.tolist() == ["a", "b", "g"]
    np.testing.assert_array_equal(moved.predict(FRAME), whole.predict(FRAME))
    np.testing.assert_allclose(
        moved.forget(MOVED[30:], Y[30:]).predict(FRAME),
        GPRegressor(**options).fit(FRAME[:30], Y[:30]).predict(FRAME),
        atol=1e-4,
    )
    with pytest.raises(ValueError, match="X has no column 'g'"):
        moved.partial_fit(FRAME[["a", "b"]], Y)


def test_classes_points_and_baselines_by_name():
    classes = GPClassifier(KERNEL, frequencies=4).fit(FRAME, FRAME["g"].replace({"u": "v"}) + (Y > 1).astype(str))
    np.testing.assert_array_equal(classes.predict_proba(MOVED), classes.predict_proba(FRAME))
    np.testing.assert_array_equal(classes.predict_log_proba(MOVED), classes.predict_log_proba(FRAME))
    exact = ExactGP(Matern32("a")).fit(FRAME[["b", "a"]], Y)
    np.testing.assert_array_equal(exact.predict(MOVED), exact.predict(FRAME))
    points = CoxProcess(grid=8, frequencies=3).fit(FRAME[["a", "b"]], [(0, 1), (0, 1)])
    np.testing.assert_array_equal(points.intensity(MOVED).mean, points.intensity(FRAME[["a", "b"]]).mean)
    with pytest.raises(ValueError, match="X has no column 'b'"):
        points.intensity(FRAME[["a"]])


@pytest.mark.parametrize("make", MAKERS, ids=str)
def test_targets_and_weights_inside_a_frame(make, tmp_path):
    weights = RNG.integers(0, 3, N)
    frame = MAKERS[make](FRAME.assign(y=Y, w=weights))
    for kernel in (None, KERNEL):
        expected = GPRegressor(kernel, frequencies=4).fit(FRAME, Y, weights)
        model = GPRegressor(kernel, frequencies=4).fit(frame, "y", "w")
        assert model.elbo_ == pytest.approx(expected.elbo_, rel=1e-12)
        assert model.feature_names_in_.tolist() == ["a", "b", "g"]
        assert model.n_features_in_ == 3
        assert model.target_name_ == "y"
        np.testing.assert_array_equal(model.predict(frame), model.predict(FRAME))
        assert model.score(frame, "y", "w") == pytest.approx(expected.score(FRAME, Y, weights))
        np.testing.assert_array_equal(model.log_predictive_density(frame, "y"), model.log_predictive_density(FRAME, Y))
    assert (
        suggest_interactions(model, frame, "y", "w")[0].gain
        == suggest_interactions(expected, FRAME, Y, weights)[0].gain
    )
    model.save(tmp_path / "model.vff")
    assert load(tmp_path / "model.vff").target_name_ == "y"
    assert not hasattr(model.fit(FRAME, Y), "target_name_")


def test_labels_batches_and_pictures_by_name():
    frame = FRAME.assign(y=Y, label=np.where(Y > 1, "high", "low"), three=list("xyz") * 20, w=1.0)
    for target in ("label", "three"):
        model = GPClassifier(Matern32("a"), frequencies=4).fit(frame, target, "w")
        plain = GPClassifier(Matern32("a"), frequencies=4).fit(FRAME, frame[target], np.ones(N))
        np.testing.assert_array_equal(model.predict_proba(frame), plain.predict_proba(FRAME))
        assert model.score(frame, target) == plain.score(FRAME, frame[target])
        assert model.target_name_ == target
        assert target not in model.feature_names_in_
        np.testing.assert_array_equal(
            model.log_predictive_density(frame, target), plain.log_predictive_density(FRAME, frame[target])
        )
    window = SlidingWindow(GPRegressor(Matern32("a"), domain=(0, 1), frequencies=4), 2)
    for rows in (frame[:30], frame[30:][["y", "a"]]):
        last = window.push(rows, "y")
    together = GPRegressor(Matern32("a"), domain=(0, 1), frequencies=4).fit(FRAME[["a"]], Y)
    np.testing.assert_allclose(last.predict(frame), together.predict(frame), atol=1e-6)
    assert ExactGP(Matern32("a")).fit(frame, "y").predict(frame).shape == (N,)
    assert vff.plot.fit(together, frame, "y").axes[0].get_ylabel() == "y"


NAMED_WRONG = {
    "no such column": (
        lambda: GPRegressor().fit(FRAME, "z"),
        "y names column 'z', which X does not have; its columns are 'a'",
    ),
    "no such weights": (lambda: GPRegressor().fit(FRAME, Y, "w"), "sample_weight names column 'w', which X does not"),
    "no names": (
        lambda: GPRegressor().fit(FRAME[["a"]].to_numpy(), "y"),
        "X has no column names; give one number per row",
    ),
    "labels": (lambda: GPClassifier().fit(FRAME, "z"), "y names column 'z', which X does not have"),
    "a term of the target": (lambda: GPRegressor(KERNEL).fit(FRAME, "a"), "has a term of 'a', which is the target"),
    "nothing left": (lambda: GPRegressor().fit(FRAME[["a"]], "a"), "no column beside 'a'; give it one to model"),
    "text": (lambda: GPRegressor(Matern32("a")).fit(FRAME, "g"), "y holds text or objects such as 'u'"),
    "a number": (
        lambda: GPRegressor().fit(FRAME, 3.0),
        "y must be a vector of one number per row, got 3.0; give a vector",
    ),
    "an endless name": (
        lambda: GPRegressor().fit(FRAME.rename(columns={"a": "x" * 10_000}), "z"),
        "which X does not have",
    ),
}


@pytest.mark.parametrize("case", NAMED_WRONG, ids=str)
def test_names_that_lead_nowhere(case):
    call, pattern = NAMED_WRONG[case]
    with pytest.raises(ValueError, match=pattern) as caught:
        call()
    assert len(str(caught.value)) < 400


def _relation():
    duckdb = pytest.importorskip("duckdb")
    return duckdb.from_arrow(pa.Table.from_pandas(FRAME[["a", "g"]]))


NO_TABLES = {
    "dictionaries": (
        lambda: FRAME.to_dict("records"),
        r"got a list; its rows are dictionaries: pass pandas\.DataFrame",
    ),
    "records": (
        lambda: FRAME[["a", "b"]].to_records(index=False),
        r"its rows are records: pass pandas\.DataFrame\(X\)",
    ),
    "nothing": (lambda: None, r"rows and columns, got NoneType; pass a frame"),
    "a number": (lambda: 3.0, r"rows and columns, got float; pass a frame"),
    "ragged lists": (lambda: [[1.0], [2.0, 3.0]], r"1 value\(s\) in row 0 and 2 value\(s\) in row 1; fill up"),
    "ragged arrays": (lambda: np.array([[1.0, 2.0], [3.0]], dtype=object), r"2 value\(s\) in row 0 and 1 value\(s\)"),
    "rows and numbers": (lambda: [[1.0], 2.0], r"1 value\(s\) in row 0 and a single value in row 1"),
    "complex": (lambda: np.ones((200, 1)) * 1j, r"^X: real numbers were expected\. Complex data not supported; use"),
    "a complex number": (lambda: 1 + 2j, r"^X: real numbers were expected\. Complex data not supported; use"),
}


@pytest.mark.parametrize("case", NO_TABLES, ids=str)
def test_what_is_no_table_is_told_what_to_pass(model, case):
    make, pattern = NO_TABLES[case]
    with pytest.raises((TypeError, ValueError), match=pattern) as caught:
        model.predict(make())
    assert len(str(caught.value)) < 300
    with pytest.raises((TypeError, ValueError), match=pattern):
        GPRegressor().fit(make(), Y)


def test_a_relation_is_predicted_as_the_table_that_it_is(model):
    np.testing.assert_array_equal(model.predict(_relation().to_arrow_table()), model.predict(FRAME))
    np.testing.assert_allclose(model.predict(_relation()), model.predict(FRAME), rtol=1e-13)


def test_ragged_targets_and_weights():
    for call in (
        lambda: GPRegressor().fit(FRAME[["a"]][:3], [[1.0], [2.0, 3.0], [4.0]]),
        lambda: GPRegressor().fit(FRAME[["a"]][:3], [1.0, 2.0, 3.0], [[1.0], [2.0, 3.0], [4.0]]),
    ):
        with pytest.raises(TypeError, match=r"holds several values in one \(list\); one number per row was expected"):
            call()


def test_many_names_are_cut_short_and_the_cut_is_shown(tmp_path):
    wide = pd.DataFrame({f"c{n}": RNG.uniform(size=9) for n in range(14)})
    fitted = GPRegressor(Matern32("c0"), frequencies=3).fit(wide, wide["c1"])
    for act in (
        lambda: GPRegressor().fit([wide], "z"),
        lambda: GPRegressor().fit([wide], 3),
        lambda: GPRegressor(Matern32("z")).fit([wide], "c1"),
        lambda: fitted.save(tmp_path / "m.vff", units={"z": "m"}),
        lambda: scan([wide]).restricted(["z"]),
        lambda: GPRegressor(frequencies=3).fit([wide.assign(z=1.0), wide], "z"),
    ):
        with pytest.raises((TypeError, ValueError), match=r"'c11' \.\.\."):
            act()
