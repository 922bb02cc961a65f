"""GPClassifier: labels of every kind, probabilities that are right, the contract of scikit-learn, refusals."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from vff import GPClassifier, GPRegressor, Matern32, Matern52
from vff.likelihoods import Bernoulli, Poisson

N = 200
RNG = np.random.default_rng(12)
X = RNG.uniform(-1.0, 1.0, (N, 2))
F = 2.5 * np.sin(3.0 * X[:, 0]) + 1.5 * X[:, 1]
LABELS = RNG.random(N) < 1.0 / (1.0 + np.exp(-F))
KERNEL = Matern32(0) + Matern52(1)
KEPT = Matern32(0, variance=4.0, lengthscale=0.8) + Matern52(1, variance=2.0, lengthscale=1.5)
QUICK: dict[str, Any] = {"frequencies": 4, "optimizer": None}
THREE = np.digitize(F, [-1.0, 1.0])


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        np.where(LABELS, 7, -3),
        np.where(LABELS, 1.0, 0.0),
        np.where(LABELS, "yes", "no"),
        np.where(LABELS, "yes", "no").astype(object),
        pd.Series(np.where(LABELS, "yes", "no")),
        pd.Series(np.where(LABELS, "yes", "no"), dtype="category"),
        list(np.where(LABELS, "yes", "no")),
    ],
    ids=["bool", "int", "float", "text", "objects", "series", "category", "list"],
)
def test_labels_of_every_kind(labels):
    model = GPClassifier(KEPT, **QUICK).fit(X, labels)
    truth = GPClassifier(KEPT, **QUICK).fit(X, LABELS)
    assert model.classes_.tolist() == sorted(set(np.asarray(labels).tolist()))
    np.testing.assert_allclose(model.predict_proba(X), truth.predict_proba(X), rtol=1e-10)
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted == model.classes_[1], truth.predict(X))
    assert model.score(X, labels) == pytest.approx(np.mean(predicted == np.asarray(labels)))
    assert model.score(X, labels) > 0.75


@pytest.mark.parametrize("likelihood", ["logit", "probit", Bernoulli("probit", squash=0.01)])
def test_is_the_regressor_of_zeros_and_ones(likelihood):
    model = GPClassifier(KEPT, likelihood=likelihood, **QUICK).fit(X, LABELS)
    other = GPRegressor(KEPT, likelihood=likelihood, **QUICK).fit(X, LABELS * 1.0)
    assert model.elbo_ == pytest.approx(other.elbo_, rel=1e-12)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], other.predict(X), rtol=1e-12)
    np.testing.assert_allclose(model.predict_f(X), other.predict_f(X), rtol=1e-12)
    np.testing.assert_allclose(
        model.log_predictive_density(X, LABELS), other.log_predictive_density(X, LABELS * 1.0), atol=1e-8
    )


def test_the_other_way_round_is_the_same():
    model, mirrored = (GPClassifier(KEPT, **QUICK).fit(X, labels) for labels in (LABELS, ~LABELS))
    np.testing.assert_allclose(model.predict_proba(X), mirrored.predict_proba(X)[:, ::-1], atol=1e-6)
    assert model.elbo_ == pytest.approx(mirrored.elbo_, abs=1e-6)


def test_probabilities_are_calibrated():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 10.0, (6000, 1))
    p = 1.0 / (1.0 + np.exp(-2.0 * np.sin(x[:, 0])))
    labels = rng.random(6000) < p
    train, test = slice(0, 2000), slice(2000, None)
    model = GPClassifier(Matern52(0)).fit(x[train], labels[train])
    found = model.predict_proba(x[test])
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    assert np.abs(found[:, 1] - p[test]).mean() < 0.03
    assert np.all(np.diff(np.argsort(model.decision_function(x[test]))[:3]) != 0)
    for cell in np.array_split(np.argsort(found[:, 1]), 8):
        expected, seen = found[cell, 1].mean(), labels[test][cell].mean()
        # binomial error of the cell, and that of what was learnt from half as many rows
        assert abs(expected - seen) < 3.5 * np.sqrt(3.0 * expected * (1.0 - expected) / cell.size)
    mean, variance = model.predict_f(x[test])
    covered = np.mean(np.abs(mean - 2.0 * np.sin(x[test, 0])) < 1.645 * np.sqrt(variance))
    assert 0.8 < covered <= 1.0


def test_samples_and_logarithms_agree_with_probabilities():
    model = GPClassifier(KEPT, **QUICK, random_state=3).fit(X, np.where(LABELS, "yes", "no"))
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(probabilities))
    draws = model.sample_y(X, 2000)
    assert set(np.unique(draws)) == {"yes", "no"}
    np.testing.assert_allclose(np.mean(draws == "yes", axis=1), probabilities[:, 1], atol=0.06)
    density = model.log_predictive_density(X, np.where(LABELS, "yes", "no"))
    np.testing.assert_allclose(density, np.log(np.where(LABELS, probabilities[:, 1], probabilities[:, 0])), atol=1e-9)
    decision = model.decision_function(X)
    assert decision.shape == (N,)
    np.testing.assert_array_equal(decision > 0.0, model.predict(X) == "yes")


def test_decisions_are_finite_where_a_class_is_certain():
    x = np.linspace(-1.0, 1.0, 60)[:, None]
    kernel = Matern32(0, variance=1e4, lengthscale=1.0)
    model = GPClassifier(kernel, likelihood="probit", **QUICK).fit(x, x[:, 0] > 0.0, np.full(60, 1e3))
    decision = model.decision_function(x)
    assert np.all(np.isfinite(decision))
    assert np.all(np.isfinite(model.log_predictive_density(x, x[:, 0] > 0.0)))


def test_three_classes_are_one_against_the_rest():
    names = np.array(["low", "middle", "top"])[THREE]
    model = GPClassifier(KEPT, **QUICK).fit(X, names)
    assert model.classes_.tolist() == ["low", "middle", "top"]
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (N, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-14)
    each = [GPClassifier(KEPT, **QUICK).fit(X, names == name) for name in model.classes_]
    apart = np.stack([one.predict_proba(X)[:, 1] for one in each], axis=1)
    np.testing.assert_allclose(probabilities, apart / apart.sum(axis=1, keepdims=True), rtol=1e-10)
    assert model.elbo_ == pytest.approx(sum(one.elbo_ for one in each))
    assert model.score(X, names) > 0.8
    assert model.decision_function(X).shape == (N, 3)
    assert all(part.shape == (N, 3) for part in model.predict_f(X))
    np.testing.assert_allclose(
        model.log_predictive_density(X, names), np.log(probabilities[np.arange(N), THREE]), rtol=1e-12
    )
    for ask in (model.effects, model.sample_y):
        with pytest.raises(ValueError, match="3 classes there is a function per class"):
            ask(X)


def test_two_classes_after_three():
    """Nothing of the earlier fit is left."""
    model = GPClassifier(KEPT, **QUICK).fit(X, THREE)
    model.fit(X, LABELS)
    assert model.predict_proba(X).shape == (N, 2)
    fresh = GPClassifier(KEPT, **QUICK).fit(X, LABELS)
    np.testing.assert_allclose(model.predict_proba(X), fresh.predict_proba(X), rtol=1e-12)
    assert model.fit(X, THREE).predict_proba(X).shape == (N, 3)


def test_weights_of_zero_leave_rows_and_classes_out():
    w = (THREE < 2) * 1.0
    model = GPClassifier(KEPT, **QUICK).fit(X, THREE, w)
    assert model.classes_.tolist() == [0, 1]
    other = GPClassifier(KEPT, **QUICK, domain=model.domain_).fit(X[THREE < 2], THREE[THREE < 2])
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("labels", [LABELS, THREE], ids=["two", "three"])
def test_labels_in_chunks(labels):
    classes, domain = np.unique(labels), {0: (-1.0, 1.0), 1: (-1.0, 1.0)}
    whole = GPClassifier(KEPT, **QUICK, domain=domain).fit(X, labels)
    model = GPClassifier(KEPT, **QUICK, domain=domain)
    for rows in np.array_split(np.arange(N), 3):
        model.partial_fit(X[rows], labels[rows], classes)
    assert np.abs(model.predict_proba(X) - whole.predict_proba(X)).mean() < 0.01
    assert np.mean(model.predict(X) == whole.predict(X)) > 0.97
    with pytest.raises(ValueError, match="class 9, which is not among the classes"):
        model.partial_fit(X[:3], np.array([0, 1, 9]))


def test_the_first_rows_must_show_all_classes():
    order = np.argsort(LABELS, kind="stable")
    with pytest.raises(ValueError, match="the first rows given to partial_fit hold no row of class True"):
        GPClassifier(KEPT, **QUICK).partial_fit(X[order[:5]], LABELS[order[:5]], [False, True])


def test_clone_pickle_pipeline_and_search():
    model = GPClassifier(KERNEL, likelihood="probit", frequencies=4, fit_intercept=False)
    assert is_classifier(model)
    assert clone(model).get_params()["likelihood"] == "probit"
    model.fit(X, LABELS)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    three = GPClassifier(KEPT, **QUICK).fit(X, THREE)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(three)).predict_proba(X), three.predict_proba(X))
    pipeline = make_pipeline(StandardScaler(), GPClassifier(KERNEL, frequencies=4)).fit(X, LABELS)
    assert pipeline.score(X, LABELS) > 0.75
    asked = GPClassifier(Matern32(0, variance=1.0, lengthscale=1.0), domain=(-1.0, 1.0), **QUICK)
    search = GridSearchCV(asked, {"kernel__lengthscale": [0.01, 0.7]}, cv=3, scoring="neg_log_loss").fit(X, LABELS)
    assert search.best_params_ == {"kernel__lengthscale": 0.7}


def test_frames_and_effects():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "g": np.where(X[:, 0] > 0.2, "u", "v")})
    model = GPClassifier(frequencies=4).fit(frame, LABELS)
    assert [type(term).__name__ for term in model.kernel_.terms] == ["Matern32", "Matern32", "Categorical"]
    effects = model.effects(frame)
    assert effects.mean.shape == (N, 3)
    total, mean = effects.mean.sum(axis=1), model.predict_f(frame)[0]
    np.testing.assert_allclose(total - total.mean(), mean - mean.mean(), atol=1e-8)


@pytest.mark.parametrize(
    ("options", "labels", "message"),
    [
        ({}, np.ones(N), "y holds one class"),
        ({}, np.where(np.arange(N) == 4, np.nan, LABELS), "NaN or None in row 4"),
        ({}, np.where(np.arange(N) == 4, None, LABELS), "NaN or None in row 4"),
        ({}, pd.Series(LABELS).astype(object).where(np.arange(N) != 4, pd.NA), "NaN or None in row 4"),
        ({}, np.where(np.arange(N) == 4, np.inf, LABELS), "infinite"),
        ({}, None, "requires y to be passed"),
        ({}, RNG.random(N), "Unknown label type"),
        ({}, LABELS[:-1], "199 labels and X has 200 rows"),
        ({"likelihood": "poisson"}, LABELS, "likelihood of a classifier must be"),
        ({"likelihood": Poisson()}, LABELS, "likelihood of a classifier must be"),
        ({"likelihood": 3}, LABELS, "likelihood of a classifier must be"),
        ({"engine": "fast"}, LABELS, "engine"),
    ],
)
def test_refusals(options, labels, message):
    with pytest.raises(ValueError, match=message):
        GPClassifier(**options).fit(X, labels)


def test_partial_fit_needs_all_classes_at_first():
    with pytest.raises(ValueError, match="must name all classes"):
        GPClassifier().partial_fit(X, LABELS)
    with pytest.raises(ValueError, match="class 2, which is not among"):
        GPClassifier().partial_fit(X, THREE, [0, 1])


def test_a_refused_first_chunk_leaves_nothing_behind():
    model = GPClassifier(**QUICK)
    with pytest.raises(ValueError, match="contains inf"):
        model.partial_fit(np.where(np.arange(N)[:, None] == 3, np.inf, X), LABELS, [False, True])
    model.partial_fit(X, THREE, [0, 1, 2])
    assert model.predict_proba(X).shape == (N, 3)


def _expected_failures(estimator) -> dict[str, str]:
    return {}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([GPClassifier(frequencies=2, optimizer=None)], expected_failed_checks=_expected_failures)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)
