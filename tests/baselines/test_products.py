"""Products over columns and their sums: exact process and inducing points against plain dense algebra."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import block_diag, cho_factor, cho_solve
from scipy.stats import multivariate_normal

from vff import Matern12, Matern32, Matern52
from vff.baselines import ExactGP, InducingPointGP, SquaredExponential, regular_grid
from vff.baselines.covariances import AbstractCovariance, Column, Radial, SumOfProducts, Values
from vff.baselines.exact import Evidence
from vff.baselines.features import FeatureModel, InducingPoints
from vff.estimators import ExtrapolationWarning
from vff.factors.interval.factor import MaternFactor
from vff.factors.levels.factor import LevelFactor
from vff.kernels import Categorical, normal_form

ROUGH, ONCE, TWICE, SMOOTHEST, GROUPS = (
    MaternFactor(0),
    MaternFactor(1),
    MaternFactor(2),
    MaternFactor(4),
    LevelFactor(),
)
N, NOISE = 60, 0.3
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame({"a": RNG.uniform(0.0, 10.0, N), "b": RNG.integers(1, 8, N), "g": RNG.choice(["x", "y", "z"], N)})
Y = 7.0 + 2.0 * np.sin(FRAME["a"]) * FRAME["b"] / 4.0 + (FRAME["g"] == "y") + 0.5 * RNG.standard_normal(N)
Y = Y.to_numpy()
NEW = FRAME.iloc[:6].assign(a=lambda rows: rows["a"] + 0.3)
A, B = Matern32("a", variance=4.0, lengthscale=2.0), Matern52("b", variance=1.5, lengthscale=3.0)
A12, G = Matern12("a", variance=0.5, lengthscale=0.4), Categorical("g", variance=0.7)
SMOOTH: list[Any] = [A * B, A * B + A12, A12 * B + A * B + B]
LEVELS: list[Any] = [A * G, G * A * B + A12 * B + G, A * Categorical("b", variance=0.8) + B]
COVARIANCES: list[AbstractCovariance] = [
    SumOfProducts(((Column(0, ONCE, "a"), Column(1, TWICE, "b")),)),
    SumOfProducts(
        (
            (Column(0, ROUGH, "a"), Column(1, SMOOTHEST, "b"), Column(2, ONCE, "c")),
            (Column(1, ONCE, "b"),),
        )
    ),
    SumOfProducts(
        (
            (Column(2, GROUPS, "c"), Column(0, ONCE, "a")),
            (Column(2, GROUPS, "c"),),
            (Column(0, TWICE, "a"),),
        )
    ),
    SumOfProducts(((Column(2, GROUPS, "c"),),)),
    Radial(("a", "b", "c")),
]


def _one(factor: Any, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """A factor from its formula in the literature."""
    if isinstance(factor, Categorical):
        return factor.variance * np.array([[float(p == q) for q in z] for p in x])
    s = np.sqrt(2 * factor.order + 1) * np.abs(x[:, None] - z[None, :]) / factor.lengthscale
    return factor.variance * {0: 1.0, 1: 1.0 + s, 2: 1.0 + s + s**2 / 3.0}[factor.order] * np.exp(-s)


def _dense(kernel: Any, left: pd.DataFrame, right: pd.DataFrame) -> np.ndarray:
    total = np.zeros((len(left), len(right)))
    for term in normal_form(kernel):
        product = np.ones(total.shape)
        for factor in term.factors:
            product *= _one(factor, left[factor.column].to_numpy(), right[factor.column].to_numpy())
        total += product
    return total


def _kept(maker: Any, kernel: Any, **options: Any) -> Any:
    return maker(kernel, noise_variance=NOISE, optimizer=None, **options).fit(FRAME, Y)


def _of_constant(model: Any) -> float:
    """Prior variance of the constant: ten standard deviations of y."""
    return (10.0 * model.target_.scale) ** 2 if model.normalize_y else 0.0


def _log_normal(y: np.ndarray, C: np.ndarray) -> float:
    return float(multivariate_normal.logpdf(y, np.zeros(y.size), C))


def _agrees(model: Any, mean: np.ndarray, covariance: np.ndarray) -> None:
    for got, variance in (model.predict_f(NEW), model.predict_f(NEW, full_covariance=True)):
        np.testing.assert_allclose(got, mean, rtol=1e-7)
        np.testing.assert_allclose(variance, covariance if variance.ndim == 2 else np.diagonal(covariance), atol=1e-7)
    np.testing.assert_allclose(model.predict(NEW), mean, rtol=1e-7)


@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.parametrize("kernel", SMOOTH + LEVELS, ids=repr)
def test_exact_is_dense_algebra(kernel: Any, normalize_y: bool) -> None:
    model = _kept(ExactGP, kernel, normalize_y=normalize_y)
    offset = Y.mean() if normalize_y else 0.0
    V = _of_constant(model)
    C, cross = _dense(kernel, FRAME, FRAME) + V + NOISE * np.eye(N), _dense(kernel, NEW, FRAME) + V
    assert model.log_marginal_likelihood_ == model.elbo_ == pytest.approx(_log_normal(Y - offset, C), abs=1e-7)
    factor = cho_factor(C)
    mean = offset + cross @ cho_solve(factor, Y - offset)
    _agrees(model, mean, _dense(kernel, NEW, NEW) + V - cross @ cho_solve(factor, cross.T))
    again = _kept(ExactGP, model.kernel_, normalize_y=normalize_y)
    assert again.elbo_ == pytest.approx(model.elbo_, abs=1e-9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(NEW), model.predict(NEW))


def test_columns_in_the_order_they_are_named() -> None:
    model = _kept(ExactGP, G * B + A)
    assert model.column_indices_ == (2, 1, 0)
    assert model.column_levels_ == (("x", "y", "z"), None, None)
    twice = _kept(ExactGP, LEVELS[2])
    assert twice.column_indices_ == (0, 1, 1)
    assert twice.column_levels_[0] is twice.column_levels_[2] is None


def test_a_level_never_seen_goes_back_to_the_prior() -> None:
    model = _kept(ExactGP, A * G)
    with pytest.warns(ExtrapolationWarning, match="2 of 6 rows hold a level of column 'g' that the fit has not seen"):
        mean, variance = model.predict_f(NEW.assign(g=["new", "other", "x", "x", "y", "z"]))
    # of such a row only the constant is known: generalised least squares, with a weak prior
    C, V = _dense(A * G, FRAME, FRAME) + NOISE * np.eye(N), _of_constant(model)
    told = np.linalg.solve(C, np.ones(N))
    left = 1.0 / (told.sum() + 1.0 / V)
    np.testing.assert_allclose(mean[:2], Y.mean() + left * (told @ (Y - Y.mean())))
    np.testing.assert_allclose(variance[:2], 4.0 * 0.7 + left)
    assert np.all(variance[2:] < 4.0 * 0.7)


def _rows(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    T = np.column_stack([rng.uniform(-1.0, 1.0, (n, 2)), rng.integers(0, 3, n)])
    return T, np.sin(4.0 * T[:, 0]) * T[:, 1] + 0.5 * rng.standard_normal(n)


def _theta(covariance: AbstractCovariance) -> np.ndarray:
    return np.log(np.random.default_rng(0).uniform(0.3, 1.5, len(covariance.layout.names)))


def _differences(function: Any, at: np.ndarray) -> np.ndarray:
    return np.array([(function(at + step) - function(at - step)) / 2e-5 for step in 1e-5 * np.eye(at.size)])


@pytest.mark.parametrize("block", [1, 130, 10**6])
@pytest.mark.parametrize("covariance", COVARIANCES, ids=repr)
def test_exact_gradient(covariance: AbstractCovariance, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vff.baselines.covariances._BLOCK", block)
    theta, (T, y) = _theta(covariance), _rows()

    def evidence(at: np.ndarray) -> Evidence:
        return Evidence(covariance, covariance.values(at), T, y)

    expected = _differences(lambda at: evidence(at).value, theta)
    np.testing.assert_allclose(evidence(theta).gradient(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("covariance", COVARIANCES, ids=repr)
def test_gradient_in_the_rows(covariance: AbstractCovariance) -> None:
    T, _ = _rows()
    values, left, right = covariance.values(_theta(covariance)), T[:4], T[4:20]
    weights = np.random.default_rng(1).standard_normal((4, 16))
    got = covariance.pull_back_rows(values, left, right, weights)

    def total(flat: np.ndarray) -> float:
        return float(np.sum(weights * covariance.block(values, flat.reshape(4, 3), right)))

    moving = np.ones(3, bool) if isinstance(covariance, Radial) else np.array([True, True, False])  # codes do not move
    if isinstance(covariance, SumOfProducts) and any(
        f == Column(2, ONCE, "c") for term in covariance.terms for f in term
    ):
        left[:, 2] += 0.1  # away from the rows it meets, where the third column is a number
        got, moving = covariance.pull_back_rows(values, left, right, weights), np.ones(3, bool)
    expected = _differences(total, left.ravel()).reshape(4, 3)
    np.testing.assert_allclose(got[:, moving], expected[:, moving], rtol=1e-6, atol=1e-7)
    assert np.all(got[:, ~moving] == 0.0)


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("covariance", [COVARIANCES[0], COVARIANCES[1], COVARIANCES[4]], ids=repr)
def test_inducing_gradient(covariance: AbstractCovariance, free: bool) -> None:
    T, y = _rows()
    Z = np.random.default_rng(4).uniform(-1.0, 1.0, (9, 3))
    model = FeatureModel(InducingPoints, covariance, T, y, Z, free)
    theta = np.concatenate([_theta(covariance), Z.ravel()]) if free else _theta(covariance)
    gradient = model.pull_back(theta, model.at(theta).cotangents)
    np.testing.assert_allclose(gradient, _differences(lambda at: model.at(at).elbo, theta), rtol=1e-5, atol=1e-5)


def test_a_product_of_one_is_its_factor_and_levels_cut_blocks() -> None:
    T, _ = _rows()
    one, levels = (
        SumOfProducts(((Column(0, ONCE, "a"),),)),
        SumOfProducts(((Column(2, GROUPS, "g"), Column(0, ONCE, "a")),)),
    )
    values = Values(np.array([1.3]), np.array([0.4]), 0.1)
    same = T[:, None, 2] == T[None, :, 2]
    np.testing.assert_allclose(levels.matrix(values, T, T), one.matrix(values, T, T) * same, rtol=1e-14)


def test_names_say_which_factor() -> None:
    layout = SumOfProducts(((Column(0, ONCE, "A"), Column(1, GROUPS, "G")), (Column(0, ROUGH, "B"),))).layout
    assert layout.names == (
        "variance of A * G",
        "variance of B",
        "lengthscale of A in A * G",
        "lengthscale of B",
        "noise",
    )
    assert COVARIANCES[0].layout.names == ("variance", "lengthscale of a", "lengthscale of b", "noise")


GRID = regular_grid(5, [(0.0, 10.0), (0.5, 7.5)])


@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_inducing_is_dense_algebra(kernel: Any, normalize_y: bool) -> None:
    names = ["a", "b"]
    model = _kept(InducingPointGP, kernel, inducing=GRID, normalize_y=normalize_y)
    offset = Y.mean() if normalize_y else 0.0
    np.testing.assert_allclose(model.inducing_, GRID, atol=1e-12)
    Z = pd.DataFrame(GRID, columns=names)
    K, cross, new = (_dense(kernel, Z, other) for other in (Z, FRAME, NEW))
    V = _of_constant(model)
    if normalize_y:  # the constant is one more inducing variable
        K = block_diag(K, V)
        cross, new = (np.vstack([rows, np.full(rows.shape[1], V)]) for rows in (cross, new))
    Q, prior = cross.T @ np.linalg.solve(K, cross), _dense(kernel, FRAME, FRAME) + V
    bound = _log_normal(Y - offset, Q + NOISE * np.eye(N)) - 0.5 / NOISE * np.trace(prior - Q)
    assert model.elbo_ == pytest.approx(bound, abs=1e-7)
    assert model.elbo_ < _kept(ExactGP, kernel, normalize_y=normalize_y).elbo_
    # Titsias (2009), eq. 6, written with K and A = K + C C' / noise
    A_ = K + cross @ cross.T / NOISE
    mean = offset + new.T @ np.linalg.solve(A_, cross @ (Y - offset)) / NOISE
    _agrees(model, mean, _dense(kernel, NEW, NEW) + V - new.T @ (np.linalg.inv(K) - np.linalg.inv(A_)) @ new)


@pytest.mark.parametrize("kernel", [*SMOOTH, SquaredExponential(4.0, (2.0, 3.0))], ids=repr)
def test_points_at_the_rows_are_the_exact_process(kernel: Any) -> None:
    rows = FRAME[["a", "b"]]
    exact, sparse = (
        maker(kernel, noise_variance=NOISE, optimizer=None, **options).fit(rows, Y)
        for maker, options in ((ExactGP, {}), (InducingPointGP, {"inducing": rows.to_numpy()}))
    )
    assert sparse.elbo_ == pytest.approx(exact.elbo_, abs=1e-5)
    np.testing.assert_allclose(sparse.predict(NEW[["a", "b"]]), exact.predict(NEW[["a", "b"]]), rtol=1e-5)


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _kept(InducingPointGP, SMOOTH[1], inducing=GRID).elbo_
    monkeypatch.setattr("vff.baselines.features._CHUNK", 200)
    assert _kept(InducingPointGP, SMOOTH[1], inducing=GRID).elbo_ == pytest.approx(whole, abs=1e-9)


def test_finer_grids_close_in_from_below() -> None:
    """Figure 5 of the paper in small: nested grids, hyperparameters known."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    kernel = Matern32(0, variance=1.0, lengthscale=0.2) * Matern32(1, variance=1.0, lengthscale=0.2)
    y = np.sin(7.0 * X[:, 0]) * np.cos(5.0 * X[:, 1]) + np.sqrt(0.1) * rng.standard_normal(300)
    given = {"noise_variance": 0.1, "optimizer": None, "normalize_y": False}
    exact = ExactGP(kernel, **given).fit(X, y).elbo_
    grids = [regular_grid(m, [(0.0, 1.0)] * 2) for m in (3, 5, 9, 17, 33)]
    gaps = [exact - InducingPointGP(kernel, inducing=Z, **given).fit(X, y).elbo_ for Z in grids]
    assert np.all(np.diff(gaps) < 0.0)
    assert 0.0 < gaps[-1] < 0.1 * gaps[2]


