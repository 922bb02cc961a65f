"""The solver without a factor against the direct one, its parts against dense algebra, its errors against its word."""

import numpy as np
import pytest

import vff.inference.model as model_module
import vff.inference.whitening as whitening_module
from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.inference import LevelFactor, MaternFactor, SumModel, Term
from vff.inference.iterative import IterativeForm
from vff.inference.model import effective_by_term
from vff.inference.probed_posterior import posterior_of
from vff.linalg import conjugate_gradients
from vff.moments import (
    ColumnRequest,
    MomentRequest,
    TermRequest,
    equivalent_weights,
    features_at_nodes,
    gram_tensor,
    read_arrays,
)

UNIT, LEVELS = Interval(-1.0, 1.0), ("a", "b", "c", "d", "e")
PAIR, TRIPLE, WITH_LEVELS = (((0, 1), (1, 2)),), (((0, 1), (1, 1), (2, 1)),), (((3, None), (0, 1)),)
MAINS = (((0, 1),), ((1, 1),), ((0, 1), (1, 1)))
CASES = {
    "independent": (PAIR, ((10, 9),), 200),
    "correlated": (PAIR, ((10, 9),), 500),
    "clustered": (PAIR, ((10, 9),), 300),
    "three columns": (TRIPLE, ((3, 2, 3),), 300),
    "levels": (WITH_LEVELS, ((None, 50),), 200),
    "mains and product": (MAINS, ((6,), (6,), (9, 9)), 300),
}
"""Factors of every term, harmonics, and how many functions the preconditioner takes together."""


@pytest.fixture
def solver(monkeypatch):
    """Choose: "direct" or "iterative", whatever the size."""

    def choose(name: str, corner: int = 1600) -> None:
        monkeypatch.setattr(model_module, "LARGEST_DIRECT", 10**9 if name == "direct" else 100)
        monkeypatch.setattr(whitening_module, "CORNER", corner)

    return choose


