"""Likelihoods that are defined here and nowhere else: they keep every law, and all of the house takes them by name."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tests.laws.test_likelihoods as laws
from scipy import special, stats
from tests.makers.likelihoods import MAKERS, Case

import vff
from vff import GPClassifier, GPRegressor
from vff.cli.entry import main
from vff.likelihoods import AbstractLikelihood, parameter, register, unregister


@dataclass(frozen=True)
class Logistic(AbstractLikelihood):
    """Noise with tails between those of Gaussian and StudentT."""

    standardised = True
    scale_name = "y"

    scale: float | None = parameter(power=1)

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        return (0.3,)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        import jax

        z = (y - f) * jax.numpy.exp(-psi[0])
        return -z - 2 * jax.nn.softplus(-z) - psi[0]

    def width(self, psi: np.ndarray) -> float:
        return float(np.exp(psi[0]))

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return np.asarray(f, dtype=float)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return np.full(np.shape(f), (np.pi * np.exp(self.psi[0])) ** 2 / 3)

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return special.expit((y - f) * np.exp(-self.psi[0]))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.logistic(f, np.exp(self.psi[0]))


@dataclass(frozen=True)
class Cauchit(AbstractLikelihood):
    """y = 1 with probability 1/2 + atan(f)/π: labels with outliers."""

    scale_name = "cauchit"
    discrete = True
    affine = True
    log_concave = False
    support = (0.0, 1.0)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        import jax.numpy as jnp

        return jnp.log(0.5 + jnp.arctan((2 * y - 1) * f) / np.pi)

    def width(self, psi: np.ndarray) -> float:
        return 1 / np.pi

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return stats.cauchy.cdf(f)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return stats.cauchy.cdf(f) * stats.cauchy.sf(f)

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return np.where(np.asarray(y) < 0, 0.0, np.where(np.asarray(y) < 1, stats.cauchy.sf(f), 1.0))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return (rng.uniform(size=np.shape(f)) < stats.cauchy.cdf(f)).astype(float)


OWN = {
    "Logistic": Case(
        "logistic",
        Logistic(0.4),
        lambda y, f, e: stats.logistic.logpdf(y, f, 0.4),
        Logistic(),
        (([0, np.nan], [1, 1], "A Logistic likelihood expects finite numbers, but y is nan at row 1"),),
    ),
    "Cauchit": Case(
        "cauchit",
        Cauchit(),
        lambda y, f, e: stats.bernoulli.logpmf(y, stats.cauchy.cdf(f)),
        refused=(([0, np.inf], [1, 1], "finite numbers"),),
    ),
}
globals().update({name: law for name, law in vars(laws).items() if name.startswith("test_")})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    laws.over(metafunc, list(OWN.values()))


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    for kind in (Logistic, Cauchit):
        register(kind, kind.__name__.lower())
        MAKERS[kind.__name__] = (OWN[kind.__name__],)
    yield
    for kind in (Logistic, Cauchit):
        unregister(kind)
        del MAKERS[kind.__name__]


RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, (300, 1))
Y = np.sin(X[:, 0]) + RNG.logistic(scale=0.2, size=300)
LABELS = np.where(RNG.uniform(size=300) < stats.cauchy.cdf(3 * np.sin(X[:, 0])), "yes", "no")


def test_a_regressor_takes_its_name_and_a_file_its_record(tmp_path: Path) -> None:
    model = GPRegressor(likelihood="logistic", frequencies=8).fit(X, Y)
    assert isinstance(model.likelihood_, Logistic)
    assert 0.1 < model.likelihood_.values["scale"] < 0.4
    low, high = model.predict_quantiles(X, (0.05, 0.95)).T
    assert 0.8 < np.mean((low < Y) & (high > Y)) < 0.98
    model.save(tmp_path / "model.vff")
    again = vff.load(tmp_path / "model.vff")
    assert again.likelihood_ == model.likelihood_
    for one, other in zip(again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(one, other)
    unregister(Logistic)
    try:
        with pytest.raises(ValueError, match="logistic"):
            GPRegressor(likelihood="logistic").fit(X, Y)
        with pytest.raises(ValueError, match="Logistic"):
            vff.load(tmp_path / "model.vff")
    finally:
        register(Logistic, "logistic")


def test_a_classifier_takes_its_name() -> None:
    model = GPClassifier(likelihood="cauchit", frequencies=8).fit(X, LABELS)
    assert isinstance(model.likelihood_, Cauchit)
    assert model.score(X, LABELS) > 0.7
    with pytest.raises(ValueError, match="'cauchit' or a Bernoulli object; got 'logistic'"):
        GPClassifier(likelihood="logistic").fit(X, LABELS)


def test_the_command_line_takes_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pd.DataFrame({"x": X[:, 0], "y": Y, "label": LABELS}).to_csv(tmp_path / "rows.csv", index=False)
    data, model = str(tmp_path / "rows.csv"), str(tmp_path / "model.vff")
    asked = ["--terms", "x", "--frequencies", "8", "--out", model]
    assert main(["fit", data, "--target", "y", "--likelihood", "logistic", *asked]) == 0
    assert "Logistic likelihood: scale" in capsys.readouterr().out
    assert main(["predict", model, data, "--out", str(tmp_path / "out.csv")]) == 0
    found = pd.read_csv(tmp_path / "out.csv")
    assert np.all(found.lower < found.upper)
    Path(model).unlink()
    assert main(["fit", data, "--target", "label", "--classify", "--likelihood", "cauchit", *asked]) == 0


def test_names_are_taken_once() -> None:
    with pytest.raises(ValueError, match="there is a likelihood called 'Logistic' already"):
        register(Logistic)
    with pytest.raises(TypeError, match="frozen dataclass"):
        register(type("Bare", (AbstractLikelihood,), {}))
