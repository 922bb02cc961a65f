"""The four estimators in the user's units: evidence, predictions, contract, refusals."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import block_diag
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import vff
from vff import Matern12, Matern32, Matern52
from vff.baselines import ExactGP, InducingPointGP, RandomFourierGP, SparseSpectrumGP
from vff.kernels import Categorical

NOISE = 2.5
KERNELS = [
    Matern12(0, variance=30.0, lengthscale=2.0),
    Matern32(0, variance=30.0, lengthscale=1.5),
    Matern52(0, variance=30.0, lengthscale=1.2),
]
RNG = np.random.default_rng(3)
X = RNG.uniform(5.0, 12.0, (60, 1))
Y = 40.0 + 6.0 * np.sin(2.0 * X[:, 0]) + 1.5 * RNG.standard_normal(60)
NEW = np.array([4.0, 5.5, 8.123, 8.123, 11.9, 14.0])[:, None]
MAKERS = [
    ExactGP,
    lambda **options: InducingPointGP(inducing=12, **options),
    lambda **options: InducingPointGP(inducing=8, optimise_inducing=True, **options),
    lambda **options: RandomFourierGP(n_frequencies=40, random_state=0, **options),
    lambda **options: SparseSpectrumGP(n_frequencies=6, random_state=0, **options),
]


def _kept(maker: Any, kernel: Any, **options: Any) -> Any:
    return maker(kernel=kernel, noise_variance=NOISE, optimizer=None, **options).fit(X, Y)


def _log_normal(y: np.ndarray, covariance: Any) -> float:
    return float(multivariate_normal.logpdf(y, np.zeros(y.size), covariance))


def _of_constant(model: Any) -> float:
    """Prior variance of the constant: ten standard deviations of y."""
    return (10.0 * model.target_.scale) ** 2 if model.normalize_y else 0.0


def _with_constant(kernel: Any, model: Any):
    return lambda x, z: kernel(x, z) + _of_constant(model)


def _spectral_kernel(model: Any):
    def k(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        lag = np.subtract.outer(x, z)
        return model.kernel_.variance * np.mean([np.cos(w * lag) for w in model.frequencies_], axis=0)

    return k


def _condition(k: Any, x: np.ndarray, new: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    C = k(x, x) + NOISE * np.eye(x.size)
    cross = k(new, x)
    return cross @ np.linalg.solve(C, y), k(new, new) - cross @ np.linalg.solve(C, cross.T)


def _agrees(model: Any, mean: np.ndarray, covariance: np.ndarray) -> None:
    variance = np.diagonal(covariance)
    got_mean, got_variance = model.predict_f(NEW)
    np.testing.assert_allclose(got_mean, mean, rtol=1e-8)
    np.testing.assert_allclose(got_variance, variance, rtol=1e-6)
    joint_mean, joint = model.predict_f(NEW, full_covariance=True)
    np.testing.assert_allclose(joint_mean, mean, rtol=1e-8)
    np.testing.assert_allclose(joint, covariance, atol=1e-6)
    predicted, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(predicted, mean, rtol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(variance + NOISE), rtol=1e-6)


@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_exact(kernel: Any, normalize_y: bool) -> None:
    model = _kept(ExactGP, kernel, normalize_y=normalize_y)
    offset = Y.mean() if normalize_y else 0.0
    k, x = _with_constant(kernel, model), X[:, 0]
    assert model.elbo_ == model.log_marginal_likelihood_
    assert model.elbo_ == pytest.approx(_log_normal(Y - offset, k(x, x) + NOISE * np.eye(60)), abs=1e-7)
    mean, covariance = _condition(k, x, NEW[:, 0], Y - offset)
    _agrees(model, offset + mean, covariance)
    assert model.kernel_.variance == pytest.approx(kernel.variance)
    assert model.kernel_.lengthscale == pytest.approx(kernel.lengthscale)


@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inducing(kernel: Any, normalize_y: bool) -> None:
    z = np.array([5.0, 6.1, 7.0, 8.5, 9.0, 10.2, 11.7])
    model = _kept(InducingPointGP, kernel, normalize_y=normalize_y, inducing=z)
    offset = Y.mean() if normalize_y else 0.0
    x, y = X[:, 0], Y - offset
    np.testing.assert_allclose(model.inducing_, z)
    V = _of_constant(model)
    K, C, new = kernel(z, z), kernel(z, x), kernel(z, NEW[:, 0])
    if normalize_y:  # the constant is one more inducing variable
        K = block_diag(K, V)
        C, new = (np.vstack([rows, np.full(rows.shape[1], V)]) for rows in (C, new))
    Q = C.T @ np.linalg.solve(K, C)
    bound = _log_normal(y, Q + NOISE * np.eye(60)) - 0.5 / NOISE * (60 * (kernel.variance + V) - np.trace(Q))
    assert model.elbo_ == pytest.approx(bound, abs=1e-7)
    # Titsias (2009), eq. 6, written with K and A = K + C C' / noise
    A = K + C @ C.T / NOISE
    mean = new.T @ np.linalg.solve(A, C @ y) / NOISE
    prior = kernel(NEW[:, 0], NEW[:, 0]) + V
    _agrees(model, offset + mean, prior - new.T @ (np.linalg.inv(K) - np.linalg.inv(A)) @ new)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_bound_is_ordered(kernel: Any) -> None:
    exact = _kept(ExactGP, kernel).elbo_
    few, more = (_kept(InducingPointGP, kernel, inducing=n).elbo_ for n in (9, 17))
    assert few <= more <= exact
    assert _kept(InducingPointGP, kernel, inducing=X[:, 0]).elbo_ == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("maker", [RandomFourierGP, SparseSpectrumGP])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_spectral(maker: Any, kernel: Any) -> None:
    model = _kept(maker, kernel, n_frequencies=9, random_state=4)
    k, x, offset = _with_constant(_spectral_kernel(model), model), X[:, 0], Y.mean()
    assert model.frequencies_.shape == (9,)
    assert model.elbo_ == pytest.approx(_log_normal(Y - offset, k(x, x) + NOISE * np.eye(60)), abs=1e-7)
    mean, covariance = _condition(k, x, NEW[:, 0], Y - offset)
    _agrees(model, offset + mean, covariance)


def test_many_frequencies_approach_the_kernel() -> None:
    exact = _kept(ExactGP, KERNELS[1]).predict(X)
    models = [_kept(RandomFourierGP, KERNELS[1], n_frequencies=F, random_state=0) for F in (10, 400)]
    few, many = (np.sqrt(np.mean((model.predict(X) - exact) ** 2)) for model in models)
    assert many < 0.5 * few
    lag = np.linspace(0.0, 7.0, 30)
    error = _spectral_kernel(models[1])(lag, np.zeros(1)) - KERNELS[1](lag, np.zeros(1))
    # each entry averages 400 cosines, whose standard deviation is at most one
    assert np.max(np.abs(error)) < 5.0 * 30.0 / np.sqrt(400)


def test_exact_learns_a_stationary_point() -> None:
    model: Any = ExactGP().fit(X, Y)
    log = np.log([model.kernel_.variance, model.kernel_.lengthscale, model.noise_variance_])

    def evidence(at: np.ndarray) -> float:
        v, ell, noise = np.exp(at)
        kernel = Matern32(0, variance=v, lengthscale=ell)
        return ExactGP(kernel, noise_variance=noise, optimizer=None).fit(X, Y).elbo_

    assert evidence(log) == pytest.approx(model.elbo_, abs=1e-8)
    for step in 0.02 * np.eye(3):
        assert max(evidence(log + step), evidence(log - step)) < model.elbo_
    dense = InducingPointGP(inducing=60).fit(X, Y)
    assert dense.elbo_ == pytest.approx(model.elbo_, abs=0.1)
    assert vff.GPRegressor().fit(X, Y).elbo_ <= model.elbo_ + 1e-3


def test_learning_the_places_does_not_lower_the_bound() -> None:
    held = InducingPointGP(inducing=6).fit(X, Y)
    moved = InducingPointGP(inducing=6, optimise_inducing=True).fit(X, Y)
    assert moved.elbo_ > held.elbo_
    assert not np.allclose(moved.inducing_, held.inducing_)
    drawn = RandomFourierGP(n_frequencies=6, random_state=0).fit(X, Y)
    learnt = SparseSpectrumGP(n_frequencies=6, random_state=0).fit(X, Y)
    assert learnt.elbo_ > drawn.elbo_


@pytest.mark.parametrize("maker", MAKERS)
def test_units_of_x_and_y_do_not_matter(maker: Any) -> None:
    one = maker().fit(X, Y)
    other = maker().fit(100.0 * X - 7.0, 1e4 * Y + 3e5)
    assert other.elbo_ == pytest.approx(one.elbo_ - 60 * np.log(1e4), abs=1e-2)
    np.testing.assert_allclose(other.predict(100.0 * X - 7.0), 1e4 * one.predict(X) + 3e5, rtol=1e-3)


def test_uncentred_targets_of_any_size_are_learnt() -> None:
    one, other = (ExactGP(normalize_y=False).fit(X, scale * Y) for scale in (1.0, 1e6))
    assert other.elbo_ == pytest.approx(one.elbo_ - 60 * np.log(1e6), abs=1e-2)


@pytest.mark.parametrize("maker", MAKERS)
def test_contract(maker: Any) -> None:
    frame = pd.DataFrame({"x": X[:, 0]})
    model = maker(kernel=Matern32("x"), verbose=0)
    before = model.get_params()
    assert model.fit(frame, Y) is model
    assert all(model.get_params()[name] is before[name] for name in before)
    assert model.n_features_in_ == 1
    assert list(model.feature_names_in_) == ["x"]
    new = pd.DataFrame({"x": NEW[:, 0]})
    mean, std = model.predict(new, return_std=True)
    copy: Any = clone(model)
    for twin in (copy.fit(frame, Y), pickle.loads(pickle.dumps(model))):
        again = twin.predict(new, return_std=True)
        np.testing.assert_array_equal(again[0], mean)
        np.testing.assert_array_equal(again[1], std)
    assert isinstance(model.elbo_, float)
    density = model.log_predictive_density(frame, Y)
    assert density.shape == (60,)
    assert model.score(frame, Y) > 0.7


@pytest.mark.parametrize("maker", MAKERS)
def test_samples_have_the_joint_distribution(maker: Any) -> None:
    model = _kept(maker, KERNELS[1])
    mean, covariance = model.predict_f(NEW, full_covariance=True)
    draws = model.sample_f(NEW, n_samples=20_000, random_state=0)
    assert draws.shape == (6, 20_000)
    spread = np.sqrt(np.diagonal(covariance))
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 5.0 * spread / np.sqrt(20_000))
    np.testing.assert_allclose(np.cov(draws), covariance, atol=0.05 * covariance.max())
    np.testing.assert_array_equal(draws[2], draws[3])
    observed = model.sample_y(NEW, n_samples=20_000, random_state=0)
    np.testing.assert_allclose(observed.var(axis=1), np.diagonal(covariance) + NOISE, rtol=0.06)


@pytest.mark.parametrize("maker", MAKERS[1:])
def test_no_kernel_is_for_one_column(maker: Any) -> None:
    with pytest.raises(ValueError, match="X has 2 columns and kernel=None is a Matern32 over the only one"):
        maker().fit(np.column_stack([X, X]), Y)


@pytest.mark.parametrize("maker", MAKERS[3:])
@pytest.mark.parametrize(
    ("X_", "options", "sentence"),
    [
        (X, {"kernel": Matern32(0) + Matern12(0)}, "use GPRegressor or ExactGP"),
        (X, {"kernel": Matern32(0) * Matern12(1)}, "use GPRegressor or ExactGP"),
    ],
)
def test_one_column_only(maker: Any, X_: np.ndarray, options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        maker(**options).fit(X_, Y)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("shape", [(6,), (6, 1)])
def test_posteriors_take_a_column_in_either_shape(maker: Any, shape: tuple[int, ...]) -> None:
    model = _kept(maker, KERNELS[1])
    assert (model.column_index_, model.column_indices_) == (0, (0,))
    posterior, x = model.posterior_, NEW[:, 0].reshape(shape)
    assert not posterior.outside(x).any()
    mean, variance = posterior.marginals(x)
    joint_mean, covariance = posterior.joint(x)
    np.testing.assert_allclose(mean, posterior.marginals(NEW[:, 0])[0], rtol=1e-12)
    np.testing.assert_allclose(posterior.mean_at(x), mean, rtol=1e-9)
    np.testing.assert_allclose(joint_mean, mean, rtol=1e-9)
    np.testing.assert_allclose(np.diagonal(covariance), variance, rtol=1e-6)
    draws = [posterior.sample(at, 2, np.random.default_rng(0)) for at in (x, NEW[:, 0])]
    np.testing.assert_allclose(*draws, rtol=1e-9)


@pytest.mark.parametrize("maker", MAKERS[1:])
def test_levels_are_for_the_exact_process(maker: Any) -> None:
    with pytest.raises(ValueError, match="this baseline knows Matérns of numbers only"):
        maker(kernel=Matern32(0) * Categorical(1)).fit(X, Y)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(
    ("X_", "y_", "options", "sentence"),
    [
        (X, Y, {"kernel": Matern32(3)}, "asks for column 3"),
        (X, Y, {"optimizer": "adam"}, "optimizer must be one of 'lbfgs', None"),
        (X, Y, {"noise_variance": -1.0}, "noise_variance must be None or a positive number"),
        (X, Y[:-1], {}, "y has 59 values and X has 60 rows"),
        (np.ones((60, 1)), Y, {}, "is constant"),
        (X[:1], Y[:1], {}, "a minimum of 2 is required"),
        (np.where(X[4] == X, np.nan, X), Y, {}, "contains NaN"),
    ],
)
def test_refusals(maker: Any, X_: np.ndarray, y_: np.ndarray, options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        maker(**options).fit(X_, y_)


@pytest.mark.parametrize("inducing", [0, -3, True, 2.5, "grid", [], [[1.0, 2.0]]])
def test_inducing_must_be_places(inducing: Any) -> None:
    with pytest.raises(ValueError, match="inducing must be a positive integer or locations"):
        InducingPointGP(inducing=inducing).fit(X, Y)


@pytest.mark.parametrize("maker", [RandomFourierGP, SparseSpectrumGP])
@pytest.mark.parametrize("n", [0, 2.5, True])
def test_frequencies_must_be_counted(maker: Any, n: Any) -> None:
    with pytest.raises(ValueError, match="n_frequencies must be a positive integer"):
        maker(n_frequencies=n).fit(X, Y)


def test_exact_refuses_too_many_rows() -> None:
    x = np.linspace(0.0, 1.0, 20_001)
    with pytest.raises(ValueError, match=r"on 20001 rows needs 3 GiB .* at most 20000 rows"):
        ExactGP().fit(x[:, None], x)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", ["predict", "predict_f", "sample_f", "sample_y"])
def test_unfitted(maker: Any, name: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(maker(), name)(NEW)


@pytest.mark.parametrize("maker", MAKERS)
def test_constant_targets(maker: Any) -> None:
    model = maker().fit(X, np.full(60, 1e6 + 0.1))
    np.testing.assert_allclose(model.predict(X), 1e6 + 0.1)


def test_progress_is_said_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    InducingPointGP(inducing=4, optimise_inducing=True, verbose=1).fit(X, Y)
    assert "coordinates released: bound" in capsys.readouterr().err
    ExactGP().fit(X, Y)
    assert capsys.readouterr().err == ""


def test_public_names() -> None:
    import vff.baselines as room

    assert room.__all__ == sorted(room.__all__)
    assert all(hasattr(room, name) for name in room.__all__)
