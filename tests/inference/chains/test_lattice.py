"""White variables of a lattice against those of all functions, and the coordinates that chains move in."""

from dataclasses import replace
from functools import reduce
from typing import Any

import jax
import numpy as np
import pytest
from sampling_models import Groups, Smooth, model

from vff.inference.methods.chains import start
from vff.inference.methods.chains.density import Data, Hyper, Sums, Target, white_bound
from vff.inference.methods.chains.diagnostics import bulk_ess, rank_normalised_rhat
from vff.inference.methods.chains.lattice import reduced, unfolded
from vff.inference.methods.chains.run import SAMPLERS, Plan
from vff.likelihoods import Gaussian, Poisson

# a fifth of the domain, so that few functions are distinct on it
LATTICE = np.array([(a, b, c) for a in np.linspace(0.5, 1.3, 9) for b in np.linspace(1.5, 2.2, 7) for c in (0.0, 2.0)])
A, B, G = Smooth(0, M=9, q=0), Smooth(1, M=8, q=2, p=0), Groups(2)


@pytest.fixture(autouse=True)
def doubles():
    with jax.enable_x64(True):
        yield


def both(terms, t) -> tuple[Any, ...]:
    """A target with all functions, and the one with those that points tell apart, tabulated around t."""
    own = model(terms, LATTICE, Poisson(exposure=3), np.random.default_rng(4))
    target, data = own.target()
    assert data.rows is not None
    shapes, rows = reduced(target.terms, data.rows, t)
    few = replace(target, terms=shapes)
    return own, target, data, few, Data.of(few, rows, data.hyper, None)


T = np.array([0.3, -0.9, -0.2, 0.0])


@pytest.mark.parametrize("lengths", [(-0.9, -0.2), (-0.87, 0.61), (2.4, -0.2), (-0.9, -4.4)])
def test_the_law_at_the_points_is_that_of_all_functions(lengths):
    """Read from the table at its entries and between them, and computed beyond it."""
    _, target, data, few, less = both([[A, B]], T)
    (full,), (term,), t = target.terms, few.terms, np.array([0.3, *lengths, 0.0])
    points = less.rows.terms[0]
    assert term.white_count < 0.3 * full.white_count
    wide = full.matrix(t, full.roots(t))
    narrow = term.matrix(t, term.roots(t, points))
    at, few_at = (reduce(np.kron, one.features) for one in (data.rows.terms[0], points))
    first, second = at @ wide, few_at @ narrow
    np.testing.assert_allclose(second @ second.T, first @ first.T, atol=1e-8 * np.max(first @ first.T))
    c = np.zeros(full.shape)
    explained = full.at_points(data.rows.terms[0], full.roots(t), c)[1]
    found = term.at_points(points, term.roots(t, points), np.zeros(term.shape))[1]
    np.testing.assert_allclose(found, explained, rtol=1e-12)


@pytest.mark.parametrize("place", [-1.21, 0.0, 2.9, 3.4])
def test_slopes_of_the_table_are_those_of_differences(place):
    _, _, _, few, less = both([[A, B]], T)
    term, points, weights = few.terms[0], less.rows.terms[0], np.random.default_rng(5).standard_normal(2)

    def value(move):
        roots = term.roots(np.array([0.0, T[1], T[2]]) + move * np.array([0.0, 1.0, 0.3]), points)
        return sum(
            w * (np.arange(own.L.size) @ own.L.reshape(-1) + own.explained.sum())
            for w, own in zip(weights, roots, strict=True)
        )

    slope, h = jax.grad(value)(place), 1e-5
    assert float(slope) == pytest.approx(float(value(place + h) - value(place - h)) / (2 * h), rel=1e-7)


def test_a_column_that_fills_its_domain_stays_as_it_is():
    """Levels, and another term, too."""
    _, target, _, few, less = both([[A, G], [B]], np.array([0.3, -0.9, 0.1, -0.2, 0.0]))
    assert few.terms[0].axes[1] == target.terms[0].axes[1]
    assert few.terms[1] == target.terms[1]
    assert less.rows.terms[0].tables[1] is None
    assert few.terms[0].white_count < target.terms[0].white_count


@pytest.mark.parametrize("terms", [[[A, B]], [[A, G]]])
def test_coefficients_of_all_functions_say_the_same_at_the_points(terms):
    _, target, data, few, less = both(terms, T)
    (full,), (term,), points = target.terms, few.terms, less.rows.terms[0]
    rng, key = np.random.default_rng(3), jax.random.PRNGKey(2)
    v, t = rng.standard_normal(term.white_count), T[: full.end]
    c, _ = unfolded(full, points, t, v, key)
    narrow = np.exp(0.5 * t[0]) * term.coefficients(term.roots(t, points), v)
    np.testing.assert_allclose(full.values(data.rows.terms[0], c), term.values(points, narrow), atol=1e-7)
    # V = z + Q (v - Q'z) is linear in v with an orthonormal Q, and what is beside Q is the prior's draw
    steps = [unfolded(full, points, t, one, key)[1] for one in (0.0 * v, v)]
    assert float(np.sum((steps[1] - steps[0]) ** 2)) == pytest.approx(v @ v, rel=1e-10)
    z = np.asarray(jax.random.normal(key, full.white_shape)).reshape(-1)
    assert float(steps[0] @ (z - steps[0])) == pytest.approx(0.0, abs=1e-9)