def _rows(name: str, N: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(-1, 1, (3, N))
    if name == "correlated":
        b = np.clip(a + 0.2 * rng.normal(size=N), -1, 1)
    if name == "clustered":
        centres, which = rng.uniform(-0.8, 0.8, (2, 6)), rng.integers(0, 6, N)
        a, b = np.clip(centres[:, which] + 0.05 * rng.normal(size=(2, N)), -1, 1)
    g = rng.integers(0, len(LEVELS), N).astype(float)
    y = np.sin(4 * a) * np.cos(3 * b) + c**2 + 0.5 * (g == 1) * a + 0.3 * rng.normal(size=N)
    return [a, b, c, g], y, rng.uniform(0.5, 1.5, N)


def _request(shape, harmonics, used) -> MomentRequest:
    terms = []
    for term, own in zip(shape, harmonics, strict=True):
        factors = [
            ColumnRequest(Codes(), LevelBasis(LEVELS)) if M is None else ColumnRequest(UNIT, ColumnBasis(M, p + 2))
            for (_, p), M in zip(term, own, strict=True)
        ]
        terms.append(TermRequest(tuple(used.index(c) for c, _ in term), tuple(factors)))
    return MomentRequest(tuple(terms))


def _problem(name: str, N: int = 1200, harmonics=None) -> tuple[SumModel, np.ndarray, np.ndarray]:
    """Model, hyperparameters and rows."""
    shape, own, _ = CASES[name]
    columns, y, w = _rows(name, N)
    used = sorted({c for term in shape for c, _ in term})
    columns = [columns[c] for c in used]
    terms = tuple(Term(tuple(LevelFactor() if p is None else MaternFactor(p) for _, p in term)) for term in shape)
    model = SumModel(terms, read_arrays(_request(shape, harmonics or own, used), columns, y, w))
    values = [[0.7, *(0.5 + 0.1 * d for d, (_, p) in enumerate(term) if p is not None)] for term in shape]
    return model, np.log(np.concatenate([*values, [0.1]])), np.stack(columns, axis=1)


@pytest.mark.parametrize("name", CASES)
def test_bound_and_mean_are_those_of_the_direct_solver(name, solver):
    model, theta, _ = _problem(name)
    assert model.size >= 400
    solver("direct")
    direct = model.at(theta)
    missed = model.pull_back(theta, direct.missed_cotangents)
    assert direct.error == 0.0
    for corner in (CASES[name][2], 1600):
        solver("iterative", corner)
        form = model.at(theta)
        assert isinstance(form, IterativeForm)
        scale = np.sqrt(np.diagonal(np.linalg.inv(direct.prior.to_dense())))
        np.testing.assert_allclose(
            form.mean / scale, direct.mean / scale, atol=1e-6 * np.abs(direct.mean / scale).max()
        )
        assert abs(form.elbo - direct.elbo) <= form.error + 1e-6
        # the estimate is raised by its error, so that it stays a bound
        assert direct.upper_bound() - 1e-5 <= form.upper_bound() <= direct.upper_bound() + 2.0 * form.error + 1e-5
        assert form.missed == pytest.approx(direct.missed, rel=1e-6)
        np.testing.assert_allclose(form.explained_by_term, direct.explained_by_term, rtol=1e-9)
        np.testing.assert_allclose(form.energies(), direct.energies(), rtol=1e-6)
        np.testing.assert_allclose(effective_by_term(form), effective_by_term(direct), rtol=0.1)
        np.testing.assert_allclose(model.pull_back(theta, form.missed_cotangents), missed, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_gradient_is_that_of_the_direct_solver(name, solver):
    """To a few per cent, or a twentieth of what noise in the data makes of it."""
    model, theta, _ = _problem(name)
    solver("direct")
    direct = model.at(theta)
    expected, slack = model.pull_back(theta, direct.cotangents), 0.05 * np.sqrt(direct.cotangents.effective)
    for corner in (CASES[name][2], 1600):
        solver("iterative", corner)
        found = model.pull_back(theta, model.at(theta).cotangents)
        np.testing.assert_allclose(found, expected, rtol=0.03, atol=slack)


@pytest.mark.parametrize("name", ["correlated", "clustered"])
def test_gradient_is_that_of_the_bound_as_estimated(name, solver):
    """The same signs at every setting: differences of the estimate follow the gradient that learning is given."""
    model, theta, _ = _problem(name)
    solver("iterative", CASES[name][2])
    form, h = model.at(theta), 1e-3
    found = model.pull_back(theta, form.cotangents)
    steps = h * np.eye(theta.size)
    differences = [(model.at(theta + e).elbo - model.at(theta - e).elbo) / (2 * h) for e in steps]
    np.testing.assert_allclose(found, differences, rtol=0.03, atol=0.05 * np.sqrt(form.cotangents.effective))


@pytest.mark.parametrize("name", CASES)
def test_few_rows_have_exact_variances_and_joint_distributions(name, solver):
    model, theta, x = _problem(name)
    x = x[:10].copy()
    x[:3, -1] += 0.8  # some outside
    setting = model.setting(theta)
    solver("direct")
    expected = posterior_of(model.at(theta), model, setting)
    solver("iterative", CASES[name][2])
    found = posterior_of(model.at(theta), model, setting)
    mean, variance = expected.marginals(x)
    np.testing.assert_allclose(found.mean_at(x), mean, atol=1e-6 * np.abs(mean).max())
    for got, wanted in zip(found.marginals(x), (mean, variance), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6 * np.abs(mean).max())
    _, covariance = expected.joint(x)
    size = np.sqrt(np.multiply.outer(variance, variance))
    np.testing.assert_allclose(found.joint(x)[1] / size, covariance / size, atol=1e-6)
    draws = found.sample(x[:3], 4000, np.random.default_rng(1))
    np.testing.assert_allclose(np.cov(draws), covariance[:3, :3], atol=0.15 * variance[:3].max())
    if name != "levels":
        for got, wanted in zip(found.slope(x, 0), expected.slope(x, 0), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("name", CASES)
def test_many_rows_have_good_variances(name, solver):
    """Typically to 1 %, and as well as the standard error over the probes says; also of effects, and outside."""
    model, theta, x = _problem(name)
    x = x[:400].copy()
    x[:20, -1] += 0.8 if name != "levels" else 0.0
    setting = model.setting(theta)
    solver("direct")
    expected = posterior_of(model.at(theta), model, setting)
    mean, variance = expected.marginals(x)
    for corner in (CASES[name][2], 1600):
        solver("iterative", corner)
        found = posterior_of(model.at(theta), model, setting)
        got_mean, got = found.marginals(x)
        np.testing.assert_allclose(got_mean, mean, atol=1e-6 * np.abs(mean).max())
        off = np.abs(got / variance - 1.0)
        assert np.median(off) < 0.01
        assert off.max() < 0.1
        assert np.median(off) < 3.0 * found.relative_error + 1e-6
        for one, other in zip(found.terms, expected.terms, strict=True):
            (centred, spread), (wanted, wanted_spread) = (
                term.centred(x, posterior.rows(x)) for term, posterior in ((one, found), (other, expected))
            )
            np.testing.assert_allclose(centred, wanted, atol=1e-6 * np.abs(mean).max())
            assert np.median(np.abs(spread / wanted_spread - 1.0)) < 0.02


def test_two_thousand_features(solver):
    model, theta, x = _problem("independent", 4000, ((20, 20),))
    assert 1900 < model.size < 2200
    setting, rows = model.setting(theta), x[:500]
    solver("direct")
    direct = model.at(theta)
    mean, variance = posterior_of(direct, model, setting).marginals(rows)
    gradient = model.pull_back(theta, direct.cotangents)
    solver("iterative")
    form = model.at(theta)
    assert abs(form.elbo - direct.elbo) <= form.error + 1e-6
    assert form.error < 0.1
    got_mean, got = posterior_of(form, model, setting).marginals(rows)
    np.testing.assert_allclose(got_mean, mean, atol=1e-6)
    np.testing.assert_allclose(got, variance, rtol=0.01)
    np.testing.assert_allclose(model.pull_back(theta, form.cotangents), gradient, rtol=0.01, atol=0.1)


def test_the_same_numbers_every_time(solver):
    solver("iterative", 200)
    results = []
    for _ in range(2):
        model, theta, x = _problem("correlated")
        form = model.at(theta)
        results.append((form.elbo, form.error, *posterior_of(form, model, model.setting(theta)).marginals(x[:70])))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_stated_error_is_honest(solver):
    """Three standard errors over the probes: the bound is off by less at all of these settings."""
    model, theta, _ = _problem("correlated", 1500, ((8, 7),))
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
    model, theta, x = _problem("independent")
    posterior = posterior_of(model.at(theta), model, model.setting(theta))
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
    assert solution.residual <= 1e-11
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
    assert solution.iterations == 5
    assert solution.residual > 1e-6


TERMS = {
    "one": ((0,), (ColumnBasis(20, 3),)),
    "paper": ((0, 1), (ColumnBasis(6, 0), ColumnBasis(9, 0))),
    "two": ((0, 1), (ColumnBasis(12, 3), ColumnBasis(7, 4))),
    "turned": ((1, 0), (ColumnBasis(5, 2), ColumnBasis(9, 3))),
    "levels": ((3, 0), (LevelBasis(LEVELS), ColumnBasis(15, 3))),
    "three": ((0, 1, 2), (ColumnBasis(2, 3), ColumnBasis(1, 2), ColumnBasis(3, 0))),
}


@pytest.mark.parametrize("rows", ["independent", "correlated", "clustered"])
@pytest.mark.parametrize("name", TERMS)
def test_weights_on_a_lattice_stand_for_the_rows(name, rows):
    """The same Gram matrix, to 1e-10 of its diagonal, from weights about as large as those of the rows."""
    numbers, bases = TERMS[name]
    columns, y, w = _rows(rows, 700)
    used = sorted(numbers)
    term = TermRequest(
        tuple(used.index(c) for c in numbers),
        tuple(ColumnRequest(Codes() if isinstance(b, LevelBasis) else UNIT, b) for b in bases),
    )
    moments = read_arrays(MomentRequest((term,)), [columns[c] for c in used], y, w, "dense")
    weights = equivalent_weights(term, moments.grams[0])
    features = [features_at_nodes(basis) for basis in bases]
    assert weights.shape == tuple(len(F) for F in features)
    phi = features[0]
    for F in features[1:]:
        phi = np.einsum("np,mq->nmpq", phi, F).reshape(len(phi) * len(F), -1)
    found, expected = phi.T @ (weights.reshape(-1)[:, None] * phi), gram_tensor(bases, moments.grams[0])
    root = np.sqrt(np.diagonal(expected))
    assert np.max(np.abs(found - expected) / np.multiply.outer(root, root)) < 1e-10
    assert np.abs(weights).sum() < (2.0 if len(bases) < 3 else 3.0) * w.sum()
    assert weights.sum() == pytest.approx(w.sum(), rel=1e-10)
