"""Effects of terms: they add up, are centred, carry joint uncertainty, and vanish where the data say nothing."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag

from vff import Categorical, ExtrapolationWarning, GPRegressor, Matern12, Matern32, Matern52

KERNEL = Matern32("u") + Matern52("v") + Matern12("u2") + Categorical("g")


def _frame(N: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    u = rng.uniform(0, 5, N)
    columns = {"u": u, "v": rng.uniform(-1, 1, N), "u2": 2 * u + rng.normal(size=N), "g": rng.choice(list("abc"), N)}
    return pd.DataFrame(columns)


def _targets(frame: pd.DataFrame, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed + 1)
    f = 20 + 3 * np.sin(frame["u"]) + 2 * frame["v"] ** 2 + (frame["g"] == "b")
    return f.to_numpy() + 0.5 * rng.normal(size=len(frame))


@given(seed=st.integers(0, 10**6), N=st.integers(10, 80), weighted=st.booleans())
@settings(max_examples=15)
def test_effects_sum_to_the_function_and_are_centred(seed, N, weighted):
    frame = _frame(N, seed)
    w = np.random.default_rng(seed).uniform(0.1, 3, N) if weighted else np.ones(N)
    model = GPRegressor(KERNEL, frequencies=8).fit(frame, y := _targets(frame, seed), sample_weight=w)
    effects = model.effects(frame)
    assert effects.names == ("u", "v", "u2", "g")
    assert effects.mean.shape == effects.std.shape == (N, 4)
    np.testing.assert_allclose(np.average(effects.mean, axis=0, weights=w) / y.std(), 0.0, atol=1e-8)
    mean, _ = model.predict_f(frame)
    constant = np.average(mean, weights=w)
    np.testing.assert_allclose(effects.mean.sum(1), mean - constant, atol=1e-8 * np.abs(mean).max())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        far = frame.assign(u=frame["u"] + 3.0, g="unseen")
        np.testing.assert_allclose(
            model.effects(far).mean.sum(1), model.predict_f(far)[0] - constant, atol=1e-8 * np.abs(mean).max()
        )


def test_the_deviation_of_an_effect_is_dense_algebra_on_the_features():
    """var of (phi_s - centre_s)'c_s under the joint posterior, plus what the features of the term miss."""
    frame = _frame(150)
    model = GPRegressor(KERNEL, frequencies=6, hyperparameters="maximise").fit(frame, _targets(frame))
    new, posterior = frame[:20], model.posterior_
    codes = {"a": 0.0, "b": 1.0, "c": 2.0}

    def features(frame):
        x = np.column_stack([frame["u"], frame["v"], frame["u2"], frame["g"].map(codes)])
        return [term.features(x) for term in posterior.terms]

    rows, here = features(frame), features(new)
    effects, noise = model.effects(new), model.noise_variance_ / model.target_.scale**2
    sizes = np.cumsum([0, *(phi.shape[1] for phi in rows)])
    K, priors = np.zeros((sizes[-1], sizes[-1])), []
    for s, term in enumerate(posterior.terms):
        (factor,) = term.factors
        unit = factor.prior.matrix().to_dense() if hasattr(factor, "prior") else np.eye(3)
        priors.append(unit / term.variance)
        K[sizes[s] : sizes[s + 1], sizes[s] : sizes[s + 1]] = priors[s]
    # the constant is one more coefficient, with a prior deviation of ten
    every, K = np.column_stack([*rows, np.ones(150)]), block_diag(K, 0.01)
    inverse = np.linalg.inv(K + every.T @ every / noise)
    assert model.intercept_ == pytest.approx(model.predict_f(frame)[0].mean(), rel=1e-10)
    average = every.mean(0)
    assert (model.intercept_std_ / model.target_.scale) ** 2 == pytest.approx(average @ inverse @ average, rel=1e-6)
    for s, term in enumerate(posterior.terms):
        own = inverse[sizes[s] : sizes[s + 1], sizes[s] : sizes[s + 1]]
        away = here[s] - rows[s].mean(0)
        bound_gap = term.variance - np.einsum("np,np->n", here[s], np.linalg.solve(priors[s], here[s].T).T)
        expected = np.einsum("np,pq,nq->n", away, own, away) + bound_gap
        np.testing.assert_allclose((effects.std[:, s] / model.target_.scale) ** 2, expected, rtol=1e-6, atol=1e-9)


