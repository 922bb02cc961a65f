"""The exact process on several columns: evidence, gradient and predictions against their definitions, with loops."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone

from vff import Matern12, Matern32, Matern52
from vff.baselines import ExactGP, SquaredExponential
from vff.baselines.covariances import AbstractCovariance, Column, Radial, SumOfProducts, Values, look, staircase
from vff.baselines.exact import Evidence
from vff.factors.interval.factor import MaternFactor

ROUGH, ONCE, TWICE, SMOOTHEST = MaternFactor(0), MaternFactor(1), MaternFactor(2), MaternFactor(4)
N, NOISE = 50, 0.4
RNG = np.random.default_rng(11)
FRAME = pd.DataFrame({"a": RNG.uniform(0.0, 10.0, N), "b": RNG.integers(1, 8, N), "c": RNG.uniform(-1.0, 1.0, N)})
Y = 20.0 + 3.0 * np.sin(FRAME["a"]) + 0.3 * FRAME["b"].to_numpy() + 0.5 * RNG.standard_normal(N)
NEW = FRAME.iloc[:5] + pd.DataFrame({"a": [0.1] * 5, "b": [0.0] * 5, "c": [0.2] * 5})
A, B = Matern32("a", variance=4.0, lengthscale=2.0), Matern52("b", variance=1.5, lengthscale=3.0)
C = Matern12("c", variance=0.3, lengthscale=0.7)
SE = SquaredExponential(5.0, (2.0, 4.0, 1.5))
KERNELS: list[Any] = [A + B, C + A + B, A + Matern12("a", variance=0.5, lengthscale=0.4), SE]
COVARIANCES: list[AbstractCovariance] = [
    SumOfProducts(((Column(0, ONCE, "a"),), (Column(1, TWICE, "b"),))),
    SumOfProducts(
        (
            (Column(2, ROUGH, "c"),),
            (Column(0, ONCE, "a"),),
            (Column(1, TWICE, "b"),),
            (Column(0, SMOOTHEST, "d"),),
        )
    ),
    Radial(("a", "b", "c")),
    Radial(("a",)),
]


def _k(kernel: Any, x: pd.Series, z: pd.Series) -> float:
    """The kernel at two rows, from its formula in the literature."""
    if isinstance(kernel, SquaredExponential):
        assert isinstance(kernel.lengthscales, tuple)
        scaled = [(x[name] - z[name]) / ell for name, ell in zip("abc", kernel.lengthscales, strict=True)]
        return kernel.variance * np.exp(-0.5 * sum(d**2 for d in scaled))  # pyright: ignore[reportOptionalOperand]
    total = 0.0
    for term in kernel.terms:
        s = np.sqrt(2 * term.order + 1) * abs(x[term.column] - z[term.column]) / term.lengthscale
        polynomial = {0: 1.0, 1: 1.0 + s, 2: 1.0 + s + s**2 / 3.0}[term.order]
        total += term.variance * polynomial * np.exp(-s)
    return total


def _dense(kernel: Any, left: pd.DataFrame, right: pd.DataFrame) -> np.ndarray:
    return np.array([[_k(kernel, x, z) for _, z in right.iterrows()] for _, x in left.iterrows()])


def _kept(kernel: Any, **options: Any) -> ExactGP:
    return ExactGP(kernel, noise_variance=NOISE, optimizer=None, **options).fit(FRAME, Y)


@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_evidence_and_posterior_are_their_definitions(kernel: Any, normalize_y: bool) -> None:
    model = _kept(kernel, normalize_y=normalize_y)
    offset = Y.mean() if normalize_y else 0.0
    V = (10.0 * model.target_.scale) ** 2 if normalize_y else 0.0  # of the constant, which every row shares
    C = _dense(kernel, FRAME, FRAME) + V + NOISE * np.eye(N)
    expected = multivariate_normal.logpdf(Y - offset, np.zeros(N), C)
    assert model.log_marginal_likelihood_ == model.elbo_ == pytest.approx(float(expected), abs=1e-7)
    cross = _dense(kernel, NEW, FRAME) + V
    mean = offset + cross @ np.linalg.solve(C, Y - offset)
    covariance = _dense(kernel, NEW, NEW) + V - cross @ np.linalg.solve(C, cross.T)
    for got, variance in (model.predict_f(NEW), model.predict_f(NEW, full_covariance=True)):
        np.testing.assert_allclose(got, mean, rtol=1e-8)
        np.testing.assert_allclose(variance, covariance if variance.ndim == 2 else np.diagonal(covariance), atol=1e-8)
    _, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(std, np.sqrt(np.diagonal(covariance) + NOISE), rtol=1e-6)
    assert repr(model.kernel_) == repr(kernel)
    assert model.noise_variance_ == pytest.approx(NOISE)


@pytest.mark.parametrize("kernel", [KERNELS[0], SE], ids=repr)
def test_draws_have_the_joint_distribution(kernel: Any) -> None:
    model, twice = _kept(kernel), pd.concat([NEW, NEW.iloc[:1]])
    mean, covariance = model.predict_f(twice, full_covariance=True)
    draws = model.sample_f(twice, n_samples=20_000, random_state=0)
    np.testing.assert_array_equal(draws[0], draws[5])
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 5.0 * np.sqrt(np.diagonal(covariance) / 20_000))
    np.testing.assert_allclose(np.cov(draws), covariance, atol=0.05 * covariance.max())


def _evidence(covariance: AbstractCovariance, theta: np.ndarray) -> Evidence:
    rng = np.random.default_rng(2)
    T = rng.uniform(-1.0, 1.0, (40, 3 if len(covariance.lengthscales) > 1 else 1))
    return Evidence(covariance, covariance.values(theta), T, np.sin(4.0 * T[:, 0]) + rng.standard_normal(40))


@pytest.mark.parametrize("block", [1, 130, 10**6])
@pytest.mark.parametrize("covariance", COVARIANCES, ids=repr)
def test_gradient(covariance: AbstractCovariance, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vff.baselines.covariances._BLOCK", block)
    theta = np.log(np.random.default_rng(0).uniform(0.3, 1.5, len(covariance.layout.names)))
    differences = [
        (_evidence(covariance, theta + step).value - _evidence(covariance, theta - step).value) / 2e-5
        for step in 1e-5 * np.eye(theta.size)
    ]
    np.testing.assert_allclose(_evidence(covariance, theta).gradient(), differences, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_staircase_covers_the_upper_half_once(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vff.baselines.covariances._BLOCK", 1000)
    counts = np.zeros((n, n), int)
    for rows, columns in staircase(n):
        counts[rows, columns] += 1
    assert np.array_equal(np.triu(counts), np.triu(np.ones((n, n), int)))


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_learning_finds_a_stationary_point(kernel: Any) -> None:
    model = ExactGP(kernel).fit(FRAME, Y)
    assert type(model.kernel_).__name__ == ("SquaredExponential" if kernel else "Sum")
    again = ExactGP(model.kernel_, noise_variance=model.noise_variance_).fit(FRAME, Y)
    kept = ExactGP(model.kernel_, noise_variance=model.noise_variance_, optimizer=None).fit(FRAME, Y)
    assert kept.elbo_ == pytest.approx(model.elbo_, abs=1e-8)
    assert again.elbo_ == pytest.approx(model.elbo_, abs=1e-3)
    assert model.elbo_ > max(_kept(other).elbo_ for other in KERNELS[:2]) - 1.0


def test_no_kernel_is_a_sum_over_all_columns() -> None:
    default = ExactGP().fit(FRAME, Y)
    written = ExactGP(Matern32("a") + Matern32("b") + Matern32("c")).fit(FRAME, Y)
    assert repr(default.kernel_) == repr(written.kernel_)
    by_index = ExactGP().fit(FRAME.to_numpy(), Y)
    assert by_index.elbo_ == default.elbo_
    assert default.column_indices_ == (0, 1, 2)
    assert ExactGP(C + A).fit(FRAME, Y).column_indices_ == (2, 0)


def test_units_do_not_matter() -> None:
    for kernel in (None, "rbf"):
        one = ExactGP(kernel).fit(FRAME, Y)
        other = ExactGP(kernel).fit(100.0 * FRAME - 7.0, 1e4 * Y + 3e5)
        assert other.elbo_ == pytest.approx(one.elbo_ - N * np.log(1e4), abs=1e-2)
        np.testing.assert_allclose(other.predict(100.0 * FRAME - 7.0), 1e4 * one.predict(FRAME) + 3e5, rtol=1e-3)


def test_learning_on_a_subset_predicts_with_all_rows() -> None:
    model = ExactGP(learn_rows=25, random_state=3).fit(FRAME, Y)
    kept = ExactGP(model.kernel_, noise_variance=model.noise_variance_, optimizer=None).fit(FRAME, Y)
    assert model.elbo_ == pytest.approx(kept.elbo_, abs=1e-8)
    np.testing.assert_allclose(model.predict(NEW), kept.predict(NEW), rtol=1e-9)
    assert ExactGP(learn_rows=N).fit(FRAME, Y).elbo_ == ExactGP().fit(FRAME, Y).elbo_


@pytest.mark.parametrize("kernel", [A + B, "rbf", SE])
def test_contract(kernel: Any) -> None:
    model = ExactGP(kernel, learn_rows=30, random_state=0).fit(FRAME, Y)
    mean = model.predict(NEW)
    copy: Any = clone(model)
    for twin in (copy.fit(FRAME, Y), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.predict(NEW), mean)
    assert model.log_predictive_density(FRAME, Y).shape == (N,)
    assert model.score(FRAME, Y) > 0.5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kernel": "matern"}, "None or 'rbf'; got 'matern'"),
        ({"kernel": A + Matern32("d")}, "names column 'd', which X does not have"),
        ({"kernel": SquaredExponential(1.0, (1.0, 2.0))}, "has 2 lengthscales and X has 3 columns"),
        ({"learn_rows": 1}, "learn_rows must be None or an integer of 2 or more"),
        ({"learn_rows": True}, "learn_rows must be None or an integer of 2 or more"),
        ({"learn_rows": 2.5}, "learn_rows must be None or an integer of 2 or more"),
    ],
)
def test_refusals(options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        ExactGP(**options).fit(FRAME, Y)


def test_a_constant_column_is_named() -> None:
    with pytest.raises(ValueError, match="column 'b' of X is constant"):
        ExactGP().fit(FRAME.assign(b=1.0), Y)


def test_the_squared_exponential_as_a_record() -> None:
    np.testing.assert_allclose(SE(FRAME.to_numpy(), NEW.to_numpy()), _dense(SE, FRAME, NEW), rtol=1e-12)
    assert repr(SE) == "SquaredExponential(variance=5, lengthscales=(2, 4, 1.5))"
    assert repr(SquaredExponential()) == "SquaredExponential()"
    np.testing.assert_array_equal(SquaredExponential(lengthscales=2.0).for_columns(3), [2.0, 2.0, 2.0])
    with pytest.raises(ValueError, match="has no values yet"):
        SquaredExponential()(FRAME.to_numpy(), NEW.to_numpy())
    for wrong in ({"variance": -1.0}, {"lengthscales": 0.0}, {"lengthscales": (1.0, np.nan)}, {"variance": "one"}):
        with pytest.raises(ValueError, match="must be positive numbers"):
            SquaredExponential(**wrong)  # pyright: ignore[reportArgumentType]


def test_what_was_given_is_where_learning_starts() -> None:
    nan = np.nan
    given = Values(np.array([nan, 2.0]), np.array([0.5, nan]), nan)
    tried: list[Values] = []

    def score(values: Values, rescaled: bool) -> tuple[float, float]:
        tried.append(values)
        assert not rescaled
        return 1.0, -abs(values.lengthscales[1] - 0.2) - abs(values.noise - 0.4)

    values = look(score, given, None)
    np.testing.assert_array_equal(values.variances, [2.0, 2.0])
    np.testing.assert_array_equal(values.lengthscales, [0.5, 0.2])
    assert values.noise == 0.4  # a tenth of all variances
    assert len(tried) == 15
    assert look(score, given, 2.0).lengthscales.tolist() == [0.5, 2.0]
