"""Natural gradients against direct maximisation over (mean, factor), closed forms, and the exact variational GP."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln

from vff import Categorical, GPRegressor, Matern12, Matern32, Matern52
from vff.baselines import VariationalGP
from vff.basis import ColumnBasis, Interval
from vff.features import ColumnPrior
from vff.inference.methods.natural.ascent import Step, Visit, arrive, ascend
from vff.inference.model.scale import REACH
from vff.kernels import Product, Sum
from vff.likelihoods import Bernoulli, Gaussian, Poisson, StudentT

N = 40
RNG = np.random.default_rng(5)
X = np.stack([RNG.uniform(2.0, 9.0, N), RNG.uniform(-1.0, 1.0, N)], axis=1)
WAVE = np.sin(1.3 * X[:, 0]) + X[:, 1] * np.cos(X[:, 0])
COUNTS = RNG.poisson(np.exp(0.7 + WAVE)) * 1.0
LABELS = (WAVE + 0.7 * RNG.standard_normal(N) > 0.0) * 1.0
REALS = 3.0 + WAVE + 0.4 * RNG.standard_t(3.0, N)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(120)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
LogDensity = Callable[[np.ndarray], np.ndarray]
KEPT: dict[str, Any] = {"optimizer": None, "normalize_y": False}

CASES: dict[str, tuple[Any, np.ndarray, LogDensity]] = {
    "bernoulli": (Bernoulli(), LABELS, lambda f: -np.logaddexp(0.0, (1.0 - 2.0 * LABELS) * f)),
    "poisson": (Poisson(), COUNTS, lambda f: COUNTS * f - np.exp(f) - gammaln(COUNTS + 1.0)),
    # Gamma(5/2) / (Gamma(2) sqrt(4 pi)) = 3/8
    "student": (StudentT(0.5, 4.0), REALS, lambda f: np.log(0.375 / 0.5) - 2.5 * np.log1p((REALS - f) ** 2)),
}
KERNELS: dict[str, Any] = {
    "one": Matern32(0, variance=1.7, lengthscale=1.4),
    "sum": Matern52(0, variance=1.7, lengthscale=1.4) + Matern12(1, variance=0.6, lengthscale=0.8),
    "product": Matern32(0, variance=1.7, lengthscale=1.4) * Matern32(1, lengthscale=0.8),
}


def _root_of_factor(factor: Any, basis: ColumnBasis, place: Interval) -> np.ndarray:
    """Phi L^-T at the rows for a Matérn of variance one, where K = L L': f = root u with u white."""
    order = {Matern12: 0, Matern32: 1, Matern52: 2}[type(factor)]
    rate = np.sqrt(2.0 * order + 1.0) * place.half_length / factor.lengthscale
    prior = ColumnPrior(basis, order, rate)
    phi = prior.transform.forward(basis.evaluate(place.to_unit(X[:, factor.column])).T)
    return np.linalg.solve(np.linalg.cholesky(prior.matrix().to_dense()), phi).T


def _written(kernel: Any, model: GPRegressor) -> tuple[np.ndarray, np.ndarray]:
    """root (N, P) of all terms, and the variance that the features miss at every row."""
    roots, bound_gap = [], 0.0
    terms = kernel.terms if isinstance(kernel, Sum) else (kernel,)
    for term, request in zip(terms, model.posterior_.request.terms, strict=True):
        factors = term.factors if isinstance(term, Product) else (term,)
        own = [_root_of_factor(factor, r.basis, r.domain) for factor, r in zip(factors, request.factors, strict=True)]
        variance = np.prod([factor.variance for factor in factors if factor.variance is not None])
        root = np.sqrt(variance) * np.array([reduce(np.kron, rows) for rows in zip(*own, strict=True)])
        roots.append(root)
        bound_gap = bound_gap + variance - np.sum(root**2, axis=1)
    return np.concatenate(roots, axis=1), bound_gap


def _bound(
    parts: np.ndarray, root: np.ndarray, bound_gap: np.ndarray, log_p: LogDensity, w: np.ndarray, intercept_prior: float
) -> tuple[float, np.ndarray]:
    """Minus the bound over q(u) = N(a, R R'), f = anchor + root u + what is missed, and its derivatives."""
    P = root.shape[1]
    a, lower = parts[:P], np.tril_indices(P)
    R = np.zeros((P, P))
    R[lower] = parts[P:]
    spread = root @ R
    mean, sd = intercept_prior + root @ a, np.sqrt(bound_gap + np.sum(spread**2, axis=1))
    values = w * log_p(mean + np.multiply.outer(NODES, sd))
    slope = (WEIGHTS * NODES) @ values / sd
    widening = (WEIGHTS * (NODES**2 - 1.0)) @ values / sd
    divergence = 0.5 * (a @ a + np.sum(R**2) - P) - np.log(np.abs(np.diagonal(R))).sum()
    dR = root.T @ ((widening / sd)[:, None] * spread) - R + np.diag(1.0 / np.diagonal(R))
    gradient = np.concatenate([root.T @ slope - a, dR[lower]])
    return divergence - float((WEIGHTS @ values).sum()), -gradient


