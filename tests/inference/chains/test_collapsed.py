"""Gaussian noise: hyperparameters on the collapsed bound, against quadrature of the same density."""

import os
import subprocess
import sys
import weakref
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

import vff
from vff import Categorical, GPRegressor, Matern12, Matern32, Matern52
from vff.inference.learning.model import SumModel
from vff.inference.methods.averaged import averaged_posterior
from vff.inference.methods.chains.density import Sums, collapsed_bound, registered, white_bound
from vff.inference.methods.chains.diagnostics import bulk_ess
from vff.inference.methods.chains.points import shapes_of
from vff.inference.model.scale import standardised
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.priors import Gamma, HalfNormal, LogNormal, OfSd

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 10, 60))[:, None]
Y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(60)
NEW = np.linspace(0, 10, 7)[:, None]
FIXED = {"frequencies": 12, "domain": (-1.0, 11.0), "normalize_y": False}
PRIORS = {"variance": 0.8, "lengthscale": LogNormal(2.0, 0.7), "noise_variance": OfSd(HalfNormal(0.5))}


def at(lengthscale: float, noise: float) -> GPRegressor:
    """The model at held hyperparameters."""
    kernel = Matern32(0, variance=0.8, lengthscale=lengthscale)
    return GPRegressor(kernel, noise_variance=noise, optimizer=None, **FIXED).fit(X, Y)


@pytest.fixture(scope="module")
def sampled() -> GPRegressor:
    model = GPRegressor(Matern32(0), inference="mcmc", priors=PRIORS, draws=500, chains=4, random_state=0, **FIXED)
    return model.fit(X, Y)


@pytest.fixture(scope="module")
def quadrature() -> dict[str, np.ndarray]:
    """Moments of hyperparameters and function on a lattice of log lengthscale and log noise."""
    logs = np.linspace(np.log(0.5), np.log(8.0), 17), np.linspace(np.log(0.03), np.log(0.3), 15)
    rows = []
    for log_length in logs[0]:
        for log_noise in logs[1]:
            length, noise = np.exp(log_length), np.exp(log_noise)
            model = at(length, noise)
            prior = PRIORS["lengthscale"].log_density(length) + PRIORS["noise_variance"].log_density(noise)
            rows.append((model.elbo_ + prior + log_length + log_noise, length, noise, *model.predict_f(NEW)))
    density = np.exp(np.array([row[0] for row in rows]) - max(row[0] for row in rows))
    density /= density.sum()
    length, noise, mean, variance = (np.array([row[place] for row in rows]) for place in (1, 2, 3, 4))
    first = density @ mean
    return {
        "lengthscale": np.array([density @ length, np.sqrt(density @ length**2 - (density @ length) ** 2)]),
        "noise": np.array([density @ noise, np.sqrt(density @ noise**2 - (density @ noise) ** 2)]),
        "mean": first,
        "variance": density @ (variance + (mean - first) ** 2),
    }


def test_moments_are_those_of_quadrature(sampled: GPRegressor, quadrature: dict[str, np.ndarray]) -> None:
    assert sampled.samples_ is not None
    for name, kind in (("lengthscale[0]", "lengthscale"), ("noise_variance", "noise")):
        draws = sampled.samples_.values[name]
        mean, sd = quadrature[kind]
        assert abs(draws.mean() - mean) < 4.0 * sd / np.sqrt(bulk_ess(draws))
        assert draws.std() == pytest.approx(sd, rel=0.15)


def test_predictions_average_over_hyperparameters(sampled: GPRegressor, quadrature: dict[str, np.ndarray]) -> None:
    mean, variance = sampled.predict_f(NEW)
    np.testing.assert_allclose(mean, quadrature["mean"], atol=0.15 * np.sqrt(quadrature["variance"]).min())
    np.testing.assert_allclose(variance, quadrature["variance"], rtol=0.1)
    _, std = sampled.predict(NEW, return_std=True)
    np.testing.assert_allclose(std**2, variance + sampled.noise_variance_, rtol=1e-10)


def test_draws_of_the_function_have_the_moments(sampled: GPRegressor) -> None:
    mean, variance = sampled.predict_f(NEW)
    draws = sampled.sample_f(NEW, 1000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=5.0 * np.sqrt(variance.max() / 200))
    np.testing.assert_allclose(draws.var(axis=1), variance, rtol=0.25)


def test_no_worries_and_no_held_draws(sampled: GPRegressor) -> None:
    assert sampled.samples_ is not None
    assert set(sampled.samples_.values) == {"lengthscale[0]", "noise_variance"}
    assert sampled.samples_.divergences == 0
    assert max(own.rhat for own in sampled.samples_.summary) < 1.02
    assert sampled.kernel_.variance == pytest.approx(0.8)
    assert np.isfinite(sampled.elbo_)


def inner(model: GPRegressor) -> SumModel:
    """Its sums, as learning sees them."""
    rows = model.rows_
    terms = tuple(term.inner for term in rows.terms)
    return SumModel(terms, *standardised(rows.moments, rows.tails, model.fit_.target))


def test_both_ways_to_the_bound_agree() -> None:
    """In white variables, and by the algebra of learning: one column, a product, levels."""
    table = pd.DataFrame({"a": X[:, 0], "b": rng.uniform(0, 1, 60), "c": rng.choice(["u", "v", "w"], 60)})
    kernel = Matern52("a") + Matern32("a") * Matern12("b") + Categorical("c")
    fitted = GPRegressor(kernel, frequencies=3, domain={"a": (-1.0, 11.0)}).fit(table, Y)
    model = inner(fitted)
    sums, shapes = Sums.of(model.moments), shapes_of(model.terms, model.moments.request)
    with jax.enable_x64(True):
        bound = jax.jit(jax.value_and_grad(partial(white_bound, shapes, sums)))
        for theta in -0.5 + 0.7 * np.random.default_rng(1).standard_normal((3, len(model.parameters.names))):
            value, gradient = bound(theta)
            closed = model.at(theta)
            assert float(value) == pytest.approx(closed.elbo, abs=1e-8)
            np.testing.assert_allclose(gradient, model.pull_back(theta, closed.cotangents), rtol=1e-6, atol=1e-7)