def test_learning_products() -> None:
    kernel: Any = Matern32("a") * Matern32("b") + Matern12("a")
    exact = ExactGP(kernel).fit(FRAME, Y)
    terms = normal_form(exact.kernel_)
    learnt = [*(term.variance for term in terms), *(f.lengthscale for term in terms for f in term.factors)]
    assert all(value is not None for value in learnt)
    again = ExactGP(exact.kernel_, noise_variance=exact.noise_variance_).fit(FRAME, Y)
    assert again.elbo_ == pytest.approx(exact.elbo_, abs=1e-3)
    assert exact.elbo_ > _kept(ExactGP, SMOOTH[1]).elbo_
    held = InducingPointGP(kernel, inducing=3).fit(FRAME, Y)
    moved = InducingPointGP(kernel, inducing=3, optimise_inducing=True).fit(FRAME, Y)
    assert held.elbo_ < moved.elbo_ < exact.elbo_
    assert moved.inducing_.shape == (9, 2)


def test_learning_levels() -> None:
    flat = ExactGP(Matern32("a") * Matern32("b")).fit(FRAME, Y)
    model = ExactGP(Matern32("a") * Matern32("b") + Categorical("g")).fit(FRAME, Y)
    assert model.elbo_ > flat.elbo_ - 1e-6
    assert normal_form(model.kernel_)[1].variance > 0.0  # pyright: ignore[reportOptionalOperand]


