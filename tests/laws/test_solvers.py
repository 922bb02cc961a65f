"""Laws of solvers: all agree with the direct one, as well as they say themselves; bounds are bounds."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest
from tests.makers.solvers import CASES, MAKERS, posterior, problem, rows, solved

from vff.inference import SumModel
from vff.inference.learning.sizes import edf_by_term
from vff.inference.learning.solver import SOLVERS, DirectSolver, Solver
from vff.inference.posterior import Posterior
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.moments import MomentRequest

DIRECT = DirectSolver()
every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=[solver.name for solver in SOLVERS])
every_problem = pytest.mark.parametrize("name", CASES)


def circumstances_of(solver: Solver, name: str):
    return MAKERS[solver.name](name) or pytest.skip(f"{solver.name} is not offered for {name} columns")


def forms(solver: Solver, name: str, model: SumModel, theta: np.ndarray) -> Iterator[LinearGaussian]:
    for circumstances in circumstances_of(solver, name):
        with circumstances:
            yield solved(solver, model, theta)


def posteriors(solver: Solver, name: str, model: SumModel, theta: np.ndarray) -> Iterator[Posterior]:
    for circumstances in circumstances_of(solver, name):
        with circumstances:
            yield posterior(solver, model, theta)


@every_solver
def test_every_solver_has_a_maker_and_a_price(solver):
    assert solver.name in MAKERS
    model, _, _ = problem("independent")
    cost = solver.cost(model.moments.request)
    assert cost is None or cost > 0.0


class Free(DirectSolver):
    """A solver of one's own."""

    name = "free"

    def cost(self, request: MomentRequest, rank: int | None = None, exchangeable: Sequence[int] = ()) -> float:
        return 0.0


def test_a_solver_of_ones_own_is_chosen_where_it_is_cheapest():
    model, theta, x = problem("independent")
    mean, variance = posterior(DIRECT, model, theta).marginals(x[:9])
    with SOLVERS.registered(Free()):
        assert model.solver.name == "free"
        found = model.posterior(model.at(theta), theta).marginals(x[:9])
    assert model.solver.name != "free"
    np.testing.assert_array_equal(found, (mean, variance))


def test_the_cheapest_is_chosen():
    model, _, _ = problem("independent")
    costs = {solver.name: solver.cost(model.moments.request, model.rank) or np.inf for solver in SOLVERS}
    assert model.solver.name == min(costs, key=lambda name: costs[name])


@every_solver
@every_problem
def test_bound_and_mean_are_those_of_the_direct_solver(name, solver):
    model, theta, _ = problem(name)
    assert model.size >= 400
    direct = solved(DIRECT, model, theta)
    bound_gap = model.pull_back(theta, direct.gap_cotangents)
    assert direct.error == 0.0
    scale = np.sqrt(np.diagonal(np.linalg.inv(direct.prior.to_dense())))
    for form in forms(solver, name, model, theta):
        np.testing.assert_allclose(
            form.mean / scale, direct.mean / scale, atol=1e-6 * np.abs(direct.mean / scale).max()
        )
        assert abs(form.elbo - direct.elbo) <= form.error + 1e-6
        # the estimate is raised by its error, so that it stays a bound
        assert direct.upper_bound() - 1e-5 <= form.upper_bound() <= direct.upper_bound() + 2.0 * form.error + 1e-5
        assert form.bound_gap == pytest.approx(direct.bound_gap, rel=1e-6)
        np.testing.assert_allclose(form.explained_by_term, direct.explained_by_term, rtol=1e-9)
        np.testing.assert_allclose(form.energies(), direct.energies(), rtol=1e-6)
        np.testing.assert_allclose(edf_by_term(form), edf_by_term(direct), rtol=0.1)
        np.testing.assert_allclose(model.pull_back(theta, form.gap_cotangents), bound_gap, rtol=1e-6, atol=1e-6)


