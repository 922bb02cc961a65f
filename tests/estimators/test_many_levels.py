"""Columns of many levels: eliminated, with the answers that a factor of all coefficients gives."""

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

import vff
from vff import Categorical, GPClassifier, GPRegressor, Linear, Matern32

L, N = 400, 2000


def table(kind: str = "") -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    g = np.minimum(rng.geometric(6.0 / L, N) - 1, L - 1)
    if kind == "half of all rows":
        g[: N // 2] = 0
    if kind == "a row each":
        g = np.arange(N)
    x, z, effect = rng.uniform(size=N), rng.normal(size=N), rng.normal(size=N)
    y = effect[g] + (0.0 if kind == "determined" else np.sin(6.0 * x) + 0.3 * rng.normal(size=N))
    return pd.DataFrame({"x": x, "z": z, "g": [f"u{i}" for i in g]}), y


def both(fit):
    """The same fit with levels eliminated, and by a factor of everything."""
    module = "vff.inference.learning.solver._ELIMINATION"
    with patch(module, -1e30):
        one = fit()
    with patch(module, 1e30):
        other = fit()
    return one, other


def assert_alike(one, other, frame, rtol=1e-6):
    assert one.solver_ == "eliminating"
    assert other.solver_ == "direct"
    assert one.elbo_ == pytest.approx(other.elbo_, rel=1e-8)
    for got, wanted in zip(one.predict_f(frame), other.predict_f(frame), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol * np.abs(wanted).max())
    got, wanted = one.effects(frame), other.effects(frame)
    np.testing.assert_allclose(got.mean, wanted.mean, atol=rtol)
    np.testing.assert_allclose(got.std, wanted.std, atol=rtol)


KERNEL = Categorical("g") + Matern32("x")


@pytest.mark.parametrize("kind", ["", "half of all rows", "determined"])
def test_levels_are_eliminated_without_a_trace(kind):
    frame, y = table(kind)
    one, other = both(lambda: GPRegressor(KERNEL, frequencies=8).fit(frame, y))
    assert_alike(one, other, frame[:60], 1e-5)
    assert np.isfinite(one.predict(frame, return_std=True)).all()


def test_a_row_for_every_level_ends_in_an_answer():
    frame, y = table("a row each")
    model = GPRegressor(KERNEL, frequencies=8).fit(frame, y)
    assert model.solver_ == "eliminating"
    assert np.isfinite(model.predict(frame, return_std=True)).all()


def test_levels_whose_rows_weigh_nothing_have_their_prior():
    frame, y = table()
    w = np.where(frame["g"] == "u3", 0.0, 1.0)
    one, other = both(lambda: GPRegressor(KERNEL, frequencies=8).fit(frame, y, sample_weight=w))
    assert_alike(one, other, frame[w > 0.0][:60])


def test_levels_never_seen_have_their_prior():
    frame, y = table()
    one, other = both(lambda: GPRegressor(KERNEL, frequencies=8).fit(frame, y))
    unseen = frame[:5].assign(g="never")
    with pytest.warns(vff.ExtrapolationWarning):
        found = one.predict(unseen, return_std=True), other.predict(unseen, return_std=True)
    np.testing.assert_allclose(*found, rtol=1e-8)


def test_slopes_by_level_and_a_second_column_of_levels():
    frame, y = table()
    frame["h"] = np.where(frame["z"] > 0.0, "a", "b")
    kernel = Linear("z") * Categorical("g") + Categorical("h") + Matern32("x")
    one, other = both(lambda: GPRegressor(kernel, frequencies=8).fit(frame, y))
    assert_alike(one, other, frame[:60])
    got, wanted = ([own.concurvity for own in model.fit_.terms] for model in (one, other))
    assert got == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("likelihood", ["poisson", "student-t"])
def test_under_other_likelihoods(likelihood):
    frame, y = table()
    y = np.floor(np.exp(0.5 * y)) if likelihood == "poisson" else y
    one, other = both(lambda: GPRegressor(KERNEL, frequencies=8, likelihood=likelihood).fit(frame, y))
    assert_alike(one, other, frame[:60], 1e-4)


def test_labels():
    frame, y = table()
    one, other = both(lambda: GPClassifier(KERNEL, frequencies=8).fit(frame, y > 0.0))
    np.testing.assert_allclose(one.predict_proba(frame[:60]), other.predict_proba(frame[:60]), atol=1e-6)


def test_files_rows_that_come_later_and_joint_draws(tmp_path):
    frame, y = table()

    def fit():
        model = GPRegressor(KERNEL, frequencies=8, domain={"x": (0.0, 1.0)}).partial_fit(frame[:1500], y[:1500])
        return model.partial_fit(frame[1500:], y[1500:])

    one, other = both(fit)
    assert_alike(one, other, frame[:60])
    one.save(tmp_path / "model.vff")
    loaded = vff.load(tmp_path / "model.vff")
    np.testing.assert_array_equal(loaded.predict_f(frame[:60]), one.predict_f(frame[:60]))
    draws = one.sample_y(frame[:4], 4000, random_state=0)
    wanted = np.cov(other.sample_y(frame[:4], 4000, random_state=0))
    np.testing.assert_allclose(np.cov(draws), wanted, atol=1e-6)


def test_many_levels_do_not_loosen_the_detail_of_other_terms():
    """A level that data determine is no direction in which a smooth function may be off."""
    frame, y = table()
    few = GPRegressor(Matern32("x")).fit(frame, y)
    many = GPRegressor(KERNEL).fit(frame, y)
    assert many.frequencies_["x"] >= few.frequencies_["x"] - 4


def test_what_needs_a_covariance_of_all_levels_is_refused_before_anything_is_learnt():
    frame, y = table()
    with patch("vff.inference.methods.many.LARGEST_DIRECT", 100):
        for likelihood in ("gaussian", "poisson"):
            with pytest.raises(ValueError, match=r"of at least \d+, where at most 100 are taken.*'maximise'"):
                GPRegressor(KERNEL, hyperparameters="integrate", likelihood=likelihood).fit(frame, np.abs(y).round())
        with pytest.raises(ValueError, match=r"inference='mcmc' writes covariances.*'variational', or fewer levels"):
            GPRegressor(KERNEL, inference="mcmc").fit(frame, y)


def test_hyperparameters_that_matter_are_noted_where_levels_are_many():
    frame, y = table("a row each")
    with patch("vff.inference.methods.integrated.draws.LARGEST_DIRECT", 1000):
        model = GPRegressor(KERNEL, frequencies=8).fit(frame, y)
    assert model.samples_ is None
    assert model.fit_.doubt > 0.1
    assert "coefficients are too many for averages" in model.fit_.notes[-1]
