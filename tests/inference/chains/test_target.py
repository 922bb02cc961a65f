"""The log-density that chains sample, against its definition in dense NumPy, and its slopes against differences."""

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from sampling_models import Groups, Model, Smooth, model, random_sites

from vff.likelihoods import Bernoulli, Poisson, StudentT

N = 16
RNG = np.random.default_rng(3)
SCATTERED = np.column_stack([RNG.uniform(0.0, 3.0, (N, 2)), RNG.integers(0, 3, N)])
GRID = np.array([(a, b, c) for a in np.linspace(0.1, 2.9, 4) for b in (0.2, 1.5, 2.2) for c in (0.0, 1.0)])
A, B, G = Smooth(0), Smooth(1, M=2, q=0, p=0), Groups(2)

SHAPES: dict[str, tuple[Any, np.ndarray, Any]] = {
    "one column": ([[A]], SCATTERED, Poisson(exposure=3)),
    "bernoulli": ([[A]], SCATTERED, Bernoulli()),
    "student": ([[A]], SCATTERED, StudentT()),
    "two columns": ([[A], [B]], SCATTERED, Poisson(exposure=3)),
    "lattice": ([[A, B]], GRID, Poisson(exposure=3)),
    "scattered product": ([[A, B]], SCATTERED, Poisson(exposure=3)),
    "levels": ([[Groups(1)], [A, Groups(1)]], SCATTERED[:, [0, 2]], Bernoulli()),
    "mixed": ([[A], [G, B], [G]], GRID, StudentT()),
}


@pytest.fixture(autouse=True)
def doubles():
    with jax.enable_x64(True):
        yield


@cache
def made(name: str) -> Model:
    terms, x, likelihood = SHAPES[name]
    return model(terms, x, likelihood, np.random.default_rng(4))


def positions(size: int, count: int = 3) -> np.ndarray:
    return 0.4 * np.random.default_rng(6).standard_normal((count, size))


@pytest.mark.parametrize("name", SHAPES)
def test_log_density_is_its_definition(name):
    own = made(name)
    target, data = own.target(nodes=80)
    rng = np.random.default_rng(8)
    K, S = target.free.size, target.white_size
    centre, scale = 0.2 * rng.standard_normal(K + S), rng.uniform(0.5, 1.5, S)
    root = np.eye(K) + 0.1 * rng.standard_normal((K, K))
    log_density = jax.jit(jax.value_and_grad(target, argnums=1))
    data = data._replace(centre=centre, scale=scale, root=root)

    def there(z: np.ndarray) -> np.ndarray:
        return centre + np.append(root @ z[:K], scale * z[K:])

    places = positions(target.size)
    found = [log_density(data, z) for z in places]
    values = np.array([float(value) for value, _ in found])
    naive = np.array([own.log_density(there(z)) for z in places])
    np.testing.assert_allclose(np.diff(values), np.diff(naive), rtol=1e-9, atol=1e-8)
    z, slope, h = places[0], found[0][1], 1e-5
    for along in rng.standard_normal((3, target.size)):
        both = [own.log_density(there(z + sign * h * along)) for sign in (1, -1)]
        assert float(slope @ along) == pytest.approx((both[0] - both[1]) / (2 * h), rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("name", ["one column", "levels"])
def test_transported_positions_have_the_same_law(name):
    """log density(z) = log density of v(z) + log |dv / dz|, and slopes are those of differences."""
    own = made(name)
    plain, there = own.target()
    P = sum(int(np.prod(term.shape)) for term in plain.terms)
    target, data = own.target(sites=random_sites(P, np.random.default_rng(9)))
    K = target.free.size

    def white(data, z):
        return target.at(data, z).white

    both = jax.jit(lambda data, z: (target(data, z), white(data, z), jax.jacfwd(white, argnums=1)(data, z)[:, K:]))
    slope = jax.jit(jax.grad(target, argnums=1))
    density = jax.jit(plain)
    differences = []
    for z in positions(target.size):
        value, v, jacobian = both(data, z)
        before = density(there, np.concatenate([z[:K], v]))
        sign, stretch = np.linalg.slogdet(jacobian)
        assert abs(sign) == 1.0
        differences.append(float(value) - float(before) - float(stretch))
        for along in np.random.default_rng(1).standard_normal((2, target.size)):
            h = 1e-5
            central = (both(data, z + h * along)[0] - both(data, z - h * along)[0]) / (2 * h)
            assert float(slope(data, z) @ along) == pytest.approx(float(central), rel=1e-6, abs=1e-5)
    np.testing.assert_allclose(differences, differences[0], rtol=0, atol=1e-8)


def test_a_gaussian_likelihood_of_these_sites_makes_z_white():
    """What transport is for: with sites for rows, the log-density of z is -|z|^2 / 2, whatever the lengthscale."""
    own = made("one column")
    P = 9
    sites = random_sites(P, np.random.default_rng(10))
    target, data = own.target(sites=sites)
    K = target.free.size
    z = positions(target.size)
    for hyper in ([0.0, 0.0], [-1.0, 0.7]):
        values = []
        for row in z:
            place = np.concatenate([hyper, row[K:]])
            position = target.at(data, place)
            v = np.asarray(position.white)
            mean, sd = (float(number) for number in target.intercept_prior(data.hyper))
            c = np.append(np.asarray(position.coefficients[0]), sd * v[-1])
            assert float(position.t[target.intercept]) == pytest.approx(mean + sd * v[-1])
            gaussian = sites.b @ c - 0.5 * c @ sites.G @ c
            values.append(gaussian - 0.5 * v @ v + 0.5 * row[K:] @ row[K:])
        np.testing.assert_allclose(values, values[0], atol=1e-8)


def test_held_hyperparameters_are_not_in_a_position():
    own = made("one column")
    target, data = own.target()
    priors = (target.priors[0], None, target.priors[2])
    held = np.array([0.0, 0.6, 0.0])
    numbers = (data.hyper.numbers[0], data.hyper.numbers[2])
    fixed = replace(target, priors=priors)
    there = data._replace(
        hyper=data.hyper._replace(held=held, numbers=numbers), centre=np.zeros(fixed.size), root=np.eye(1)
    )
    assert fixed.size == target.size - 1
    z = positions(fixed.size)
    values = np.array([float(fixed(there, row)) for row in z])
    wide = np.array([own.log_density(np.insert(row, 1, 0.6)) for row in z])
    np.testing.assert_allclose(np.diff(values), np.diff(wide), rtol=1e-9, atol=1e-8)
