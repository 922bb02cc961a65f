"""Files of a format version, one of every method of inference, and what their models answered: run once for each.

Those of versions 2 to 4 were written in 2026.

python tests/data/make_versions.py
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from vff import Categorical, GPRegressor, Matern32
from vff.storage import VERSION

FOLDER = Path(__file__).parent
N = 60
SHORT: dict[str, Any] = {"inference": "mcmc", "draws": 10, "warmup": 25, "chains": 2, "random_state": 0}


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Two columns of numbers, one of levels, and a target."""
    n = np.arange(N)
    X = np.column_stack([n / (N - 1), (0.618034 * n) % 1.0, n % 3])
    return X, np.sin(5.0 * X[:, 0]) + 0.5 * X[:, 1] * (X[:, 2] == 1) + 0.1 * np.cos(37.0 * n)


def counts() -> tuple[np.ndarray, np.ndarray]:
    """The same with counts."""
    X, y = rows()
    return X, np.floor(np.exp(y) + 0.5 * (np.arange(N) % 2))


def questions() -> np.ndarray:
    """Rows to ask about, one of them outside the domain."""
    return np.column_stack([np.append(np.linspace(0.05, 0.95, 8), 1.2), np.linspace(0.1, 0.8, 9), np.arange(9) % 3])


def answers(model: Any) -> np.ndarray:
    """What a model says of the questions."""
    asked, effects = questions(), None
    effects = model.effects(asked)
    draws = model.sample_f(asked, n_samples=2, random_state=1)
    return np.column_stack([*model.predict_f(asked), effects.mean, effects.std, draws])


def iterative() -> GPRegressor:
    """As a model of many features, of few."""
    kernel = Matern32(0, lengthscale=0.3, variance=1.0) * Matern32(1, lengthscale=0.3)
    how: dict[str, Any] = {"frequencies": 3, "noise_variance": 0.1, "optimizer": None}
    with patch("vff.inference.learning.solver.LARGEST_DIRECT", 20):
        return GPRegressor(kernel + Categorical(2, variance=1.0), **how).fit(*rows())


SUM, PRODUCT = Matern32(0) + Categorical(2), Matern32(0) * Matern32(1)
MAKERS: dict[str, Callable[[], Any]] = {
    "collapsed": lambda: GPRegressor(SUM, frequencies=3, hyperparameters="maximise").fit(*rows()),
    "iterative": iterative,
    "natural": lambda: GPRegressor(SUM, likelihood="poisson", frequencies=3, hyperparameters="maximise").fit(*counts()),
    "structured": lambda: GPRegressor(PRODUCT, likelihood="poisson", frequencies=2, covariance="kronecker").fit(
        *counts()
    ),
    "collapsed_chains": lambda: GPRegressor(SUM, frequencies=2, **SHORT).fit(*rows()),
    "chains": lambda: GPRegressor(Matern32(0), likelihood="poisson", frequencies=2, **SHORT).fit(*counts()),
}


def main() -> None:
    """Write the files."""
    import warnings

    warnings.simplefilter("ignore")
    for name, make in MAKERS.items():
        model = make()
        model.save(FOLDER / f"{name}_{VERSION}.vff")
        np.savetxt(FOLDER / f"{name}_{VERSION}_answers.csv", answers(model), "%.17g", ",")


if __name__ == "__main__":
    main()