def test_the_bound_and_its_gradient_come_back_whole(sampled: GPRegressor) -> None:
    model, theta = inner(sampled), np.log([0.7, 0.4, 0.1])
    with registered(model) as number, jax.enable_x64(True):
        value, gradient = jax.jit(jax.value_and_grad(collapsed_bound, argnums=1))(number, theta)
        steps = 1e-5 * np.eye(3)
        differences = [(model.at(theta + step).elbo - model.at(theta - step).elbo) / 2e-5 for step in steps]
        beyond = jax.jit(collapsed_bound)(number, np.array([0.0, 50.0, 0.0]))
    assert float(value) == model.at(theta).elbo  # to the last digit: float64 all the way
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)
    assert float(beyond) == -np.inf


def test_one_setting_is_averaged_at_a_time(sampled: GPRegressor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed form holds matrices of all features, and there are hundreds of settings."""
    made: list[weakref.ref[LinearGaussian]] = []
    living: list[int] = []
    at = SumModel.at

    def counted(self: SumModel, theta: np.ndarray) -> LinearGaussian:
        form = at(self, theta)
        made.append(weakref.ref(form))
        living.append(sum(own() is not None for own in made))
        return form

    monkeypatch.setattr(SumModel, "at", counted)
    rows = sampled.rows_
    moments = standardised(rows.moments, rows.tails, sampled.fit_.target)
    model = SumModel(tuple(term.inner for term in rows.terms), *moments, intercept=1e10)
    theta = np.log([0.7, 0.4, 0.1]) + 0.1 * np.random.default_rng(2).standard_normal((20, 3))
    posterior, constant = averaged_posterior(model, theta, np.random.default_rng(3))
    assert max(living) <= 2  # the next one is made before the last one goes
    constants = [model.at(own).intercept_posterior.mean for own in theta]
    assert constant == pytest.approx(np.mean(constants))
    assert posterior.covariance.intercepts.shape == (100,)


def test_rows_no_longer_matter_after_the_pass() -> None:
    """The same sums in one piece or in many are the same chain."""
    short = {"draws": 20, "warmup": 20, "chains": 1, "inference": "mcmc", "random_state": 3, "priors": PRIORS, **FIXED}
    whole = GPRegressor(Matern32(0), **short).fit(X, Y)
    pieces = GPRegressor(Matern32(0), **short)
    for some in np.array_split(np.arange(len(X)), 3):
        pieces.partial_fit(X[some], Y[some])
    assert whole.samples_ is not None
    assert pieces.samples_ is not None
    for name, draws in whole.samples_.values.items():
        np.testing.assert_allclose(pieces.samples_.values[name], draws, rtol=1e-4)


def test_what_cannot_be_sampled_is_refused() -> None:
    kernel = Matern32(0, variance=1.0, lengthscale=1.0)
    with pytest.raises(ValueError, match="all of them are held"):
        GPRegressor(kernel, optimizer=None, inference="mcmc", priors={"noise_variance": 0.1}).fit(X, Y)
    far = {"noise_variance": vff.priors.LogNormal(1e-30, 0.1)}
    with pytest.raises(ValueError, match="density is zero"):
        GPRegressor(kernel, inference="mcmc", priors=far).fit(X, Y)
    with pytest.raises(ValueError, match=r"names 'lengthscales', which the model does not have; it has variance\[0\]"):
        GPRegressor(inference="mcmc", priors={"lengthscales": Gamma(1.0, 1.0)}).fit(X, Y)
    with pytest.raises(ValueError, match="give a prior for a positive number"):
        GPRegressor(inference="mcmc", priors={"variance": vff.priors.Normal(0.0, 1.0)}).fit(X, Y)


def test_arviz_has_the_draws(sampled: GPRegressor) -> None:
    pytest.importorskip("arviz")
    data = sampled.to_arviz()
    assert sampled.samples_ is not None
    np.testing.assert_array_equal(
        data.posterior["lengthscale"].sel(column="0").values, sampled.samples_.values["lengthscale[0]"]
    )
    assert data.posterior["noise_variance"].dims == ("chain", "draw")
    assert set(data.sample_stats) >= {"lp", "acceptance_rate", "energy", "n_steps", "diverging"}
    np.testing.assert_array_equal(data.observed_data["y"].values, Y)
    with pytest.raises(ValueError, match="fitted with inference='variational'"):
        at(1.0, 0.1).to_arviz()


def test_arviz_has_the_draws_on_a_machine_that_never_imported_it(sampled: GPRegressor, tmp_path: Path) -> None:
    """ArviZ 0.23 warns once a day and remembers it in the user's cache; a user of to_arviz can do nothing about it."""
    pytest.importorskip("arviz")
    sampled.save(tmp_path / "chains.vff")
    program = "import sys, vff; print(vff.load(sys.argv[1]).to_arviz().posterior['lengthscale'].shape)"
    command = [sys.executable, "-W", "error::FutureWarning", "-c", program, str(tmp_path / "chains.vff")]
    home = {name: str(tmp_path) for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    done = subprocess.run(command, env={**os.environ, **home}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["(4,", "500,", "1)"]
