"""Functions of their own for many levels: eliminated, with the answers that a factor of all coefficients gives."""

import numpy as np
import pandas as pd
import pytest
from tests.estimators.test_many_levels import L, assert_alike, both, table

import vff
from vff import Categorical, GPClassifier, GPRegressor, Linear, Matern32, Periodic

SMOOTH = Matern32("x") * Categorical("g") + Matern32("z")
LINES = Linear("z", intercept=True) * Categorical("g") + Matern32("x")
SEASONS = Categorical("g") * Periodic("x", period=0.5) + Linear("z")
EVERY = pytest.mark.parametrize("kernel", [SMOOTH, LINES, SEASONS], ids=["smooth", "lines", "seasons"])


def by_level(kind: str = ""):
    """Few enough levels for a factor of everything."""
    frame, y = table(kind)
    few = np.array([int(level[1:]) < L // 5 for level in frame["g"]])
    frame, y = frame[few], y[few]
    slopes = np.random.default_rng(1).normal(size=2 * L)[frame["g"].str[1:].astype(int)]
    return frame, y if kind == "determined" else y + slopes * frame["z"].to_numpy()


def fitted(kernel, frame, y, **more):
    few = {"x": 3, "z": 6} if kernel is SMOOTH else 4
    return GPRegressor(kernel, frequencies=few, hyperparameters="maximise").fit(frame, y, **more)


@EVERY
@pytest.mark.parametrize("kind", ["", "half of all rows"])
def test_functions_of_levels_are_eliminated_without_a_trace(kind, kernel):
    frame, y = by_level(kind)
    one, other = both(lambda: fitted(kernel, frame, y))
    assert_alike(one, other, frame[:60])
    got, wanted = ([own.concurvity for own in model.fit_.terms] for model in (one, other))
    assert got == pytest.approx(wanted, abs=1e-8)
    got, wanted = one.coefficients(), other.coefficients()
    assert got.names == wanted.names
    np.testing.assert_allclose(got.mean, wanted.mean, atol=1e-6)
    np.testing.assert_allclose(got.std, wanted.std, atol=1e-6)


@EVERY
def test_levels_never_seen_have_their_prior(kernel):
    frame, y = by_level()
    one, other = both(lambda: fitted(kernel, frame, y))
    unseen = frame[:5].assign(g="never")
    with pytest.warns(vff.ExtrapolationWarning):
        found = one.predict(unseen, return_std=True), other.predict(unseen, return_std=True)
    np.testing.assert_allclose(*found, rtol=1e-8)


@EVERY
@pytest.mark.parametrize("kind", ["determined", "a row each", "noise-free", "constant slope"])
def test_hard_tables_end_in_an_answer(kind, kernel):
    frame, y = by_level(kind if kind in ("determined", "a row each") else "")
    if kind == "noise-free":
        y = np.sin(6.0 * frame["x"].to_numpy()) * (1.0 + frame["g"].str[1:].astype(int).to_numpy() % 3)
    if kind == "constant slope":
        frame = frame.assign(z=frame.groupby("g")["z"].transform("mean"))
    with np.errstate(all="raise", under="ignore"):
        one, other = both(lambda: fitted(kernel, frame, y))
    assert one.solver_ == "eliminating"
    found = np.array(one.predict(frame, return_std=True))
    assert np.isfinite(found).all()
    if kind != "noise-free":  # there rounding decides where learning ends
        assert one.elbo_ == pytest.approx(other.elbo_, rel=1e-6)
        np.testing.assert_allclose(found, other.predict(frame, return_std=True), atol=1e-3 * np.std(y))


@EVERY
def test_levels_whose_rows_weigh_nothing_have_their_prior(kernel):
    frame, y = by_level()
    w = np.where(frame["g"] == "u3", 0.0, 1.0)
    one, other = both(lambda: fitted(kernel, frame, y, sample_weight=w))
    assert_alike(one, other, frame[w > 0.0][:60])
    assert np.isfinite(one.predict(frame, return_std=True)).all()


def test_a_main_effect_and_a_margin_of_levels():
    """Effects that are pure take averages over levels."""
    frame, y = by_level()
    kernel = Matern32("x") + Categorical("g") + Categorical("g") * Matern32("x") + Linear("z")
    one, other = both(lambda: fitted(kernel, frame, y))
    assert_alike(one, other, frame[:60])


def test_slopes_less_their_average_are_no_matrix_of_levels():
    frame, y = by_level()
    kernel = Categorical("g") + Linear("z") * Categorical("g") + Linear("z")
    one, other = both(lambda: fitted(kernel, frame, y))
    assert_alike(one, other, frame[:60])


@pytest.mark.parametrize("likelihood", ["poisson", "student-t"])
def test_under_other_likelihoods(likelihood):
    frame, y = by_level()
    y = np.floor(np.exp(0.5 * y)) if likelihood == "poisson" else y
    how = {"frequencies": 4, "likelihood": likelihood, "hyperparameters": "maximise"}
    one, other = both(lambda: GPRegressor(LINES, **how).fit(frame, y))
    assert_alike(one, other, frame[:60], 1e-4)


def test_labels():
    frame, y = by_level()
    how = {"frequencies": {"x": 3, "z": 6}, "hyperparameters": "maximise"}
    one, other = both(lambda: GPClassifier(SMOOTH, **how).fit(frame, y > 0.0))
    assert one.solver_ == "eliminating"
    np.testing.assert_allclose(one.predict_proba(frame[:60]), other.predict_proba(frame[:60]), atol=1e-5)


@EVERY
def test_files_rows_that_come_later_and_joint_draws(kernel, tmp_path):
    frame, y = by_level()
    how = {"frequencies": 3, "domain": {"x": (0.0, 1.0), "z": (-5.0, 5.0)}, "hyperparameters": "maximise"}
    used = {key: value for key, value in how["domain"].items() if kernel is SMOOTH or key == "x"}

    def fit():
        model = GPRegressor(kernel, **{**how, "domain": used if kernel is not SEASONS else "auto"})
        return model.partial_fit(frame[:1000], y[:1000]).partial_fit(frame[1000:], y[1000:])

    one, other = both(fit)
    assert_alike(one, other, frame[:60])
    one.save(tmp_path / "model.vff")
    loaded = vff.load(tmp_path / "model.vff")
    np.testing.assert_array_equal(loaded.predict_f(frame[:60]), one.predict_f(frame[:60]))
    wanted = np.cov(other.sample_y(frame[:4], 4000, random_state=0))
    np.testing.assert_allclose(np.cov(one.sample_y(frame[:4], 4000, random_state=0)), wanted, atol=1e-6)


def test_many_levels_have_as_much_detail_as_few():
    rng = np.random.default_rng(0)
    g, x = np.repeat(np.arange(300), 12), rng.uniform(size=3600)
    y = np.sin(5.0 * x + g) + 0.1 * rng.normal(size=g.size)
    frame = pd.DataFrame({"x": x, "g": [f"u{i}" for i in g]})
    model = GPRegressor(Matern32("x") * Categorical("g")).fit(frame, y)
    assert model.solver_ == "eliminating"
    assert model.frequencies_["x * g"][0] >= 4


def test_hyperparameters_are_averaged_over_where_levels_are_few():
    frame, y = by_level()
    one, other = both(lambda: GPRegressor(LINES, frequencies=4, hyperparameters="integrate").fit(frame, y))
    np.testing.assert_allclose(one.predict_f(frame[:60]), other.predict_f(frame[:60]), atol=1e-5)
