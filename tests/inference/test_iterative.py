"""The solver without a factor: its parts against dense algebra, its errors against its word."""

import numpy as np
import pytest
from tests.makers.solvers import CASES, LEVELS, UNIT, problem, rows

import vff.inference.learning.solver as solvers_module
import vff.inference.solvers.whitening as whitening_module
from vff.basis import Codes, ColumnBasis, LevelBasis
from vff.linalg import conjugate_gradients
from vff.moments import (
    ColumnRequest,
    MomentRequest,
    TermRequest,
    equivalent_weights,
    moments_of_arrays,
)


@pytest.fixture
def solver(monkeypatch):
    """Choose: "direct" or "iterative", whatever the size."""

    def choose(name: str, corner: int = 1600) -> None:
        monkeypatch.setattr(solvers_module, "LARGEST_DIRECT", 10**9 if name == "direct" else 100)
        monkeypatch.setattr(whitening_module, "CORNER", corner)

    return choose


@pytest.mark.parametrize("name", ["correlated", "clustered"])
def test_gradient_is_that_of_the_bound_as_estimated(name, solver):
    """The same signs at every setting: differences of the estimate follow the gradient that learning is given."""
    model, theta, _ = problem(name)
    solver("iterative", CASES[name][2])
    form, h = model.at(theta), 1e-3
    found = model.pull_back(theta, form.cotangents)
    steps = h * np.eye(theta.size)
    differences = [(model.at(theta + e).elbo - model.at(theta - e).elbo) / (2 * h) for e in steps]
    np.testing.assert_allclose(found, differences, rtol=0.03, atol=0.05 * np.sqrt(form.cotangents.edf))


@pytest.mark.parametrize("name", CASES)
def test_variances_are_as_good_as_the_standard_error_over_the_probes_says(name, solver):
    model, theta, x = problem(name)
    solver("direct")
    _, variance = model.posterior(model.at(theta), theta).marginals(x[:400])
    solver("iterative", CASES[name][2])
    found = model.posterior(model.at(theta), theta)
    off = np.abs(found.marginals(x[:400])[1] / variance - 1.0)
    assert np.median(off) < 3.0 * found.covariance.relative_error + 1e-6


def test_two_thousand_features(solver):
    model, theta, x = problem("independent", 4000, ((20, 20),))
    assert 1900 < model.size < 2200
    rows = x[:500]
    solver("direct")
    direct = model.at(theta)
    mean, variance = model.posterior(direct, theta).marginals(rows)
    gradient = model.pull_back(theta, direct.cotangents)
    solver("iterative")
    form = model.at(theta)
    assert abs(form.elbo - direct.elbo) <= form.error + 1e-6
    assert form.error < 0.1
    got_mean, got = model.posterior(form, theta).marginals(rows)
    np.testing.assert_allclose(got_mean, mean, atol=1e-6)
    np.testing.assert_allclose(got, variance, rtol=0.01)
    np.testing.assert_allclose(model.pull_back(theta, form.cotangents), gradient, rtol=0.01, atol=0.1)


def test_the_same_numbers_every_time(solver):
    solver("iterative", 200)
    results = []
    for _ in range(2):
        model, theta, x = problem("correlated")
        form = model.at(theta)
        results.append((form.elbo, form.error, *model.posterior(form, theta).marginals(x[:70])))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_stated_error_is_honest(solver):
    """Three standard errors over the probes: the bound is off by less at all of these settings."""
    model, theta, _ = problem("correlated", 1500, ((8, 7),))
    rng, ratios = np.random.default_rng(3), []
    for _ in range(12):
        at = theta + rng.uniform(-0.7, 0.7, theta.size)
        solver("direct")
        exact = model.at(at).elbo
        solver("iterative", 60)
        form = model.at(at)
        ratios.append(abs(form.elbo - exact) / form.error)
    assert max(ratios) < 1.3
    assert np.mean(ratios) < 0.6


def test_joint_distributions_over_very_many_rows_are_refused(solver):
    solver("iterative")
    model, theta, x = problem("independent")
    posterior = model.posterior(model.at(theta), theta)
    with pytest.raises(ValueError, match=r"2001 rows.*at most 2000 rows.*predict_f"):
        posterior.joint(np.resize(x, (2001, 2)))


def _spd(P: int, condition: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(P, P)))
    return (Q * np.geomspace(1.0, condition, P)) @ Q.T


