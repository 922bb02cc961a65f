"""Tables on which hyperparameters are hardly determined, or not at all, end in an answer by default: never in NaN."""

import numpy as np
import pandas as pd
import pytest

from vff import GPRegressor

RNG = np.random.default_rng(0)
X, X1 = RNG.random((60, 2)), RNG.random((30, 1))
LEVELS = RNG.integers(0, 6, 60)
TABLES = {
    "collinear columns": (np.c_[X1, 2.0 * X1 + 1.0], np.sin(6.0 * X1[:, 0])),
    "no noise": (X, np.sin(6.0 * X[:, 0]) + X[:, 1]),
    "a line": (X, 2.0 * X[:, 0] + 0.05 * RNG.standard_normal(60)),
    "a constant": (X, np.full(60, 3.0)),
    "nothing but noise": (X, RNG.standard_normal(60)),
    "three rows": (X[:3], np.array([1.0, 2.0, 0.0])),
    "two rows": (X[:2], np.array([1.0, 2.0])),
    "every row four times": (np.repeat(X[:5], 4, axis=0), np.repeat(X[:5, 0], 4)),
    "levels that determine y": (
        pd.DataFrame({"g": np.array(list("abcdef"))[LEVELS], "x": X[:, 1]}),
        LEVELS.astype(float),
    ),
    "large numbers": (X, 1e12 * X[:, 0] + 1e9 * RNG.standard_normal(60)),
}


def _answers(model: GPRegressor, rows, y: np.ndarray) -> float:
    """Whether all is finite; the share of the rows of the fit that lie in their 95 % intervals."""
    mean, std = model.predict(rows, return_std=True)
    ends, effects = model.predict_quantiles(rows, (0.025, 0.975)), model.effects(rows)
    variance = model.predict_f(rows)[1]
    drawn = model.sample_y(rows, 3, random_state=0)
    assert all(np.isfinite(own).all() for own in (mean, std, ends, effects.mean, effects.std, variance, drawn))
    assert variance.min() >= 0.0
    slack = 1e-6 * np.ptp(y)
    return float(np.mean((y >= ends[:, 0] - slack) & (y <= ends[:, 1] + slack)))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", TABLES)
def test_numbers(name):
    rows, y = TABLES[name]
    model = GPRegressor().fit(rows, y)
    assert _answers(model, rows, y) > 0.85
    effective = 64.0 if model.samples_ is None else model.samples_.effective
    assert (effective < 6.0) == any("independent ones" in note for note in model.notes_)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("y", [np.zeros(60), (X[:, 0] > 0.5).astype(float), np.round(9.0 * X[:, 0])])
def test_counts(y):
    assert _answers(GPRegressor(likelihood="poisson").fit(X, y), X, y) > 0.85
