"""Scores refuse what does not belong together, and warnings name the line of the caller."""

import warnings

import numpy as np
import pytest

from vff import ExtrapolationWarning, GPClassifier, GPRegressor


@pytest.fixture(scope="module")
def X():
    return np.linspace(0.0, 6.0, 60)[:, None]


@pytest.fixture(scope="module")
def regressor(X):
    return GPRegressor(frequencies=5).fit(X, np.sin(X[:, 0]))


@pytest.fixture(scope="module")
def classifier(X):
    return GPClassifier(frequencies=5).fit(X, X[:, 0] > 3)


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_weights_of_a_score_are_one_per_row(kind, X, request):
    model = request.getfixturevalue(kind)
    y = X[:, 0] > 3 if kind == "classifier" else np.sin(X[:, 0])
    with pytest.raises(ValueError, match="sample_weight has 65 values and X has 60 rows"):
        model.score(X, y, sample_weight=np.ones(65))


def test_labels_of_another_type_are_refused(classifier, X):
    with pytest.raises(ValueError, match="Mix of label input types"):
        classifier.score(X, (X[:, 0] > 3).astype(str))


def test_labels_that_were_never_seen_count_as_wrong(X):
    model = GPClassifier(frequencies=5).fit(X, np.where(X[:, 0] > 3, "b", "a"))
    assert model.score(X, np.full(60, "c")) == 0.0


@pytest.mark.parametrize("ask", ["predict", "sample_y", "predict_f"])
@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_warnings_of_extrapolation_name_the_line_of_the_caller(kind, ask, request):
    model = request.getfixturevalue(kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(model, ask)([[50.0]])
    assert [one.filename for one in caught if one.category is ExtrapolationWarning] == [__file__]