@every_solver
@every_problem
def test_gradient_is_that_of_the_direct_solver(name, solver):
    """To a few per cent, or a twentieth of what noise in the data makes of it."""
    model, theta, _ = problem(name)
    direct = solved(DIRECT, model, theta)
    expected, slack = model.pull_back(theta, direct.cotangents), 0.05 * np.sqrt(direct.cotangents.edf)
    for form in forms(solver, name, model, theta):
        np.testing.assert_allclose(model.pull_back(theta, form.cotangents), expected, rtol=0.03, atol=slack)


@every_solver
def test_bound_evidence_and_upper_bound_are_in_order(solver):
    """The evidence is that of the process itself at all rows, written out."""
    model, theta, x = problem("independent", 300, ((8, 8),))
    setting = model.unpack(theta)
    (own,) = posterior(DIRECT, model, theta).terms
    y, w = rows("independent", 300)[1:]
    covariance = own.covariance(x) + np.diag(setting.noise / w)
    _, logdet = np.linalg.slogdet(2.0 * np.pi * covariance)
    weighted = -0.5 * (logdet + y @ np.linalg.solve(covariance, y))
    # a row of weight w counts as w rows: 1/2 log of what one of precision w / noise has beside these
    evidence = weighted - 0.5 * float(np.sum((w - 1.0) * np.log(2.0 * np.pi * setting.noise) + np.log(w)))
    for form in forms(solver, "independent", model, theta):
        assert form.elbo - form.error <= evidence + 1e-6
        assert evidence <= form.upper_bound() + 1e-6


@every_solver
def test_the_bound_rises_with_the_harmonics(solver):
    bounds = []
    for M in (4, 6, 8, 10):
        model, theta, _ = problem("independent", 600, ((M, M),))
        bounds.append([(form.elbo, form.error) for form in forms(solver, "independent", model, theta)])
    for fewer, more in pairwise(bounds):
        for (low, its), (high, other) in zip(fewer, more, strict=True):
            assert low <= high + its + other + 1e-6


@every_solver
@every_problem
def test_few_rows_have_exact_variances_and_joint_distributions(name, solver):
    model, theta, x = problem(name)
    x = x[:10].copy()
    x[:3, -1] += 0.8  # some outside
    expected, found = posterior(DIRECT, model, theta), next(posteriors(solver, name, model, theta))
    mean, variance = expected.marginals(x)
    np.testing.assert_allclose(found.mean_at(x), mean, atol=1e-6 * np.abs(mean).max())
    for got, wanted in zip(found.marginals(x), (mean, variance), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6 * np.abs(mean).max())
    _, covariance = expected.joint(x)
    size = np.sqrt(np.multiply.outer(variance, variance))
    np.testing.assert_allclose(found.joint(x)[1] / size, covariance / size, atol=1e-6)
    draws = found.sample(x[:3], 4000, np.random.default_rng(1))
    np.testing.assert_allclose(np.cov(draws), covariance[:3, :3], atol=0.15 * variance[:3].max())
    if not name.startswith("levels"):
        for got, wanted in zip(found.slope(x, 0), expected.slope(x, 0), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    for got, wanted in zip(found.average(), expected.average(), strict=True):
        assert got == pytest.approx(wanted, rel=1e-5, abs=1e-8)


@every_solver
@every_problem
def test_many_rows_have_good_variances(name, solver):
    """Typically to 1 %; also of effects, and outside."""
    model, theta, x = problem(name)
    x = x[:400].copy()
    x[:20, -1] += 0.8 if not name.startswith("levels") else 0.0
    expected = posterior(DIRECT, model, theta)
    mean, variance = expected.marginals(x)
    for found in posteriors(solver, name, model, theta):
        got_mean, got = found.marginals(x)
        np.testing.assert_allclose(got_mean, mean, atol=1e-6 * np.abs(mean).max())
        off = np.abs(got / variance - 1.0)
        assert np.median(off) < 0.01
        assert off.max() < 0.1
        for s in range(len(found.terms)):
            (centred, spread), (wanted, wanted_spread) = (own.effect(s, x, own.rows(x)) for own in (found, expected))
            np.testing.assert_allclose(centred, wanted, atol=1e-6 * np.abs(mean).max())
            assert np.median(np.abs(spread / wanted_spread - 1.0)) < 0.02
