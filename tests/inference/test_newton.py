"""Steps in a trust region, and where they end."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.makers.solvers import problem

from vff import GPRegressor
from vff.inference.learning.newton import positive, secant, within
from vff.inference.learning.optimise import maximise


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10_000), st.floats(1e-3, 10.0), st.booleans())
def test_the_step_is_the_best_within_its_radius(size, seed, radius, singular):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((size, size)))[0]
    values = rng.standard_normal(size) * 10.0 ** rng.uniform(-3, 3, size)
    values[0] = 0.0 if singular else values[0]
    curvature, slope = (vectors * values) @ vectors.T, rng.standard_normal(size)

    def gain(p: np.ndarray) -> np.ndarray:
        return p @ slope - 0.5 * np.sum((p @ curvature) * p, axis=-1)

    step = within(0.5 * (curvature + curvature.T), slope, radius)
    assert np.linalg.norm(step) <= radius * 1.001
    others = rng.standard_normal((2000, size))
    others *= (radius * rng.uniform(size=(2000, 1)) ** (1.0 / size)) / np.linalg.norm(others, axis=1, keepdims=True)
    nearby = step + 0.01 * others
    nearby *= np.minimum(1.0, radius / np.linalg.norm(nearby, axis=1, keepdims=True))
    best = max(gain(others).max(), gain(nearby).max())
    assert gain(step) >= best - 1e-2 * abs(best) - 1e-9


def test_a_flat_saddle_is_left():
    step = within(np.diag([-1.0, 2.0]), np.array([0.0, 0.5]), 1.0)
    assert np.linalg.norm(step) == pytest.approx(1.0)
    assert abs(step[0]) > 0.9


@pytest.mark.parametrize("name", ["independent", "three columns", "mains and product"])
def test_all_starts_end_at_the_same_optimum(name):
    model, theta, _ = problem(name)
    ends = [maximise(model, theta + shift) for shift in (0.0, 0.7, -0.5)]
    for optimum, closed in ends:
        assert optimum.converged
        slopes = model.pull_back(optimum.theta, closed.objective_cotangents)
        inside = np.array([str(key) not in model.parameters.at_bounds(optimum.theta) for key in model.parameters.names])
        assert np.abs(slopes[inside]).max() < 1e-4
        # of the sum either column's own effect comes to nothing, which differ by 1e-4 nats
        assert optimum.elbo == pytest.approx(ends[0][0].elbo, abs=2e-4 if name == "mains and product" else 1e-6)
        assert optimum.evaluations <= 30


def test_what_is_not_free_does_not_move():
    model, theta, _ = problem("mains and product")
    free = np.arange(theta.size) % 2 == 0
    optimum, _ = maximise(model, theta, free=free)
    np.testing.assert_array_equal(optimum.theta[~free], theta[~free])
    assert np.abs(optimum.theta[free] - theta[free]).max() > 1e-3


def test_bounds_hold():
    model, theta, _ = problem("independent")
    layout = model.parameters
    lower, upper = np.array(layout.lower), np.array(layout.upper)
    upper[1], lower[2] = 0.3, 3.0  # of lengthscales that would be longer, and shorter
    object.__setattr__(model, "_layout", replace(layout, lower=tuple(lower), upper=tuple(upper)))
    optimum, closed = maximise(model, theta)
    slopes = model.pull_back(optimum.theta, closed.objective_cotangents)
    assert optimum.converged
    np.testing.assert_allclose(np.exp(optimum.theta[1:3]), [0.3, 3.0])
    assert slopes[1] > 0.0 > slopes[2]
    np.testing.assert_allclose(slopes[[0, 3]], 0.0, atol=1e-3)


def test_a_curvature_is_made_positive_where_it_is_free():
    found = positive(np.diag([-4.0, 1e-9, 3.0]), np.array([True, True, False]))
    np.testing.assert_allclose(found, np.diag([4.0, 0.1, 1.0]), atol=1e-12)


@pytest.mark.parametrize("slope", [0.0, 1e-200, 1e-160, 1e160])
@pytest.mark.parametrize("curvature", [0.0, -1e-300, 1e-300, -1.0, 1e200])
def test_a_step_is_found_where_numbers_leave_the_ordinary(slope, curvature):
    step = within(np.array([[curvature]]), np.array([slope]), 1.0)
    assert np.isfinite(step).all()
    assert abs(step[0]) <= 1.001


def _many(times: float):
    """The rows of a problem, each of them so many."""
    model, theta, _ = problem("independent")
    return replace(model, moments=model.moments.scaled(times)), theta


@pytest.mark.parametrize("times", [1.0, 1e4])
def test_the_bound_is_known_as_far_as_its_rounding_says(times):
    model, theta = _many(times)
    rng, form = np.random.default_rng(0), model.at(theta)
    way, places = rng.standard_normal(theta.size), np.arange(-20, 21)
    values = np.array([model.at(theta + 1e-9 * place * way).objective for place in places])
    noise = np.std(values - np.polyval(np.polyfit(places, values, 2), places))
    assert 0.1 * noise < form.rounding < 1e3 * noise


@pytest.mark.parametrize("times", [1e4, 1e6, 1e8])
def test_bounds_of_any_size_are_climbed_to_where_slopes_vanish(times):
    model, theta = _many(times)
    optimum, closed = maximise(model, theta)
    assert abs(optimum.elbo) > 1e6
    assert optimum.converged
    assert optimum.evaluations <= 30
    slopes = model.slopes(optimum.theta, closed)
    moves = model.learnt & np.array([name not in " ".join(optimum.ends) for name in model.parameters.names])
    left = slopes.gradient[moves] @ np.linalg.solve(-slopes.hessian[np.ix_(moves, moves)], slopes.gradient[moves])
    # nats, of up to 1e11: a search that takes rounding for arrival leaves some thousand
    assert 0.5 * left < max(1e-6, 10.0 * closed.rounding)
    other, _ = maximise(model, theta + 0.4)
    np.testing.assert_allclose(other.theta[moves], optimum.theta[moves], atol=1e-5)


def test_secants_find_the_curvature_of_a_parabola():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((5, 5))
    hessian, guess = -root @ root.T, -np.eye(5)
    for step in rng.standard_normal((5, 5)):
        guess = secant(guess, step, hessian @ step)
    np.testing.assert_allclose(guess, hessian, atol=1e-8)
    np.testing.assert_array_equal(secant(guess, step, hessian @ step + 1e-20, least=1e-10), guess)


def test_guessed_curvature_leads_to_the_same_optimum(monkeypatch):
    model, theta, _ = problem("independent")
    known, _ = maximise(model, theta)
    monkeypatch.setattr(type(model), "expands", lambda self, closed: False)
    alone, _ = maximise(model, theta)
    near, _ = maximise(model, theta, known.curvature)
    for found in (alone, near):
        assert found.converged
        np.testing.assert_allclose(found.theta, known.theta, atol=1e-4)
    assert near.evaluations <= alone.evaluations <= 60


def test_how_it_ended_is_on_record():
    model, theta, _ = problem("independent")
    layout = model.parameters
    upper = np.array(layout.upper)
    upper[1] = 0.3
    object.__setattr__(model, "_layout", replace(layout, upper=tuple(upper)))
    optimum, _ = maximise(model, theta)
    assert optimum.ends == ("lengthscale of factor 0 0 0 at its upper bound",) or len(optimum.ends) == 1
    assert optimum.slope < 1e-6
    assert 0.0 < optimum.gained < 1.0
    assert optimum.steps < optimum.evaluations


def test_columns_that_are_the_same_end_at_an_answer():
    rng = np.random.default_rng(0)
    x = rng.random(300)
    X, y = np.column_stack([x, x, 2.0 * x]), np.sin(6.0 * x)  # without noise, too
    found = GPRegressor().fit(X, y)
    assert np.isfinite(found.predict(X)).all()
    assert np.isfinite(found.fit_.history[-1].optimum.theta).all()
    assert found.notes_
