"""Few rows: a root of their Gram matrix stands for it, and everything is what a factor of all features gives."""

import numpy as np
import pytest
from tests.makers.solvers import problem

from vff import GPRegressor, Matern12, Matern32, Matern52
from vff.inference.learning.solver import DirectSolver, LowRankSolver
from vff.inference.solvers.low_rank import GramRoot

DIRECT, FEW = DirectSolver(), LowRankSolver()
SIX = np.array([1.0, 3.0, 5.0, 6.0, 7.0, 8.0])[:, None]
CASES = ["independent", "three columns", "levels", "mains and product"]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rows", [2, 7, 40])
@pytest.mark.parametrize("noise", [0.3, 1e-8])
def test_bound_gradient_and_posterior_are_those_of_the_factor(name, rows, noise):
    model, theta, x = problem(name, rows)
    theta = np.append(theta[:-1], np.log(noise))
    setting = model.unpack(theta)
    direct, few = (solver.at(model, setting) for solver in (DIRECT, FEW))
    assert model.gram_root.L.shape[1] <= rows
    assert few.elbo == pytest.approx(direct.elbo, rel=1e-8, abs=1e-6 + 1e-13 / noise)
    slopes = [model.pull_back(theta, form.cotangents) for form in (direct, few)]
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-5, atol=1e-5 + 1e-12 / noise)
    assert few.upper_bound() == pytest.approx(direct.upper_bound(), rel=1e-8, abs=1e-5)
    both = [solver.posterior(form, model, setting) for solver, form in ((DIRECT, direct), (FEW, few))]
    (mean, variance), (other, also) = (own.marginals(x) for own in both)
    np.testing.assert_allclose(other, mean, atol=1e-6)
    np.testing.assert_allclose(also, variance, atol=1e-8)
    np.testing.assert_allclose(few.energies(), direct.energies(), rtol=1e-6)
    np.testing.assert_allclose(few.explained_by_term, direct.explained_by_term, rtol=1e-9)


def test_gradient_of_few_rows_against_differences():
    model, theta, _ = problem("mains and product", 9)
    gradient = model.pull_back(theta, FEW.at(model, model.unpack(theta)).cotangents)
    for i, step in enumerate(1e-5 * np.eye(theta.size)):
        ends = [FEW.at(model, model.unpack(theta + sign * step)).elbo for sign in (1, -1)]
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-5)


def test_a_singular_gram_matrix_has_no_root():
    model, _, _ = problem("clustered")
    assert GramRoot.of(model.inside.G).error > 1e-10
    assert GramRoot.of(model.inside.G, 20).error > 1e-3
    assert model.rank is None  # and rows are not few either
    assert model.solver.name == "direct"


def test_rows_that_are_repeated_are_few():
    one, other = (GPRegressor(Matern32(0)) for _ in range(2))
    y = SIX[:, 0] * np.sin(SIX[:, 0])
    one.fit(np.repeat(SIX, 8, axis=0), np.repeat(y, 8))
    other.fit(SIX, y, sample_weight=np.full(6, 8.0))
    assert one.solver_ == other.solver_ == "low-rank"
    np.testing.assert_allclose(one.predict(SIX), other.predict(SIX), rtol=1e-6)


@pytest.mark.parametrize("kernel", [Matern12, Matern32, Matern52])
def test_few_rows_are_solved_in_as_many_dimensions(kernel):
    model = GPRegressor(kernel(0)).fit(SIX, SIX[:, 0] * np.sin(SIX[:, 0]))
    assert model.solver_ == "low-rank"
    assert model.frequencies_[0] >= 200  # which cost nothing on six rows


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("noise", [0.3, 1e-4])
def test_gradient_of_what_few_rows_are_learnt_from_against_differences(name, noise):
    model, theta, _ = problem(name, 9, weighted=False)
    theta = np.append(theta[:-1], np.log(noise))
    form = FEW.at(model, model.unpack(theta))
    assert form.unlike
    gradient = model.pull_back(theta, form.objective_cotangents)
    for i, step in enumerate(1e-5 * np.eye(theta.size)):
        ends = [FEW.at(model, model.unpack(theta + sign * step)).objective for sign in (1, -1)]
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-5)