def test_the_log_density_is_its_definition():
    """Given the same function at the points, all log-densities differ by -|v|^2 / 2 alone."""
    own, target, _, few, less = both([[A, B]], T)
    rng, K, differences = np.random.default_rng(6), few.free.size, []
    for number in range(3):
        z = np.concatenate([0.2 * rng.standard_normal(K), 0.5 * rng.standard_normal(few.white_size)])
        position = few.at(less, z)
        V = unfolded(target.terms[0], less.rows.terms[0], position.t, z[K:-1], jax.random.PRNGKey(number))[1]
        wide = np.concatenate([z[:K], V, z[-1:]])
        found, naive = float(few(less, z)) + 0.5 * z[K:] @ z[K:], own.log_density(wide) + 0.5 * wide[K:] @ wide[K:]
        differences.append(found - naive)
    assert np.ptp(differences) < 1e-6


def test_leading_white_variables_are_measured_along_their_gaussian(monkeypatch):
    """Near the mode, given hyperparameters, the density is round in them, and the mode follows the hyperparameters."""
    monkeypatch.setattr(start, "_LEADING", 20)
    _, _, _, few, less = both([[A, B]], T)
    data, K = start.settled(few, less), few.n_hyper
    assert data.leading is not None
    lead, slope = K + data.leading.place, jax.grad(few, argnums=1)
    at = np.zeros(few.size)
    hessian = -np.asarray(jax.hessian(few, argnums=1)(data, at))
    np.testing.assert_allclose(hessian[np.ix_(lead, lead)], np.eye(20), atol=1e-5)
    np.testing.assert_allclose(hessian[np.ix_(lead, np.arange(K))], 0.0, atol=1e-4)
    np.testing.assert_allclose(slope(data, at)[K:], 0.0, atol=0.02)
    # the same place in other coordinates has the same density
    other = start.settled(
        few, data._replace(centre=data.centre + np.append([0.2, -0.3, 0.1], np.zeros(few.white_size)))
    )
    z = np.random.default_rng(7).standard_normal(few.size)
    moved = start._moved(data, other, z)
    assert float(few(other, moved)) == pytest.approx(float(few(data, z)), rel=1e-10)
    np.testing.assert_allclose(start._moved(other, data, moved), z, atol=1e-10)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_chains_on_a_lattice_against_quadrature(sampler):
    """One lengthscale under Gaussian noise: its posterior is prior times the bound, a number in one dimension."""
    rng = np.random.default_rng(8)
    own = model([[A, B]], LATTICE, Poisson(exposure=3), rng)
    data: Any = own.target()[1]
    (shape,), priors, y = (
        own.design().shapes,
        own.priors,
        np.sin(3.0 * LATTICE[:, 0]) + 0.3 * rng.standard_normal(len(LATTICE)),
    )
    noise = 0.2
    held = np.array([0.0, -0.5, 0.3, 0.0, np.log(noise)])
    hyper = Hyper(held, np.zeros(5), np.ones(5), (priors[1].numbers,))
    forms = (None, priors[1].form, None, None, None)
    target = Target(priors=forms, transported=False, terms=(shape,), likelihood=Gaussian().form, nodes=1)
    rows = data.rows._replace(y=y, extra=np.ones(y.size), w=np.ones(y.size))
    shapes, rows_few = reduced(target.terms, rows, held)
    few = replace(target, terms=shapes)
    plan = Plan(draws=1500, warmup=300, chains=2, sampler=sampler, seed=1)
    found, drawn = start.sampled(few, Data.of(few, rows_few, hyper, None), plan, lambda text: None)
    x = found.centre[0] + found.root[0, 0] * np.stack([chain.position for chain in drawn])[:, :, 0]

    codes = rows.terms[0].codes
    phi = reduce(np.kron, rows.terms[0].features)
    phi = phi if codes is None else phi[codes]
    P, n = phi.shape[1], y.size
    G = np.zeros((P + 1, P + 1))
    G[:P, :P] = phi.T @ phi
    sums = Sums(G, np.append(phi.T @ y, 0.0), y @ y, float(n))
    grid = np.linspace(-4.0, 4.0, 400)
    bound = jax.jit(
        lambda u: white_bound((shape,), sums, np.array([held[0], 0.0, held[2], held[4]]) + u * np.eye(4)[1])
    )
    log_density = np.array([float(bound(u)) + priors[1].log_density(np.exp(u)) + u for u in grid])
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ grid
    assert rank_normalised_rhat(x) < 1.02
    for values, truth in ((x, mean), ((x - mean) ** 2, weights @ (grid - mean) ** 2)):
        error = values.std() / np.sqrt(min(bulk_ess(values), values.size))
        assert abs(values.mean() - truth) < 4.0 * error
    assert sum(chain.diverging.sum() for chain in drawn) == 0