def test_columns_that_say_the_same_are_less_certain_than_either_alone():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 5, 300)
    y = np.sin(x) + 0.2 * rng.normal(size=300)
    options = {"noise_variance": 0.04, "optimizer": None, "frequencies": 20}
    alone = GPRegressor(Matern32(0, variance=0.5, lengthscale=1.5), **options).fit(x[:, None], y)
    kernel = Matern32(0, variance=0.5, lengthscale=1.5) + Matern32(1, variance=0.5, lengthscale=3.0)
    both = GPRegressor(kernel, **options).fit(np.stack([x, 2 * x], axis=1), y)
    single = alone.effects(x[:, None]).std[:, 0]
    double = both.effects(np.stack([x, 2 * x], axis=1)).std
    assert np.all(double > 2.0 * single[:, None])
    # their sum is known as well as a single one with their variances together
    summed = both.predict_f(np.stack([x, 2 * x], axis=1))[1]
    louder = GPRegressor(Matern32(0, variance=1.0, lengthscale=1.5), **options).fit(x[:, None], y)
    np.testing.assert_allclose(summed, louder.predict_f(x[:, None])[1], rtol=0.05)


@pytest.mark.parametrize("seed", range(6))
def test_noise_columns_shrink_to_nothing_and_are_named(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (400, 3))
    y = np.sin(3 * X[:, 1]) + 0.3 * rng.normal(size=400)
    frame = pd.DataFrame(X, columns=["noise", "signal", "other"]).assign(g=rng.choice(list("abcde"), 400))
    model = GPRegressor(hyperparameters="maximise").fit(frame, y)
    assert [term.name for term in model.rows_.terms] == ["noise", "signal", "other", "g"]
    named = " ".join(note for note in model.notes_ if "do not support" in note)
    for term, name in zip(model.fit_.terms, ("noise", "signal", "other", "g"), strict=True):
        if name == "signal":
            assert term.active
            assert term.variance_share > 0.5
            continue
        if term.active:
            assert term.variance_share < 1e-3 or _evidence_for(frame, y, name, model) > 0.0
        else:
            assert term.variance_share < 1e-6
            assert term.variance < 1e-6 * y.var()
        assert (repr(name) in named) == (not term.active)
    assert "'signal'" not in named


def _evidence_for(frame: pd.DataFrame, y: np.ndarray, name: str, model: GPRegressor) -> float:
    """Nats that the term brings over a fit without its column: noise, too, may look like an effect by chance."""
    return model.elbo_ - GPRegressor().fit(frame.drop(columns=name), y).elbo_


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [0.15, 0.5])
def test_a_small_effect_that_the_data_support_is_kept(seed, size):
    """An effect of 0.15 beside noise of 0.3 over 1000 rows is worth some 50 nats."""
    rng = np.random.default_rng(100 + seed)
    X = rng.uniform(-1, 1, (1000, 2))
    y = np.sin(3 * X[:, 0]) + size * np.sin(4 * X[:, 1]) + 0.3 * rng.normal(size=1000)
    model = GPRegressor().fit(X, y)
    assert [term.active for term in model.fit_.terms] == [True, True]
    assert not any("do not support" in note for note in model.notes_)
    effects = model.effects(X).mean
    share = np.array([np.cov(own, effects.sum(axis=1), bias=True)[0, 1] for own in effects.T]) / y.var()
    np.testing.assert_allclose([term.variance_share for term in model.fit_.terms], share, rtol=1e-6)
    expected = size**2 * np.var(np.sin(4 * X[:, 1])) / y.var()
    assert share[1] == pytest.approx(expected, rel=0.6)


def test_all_noise_leaves_a_flat_function():
    rng = np.random.default_rng(3)
    X, y = rng.uniform(0, 1, (500, 3)), rng.normal(size=500)
    model = GPRegressor().fit(X, y)
    assert sum(term.variance_share for term in model.fit_.terms) < 0.02
    assert model.noise_variance_ == pytest.approx(y.var(), rel=0.05)
