"""Which products are worth adding: the true one first, nothing where there is nothing, and gains that come true."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from vff import Categorical, GPRegressor, Matern32, suggest_interactions
from vff.baselines import ExactGP

NAMES = ("a", "b", "c", "d")
MAINS = Matern32("a") + Matern32("b") + Matern32("c") + Matern32("d")


def _frame(strength: float, N: int = 1500, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Additive but for one interaction, of b and d."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.uniform(-1, 1, N) for name in NAMES}).assign(g=rng.choice(list("xyz"), N))
    f = np.sin(3 * frame["a"]) + frame["b"] ** 2 + 0.3 * frame["c"] + strength * frame["b"] * frame["d"]
    return frame, 10.0 + (f + 0.3 * rng.normal(size=N)).to_numpy()


@pytest.fixture(scope="module")
def interacting():
    frame, y = _frame(0.5)
    return frame, y, GPRegressor(MAINS, frequencies=10).fit(frame, y)


def test_the_true_interaction_comes_first_and_its_gain_comes_true(interacting):
    frame, y, model = interacting
    found = suggest_interactions(model, frame, y)
    assert set(found[0].columns) == {"b", "d"}
    assert len(found) == 6
    gains = [one.gain for one in found]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 50.0
    assert max(gains[1:]) < 5.0
    best = found[0]
    assert all(factor.lengthscale > 0.0 for factor in best.kernel.factors)
    more = GPRegressor(model.kernel_ + best.kernel, frequencies={**dict.fromkeys(NAMES, 10), best.name: 5})
    rise = more.fit(frame, y).elbo_ - model.elbo_
    assert 0.5 * rise < best.gain < 2.0 * rise


def test_additive_data_have_nothing_to_gain():
    frame, y = _frame(0.0)
    model = GPRegressor(MAINS, frequencies=10).fit(frame, y)
    assert max(one.gain for one in suggest_interactions(model, frame, y)) < 4.0


def test_products_of_the_model_are_not_suggested(interacting):
    frame, y, _ = interacting
    model = GPRegressor(MAINS + Matern32("d") * Matern32("b"), frequencies=4).fit(frame, y)
    found = suggest_interactions(model, frame, y)
    pairs = [set(one.columns) for one in found]
    assert {"b", "d"} not in pairs
    assert len(pairs) == 5
    assert max(one.gain for one in found) < 5.0


def test_levels_may_interact():
    """A slope that differs by level is found, in a frame and with weights."""
    frame, y = _frame(0.0)
    y = y + 0.6 * np.where(frame["g"] == "x", 1.0, -1.0) * frame["c"].to_numpy()
    model = GPRegressor(Matern32("a") + Matern32("b") + Matern32("c") + Categorical("g"), frequencies=8)
    w = np.random.default_rng(1).uniform(0.5, 1.5, len(y))
    model.fit(frame, y, sample_weight=w)
    found = suggest_interactions(model, frame, y, w)
    assert set(found[0].columns) == {"c", "g"}
    assert found[0].gain > 50.0
    assert {type(factor).__name__ for factor in found[0].kernel.factors} == {"Matern32", "Categorical"}
    frequencies = {"a": 8, "b": 8, "c": 8, found[0].name: 5}
    more = GPRegressor(model.kernel_ + found[0].kernel, frequencies=frequencies).fit(frame, y, sample_weight=w)
    assert 0.5 < found[0].gain / (more.elbo_ - model.elbo_) < 2.0


def test_units_do_not_matter(interacting):
    frame, y, model = interacting
    base = suggest_interactions(model, frame, y)[0]
    moved = frame.assign(b=1000.0 * frame["b"] + 5.0)
    other = GPRegressor(MAINS, frequencies=10).fit(moved, -7.0 * y)
    found = suggest_interactions(other, moved, -7.0 * y)[0]
    assert found.columns == base.columns
    assert found.gain == pytest.approx(base.gain, rel=1e-3)
    assert found.kernel.factors[0].lengthscale == pytest.approx(1000.0 * base.kernel.factors[0].lengthscale, rel=0.05)


def test_weights_are_repeated_rows(interacting):
    frame, y, model = interacting
    w = np.random.default_rng(0).integers(1, 3, len(y))
    one = suggest_interactions(model, frame, y, w)
    other = suggest_interactions(model, frame.loc[frame.index.repeat(w)], np.repeat(y, w))
    assert one[0].columns == other[0].columns
    assert one[0].gain == pytest.approx(other[0].gain, rel=1e-6)


def test_error_bars_of_rows_are_given_again():
    X, f = _frame(1.5, N=300)
    rng = np.random.default_rng(1)
    err = rng.choice([0.05, 0.1, 3.0], len(f))
    y = f + err * rng.normal(size=len(f))
    how = {"kernel": MAINS, "frequencies": 4}
    by_row = GPRegressor(**how).fit(X, y, noise_std=err)
    by_column = GPRegressor(**how, noise_std="err").fit(X.assign(err=err), y)
    found = suggest_interactions(by_row, X, y, noise_std=err)
    same = suggest_interactions(by_column, X.assign(err=err), y)
    assert [one.columns for one in found] == [one.columns for one in same]
    np.testing.assert_allclose([one.gain for one in found], [one.gain for one in same], atol=1e-6)
    assert found[0].gain > 10.0
    with pytest.raises(ValueError, match="row by row, and these rows got none; give noise_std"):
        suggest_interactions(by_row, X, y)
    with pytest.raises(ValueError, match="without error bars, and these rows got some"):
        suggest_interactions(GPRegressor(**how).fit(X, y), X, y, noise_std=err)


def test_printed_as_a_table(interacting):
    frame, y, model = interacting
    found = suggest_interactions(model, frame, y)
    lines = repr(found).splitlines()
    assert lines[0].split() == ["interaction", "gain", "(nats)"]
    assert len(lines) == 7
    assert len({len(line) for line in lines}) == 1
    assert lines[1].startswith("b * d")
    assert lines[1].endswith(f"{found[0].gain:,.1f}")


def test_arrays_and_single_columns():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=300)
    found = suggest_interactions(GPRegressor(frequencies=5).fit(X, y), X, y)
    assert [one.columns for one in found] == [(0, 1)]
    assert found[0].gain > 50.0
    alone = GPRegressor(Matern32(0), frequencies=5).fit(X, y)
    assert repr(suggest_interactions(alone, X, y)) == "no pairs of columns to look at"


def test_it_says_what_it_needs(interacting):
    frame, y, model = interacting
    with pytest.raises(NotFittedError, match="not fitted"):
        suggest_interactions(GPRegressor(MAINS), frame, y)
    with pytest.raises(TypeError, match="looks at a fitted GPRegressor or GPClassifier, got ExactGP; fit one"):
        suggest_interactions(ExactGP(MAINS), frame, y)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="y has 3 values and X has 1500 rows"):
        suggest_interactions(model, frame, y[:3])
    with pytest.raises(ValueError, match="feature names"):
        suggest_interactions(model, frame.rename(columns={"a": "z"}), y)
