"""Evidence, bound, gradients and spectral draws against their definitions."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest
from scipy.stats import t as student

from vff.baselines.covariances import Column, SumOfProducts, Values, look
from vff.baselines.exact import Evidence
from vff.baselines.features import FeatureModel, Frequencies, InducingPoints, chunks
from vff.factors.interval.factor import MaternFactor
from vff.kernels import HalfInteger

NAMES = ("variance", "lengthscale", "noise")
VALUES = {"variance": 1.4, "lengthscale": 0.45, "noise": 0.12}


def _rows(N: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    t = rng.uniform(-1.0, 1.0, N)
    return t, np.sin(4.0 * t) + 0.3 * rng.standard_normal(N)


def _exact(values: Mapping[str, float], p: int, t: np.ndarray, y: np.ndarray) -> Evidence:
    """The exact process on one column."""
    return Evidence(_matern(p), _values(values), t[:, None], y)


def _matern(p: int) -> SumOfProducts:
    return SumOfProducts(((Column(0, MaternFactor(p), "x"),),))


def _values(values: Mapping[str, float]) -> Values:
    return Values(np.array([values["variance"]]), np.array([values["lengthscale"]]), values["noise"])


def _model(kind: type, p: int, free: bool = True) -> FeatureModel:
    if kind is InducingPoints:
        coordinates = (np.linspace(-1.1, 1.0, 7) + 0.01 * np.arange(7) ** 2)[:, None]
    else:
        coordinates = np.log([0.2, 0.7, 1.1, 1.9, 3.0, 5.5])
    t, y = _rows()
    return FeatureModel(kind, _matern(p), t[:, None], y, coordinates, free)


def _packed(values: Mapping[str, float]) -> np.ndarray:
    return np.log([values[name] for name in NAMES])


def _theta(model: FeatureModel) -> np.ndarray:
    return np.concatenate([_packed(VALUES), model.coordinates.ravel()]) if model.free else _packed(VALUES)


def _log_normal(y: np.ndarray, C: np.ndarray) -> float:
    _, logdet = np.linalg.slogdet(C)
    return float(-0.5 * (y @ np.linalg.solve(C, y) + logdet + y.size * np.log(2.0 * np.pi)))


def _differences(function, theta: np.ndarray) -> np.ndarray:
    steps = 1e-5 * np.eye(theta.size)
    return np.array([(function(theta + step) - function(theta - step)) / 2e-5 for step in steps])


@pytest.mark.parametrize("p", [0, 1, 2, 4])
def test_exact_gradient(p: int) -> None:
    t, y = _rows()
    theta = _packed(VALUES)

    def value(at: np.ndarray) -> float:
        return _exact(dict(zip(NAMES, np.exp(at), strict=True)), p, t, y).value

    gradient = _exact(VALUES, p, t, y).gradient()
    np.testing.assert_allclose(gradient, _differences(value, theta), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("p", [0, 1, 2])
@pytest.mark.parametrize("kind", [InducingPoints, Frequencies])
@pytest.mark.parametrize("free", [True, False])
def test_feature_gradient(kind: type, p: int, free: bool) -> None:
    model = _model(kind, p, free)
    theta = _theta(model)
    gradient = model.pull_back(theta, model.at(theta).cotangents)
    assert gradient.shape == theta.shape
    np.testing.assert_allclose(gradient, _differences(lambda at: model.at(at).elbo, theta), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [InducingPoints, Frequencies])
def test_chunks_do_not_matter(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model(kind, 1)
    theta = _theta(model)
    whole = model.at(theta)
    gradient = model.pull_back(theta, whole.cotangents)
    monkeypatch.setattr("vff.baselines.features._CHUNK", 100)
    assert len(list(chunks(40, 12))) == 5
    np.testing.assert_allclose(model.at(theta).elbo, whole.elbo, rtol=1e-12)
    np.testing.assert_allclose(model.pull_back(theta, whole.cotangents), gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("p", [0, 1, 2])
def test_collapsed_bound_is_its_definition(p: int) -> None:
    model = _model(InducingPoints, p)
    t, y, z, v, noise = model.T[:, 0], model.y, model.coordinates[:, 0], VALUES["variance"], VALUES["noise"]
    unit = HalfInteger.from_lengthscale(p, VALUES["lengthscale"])
    K, C = (v * unit.covariance(np.subtract.outer(z, other)) for other in (z, t))
    Q = C.T @ np.linalg.solve(K, C)
    naive = _log_normal(y, Q + noise * np.eye(y.size)) - 0.5 / noise * (v * y.size - np.trace(Q))
    evidence = _exact(VALUES, p, t, y)
    assert model.at(_theta(model)).elbo == pytest.approx(naive, abs=1e-9)
    assert naive <= evidence.value
    at_rows = replace(model, coordinates=model.T, free=False)
    assert at_rows.at(_packed(VALUES)).elbo == pytest.approx(evidence.value, abs=1e-6)


@pytest.mark.parametrize("p", [0, 1, 2])
def test_spectral_evidence_is_its_definition(p: int) -> None:
    model = _model(Frequencies, p)
    t, y = model.T[:, 0], model.y
    omega = np.exp(model.coordinates) / VALUES["lengthscale"]
    lag = np.subtract.outer(t, t)
    K = VALUES["variance"] * np.mean([np.cos(w * lag) for w in omega], axis=0)
    naive = _log_normal(y, K + VALUES["noise"] * np.eye(y.size))
    closed = model.at(_theta(model))
    assert closed.elbo == pytest.approx(naive, abs=1e-9)
    assert closed.residual == pytest.approx(0.0, abs=1e-11 * closed.prior_trace)


@pytest.mark.parametrize("p", [0, 1, 2])
def test_frequencies_follow_the_spectral_density(p: int) -> None:
    u = np.exp(MaternFactor(p).frequencies(4000, np.random.RandomState(0)))
    assert kstest(u, lambda q: 2.0 * student.cdf(q, 2 * p + 1) - 1.0).pvalue > 1e-3
    unit, omega = HalfInteger.from_lengthscale(p, 1.0), np.linspace(0.0, 4.0, 9)
    np.testing.assert_allclose(unit.spectral_density(omega) / (2.0 * np.pi), student.pdf(omega, 2 * p + 1), rtol=1e-12)


def test_nearly_singular_points_stay_a_bound() -> None:
    """Whitening survives points so dense that k(z, z) is singular to rounding."""
    t, y = _rows()
    values = VALUES | {"lengthscale": 3.0}
    model = FeatureModel(InducingPoints, _matern(4), t[:, None], y, np.linspace(-1.0, 1.0, 60)[:, None])
    theta = _packed(values)
    assert model.at(theta).elbo == pytest.approx(_exact(values, 4, t, y).value, abs=1e-4)
    gradient = model.pull_back(theta, model.at(theta).cotangents)
    np.testing.assert_allclose(gradient, _exact(values, 4, t, y).gradient(), atol=1e-2)


def test_room_docstring_example() -> None:
    one = Values(np.ones(1), np.ones(1), 1.0)
    features = InducingPoints(_matern(0), one, np.array([[0.0], [1.0]]))
    first, middle = features.evaluate(np.array([[0.0], [0.5]]))
    np.testing.assert_allclose(first, [1.0, 0.0], atol=1e-15)
    assert middle @ middle == pytest.approx(2.0 / (np.e + 1.0))


def test_rescaled_evidence_is_the_best_over_a_common_factor() -> None:
    t, y = _rows()
    s, best = _exact(VALUES, 1, t, y).rescaled()

    def at(factor: float) -> float:
        scaled = VALUES | {name: factor * VALUES[name] for name in ("variance", "noise")}
        return _exact(scaled, 1, t, y).value

    assert at(s) == pytest.approx(best)
    assert best > max(at(0.99 * s), at(1.01 * s))


def test_a_constant_is_not_rescaled_and_takes_one_row() -> None:
    t, y = _rows(6)

    def at(factor: float, intercept: float = 1e6) -> Evidence:
        scaled = VALUES | {name: factor * VALUES[name] for name in ("variance", "noise")}
        return Evidence(_matern(1), _values(scaled), t[:, None], y, intercept)

    s, best = at(1.0).rescaled()
    assert at(1.0).of_intercept == pytest.approx(1.0, abs=1e-5)
    assert at(s).value == pytest.approx(best, abs=1e-5)
    assert best > max(at(0.97 * s).value, at(1.03 * s).value)
    weak = at(1.0, 0.3)
    conditional = 0.3 - 0.3**2 * np.ones(6) @ np.linalg.solve(weak.factor.lower @ weak.factor.lower.T, np.ones(6))
    assert weak.of_intercept == pytest.approx(1.0 - conditional / 0.3)


@pytest.mark.parametrize("known", [(), ("variance",), ("noise",), ("lengthscale",), ("variance", "noise")])
def test_start_keeps_what_was_given(known: tuple[str, ...]) -> None:
    given = _values({name: VALUES[name] if name in known else np.nan for name in NAMES})
    found = look(lambda values, rescaled: (2.0 if rescaled else 1.0, -values.lengthscales[0]), given, None)
    assert np.isfinite(found.theta).all()
    positions = [NAMES.index(name) for name in known]
    np.testing.assert_array_equal(found.theta[positions], _packed(VALUES)[positions])
