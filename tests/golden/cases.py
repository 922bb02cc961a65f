"""Small fits over kernels, likelihoods, engines, sources and methods, whose answers are kept in ``numbers.csv``.

Rows come from sequences that no generator can change. A case returns a fitted model and the rows at which it is asked;
``answers`` turns these into named numbers, through public names alone, so that anything inside may move.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from vff import (
    Categorical,
    CoxProcess,
    GPClassifier,
    GPRegressor,
    Matern12,
    Matern32,
    Matern52,
    Matern72,
    Matern92,
)
from vff.likelihoods import Bernoulli, Beta, Binomial, Gamma, NegativeBinomial, Ordinal, Poisson, StudentT

FIXED, LEARNT, CHAINS = "fixed", "learnt", "chains"
Fitted = tuple[Any, Any]


@dataclass(frozen=True)
class Case:
    """A fit by name. ``kind`` says how far rounding may carry its numbers."""

    name: str
    kind: str
    fit: Callable[[Path], Fitted]


CASES: list[Case] = []


def case(kind: str) -> Callable[[Callable[[Path], Fitted]], Callable[[Path], Fitted]]:
    def register(fit: Callable[[Path], Fitted]) -> Callable[[Path], Fitted]:
        CASES.append(Case(fit.__name__, kind, fit))
        return fit

    return register


def uniform(n: int, root: int) -> np.ndarray:
    """n points that fill [0, 1]: multiples of a square root, modulo one."""
    return np.sqrt(float(root)) * np.arange(1.0, n + 1.0) % 1.0


def table(n: int = 300) -> dict[str, np.ndarray]:
    """Two columns of numbers, one of few values, one of levels, and the function with noise."""
    x, z = 10.0 * uniform(n, 2), uniform(n, 3)
    hour, level = np.floor(24.0 * uniform(n, 5)), np.floor(3.0 * uniform(n, 7))
    f = np.sin(x) + 0.5 * np.cos(6.0 * z) * np.sin(x / 3.0) + 0.3 * np.sin(hour / 4.0) + 0.4 * (level == 1.0)
    return {"x": x, "z": z, "hour": hour, "level": level, "f": f, "y": f + 0.2 * ndtri(uniform(n, 11))}


def matrix(rows: dict[str, np.ndarray], names: str) -> np.ndarray:
    return np.column_stack([rows[name] for name in names.split()])


def asked(names: str) -> np.ndarray:
    """Seven rows, two of them outside the domains of x."""
    rows = table(7)
    rows["x"] = np.array([-0.5, 0.1, 2.0, 4.7, 8.0, 9.9, 11.0])
    return matrix(rows, names)


def held(kernel: Any, names: str, n: int = 300, **options: Any) -> Fitted:
    """A fit in which nothing is learnt."""
    rows = table(n)
    settings: dict[str, Any] = {"noise_variance": 0.04, "frequencies": 6, "optimizer": None} | options
    return GPRegressor(kernel, **settings).fit(matrix(rows, names), rows["y"]), asked(names)


@case(FIXED)
def matern12(_: Path) -> Fitted:
    return held(Matern12(0, variance=1.3, lengthscale=2.0), "x")


@case(FIXED)
def matern32_of_the_paper(_: Path) -> Fitted:
    return held(Matern32(0, variance=1.3, lengthscale=2.0), "x", edges=0, domain=(-2.0, 12.0), frequencies=20)


@case(FIXED)
def matern52(_: Path) -> Fitted:
    return held(Matern52(0, variance=1.3, lengthscale=2.0), "x")


@case(FIXED)
def matern72(_: Path) -> Fitted:
    return held(Matern72(0, variance=1.3, lengthscale=2.0), "x")


@case(FIXED)
def matern92_without_constant(_: Path) -> Fitted:
    return held(Matern92(0, variance=1.3, lengthscale=2.0), "x", normalize_y=False)


SUM = (
    Matern32(0, variance=1.0, lengthscale=2.0)
    + Matern52(1, variance=0.5, lengthscale=0.3)
    + Categorical(2, variance=0.3)
)
PRODUCT = Matern32(0, variance=1.0, lengthscale=2.0) * Matern52(1, variance=1.0, lengthscale=0.3) + Categorical(
    2, variance=1.0
) * Matern12(0, variance=0.2, lengthscale=3.0)


@case(FIXED)
def sum_dense(_: Path) -> Fitted:
    return held(SUM, "x z level", engine="dense")


@case(FIXED)
def sum_nufft(_: Path) -> Fitted:
    return held(SUM, "x z level", engine="nufft")


@case(FIXED)
def sum_table(_: Path) -> Fitted:
    return held(Matern32(0, variance=1.0, lengthscale=6.0) + Categorical(1, variance=0.3), "hour level", engine="table")


@case(FIXED)
def product_dense(_: Path) -> Fitted:
    return held(PRODUCT, "x z level", engine="dense")


@case(FIXED)
def product_nufft(_: Path) -> Fitted:
    return held(PRODUCT, "x z level", engine="nufft")


@case(FIXED)
def product_grid(_: Path) -> Fitted:
    first, second = np.linspace(0.0, 1.0, 20), np.linspace(0.0, 2.0, 15)
    X = np.column_stack([part.ravel() for part in np.meshgrid(first, second, indexing="ij")])
    y = np.sin(5.0 * X[:, 0]) * X[:, 1] + 0.1 * ndtri(uniform(300, 11))
    model = GPRegressor(
        Matern32(0, variance=1.0, lengthscale=0.4) * Matern32(1, variance=1.0, lengthscale=0.9),
        noise_variance=0.01,
        frequencies=5,
        optimizer=None,
        engine="grid",
    )
    return model.fit(X, y), X[::47] + 0.01


@case(FIXED)
def weights_and_pieces(_: Path) -> Fitted:
    rows, model = table(), GPRegressor(SUM, noise_variance=0.04, frequencies=6, domain={0: (0, 10), 1: (0, 1)})
    model.set_params(optimizer=None)
    X, weight = matrix(rows, "x z level"), 0.5 + uniform(300, 13)
    for some in (slice(0, 170), slice(170, 220), slice(220, 300)):
        model.partial_fit(X[some], rows["y"][some], sample_weight=weight[some])
    return model, asked("x z level")


def with_likelihood(likelihood: Any, y: Callable[[dict[str, np.ndarray]], np.ndarray], **options: Any) -> Fitted:
    rows = table(150)
    kernel = Matern32(0, variance=0.5, lengthscale=3.0) + Categorical(1, variance=0.3)
    settings: dict[str, Any] = {"frequencies": 5, "optimizer": None, "hyperparameters": "maximise"} | options
    model = GPRegressor(kernel, likelihood=likelihood, **settings)
    return model.fit(matrix(rows, "x level"), y(rows)), asked("x level")


def counts(rows: dict[str, np.ndarray]) -> np.ndarray:
    return np.floor(np.exp(rows["f"]) + 2.0 * uniform(rows["f"].size, 17))


@case(FIXED)
def student_t(_: Path) -> Fitted:
    return with_likelihood(StudentT(scale=0.3, df=4.0), lambda rows: rows["y"])


@case(FIXED)
def poisson(_: Path) -> Fitted:
    return with_likelihood(Poisson(), counts)


@case(FIXED)
def negative_binomial(_: Path) -> Fitted:
    return with_likelihood(NegativeBinomial(dispersion=0.4), counts)


@case(FIXED)
def gamma(_: Path) -> Fitted:
    return with_likelihood(Gamma(shape=2.0), lambda rows: np.exp(rows["y"]))


@case(FIXED)
def beta(_: Path) -> Fitted:
    return with_likelihood(Beta(precision=5.0), lambda rows: 0.5 + 0.49 * np.tanh(rows["y"]))


@case(FIXED)
def ordinal(_: Path) -> Fitted:
    return with_likelihood(Ordinal(cuts=(-0.5, 0.7)), lambda rows: 1.0 * (rows["y"] > -0.5) + (rows["y"] > 0.7))


@case(FIXED)
def bernoulli_probit(_: Path) -> Fitted:
    return with_likelihood(Bernoulli(link="probit"), lambda rows: 1.0 * (rows["y"] > 0.2))


@case(FIXED)
def binomial_by_kronecker(_: Path) -> Fitted:
    rows = table(150)
    kernel = Matern32(0, variance=0.5, lengthscale=3.0) * Matern32(1, variance=1.0, lengthscale=0.5)
    model = GPRegressor(kernel, likelihood=Binomial(trials=2), frequencies=3, optimizer=None, covariance="kronecker")
    X = np.column_stack([rows["x"], rows["z"], np.full(150, 5.0)])
    y = np.floor(5.99 / (1.0 + np.exp(-rows["f"])))
    return model.fit(X, y), np.column_stack([asked("x z"), np.full(7, 5.0)])


@case(FIXED)
def iterative(_: Path) -> Fitted:
    kernel = Matern32(0, variance=1.0, lengthscale=2.0) * Matern32(1, variance=1.0, lengthscale=0.5)
    return held(kernel, "x z", n=100, frequencies=32)


@case(LEARNT)
def learnt_column(_: Path) -> Fitted:
    rows = table()
    return GPRegressor(Matern32(0)).fit(matrix(rows, "x"), rows["y"]), asked("x")


@case(LEARNT)
def learnt_sum_from_chunks(_: Path) -> Fitted:
    rows = table()
    X, y = matrix(rows, "x z level"), rows["y"]
    kernel = Matern32(0) + Matern52(1) + Categorical(2)
    how: dict[str, Any] = {"domain": {0: (0.0, 10.0), 1: (0.0, 1.0)}, "frequencies": 6}
    model = GPRegressor(kernel, **how, hyperparameters="maximise")
    return model.fit(lambda: iter([(X[:111], y[:111]), (X[111:], y[111:])])), asked("x z level")


@case(LEARNT)
def learnt_from_text(folder: Path) -> Fitted:
    rows = table()
    path = folder / "rows.csv"
    columns = matrix(rows, "x z hour y")
    np.savetxt(path, columns, "%.17g", ",", header="x,z,hour,y", comments="")
    kernel = Matern32("x") * Matern32("z") + Matern52("hour")
    model = GPRegressor(kernel, frequencies=4, hyperparameters="maximise")
    return model.fit(path, "y"), pd.DataFrame(asked("x z hour"), columns=["x", "z", "hour"])


@case(LEARNT)
def learnt_poisson(_: Path) -> Fitted:
    return with_likelihood("poisson", counts, optimizer="lbfgs")


@case(LEARNT)
def learnt_student_t(_: Path) -> Fitted:
    return with_likelihood("student-t", lambda rows: rows["y"], optimizer="lbfgs")


@case(LEARNT)
def learnt_labels(_: Path) -> Fitted:
    rows = table(150)
    labels = np.array(["low", "middle", "high"])[np.digitize(rows["y"], [-0.5, 0.7])]
    model = GPClassifier(Matern32(0), frequencies=5, hyperparameters="maximise").fit(matrix(rows, "x"), labels)
    return model, asked("x")


@case(LEARNT)
def learnt_points(_: Path) -> Fitted:
    points = np.sort(100.0 * uniform(80, 2) ** 2)[:, None]
    return CoxProcess(Matern32(0), grid=50).fit(points, window=[(0.0, 100.0)]), np.linspace(1.0, 99.0, 7)[:, None]


def sampled(likelihood: str, y: np.ndarray) -> Fitted:
    model = GPRegressor(
        Matern32(0), likelihood=likelihood, frequencies=4, inference="mcmc", draws=12, warmup=20, chains=2
    )
    return model.set_params(random_state=3).fit(matrix(table(60), "x"), y), asked("x")


@case(CHAINS)
def chains_of_hyperparameters(_: Path) -> Fitted:
    return sampled("gaussian", table(60)["y"])


@case(CHAINS)
def chains_of_functions(_: Path) -> Fitted:
    return sampled("poisson", counts(table(60)))


def answers(model: Any, X: Any) -> dict[str, float]:
    """Named numbers of a fit: bound, hyperparameters, the latent function and what is said of y."""
    found: dict[str, Any] = {}
    for k, part in enumerate(getattr(model, "estimators_", [model])):
        found |= {f"bound {k}": part.elbo_, f"intercept {k}": getattr(part, "intercept_", 0.0)}
        found |= {f"{name} {k}": value for name, value in part.kernel_.get_params().items()}
        learnt = part.likelihood_.values if hasattr(part, "likelihood_") else {}
        found |= {f"{name} {k}": value for name, value in learnt.items()}
    if hasattr(model, "intensity"):
        found["intensity"] = model.intensity(X)
    elif hasattr(model, "predict_proba"):
        found["probability"] = model.predict_proba(X)
    else:
        found["mean"], found["variance"] = model.predict_f(X)
        found["quantile"] = model.predict_quantiles(X, (0.1, 0.5, 0.9))
    numbers: dict[str, float] = {}
    for name, value in found.items():
        flat = np.ravel(np.asarray(value, object))
        if not all(isinstance(part, Real) for part in flat):
            continue  # parts of a kernel, names of columns
        numbers |= {name if flat.size == 1 else f"{name}[{i}]": float(v) for i, v in enumerate(flat)}
    return numbers
