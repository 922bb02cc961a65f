"""Chains on densities whose moments are known, and the integrator's laws: reversible, keeps volume and energy."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vff.inference.methods.chains.diagnostics import bulk_ess, rank_normalised_rhat
from vff.inference.methods.chains.run import SAMPLERS, Plan, _turning, run

PLAN = Plan(draws=730, warmup=310, chains=2, sampler="nuts", seed=3)


def gaussian(data: Any, z: Any) -> Any:
    """Data: mean and precision."""
    mean, precision = data
    return -0.5 * (z - mean) @ precision @ (z - mean)


def banana(data: Any, z: Any) -> Any:
    """x ~ N(0, 1), y | x ~ N((x^2 - 1) / 2, s^2): means 0 and 0, variances 1 and 1 / 2 + s^2."""
    return -0.5 * z[0] ** 2 - 0.5 * ((z[1] - 0.5 * (z[0] ** 2 - 1.0)) / data) ** 2


def student(data: Any, z: Any) -> Any:
    """Two dimensions with ``data`` degrees of freedom: the variance is df / (df - 2)."""
    return -0.5 * (data + 2.0) * jnp.log1p(z @ z / data)


def silent(message: str) -> None:
    pass


def drawn(target: Any, data: Any, size: int, plan: Plan = PLAN) -> np.ndarray:
    starts = np.random.default_rng(1).standard_normal((plan.chains, size))
    chains = run(target, data, starts, plan, silent)
    positions = np.stack([own.position for own in chains])
    assert positions.shape == (plan.chains, plan.draws, size)
    for own in chains:
        for part in own[1:]:
            assert part.shape == (plan.draws,)
        assert np.all((own.acceptance_rate >= 0.0) & (own.acceptance_rate <= 1.0 + 1e-12))
        assert np.all(own.n_steps >= 1)
    return positions


def known(x: np.ndarray, mean: float, variance: float) -> None:
    """Mean and variance within four Monte Carlo errors; x is (chains, draws)."""
    assert rank_normalised_rhat(x) < 1.05
    for values, truth in ((x, mean), ((x - mean) ** 2, variance)):
        error = values.std() / np.sqrt(min(bulk_ess(values), values.size))
        assert abs(values.mean() - truth) < 4.0 * error


COVARIANCE = np.array([[1.0, 0.9, 0.0], [0.9, 1.2, 0.3], [0.0, 0.3, 0.05 + 0.3]])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_moments_of_a_white_gaussian(sampler):
    found = drawn(gaussian, (np.zeros(30), np.eye(30)), 30, replace(PLAN, sampler=sampler))
    for d in range(30):
        known(found[:, :, d], 0.0, 1.0)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_moments_of_a_correlated_gaussian(sampler):
    mean, plan = np.array([1.0, -0.5, 0.0]), replace(PLAN, sampler=sampler)
    found = drawn(gaussian, (mean, np.linalg.inv(COVARIANCE)), 3, plan)
    for d in range(3):
        known(found[:, :, d], mean[d], COVARIANCE[d, d])
    product = (found[:, :, 0] - mean[0]) * (found[:, :, 1] - mean[1])
    assert abs(product.mean() - 0.9) < 4.0 * product.std() / np.sqrt(bulk_ess(product))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_moments_of_a_banana(sampler):
    found = drawn(banana, 0.7, 2, replace(PLAN, sampler=sampler, draws=3230, chains=4))
    known(found[:, :, 0], 0.0, 1.0)
    known(found[:, :, 1], 0.0, 0.99)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_moments_of_heavy_tails(sampler):
    found = drawn(student, 20.0, 2, replace(PLAN, sampler=sampler, draws=3230, chains=4))
    for d in range(2):
        known(found[:, :, d], 0.0, 20.0 / 18.0)


def test_seeds():
    data = (np.zeros(3), np.linalg.inv(COVARIANCE))
    plan = replace(PLAN, draws=30, warmup=40)
    one, again = drawn(gaussian, data, 3, plan), drawn(gaussian, data, 3, plan)
    np.testing.assert_array_equal(one, again)
    assert not np.any(one == drawn(gaussian, data, 3, replace(plan, seed=4)))
    assert not np.any(one[0] == one[1])


@pytest.mark.parametrize(("warmup", "draws"), [(100, 10), (150, 50), (150, 51), (149, 4), (199, 130)])
def test_any_number_of_draws_after_any_warmup(warmup, draws):
    """Chains that start far away, and have come back when warm-up is over."""
    data, plan = (np.zeros(3), np.linalg.inv(COVARIANCE)), replace(PLAN, warmup=warmup, draws=draws)
    chains = run(gaussian, data, np.full((2, 3), 20.0), plan, silent)
    for own in chains:
        assert own.position.shape == (draws, 3)
        assert np.abs(own.position).max() < 7.0
    assert np.any(chains[0].position[-1] != chains[1].position[-1])


def test_the_log_density_is_that_of_the_position():
    data, plan = (np.zeros(3), np.linalg.inv(COVARIANCE)), replace(PLAN, draws=60, warmup=40)
    own = run(gaussian, data, np.zeros((2, 3)), plan, silent)[0]
    values = [-0.5 * z @ data[1] @ z for z in own.position]
    np.testing.assert_allclose(own.lp, values, rtol=1e-10)


# --- the integrator ------------------------------------------------------------------------------------------------


def stepper(target: Any, data: Any, mass: np.ndarray, n_hyper: int = 0):
    """(z, p) -> (z, p) after a step, and the energy."""
    from blackjax.mcmc.integrators import IntegratorState

    log_density = lambda z: target(data, z)  # noqa: E731
    step = _turning(mass, n_hyper)(log_density, None)

    def move(both, size):
        z, p = jnp.split(both, 2)
        after = step(IntegratorState(z, p, *jax.value_and_grad(log_density)(z)), size)
        return jnp.concatenate([after[0], after[1]])

    def energy(both):
        z, p = jnp.split(both, 2)
        return -log_density(z) + 0.5 * jnp.sum(mass * p**2)

    return jax.jit(move), jax.jit(energy), jax.jit(jax.jacfwd(move))


@pytest.mark.parametrize("n_hyper", [0, 1, 2])
def test_a_step_can_be_taken_back_and_keeps_volume_and_energy(n_hyper):
    rng, mass = np.random.default_rng(0), np.array([0.7, 2.0])
    with jax.enable_x64(True):
        move, energy, jacobian = stepper(banana, 0.8, mass, n_hyper)
        for start in rng.standard_normal((5, 4)):
            for size in (0.05, 0.4, 1.2):
                there = np.array(move(start, size))
                there[2:] *= -1.0
                back = np.array(move(there, size))
                back[2:] *= -1.0
                np.testing.assert_allclose(back, start, atol=1e-10)
                assert np.linalg.det(jacobian(start, size)) == pytest.approx(1.0, abs=1e-10)
        start = np.array([0.3, -0.8, 0.9, 0.2])
        lost = []
        for count in (50, 100, 200):
            both = start
            for _ in range(count):
                both = move(both, 1.0 / count)
            lost.append(abs(float(energy(both) - energy(start))))
        assert lost[0] / lost[1] == pytest.approx(4.0, rel=0.1)
        assert lost[1] / lost[2] == pytest.approx(4.0, rel=0.1)


def test_a_step_along_the_gaussian_it_knows_loses_nothing():
    mass = np.array([0.5, 1.0, 3.0])
    with jax.enable_x64(True):
        move, energy, _ = stepper(gaussian, (np.zeros(3), np.diag(1.0 / mass)), mass)
        start = np.random.default_rng(0).standard_normal(6)
        for size in (0.3, 1.5):
            assert float(energy(move(start, size))) == pytest.approx(float(energy(start)), rel=1e-13)