def test_rounding_is_met_with_jitter() -> None:
    covariance, (T, y) = COVARIANCES[0], _rows()
    values = Values(np.array([1.0]), np.array([50.0, 50.0]), 1e-30)
    evidence = Evidence(covariance, values, np.concatenate([T, T]), np.concatenate([y, y]))
    assert 0.0 < evidence.factor.jitter < 1e-9
    assert Evidence(covariance, replace(values, noise=0.1), T, y).factor.jitter == 0.0


def test_regular_grid() -> None:
    assert regular_grid(2, [(0.0, 1.0), (5.0, 7.0)]).tolist() == [[0.0, 5.0], [0.0, 7.0], [1.0, 5.0], [1.0, 7.0]]
    assert regular_grid(1, [(0.0, 1.0)]).tolist() == [[0.5]]
    assert regular_grid(3, [(0.0, 1.0)] * 4).shape == (81, 4)
    counted = _kept(InducingPointGP, A * B, inducing=4)
    ends = [(FRAME[name].min(), FRAME[name].max()) for name in "ab"]
    np.testing.assert_allclose(counted.inducing_, regular_grid(4, ends), atol=1e-12)
    assert _kept(InducingPointGP, A * B, inducing=regular_grid(4, ends)).elbo_ == pytest.approx(counted.elbo_, abs=1e-9)


@pytest.mark.parametrize(
    ("inducing", "sentence"),
    [
        (np.zeros((3, 3)), r"locations in the units of the 2 modelled column\(s\), \(P, 2\)"),
        (np.zeros(3), r"locations in the units of the 2 modelled column\(s\), \(P, 2\)"),
        (150, r"150 values in each of 2 column\(s\) make 22500 inducing points"),
        ([[1.0, np.nan]], "inducing"),
    ],
)
def test_refusals(inducing: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        InducingPointGP(A * B, inducing=inducing).fit(FRAME, Y)
