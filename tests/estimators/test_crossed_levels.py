"""Two crossed columns of many levels: eliminated together, with the answers of a factor of all coefficients."""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

import vff
from vff import Categorical, GPClassifier, GPRegressor, Matern32
from vff.linalg import SparseBlock

USERS, ITEMS, N = 120, 40, 1500
KERNEL = Categorical("u") + Categorical("i") + Matern32("x")


def table(kind: str = "") -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    u, i = np.minimum(rng.geometric(6.0 / USERS, N) - 1, USERS - 1), rng.integers(0, ITEMS, N)
    if kind == "half of all rows":
        u[: N // 2], i[N // 4 : N] = 0, 0
    if kind == "a row each":
        u = np.arange(N)
    if kind == "nested":
        i = ITEMS * u + i
    if kind == "identical":
        i = u.copy()
    x, effect, other = rng.uniform(size=N), rng.normal(size=N), 0.5 * rng.normal(size=N * ITEMS)
    y = effect[u] + other[i] + np.sin(6.0 * x) + 0.3 * rng.normal(size=N)
    if kind == "determined":
        y = effect[u]
    if kind == "no noise":
        y = effect[u] + other[i]
    return pd.DataFrame({"u": [f"u{k}" for k in u], "i": i, "x": x}), y


@contextmanager
def crossed(*, iterated: bool = False, written: bool = False):
    """Few levels treated as if they were many; the block between them may not be written out."""
    with ExitStack() as stack:
        stack.enter_context(patch("vff.moments.gram.SPARSE_FROM", 1))
        stack.enter_context(patch("vff.inference.learning.solver._CROSSING", 1.0))
        stack.enter_context(patch("vff.inference.learning.solver._ELIMINATION", 1e30))
        if iterated:
            stack.enter_context(patch("vff.inference.solvers.links.LARGEST_FACTORED", 0))
        if not written:
            refused = AssertionError("a block of levels by levels was written out")
            stack.enter_context(patch.object(SparseBlock, "__array__", side_effect=refused))
        yield


@contextmanager
def direct():
    with patch("vff.inference.learning.solver._ELIMINATION", 1e30):
        yield


def assert_alike(one, other, frame, rtol=1e-6):
    assert one.solver_ == "crossed"
    assert other.solver_ == "direct"
    assert one.elbo_ == pytest.approx(other.elbo_, rel=1e-8, abs=1e-6)
    for got, wanted in zip(one.predict_f(frame), other.predict_f(frame), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol * np.abs(wanted).max())
    got, wanted = one.effects(frame), other.effects(frame)
    np.testing.assert_allclose(got.mean, wanted.mean, atol=rtol)
    np.testing.assert_allclose(got.std, wanted.std, atol=rtol)


@pytest.mark.parametrize("kind", ["", "half of all rows", "nested"])
def test_levels_are_eliminated_without_a_trace(kind):
    frame, y = table(kind)

    def fit():
        return GPRegressor(KERNEL, frequencies=8).fit(frame, y)

    with direct():
        other = fit()
    with crossed():
        assert_alike(fit(), other, frame[:60], 1e-5)
    with crossed(iterated=True):
        one = fit()
        assert one.solver_ == "crossed"
        assert abs(one.elbo_ - other.elbo_) <= one.elbo_error_ + 1e-6
        for got, wanted in zip(one.predict(frame, return_std=True), other.predict(frame, return_std=True), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("kernel", [KERNEL, Categorical("u") + Categorical("i")], ids=["beside x", "alone"])
@pytest.mark.parametrize("iterated", [False, True])
@pytest.mark.parametrize("kind", ["a row each", "identical", "determined", "no noise", "half of all rows"])
def test_hard_tables_end_in_an_answer(kind, iterated, kernel):
    frame, y = table(kind)
    with crossed(iterated=iterated):
        model = GPRegressor(kernel, frequencies=8).fit(frame, y)
        assert model.solver_ == "crossed"
        assert np.isfinite(model.elbo_)
        mean, std = model.predict(frame, return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0.0).all()
        assert np.isfinite(model.effects(frame[:20]).std).all()


def test_levels_whose_rows_weigh_nothing_have_their_prior():
    frame, y = table()
    w = np.where((frame["u"] == "u3") | (frame["i"] == 7), 0.0, 1.0)

    def fit():
        return GPRegressor(KERNEL, frequencies=8).fit(frame, y, sample_weight=w)

    with direct():
        other = fit()
    with crossed():
        assert_alike(fit(), other, frame[:200], 1e-5)


def test_levels_never_seen_have_their_prior():
    frame, y = table()

    def predict():
        model = GPRegressor(KERNEL, frequencies=8).fit(frame, y)
        news = pd.concat([frame[:3].assign(u="new"), frame[3:6].assign(i=-5), frame[6:9].assign(u="new", i=-5)])
        with pytest.warns(vff.ExtrapolationWarning):
            effects = model.effects(news)
        with pytest.warns(vff.ExtrapolationWarning):
            found = model.predict_f(news)
        return [*found, effects.mean, effects.std]

    with direct():
        wanted = predict()
    with crossed():
        for got, own in zip(predict(), wanted, strict=True):
            np.testing.assert_allclose(got, own, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("column", ["u", "i"])
def test_products_with_the_same_levels_beside_them(column):
    frame, y = table()
    kernel = Categorical("u") + Categorical("i") + Matern32("x") * Categorical(column)

    def fit():
        return GPRegressor(kernel, frequencies=2).fit(frame, y)

    with direct():
        other = fit()
    with crossed():
        assert_alike(fit(), other, frame[:60], 1e-5)


def test_rows_taken_out_again_leave_no_trace():
    frame, y = table()
    with crossed():
        one = GPRegressor(KERNEL, frequencies=8).fit(frame, y).forget(frame[:100], y[:100])
    with direct():
        other = GPRegressor(KERNEL, frequencies=8).fit(frame, y).forget(frame[:100], y[:100])
    assert_alike(one, other, frame[:60], 1e-5)


@pytest.mark.parametrize("likelihood", ["poisson", "student-t"])
def test_under_other_likelihoods(likelihood):
    frame, y = table()
    y = np.floor(np.exp(0.5 * y)) if likelihood == "poisson" else y

    def fit():
        return GPRegressor(KERNEL, frequencies=8, likelihood=likelihood).fit(frame, y)

    with direct():
        other = fit()
    with crossed():
        assert_alike(fit(), other, frame[:60], 1e-4)


def test_labels():
    frame, y = table()

    def predict():
        return GPClassifier(KERNEL, frequencies=8).fit(frame, y > 0.0).predict_proba(frame[:60])

    with direct():
        wanted = predict()
    with crossed():
        np.testing.assert_allclose(predict(), wanted, atol=1e-6)


def test_files_rows_and_levels_that_come_later_and_joint_draws(tmp_path):
    frame, y = table()
    order = np.argsort(frame["i"].to_numpy(), kind="stable")  # later rows bring levels of their own
    first, last = order[:1000], order[1000:]

    def fit():
        model = GPRegressor(KERNEL, frequencies=8, domain={"x": (0.0, 1.0)}).partial_fit(frame.iloc[first], y[first])
        return model.partial_fit(frame.iloc[last], y[last])

    with direct():
        other = fit()
        wanted = np.cov(other.sample_y(frame[:4], 4000, random_state=0))
        coefficients = other.coefficients()
    with crossed():
        one = fit()
        assert_alike(one, other, frame[:60], 1e-5)
    with crossed(written=True):  # the sums of few features are looked at before a file is written
        one.save(tmp_path / "model.vff")
        loaded = vff.load(tmp_path / "model.vff")
    with crossed():
        np.testing.assert_array_equal(loaded.predict_f(frame[:60]), one.predict_f(frame[:60]))
        np.testing.assert_allclose(np.cov(loaded.sample_y(frame[:4], 4000, random_state=0)), wanted, atol=1e-6)
        found = loaded.coefficients()
        np.testing.assert_allclose(found.mean, coefficients.mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.std, coefficients.std, rtol=1e-5, atol=1e-7)
        more = loaded.partial_fit(frame[:50], y[:50])
        assert np.isfinite(more.predict_f(frame[:5])).all()
