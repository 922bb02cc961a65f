"""Draws of the part of the function that features carry: their covariance, and the variance of the rest."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from vff import Categorical, GPRegressor, Matern32, Matern52
from vff.inference import Posterior

KERNELS: dict[str, Any] = {
    "one": Matern32("a"),
    "two": Matern32("a") + Matern52("b"),
    "product": Matern32("a") * Matern32("b"),
    "levels": Matern32("a") + Categorical("g") + Matern32("b") * Categorical("g"),
}


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"a": rng.uniform(0, 1, n), "b": rng.uniform(0, 1, n), "g": rng.choice(["x", "y", "z"], n)})


@pytest.fixture(scope="module", params=KERNELS)
def model(request: pytest.FixtureRequest) -> GPRegressor:
    X = table(80, 0)
    kernel = KERNELS[request.param]
    columns = [name for name in X if f"'{name}'" in repr(kernel)]
    y = np.sin(6 * X.a) + X.b * (X.g == "y") + 0.3 * np.random.default_rng(1).standard_normal(80)
    return GPRegressor(kernel, frequencies=3, hyperparameters="maximise").fit(X[columns], y)


def rows(model: GPRegressor, n: int = 12) -> pd.DataFrame:
    return table(n, 2)[list(model.feature_names_in_)]


def of_intercept(posterior: Posterior, phi: np.ndarray) -> np.ndarray:
    """var(c0) (1 - phi'u)(1 - phi'u)'."""
    assert posterior.intercept is not None
    follows = 1.0 - phi @ posterior.intercept.answer
    return posterior.intercept.variance * np.multiply.outer(follows, follows)


def test_both_parts_make_the_joint_covariance(model: GPRegressor) -> None:
    """phi'A^-1 phi' and the constant, plus what the prior has beyond the features; the latter by row is the rest."""
    posterior, x = model.posterior_, model._evaluate(rows(model), lambda some: (some.x,))[0][:12]
    _, covariance = posterior.joint(x)
    phi = np.concatenate([term.features(x) for term in posterior.terms], axis=1)
    carried = phi @ posterior.covariance.matrix() @ phi.T + of_intercept(posterior, phi)
    beyond = np.zeros((12, 12))
    for term in posterior.terms:
        K = np.ones((1, 1))
        for factor in term.factors:
            K = np.kron(K, factor.K.to_dense())
        own = term.features(x)
        beyond += term.covariance(x) - term.variance * own @ np.linalg.solve(K, own.T)
    np.testing.assert_allclose(carried + beyond, covariance, atol=1e-9 * posterior.prior_variance(x))
    _, rest = posterior.draws(x, 1, np.random.default_rng(0))
    np.testing.assert_allclose(rest, np.diagonal(beyond), atol=1e-9 * posterior.prior_variance(x))


def test_draws_have_this_covariance(model: GPRegressor) -> None:
    X = rows(model, 6)
    values, rest = model._function_draws(X, 40_000, 0)
    mean, variance = model.predict_f(X)
    found = np.var(values, axis=1)
    np.testing.assert_allclose(values.mean(axis=1), mean, atol=5 * np.sqrt(variance.max() / 40_000))
    np.testing.assert_allclose(found + rest, variance, rtol=0.03)
    scale, x = model.target_.scale, model._evaluate(X, lambda rows: (rows.x,))[0][:6]
    posterior = model.posterior_
    phi = np.concatenate([term.features(x) for term in posterior.terms], axis=1)
    wanted = scale**2 * (phi @ posterior.covariance.matrix() @ phi.T + of_intercept(posterior, phi))
    np.testing.assert_allclose(np.cov(values), wanted, atol=0.03 * wanted.diagonal().max())


def test_equal_seeds_and_pieces_give_equal_draws(model: GPRegressor) -> None:
    X = rows(model)
    whole, _ = model._function_draws(X, 3, 7)
    part, _ = model._function_draws(X.iloc[4:], 3, 7)
    np.testing.assert_allclose(part, whole[4:], atol=1e-10)


@pytest.mark.filterwarnings("ignore:.*has not seen")
def test_a_level_never_seen_is_all_rest_but_for_the_constant() -> None:
    X = table(60, 3)[["g"]]
    model = GPRegressor(Categorical("g"), hyperparameters="maximise").fit(
        X, (X.g == "x") + 0.1 * np.random.default_rng(0).standard_normal(60)
    )
    new = pd.DataFrame({"g": ["x", "new"]})
    values, rest = model._function_draws(new, 20_000, 0)
    constant = model.target_.scale**2 * model.posterior_.intercept.variance
    np.testing.assert_allclose(rest, [0.0, model.predict_f(new)[1][1] - constant], atol=1e-12)
    assert np.var(values[1]) == pytest.approx(constant, rel=0.05)


def test_noise_free_rows_do_not_break_it() -> None:
    x = np.linspace(0, 1, 200)[:, None]
    model = GPRegressor(Matern52(0), frequencies=20).fit(x, np.sin(5 * x[:, 0]))
    values, _ = model._function_draws(x[::20], 50, 0)
    np.testing.assert_allclose(values, np.sin(5 * x[::20]) * np.ones(50), atol=1e-3)


def test_structured_ones_draw_all_of_the_function() -> None:
    X = table(60, 5)[["a"]]
    y = np.random.default_rng(1).poisson(np.exp(np.sin(6 * X.a)))
    model = GPRegressor(Matern32("a"), likelihood="poisson", frequencies=3, covariance="factorised").fit(X, y)
    values, rest = model._function_draws(X.head(), 4, 0)
    np.testing.assert_array_equal(rest, np.zeros(5))
    np.testing.assert_allclose(values, model.sample_f(X.head(), 4, 0))