@pytest.mark.parametrize("condition", [1.0, 10.0, 1e3])
def test_conjugate_gradients_solve_and_see_the_spectrum(condition):
    A, B = _spd(40, condition, 1), np.random.default_rng(2).normal(size=(40, 6))
    B[:, 3] = 0.0
    B[:, 4] = np.linalg.eigh(A)[1][:, 7]  # done in one step
    solution = conjugate_gradients(lambda v: A @ v, B, 1e-11, 400)
    exact = np.linalg.solve(A, B)
    np.testing.assert_allclose(solution.X, exact, atol=1e-8 * np.abs(exact).max())
    assert solution.converged
    assert np.all(np.linalg.norm(A @ solution.X - B, axis=0) <= 2e-11 * np.linalg.norm(B, axis=0))
    np.testing.assert_array_equal(solution.X[:, 3], 0.0)
    values, vectors = np.linalg.eigh(A)
    seen = (vectors.T @ B) ** 2
    kept = [0, 1, 2, 4, 5]
    for function in (np.log, np.sqrt, lambda x: 1.0 / x):
        expected = (function(values) @ seen)[kept] / seen.sum(axis=0)[kept]
        np.testing.assert_allclose(solution.quadrature(function)[kept], expected, rtol=1e-7, atol=1e-9)


def test_the_logarithms_of_all_signs_are_the_log_determinant():
    """tr log A is the mean of z' log(A) z over all 2^P signs."""
    A = _spd(6, 50.0, 0)
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 6)).reshape(6, -1)
    logs = 6 * conjugate_gradients(lambda v: A @ v, signs, 1e-12, 50).quadrature(np.log)
    assert logs.mean() == pytest.approx(np.linalg.slogdet(A)[1], rel=1e-9)


def test_conjugate_gradients_stop_when_told():
    A, B = _spd(60, 1e6, 1), np.ones((60, 1))
    solution = conjugate_gradients(lambda v: A @ v, B, 1e-12, 5)
    assert len(solution.tridiagonal[0][0]) == 5
    assert not solution.converged
    assert np.linalg.norm(A @ solution.X - B) > 1e-6 * np.linalg.norm(B)


TERMS = {
    "one": ((0,), (ColumnBasis(20, 3),)),
    "paper": ((0, 1), (ColumnBasis(6, 0), ColumnBasis(9, 0))),
    "two": ((0, 1), (ColumnBasis(12, 3), ColumnBasis(7, 4))),
    "turned": ((1, 0), (ColumnBasis(5, 2), ColumnBasis(9, 3))),
    "levels": ((3, 0), (LevelBasis(LEVELS), ColumnBasis(15, 3))),
    "three": ((0, 1, 2), (ColumnBasis(2, 3), ColumnBasis(1, 2), ColumnBasis(3, 0))),
}


@pytest.mark.parametrize("kind", ["independent", "correlated", "clustered"])
@pytest.mark.parametrize("name", TERMS)
def test_weights_on_a_lattice_stand_for_the_rows(name, kind):
    """The same Gram matrix, to 1e-10 of its diagonal, from weights about as large as those of the rows."""
    numbers, bases = TERMS[name]
    columns, y, w = rows(kind, 700)
    used = sorted(numbers)
    term = TermRequest(
        tuple(used.index(c) for c in numbers),
        tuple(ColumnRequest(Codes() if isinstance(b, LevelBasis) else UNIT, b) for b in bases),
    )
    moments = moments_of_arrays(MomentRequest((term,)), [columns[c] for c in used], y, w, "dense")
    weights = equivalent_weights(term, moments.grams[0])
    features = [basis.evaluate(basis.nodes()) for basis in bases]
    assert weights.shape == tuple(len(F) for F in features)
    phi = features[0]
    for F in features[1:]:
        phi = np.einsum("np,mq->nmpq", phi, F).reshape(len(phi) * len(F), -1)
    found, expected = phi.T @ (weights.reshape(-1)[:, None] * phi), moments.gram().dense()
    root = np.sqrt(np.diagonal(expected))
    assert np.max(np.abs(found - expected) / np.multiply.outer(root, root)) < 1e-10
    assert np.abs(weights).sum() < (2.0 if len(bases) < 3 else 3.0) * w.sum()
    assert weights.sum() == pytest.approx(w.sum(), rel=1e-10)