def _best(root: np.ndarray, bound_gap: np.ndarray, log_p: LogDensity, w: np.ndarray, intercept_prior: float = 0.0):
    """The best bound, with mean and variance of f at the rows."""
    P = root.shape[1]
    start = np.concatenate([np.zeros(P), 0.5 * np.eye(P)[np.tril_indices(P)]])
    options = {"maxiter": 4000, "maxfun": 8000, "ftol": 1e-15, "gtol": 1e-8, "maxcor": 40}
    arguments = root, bound_gap, log_p, w, intercept_prior
    found = minimize(_bound, start, arguments, jac=True, method="L-BFGS-B", options=options)
    R = np.zeros((P, P))
    R[np.tril_indices(P)] = found.x[P:]
    mean = intercept_prior + root @ found.x[:P]
    return -found.fun, mean, bound_gap + np.sum((root @ R) ** 2, axis=1)


def _fitted(kernel: Any, likelihood: Any, y: np.ndarray, **options: Any) -> GPRegressor:
    edges, frequencies = (0, 2) if isinstance(kernel, Product) else ("auto", 3)
    how = {**KEPT, "edges": edges, "frequencies": frequencies, **options}
    w = how.pop("w", None)
    return GPRegressor(kernel, likelihood=likelihood, **how).fit(X, y, w)


