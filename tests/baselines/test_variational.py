"""Any likelihood with a full Gaussian q: against direct maximisation, the exact process, and each other."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln, log_ndtr
from sklearn.base import clone

from vff import Categorical, Matern32, Matern52
from vff.baselines import ExactGP, InducingPointGP, InducingPointVGP, VariationalGP, latent, variational
from vff.baselines.covariances import Radial
from vff.baselines.features import FeatureModel, InducingPoints
from vff.likelihoods import Bernoulli, Gaussian, Poisson, StudentT

DATA = Path(__file__).parents[3] / "shared" / "data"
N = 16
RNG = np.random.default_rng(11)
X = np.sort(RNG.uniform(2.0, 9.0, N))[:, None]
WAVE = np.sin(1.3 * X[:, 0])
COUNTS = RNG.poisson(np.exp(1.0 + WAVE)) * 1.0
LABELS = (WAVE + 0.5 * RNG.standard_normal(N) > 0.0) * 1.0
REALS = WAVE + 0.4 * RNG.standard_t(4.0, N)
NEW = np.array([1.0, 2.5, 6.01, 9.5])[:, None]
KERNEL = Matern32(0, variance=1.7, lengthscale=1.4)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(100)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
LogDensity = Callable[[np.ndarray], np.ndarray]
CASES: dict[str, tuple[Any, np.ndarray, LogDensity]] = {
    "probit": (Bernoulli("probit"), LABELS, lambda f: log_ndtr((2.0 * LABELS - 1.0) * f)),
    "poisson": (Poisson(), COUNTS, lambda f: COUNTS * f - np.exp(f) - gammaln(COUNTS + 1.0)),
    # Gamma(5/2) / (Gamma(2) sqrt(4 pi)) = 3/8
    "student": (StudentT(0.5, 4.0), REALS, lambda f: np.log(0.375 / 0.5) - 2.5 * np.log1p((REALS - f) ** 2)),
}


def _bound(parts: np.ndarray, root: np.ndarray, log_p: LogDensity, intercept_prior: float) -> tuple[float, np.ndarray]:
    """Minus the bound over q(u) = N(a, R R'), f = anchor + root u, and its derivatives; R is lower triangular."""
    P = root.shape[1]
    a, lower = parts[:P], np.tril_indices(P)
    R = np.zeros((P, P))
    R[lower] = parts[P:]
    spread = root @ R
    mean, sd = intercept_prior + root @ a, np.sqrt(np.sum(spread**2, axis=1))
    values = log_p(mean + np.multiply.outer(NODES, sd))
    # d E / d mean = E[z log p] / sd, d E / d sd = E[(z^2 - 1) log p] / sd
    slope = (WEIGHTS * NODES) @ values / sd
    widening = (WEIGHTS * (NODES**2 - 1.0)) @ values / sd
    divergence = 0.5 * (a @ a + np.sum(R**2) - P) - np.log(np.abs(np.diagonal(R))).sum()
    dR = root.T @ ((widening / sd)[:, None] * spread) - R + np.diag(1.0 / np.diagonal(R))
    gradient = np.concatenate([root.T @ slope - a, dR[lower]])
    return divergence - float((WEIGHTS @ values).sum()), -gradient


def _best_constant(log_p: LogDensity) -> float:
    """The constant under which the targets are likeliest."""
    found = minimize_scalar(lambda f: -log_p(np.full(N, f)).sum(), (-1.0, 1.0), options={"xtol": 1e-12})
    return float(found.x)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_is_the_best_gaussian(name: str, centred: bool) -> None:
    likelihood, y, log_p = CASES[name]
    x = X[:, 0]
    model = VariationalGP(KERNEL, likelihood=likelihood, optimizer=None, normalize_y=centred).fit(X, y)
    root, intercept_prior = np.linalg.cholesky(KERNEL(x, x)), model.target_.mean
    if centred:  # the constant is one more coordinate, with a weak prior around its anchor
        # where f is in the units of y, that is the middle of y
        middle = float(np.quantile(y, 0.5, method="inverted_cdf")) if name == "student" else _best_constant(log_p)
        assert intercept_prior == pytest.approx(middle, abs=1e-5)
        root = np.column_stack([root, np.full(N, 10.0 * model.target_.scale)])
    P = root.shape[1]
    start = np.concatenate([np.zeros(P), 0.5 * np.eye(P)[np.tril_indices(P)]])
    options = {"maxiter": 4000, "maxfun": 8000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 40}
    found = minimize(_bound, start, (root, log_p, intercept_prior), jac=True, method="L-BFGS-B", options=options)
    assert model.elbo_ == pytest.approx(-found.fun, abs=1e-6)
    R = np.zeros((P, P))
    R[np.tril_indices(P)] = found.x[P:]
    mean, variance = model.predict_f(X)
    np.testing.assert_allclose(mean, intercept_prior + root @ found.x[:P], atol=2e-4)
    np.testing.assert_allclose(variance, np.sum((root @ R) ** 2, axis=1), atol=2e-4)


@pytest.mark.skipif(not DATA.exists(), reason="the paper's data are not here")
@pytest.mark.parametrize(("squash", "expected"), [(0.0, -138.876), (0.001, -139.118)])
def test_banana(squash: float, expected: float) -> None:
    table = np.loadtxt(DATA / "banana_X.csv", delimiter=",")
    y = np.loadtxt(DATA / "banana_y.csv").ravel()
    kernel = Matern32(0, variance=1.0, lengthscale=1.0) * Matern32(1, lengthscale=1.0)
    how: Any = {"likelihood": Bernoulli("probit", squash=squash), "optimizer": None, "normalize_y": False}
    exact = VariationalGP(kernel, **how).fit(table, y).elbo_
    assert exact == pytest.approx(expected, abs=0.005)
    few, more = (InducingPointVGP(kernel, n_inducing=P, random_state=0, **how).fit(table, y).elbo_ for P in (32, 128))
    assert few < more < exact < more + 0.2


BROAD = Matern32(0, variance=30.0, lengthscale=1.5)


@pytest.mark.parametrize(("kernel", "centred"), [(BROAD, False), (BROAD, True), ("rbf", False)], ids=repr)
def test_gaussian_noise_is_the_exact_process(kernel: Any, centred: bool) -> None:
    twice = np.concatenate([X, X[:5]])  # rows that are the same share a function value
    y = 40.0 * np.concatenate([WAVE, WAVE[:5]]) + RNG.standard_normal(N + 5)
    kept: Any = {"optimizer": None, "normalize_y": centred}
    if kernel == "rbf":
        kernel = ExactGP("rbf", normalize_y=False).fit(twice, y).kernel_
    exact = ExactGP(kernel, noise_variance=2.5, **kept).fit(twice, y)
    model = VariationalGP(kernel, likelihood=Gaussian(2.5), **kept).fit(twice, y)
    assert model.elbo_ == pytest.approx(exact.elbo_, abs=1e-5)
    assert model.noise_variance_ == pytest.approx(2.5)
    for ours, theirs in zip(model.predict_f(NEW, True), exact.predict_f(NEW, True), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.abs(theirs).max())
    np.testing.assert_allclose(model.predict(NEW), exact.predict(NEW), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        model.predict_quantiles(NEW, [0.1, 0.9]), exact.predict_quantiles(NEW, [0.1, 0.9]), rtol=1e-5, atol=1e-5
    )


def test_gaussian_noise_is_learnt_as_well() -> None:
    y = 40.0 * WAVE + 3.0 * RNG.standard_normal(N)
    exact = ExactGP(Matern52(0), normalize_y=False).fit(X, y)
    model = VariationalGP(Matern52(0), likelihood="gaussian", normalize_y=False).fit(X, y)
    assert model.elbo_ == pytest.approx(exact.elbo_, abs=1e-5)
    assert model.noise_variance_ == pytest.approx(exact.noise_variance_, rel=1e-2)
    sparse: Any = {"inducing": np.linspace(2.0, 9.0, 6), "normalize_y": False}
    collapsed = InducingPointGP(Matern52(0), **sparse).fit(X, y)
    climbed = InducingPointVGP(Matern52(0), likelihood="gaussian", **sparse).fit(X, y)
    assert climbed.elbo_ == pytest.approx(collapsed.elbo_, abs=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_inducing_points_are_below_and_at_all_rows_equal(name: str) -> None:
    likelihood, y, _ = CASES[name]
    how: Any = {"likelihood": likelihood, "optimizer": None}
    exact = VariationalGP(KERNEL, **how).fit(X, y)
    at_rows = InducingPointVGP(KERNEL, inducing=X, **how).fit(X, y)
    enough = InducingPointVGP(KERNEL, n_inducing=N, **how).fit(X, y)
    some = InducingPointVGP(KERNEL, n_inducing=10, random_state=1, **how).fit(X, y)
    few = InducingPointVGP(KERNEL, inducing=4, **how).fit(X, y)
    assert few.elbo_ < some.elbo_ < exact.elbo_
    for same in (at_rows, enough):
        assert same.elbo_ == pytest.approx(exact.elbo_, abs=1e-9)
        np.testing.assert_allclose(same.predict_f(NEW)[1], exact.predict_f(NEW)[1], rtol=1e-8)
    np.testing.assert_allclose(few.inducing_, np.linspace(X.min(), X.max(), 4))


@pytest.mark.parametrize("maker", [VariationalGP, lambda *a, **k: InducingPointVGP(*a, n_inducing=7, **k)])
def test_learning_ends_where_the_bound_is_flat(maker: Any) -> None:
    model = maker(Matern32(0), likelihood="poisson", random_state=0).fit(X, COUNTS)
    log = np.log([model.kernel_.variance, model.kernel_.lengthscale])

    def bound(at: np.ndarray) -> float:
        kernel = Matern32(0, variance=np.exp(at[0]), lengthscale=np.exp(at[1]))
        return maker(kernel, likelihood="poisson", optimizer=None, random_state=0).fit(X, COUNTS).elbo_

    assert model.notes_ == ()
    assert bound(log) == pytest.approx(model.elbo_, abs=1e-6)
    assert model.elbo_ > bound(np.log([1.0, 1.0]))
    for step in 1e-2 * np.eye(2):
        ahead, behind = bound(log + step), bound(log - step)
        assert max(ahead, behind) < model.elbo_
        assert abs(ahead - behind) / 0.02 < 1e-3  # the slope
    intercept = model.target_.mean
    assert abs(intercept) > 0.1


@pytest.mark.parametrize("maker", [VariationalGP, lambda *a, **k: InducingPointVGP(*a, n_inducing=7, **k)])
def test_a_function_far_from_zero_has_a_constant(maker: Any) -> None:
    """A weak prior costs a few nats, and less than a process that has to come from zero at every row."""
    counts = np.random.default_rng(11).poisson(np.exp(6.0 + WAVE))
    how: Any = {"likelihood": "poisson", "random_state": 0}
    model, without = (maker(Matern32(0), normalize_y=centred, **how).fit(X, counts) for centred in (True, False))
    assert model.elbo_ > without.elbo_
    assert model.kernel_.variance < without.kernel_.variance


def test_locations_are_learnt() -> None:
    how: Any = {"likelihood": "poisson", "inducing": np.array([2.2, 3.5, 5.0, 6.5, 8.5])}
    held = InducingPointVGP(KERNEL, **how).fit(X, COUNTS)
    moved = InducingPointVGP(KERNEL, optimise_inducing=True, **how).fit(X, COUNTS)
    assert moved.elbo_ > held.elbo_ + 0.01
    assert moved.elbo_ < VariationalGP(KERNEL, likelihood="poisson").fit(X, COUNTS).elbo_

    def bound(z: np.ndarray) -> float:
        how.update(inducing=z, optimizer=None)
        return InducingPointVGP(moved.kernel_, **how).fit(X, COUNTS).elbo_

    assert bound(moved.inducing_) == pytest.approx(moved.elbo_, abs=1e-6)
    for step in 1e-3 * np.eye(5):
        slope = (bound(moved.inducing_ + step) - bound(moved.inducing_ - step)) / 2e-3
        assert abs(slope) < 1e-2


def test_parameters_of_a_likelihood_are_learnt() -> None:
    y = 100.0 * REALS
    kernel = Matern32(0, variance=1.7e4, lengthscale=1.4)

    def fit(likelihood: Any) -> VariationalGP:
        return VariationalGP(kernel, likelihood=likelihood, optimizer=None).fit(X, y)

    model = fit(StudentT(df=4.0))
    scale = model.likelihood_.values["scale"]
    assert fit(StudentT(scale, 4.0)).elbo_ == pytest.approx(model.elbo_, abs=1e-6)
    assert fit(StudentT(scale, 4.0)).likelihood_.values["scale"] == pytest.approx(scale)
    for factor in (0.95, 1.05):
        assert fit(StudentT(factor * scale, 4.0)).elbo_ < model.elbo_
    assert np.isnan(model.noise_variance_)
    density = model.log_predictive_density(X, y)
    assert density.shape == (N,)
    assert fit(StudentT()).elbo_ > model.elbo_ - 1e-6


def test_nearly_separable_labels() -> None:
    # q overshoots at full rate here, and hyperparameters that follow held sites stop 0.04 nats short
    table = np.repeat(X, 3, axis=0) + 0.01 * np.tile(np.arange(3.0), N)[:, None]
    model = VariationalGP(Matern32(0)).fit(table, np.repeat(LABELS, 3))
    assert model.notes_ == ()
    assert model.elbo_ == pytest.approx(-10.27778, abs=1e-4)


def test_gradient_of_sites() -> None:
    T, pull = RNG.uniform(-1.0, 1.0, (30, 2)), RNG.standard_normal(30)
    s = RNG.uniform(-0.1, 1.0, 30)
    model = FeatureModel(InducingPoints, Radial(("a", "b")), T, pull, T[:4] + 0.1, True, s)
    theta = np.concatenate([np.log([1.3, 0.8, 0.6, 1.0]), model.coordinates.ravel()])
    gradient = model.pull_back(theta, model.at(theta).cotangents)
    steps = 1e-5 * np.eye(theta.size)
    differences = [(model.at(theta + step).elbo - model.at(theta - step).elbo) / 2e-5 for step in steps]
    held = np.arange(theta.size) != 3  # the noise variance of sites is one, and no parameter
    np.testing.assert_allclose(gradient[held], np.array(differences)[held], rtol=1e-6, atol=1e-7)


def test_two_rows_by_hand() -> None:
    # the example of the docstring of ``latent``
    model = FeatureModel(
        InducingPoints, Radial(("a",)), np.zeros((2, 1)), np.ones(2), np.zeros((1, 1)), False, np.ones(2)
    )
    closed = model.at(np.zeros(3))
    np.testing.assert_allclose(closed.mean, [2.0 / 3.0])
    np.testing.assert_allclose(closed.factor.inverse(), [[1.0 / 3.0]])
    # KL of N(2/3, 1/3) from N(0, 1)
    assert closed.divergence == pytest.approx(0.5 * (1.0 / 3.0 + 4.0 / 9.0 - 1.0 + np.log(3.0)))


def test_sites_blend() -> None:
    one, two = (latent.RowSites(np.full(2, value), np.full(2, -value)) for value in (1.0, 3.0))
    np.testing.assert_allclose(one.blended(two, 0.25), [[1.5, 1.5], [-1.5, -1.5]])


def test_probabilities_and_contract() -> None:
    table = np.repeat(X, 3, axis=0) + 0.01 * np.tile(np.arange(3.0), N)[:, None]
    labels = np.where(np.arange(3 * N) % 7 == 3, 1.0, np.repeat(LABELS, 3))
    model = clone(VariationalGP(Matern32(0), random_state=3)).fit(table, labels)
    p = model.predict_proba(NEW)
    assert p.shape == (4, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict(NEW), p[:, 1])
    np.testing.assert_allclose(np.exp(model.log_predictive_density(NEW, np.ones(4))), p[:, 1], rtol=1e-6)
    assert set(np.unique(model.sample_y(NEW, 20))) <= {0.0, 1.0}
    assert set(np.unique(model.predict_quantiles(NEW))) <= {0.0, 1.0}
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(NEW), p)
    assert not hasattr(VariationalGP(likelihood="poisson"), "predict_proba")
    assert hasattr(InducingPointVGP(), "predict_proba")


def test_columns_of_levels_and_of_exposure() -> None:
    frame = pd.DataFrame({"x": np.tile(X[:, 0], 2), "g": np.repeat(["a", "b"], N), "t": np.tile([1.0, 2.0], N)})
    y = np.tile(WAVE, 2) + np.repeat([0.0, 1.0], N)
    kernel = Matern32("x", variance=1.0, lengthscale=1.0) + Categorical("g", variance=0.5)
    kept: Any = {"optimizer": None, "normalize_y": False}
    exact = ExactGP(kernel, noise_variance=0.1, **kept).fit(frame, y)
    model = VariationalGP(kernel, likelihood=Gaussian(0.1), **kept).fit(frame, y)
    assert model.elbo_ == pytest.approx(exact.elbo_, abs=1e-6)
    with pytest.raises(ValueError, match="effects of levels"):
        InducingPointVGP(kernel, likelihood=Gaussian(0.1)).fit(frame, y)
    counts = RNG.poisson(frame["t"] * np.exp(np.tile(WAVE, 2)))
    rates = VariationalGP(likelihood=Poisson("t"), optimizer=None).fit(frame[["x", "t"]], counts)
    assert rates.column_indices_ == (0,)
    twice = frame[["x", "t"]].assign(t=2.0 * frame["t"])
    np.testing.assert_allclose(rates.predict(twice), 2.0 * np.asarray(rates.predict(frame[["x", "t"]])))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_inducing": 0}, "n_inducing must be a positive integer"),
        ({"inducing": np.zeros((3, 2))}, "inducing must be a positive integer or locations"),
        ({"likelihood": "nothing"}, "likelihood must be one of"),
        ({"optimizer": "adam"}, "optimizer"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        InducingPointVGP(**options).fit(X, LABELS)


def test_refuses_what_is_too_much_or_not_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="zeros and ones"):
        VariationalGP().fit(X, 2.0 * LABELS)
    monkeypatch.setattr(variational, "_MOST_ROWS", 10)
    with pytest.raises(ValueError, match="give it at most 10 rows"):
        VariationalGP().fit(X, LABELS)
