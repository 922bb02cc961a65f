"""One model, not yet fitted, for every method of inference, and the rows that it is fitted to."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from vff import Categorical, GPRegressor, Matern32, Matern52

N = 240


class Case(NamedTuple):
    """A model and its targets, from the function that it is to find."""

    make: Callable[..., GPRegressor]
    targets: Callable[[np.ndarray], np.ndarray]


def rows() -> tuple[np.ndarray, np.ndarray]:
    """A number, a level, and a function of both."""
    n = np.arange(N)
    X = np.column_stack([(0.618034 * n) % 1.0, n % 3])
    return X, np.sin(6.0 * X[:, 0]) + 0.6 * (X[:, 1] == 1)


def noisy(f: np.ndarray) -> np.ndarray:
    return f + 0.3 * np.random.default_rng(1).standard_normal(f.size)


def counts(f: np.ndarray) -> np.ndarray:
    return np.random.default_rng(2).poisson(np.exp(f)).astype(float)


SUM = Matern32(0) + Categorical(1)
CHAINS: dict[str, Any] = {"inference": "mcmc", "draws": 100, "warmup": 100, "chains": 2, "random_state": 0}


def regressor(kernel: Any = SUM, **how: Any) -> Callable[..., GPRegressor]:
    return lambda **more: GPRegressor(**{"kernel": kernel, "frequencies": 8, "domain": {0: (0.0, 1.0)}, **how, **more})


MAKERS: dict[str, Case] = {
    "integrated": Case(regressor(hyperparameters="integrate"), noisy),
    "collapsed": Case(regressor(hyperparameters="maximise"), noisy),
    "integrated sites": Case(regressor(likelihood="poisson", hyperparameters="integrate"), counts),
    "natural": Case(regressor(likelihood="poisson", hyperparameters="maximise"), counts),
    "structured": Case(regressor(likelihood="poisson", covariance="factorised"), counts),
    "collapsed chains": Case(regressor(**CHAINS), noisy),
    "chains": Case(regressor(Matern52(0), likelihood="poisson", **CHAINS), counts),
}