@pytest.mark.parametrize("shape", KERNELS)
@pytest.mark.parametrize("name", CASES)
def test_is_the_best_gaussian(name, shape):
    (likelihood, y, log_p), kernel = CASES[name], KERNELS[shape]
    model = _fitted(kernel, likelihood, y)
    bound, mean, variance = _best(*_written(kernel, model), log_p, np.ones(N))
    assert model.elbo_ == pytest.approx(bound, abs=1e-6)
    found = model.predict_f(X)
    np.testing.assert_allclose(found[0], mean, atol=1e-4)
    np.testing.assert_allclose(found[1], variance, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_is_the_best_with_a_constant_and_weights(name):
    (likelihood, y, log_p), kernel, w = CASES[name], KERNELS["one"], RNG.uniform(0.2, 3.0, N)
    model = _fitted(kernel, likelihood, y, normalize_y=True, w=w)
    # y was standardised for Student's t, and with it the anchor
    units = model.fit_.memory.units
    assert units.scale == 1.0 or name == "student"
    intercept_prior = units.mean + units.scale * model.fit_.memory.intercept_prior
    root, bound_gap = _written(kernel, model)
    # the constant is one more feature, with a weak prior around its anchor
    root = np.column_stack([root, np.full(N, REACH * units.scale)])
    bound, mean, variance = _best(root, bound_gap, log_p, w, intercept_prior)
    assert model.elbo_ == pytest.approx(bound, abs=1e-6)
    found = model.predict_f(X)
    np.testing.assert_allclose(found[0], mean, atol=2e-4)
    np.testing.assert_allclose(found[1], variance, atol=2e-4)


@pytest.mark.parametrize("shape", KERNELS)
@pytest.mark.parametrize("w", [None, np.linspace(0.3, 2.0, N)], ids=["equal", "weights"])
def test_one_step_with_gaussian_noise_is_the_closed_form(shape, w):
    kernel, variance = KERNELS[shape], 0.3
    closed = _fitted(kernel, "gaussian", REALS, noise_variance=variance, w=w)
    model = _fitted(kernel, Gaussian(variance), REALS, w=w)
    assert model.fit_.visits <= 3
    assert model.elbo_ == pytest.approx(closed.elbo_, rel=1e-8)
    for ours, theirs in zip(model.predict_f(X), closed.predict_f(X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8)


def test_hyperparameters_under_gaussian_noise_are_those_of_the_closed_form():
    noise = 0.2
    rng = np.random.default_rng(3)
    x = rng.uniform(0.0, 10.0, 300)
    y = 5.0 + 2.0 * np.sin(x) + np.sqrt(noise) * rng.standard_normal(300)
    how: dict[str, Any] = {"frequencies": 10, "normalize_y": False}
    closed = GPRegressor(Matern32(0), **how).fit(x[:, None], y - 5.0)
    model = GPRegressor(Matern32(0), likelihood=Gaussian(closed.noise_variance_), **how).fit(x[:, None], y - 5.0)
    assert model.elbo_ == pytest.approx(closed.elbo_, abs=5e-3)
    assert model.kernel_.lengthscale == pytest.approx(closed.kernel_.lengthscale, rel=0.03)
    assert model.kernel_.variance == pytest.approx(closed.kernel_.variance, rel=0.06)


@pytest.mark.parametrize("shape", KERNELS)
@pytest.mark.parametrize("name", CASES)
def test_approaches_the_exact_bound_from_below(name, shape):
    (likelihood, y, _), kernel = CASES[name], KERNELS[shape]
    exact = VariationalGP(kernel, likelihood=likelihood, **KEPT).fit(X, y).elbo_
    previous = -np.inf
    for M in (1, 4, 10) if shape == "product" else (1, 6, 40):
        model = _fitted(kernel, likelihood, y, frequencies=M, edges="auto")
        assert previous - 1e-6 < model.elbo_ < exact + 1e-6
        previous = model.elbo_
    assert exact - previous < 0.3 if shape == "sum" else exact - previous < 0.1


@pytest.mark.parametrize("name", [*CASES, "learnt student", "ordinal", "negative-binomial"])
def test_the_bound_never_falls(name):
    others = {"learnt student": ("student-t", REALS), "ordinal": ("ordinal", np.minimum(COUNTS, 4.0))}
    others["negative-binomial"] = ("negative-binomial", COUNTS)
    likelihood, y = CASES[name][:2] if name in CASES else others[name]
    model = GPRegressor(Matern32(0) + Matern32(1), likelihood=likelihood, frequencies=6).fit(X, y)
    bounds = np.array(model.fit_.bounds)
    assert bounds.size > 2
    assert np.all(np.diff(bounds) >= -1e-10 * np.abs(bounds[:-1]))
    assert model.elbo_ == pytest.approx(bounds[-1], rel=1e-12)
    assert model.fit_.visits >= bounds.size
    assert not any("still rising" in note for note in model.notes_)


def _slopes(kernel: Any, likelihood: Any, y: np.ndarray, step: float = 0.02) -> list[float]:
    """d bound / d log hyperparameter, with q at its best."""
    terms = kernel.terms if isinstance(kernel, Sum) else (kernel,)
    slopes = []
    for s, term in enumerate(terms):
        names = ("variance",) if isinstance(term, Categorical) else ("variance", "lengthscale")
        for name in names:
            ends = []
            for factor in (np.exp(step), np.exp(-step)):
                moved = type(term)(
                    term.column,
                    **{own: getattr(term, own) * (factor if own == name else 1.0) for own in names},
                )
                parts = (*terms[:s], moved, *terms[s + 1 :])
                whole = Sum(parts) if len(parts) > 1 else moved
                how: dict[str, Any] = {"frequencies": 6, "optimizer": None, "likelihood": likelihood}
                ends.append(GPRegressor(whole, **how).fit(X, y).elbo_)
            slopes.append((ends[0] - ends[1]) / (2.0 * step))
    return slopes


@pytest.mark.parametrize("kernel", [Matern32(0), Matern32(0) + Matern52(1)], ids=["one", "sum"])
@pytest.mark.parametrize("name", CASES)
def test_learning_ends_where_the_bound_is_flat(name, kernel):
    likelihood, y, _ = CASES[name]
    model = GPRegressor(kernel, likelihood=likelihood, frequencies=6).fit(X, y)
    assert np.abs(_slopes(model.kernel_, likelihood, y)).max() < 0.1


class _Number:
    """Sums and q of a toy: the bound is -x^2, and sums are x itself."""

    def __init__(self, x: float):
        self.x = x

    def blended(self, other: "_Number", rate: float) -> "_Number":
        return _Number((1.0 - rate) * self.x + rate * other.x)


class _Toy:
    """A whole step overshoots by ``much``; places above ``edge`` cannot be stood on."""

    def __init__(self, much: float, edge: float = np.inf):
        self.much, self.edge = much, edge

    def update(self, sums: _Number, here: _Number, learn: float) -> _Number | None:
        return sums if sums.x < self.edge else None

    def visit(self, iterate: _Number, psi: np.ndarray) -> Visit[Any]:
        x = iterate.x
        value = -(x**2) - float(np.sum((psi - 2.0) ** 2))
        return Visit(value, 0.0, _Number(x - self.much * x), -2.0 * (psi - 2.0), -2.0 * np.eye(psi.size))


@pytest.mark.parametrize("much", [0.3, 1.0, 1.9, 6.0, 12.0])
@pytest.mark.parametrize("edge", [np.inf, 3.5])
def test_steps_are_halved_until_they_rise(much, edge):
    toy = _Toy(much, edge)
    first: Step[Any, Any] = arrive(toy, _Number(3.0), np.zeros(2), _Number(3.0))
    ascent = ascend(toy, first, tolerance=1e-9)
    assert ascent.converged
    assert np.all(np.diff(ascent.bounds) >= 0.0)
    assert ascent.bounds[-1] > -1e-6
    np.testing.assert_allclose(ascent.last.psi, 2.0, atol=1e-4)


def test_a_climb_that_is_cut_off_says_so():
    toy = _Toy(0.01)
    ascent = ascend(toy, arrive(toy, _Number(3.0), np.zeros(0), _Number(3.0)), tolerance=1e-12, most_steps=5)
    assert not ascent.converged
    assert len(ascent.bounds) == 6
