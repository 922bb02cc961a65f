"""Sums of terms as users meet them: the exact additive process, inside and outside, with levels seen and unseen."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from vff import Categorical, ExtrapolationWarning, GPRegressor, Matern12, Matern32, Matern52

NOISE = 0.3
KERNELS = {
    "3/2 and 5/2": Matern32("u", variance=1.2, lengthscale=1.5) + Matern52("v", variance=0.6, lengthscale=3.0),
    "3/2 and levels": Matern32("u", variance=1.2, lengthscale=1.5) + Categorical("g", variance=0.7),
    "1/2, 5/2 and levels": Matern12("v", variance=0.02, lengthscale=400.0)
    + Matern52("u", variance=1.0, lengthscale=2.0)
    + Categorical("g", variance=0.7),
    "one column twice": Matern32("u", variance=0.5, lengthscale=0.8) + Matern52("u", variance=1.0, lengthscale=5.0),
    "two columns of levels": Categorical("g", variance=0.7) + Categorical("h", variance=0.2),
}


def _frame(N: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "u": rng.uniform(2.0, 7.0, N),
            "v": rng.uniform(-10.0, 30.0, N),
            "g": rng.choice(["a", "b", "c"], N),
            "h": rng.integers(0, 5, N),
        }
    )


def _targets(frame: pd.DataFrame, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    smooth = np.sin(2 * frame["u"]) + 0.05 * frame["v"] + 0.8 * (frame["g"] == "b")
    return smooth.to_numpy() + np.sqrt(NOISE) * rng.normal(size=len(frame))


def _covariance(kernel, left: pd.DataFrame, right: pd.DataFrame) -> np.ndarray:
    parts = [term(left[term.column].to_numpy(), right[term.column].to_numpy()) for term in kernel.terms]
    return np.sum(parts, axis=0)


def _exact(kernel, frame, y, new):
    K = _covariance(kernel, frame, frame) + NOISE * np.eye(len(frame))
    cross = _covariance(kernel, new, frame)
    solved = np.linalg.solve(K, cross.T)
    evidence = multivariate_normal(np.zeros(len(frame)), K).logpdf(y)
    return evidence, solved.T @ y, _covariance(kernel, new, new) - cross @ solved


def _fixed(kernel, **options) -> GPRegressor:
    return GPRegressor(kernel, noise_variance=NOISE, optimizer=None, normalize_y=False, **options)


@pytest.mark.parametrize("name", KERNELS)
def test_posterior_is_the_exact_additive_one(name):
    """The divergence from the exact posterior is at most the gap g, so a mean is off by at most sqrt(2 g) deviations
    and a variance by a share of about 2 sqrt(g); the gap is measured."""
    kernel, frame = KERNELS[name], _frame(120)
    y, new = _targets(frame), _frame(40, 5)
    new.loc[:9, "u"] += 4.0  # some outside
    new.loc[5:14, "v"] -= 30.0
    evidence, mean, covariance = _exact(kernel, frame, y, new)
    model = _fixed(kernel, frequencies=250).fit(frame, y)
    gap = evidence - model.elbo_
    assert -1e-6 <= gap < 0.05
    assert evidence <= model.evidence_upper_bound_ + 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        got, variance = model.predict_f(new)
        joint_mean, joint = model.predict_f(new, full_covariance=True)
    exact, slack = np.diagonal(covariance), max(gap, 1e-9)
    assert np.all(np.abs(got - mean) <= np.sqrt(2 * slack * exact) + 1e-6)
    np.testing.assert_allclose(variance, exact, rtol=2.5 * np.sqrt(slack) + 1e-6)
    scale = np.sqrt(np.outer(exact, exact))
    np.testing.assert_allclose(joint / scale, covariance / scale, atol=2.5 * np.sqrt(slack) + 1e-6)
    np.testing.assert_allclose(joint_mean, got, atol=1e-9)
    np.testing.assert_allclose(np.diagonal(joint), variance, atol=1e-9)


def test_the_bound_closes_on_the_evidence_as_frequencies_grow():
    kernel, frame = KERNELS["3/2 and 5/2"], _frame(100)
    y = _targets(frame)
    evidence, _, _ = _exact(kernel, frame, y, frame[:2])
    gaps = [evidence - _fixed(kernel, frequencies=M).fit(frame, y).elbo_ for M in (3, 10, 30, 100, 300)]
    assert np.all(np.diff(gaps) < 0)
    assert 0.0 <= gaps[-1] < 1e-4


def test_frequencies_and_domains_may_differ_by_column():
    kernel, frame = KERNELS["1/2, 5/2 and levels"], _frame(80)
    model = _fixed(kernel, frequencies={"u": 7, "v": 12}, domain={"u": (0.0, 9.0)}).fit(frame, _targets(frame))
    assert model.frequencies_ == {"u": 7, "v": 12}
    assert model.domain_ == {"u": (0.0, 9.0), "v": (frame["v"].min(), frame["v"].max())}
    assert model.edges_ == {"v": 2, "u": 4}
    assert [term.M for term in model.fit_.terms] == [12, 7, None]


def test_a_level_never_seen_has_the_prior():
    kernel, frame = KERNELS["3/2 and levels"], _frame(100)
    y = _targets(frame)
    model = _fixed(kernel, frequencies=40).fit(frame, y)
    new = frame[:6].assign(g=["a", "b", "c", "z", "z", None])
    with pytest.warns(ExtrapolationWarning, match=r"3 of 6 rows hold a level of column 'g' that the fit has not seen"):
        mean, variance = model.predict_f(new)
    with pytest.warns(ExtrapolationWarning):
        effects = model.effects(new)
    posterior, own = model.posterior_, model.posterior_.request.slices[1]
    centre = model.target_.scale * posterior.centre[own] @ posterior.mean[own]
    np.testing.assert_allclose(effects.mean[3:, 1], -centre, rtol=1e-9)
    _, exact, covariance = _exact(kernel, frame, y, new)
    np.testing.assert_allclose(mean, exact, atol=0.02)
    np.testing.assert_allclose(variance, np.diagonal(covariance), rtol=0.02)


def test_draws_of_rows_of_unseen_levels_follow_the_joint_covariance():
    frame = _frame(60)
    model = _fixed(Categorical("g", variance=0.7) + Categorical("h", variance=0.2)).fit(frame, _targets(frame))
    new = pd.DataFrame({"u": 3.0, "v": 1.0, "g": ["y", "z", "a"], "h": [1, 1, 1]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        _, covariance = model.predict_f(new, full_covariance=True)
        draws = model.sample_f(new, 20_000, random_state=0)
    np.testing.assert_allclose(np.cov(draws), covariance, atol=0.05 * covariance.max())


@given(seed=st.integers(0, 10**6), n_samples=st.just(4000))
def test_samples_of_a_sum_have_the_posterior_moments(seed, n_samples):
    frame = _frame(40, seed)
    model = _fixed(KERNELS["3/2 and levels"], frequencies=12).fit(frame, _targets(frame, seed))
    mean, covariance = model.predict_f(frame[:4], full_covariance=True)
    draws = model.sample_f(frame[:4], n_samples, random_state=seed)
    np.testing.assert_allclose(draws.mean(1), mean, atol=6 * np.sqrt(covariance.max() / n_samples))
    np.testing.assert_allclose(np.cov(draws), covariance, atol=0.2 * covariance.max())


def test_the_slope_along_one_of_several_columns():
    frame = _frame(150)
    kernel = Matern32("u") + Matern52("v") + Categorical("g")
    model = GPRegressor(kernel, hyperparameters="maximise").fit(frame, _targets(frame))
    h, new = 1e-4, frame[:5]
    for column in ("u", "v"):
        mean, variance = model.predict_derivative(new, column)
        pair = pd.concat([new.assign(**{column: new[column] - h}), new.assign(**{column: new[column] + h})])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            around, joint = model.predict_f(pair, full_covariance=True)
        np.testing.assert_allclose(mean, (around[5:] - around[:5]) / (2 * h), rtol=1e-3, atol=1e-3)
        spread = np.diagonal(joint[:5, :5] + joint[5:, 5:] - 2 * joint[:5, 5:]) / (4 * h**2)
        np.testing.assert_allclose(variance, spread, rtol=5e-2)


@pytest.mark.parametrize("engine", ["dense", "nufft", "table", "auto"])
def test_engines_agree_on_a_sum(engine):
    frame = _frame(200).round({"u": 1, "v": 0})
    y, kernel = _targets(frame), KERNELS["1/2, 5/2 and levels"]
    expected = _fixed(kernel, frequencies=20, engine="dense").fit(frame, y)
    model = _fixed(kernel, frequencies=20, engine=engine).fit(frame, y)
    assert model.elbo_ == pytest.approx(expected.elbo_, rel=1e-10)
    np.testing.assert_allclose(model.predict(frame), expected.predict(frame), atol=1e-8)


def test_coverage_of_new_observations_of_a_sum():
    """Over 40 simulated data sets the 95 % intervals cover 92 to 98 %."""
    rng, covered = np.random.default_rng(11), []
    for seed in range(40):
        frame = _frame(200, 100 + seed)
        kernel = KERNELS["3/2 and levels"]
        root = np.linalg.cholesky(_covariance(kernel, frame, frame) + 1e-8 * np.eye(200))
        y = 5.0 + root @ rng.normal(size=200) + 0.4 * rng.normal(size=200)
        model = GPRegressor(Matern32("u") + Categorical("g"), domain=(2.0, 7.0)).fit(frame[:120], y[:120])
        mean, std = model.predict(frame[120:], return_std=True)
        covered.append(np.abs(y[120:] - mean) < 1.959964 * std)
    assert 0.92 < np.mean(covered) < 0.98
