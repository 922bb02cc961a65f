"""One task of ``revisions.py`` in a process of its own: python _revision_task.py NAME REPETITIONS, seconds as JSON."""

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from vff import Categorical, GPClassifier, GPRegressor, Matern12, Matern32, load

Task = Callable[[], object]
random = np.random.default_rng(0)


def rows(n: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    X = random.uniform(size=(n, columns))
    return X, np.sin(9.0 * X[:, 0]) + np.cos(5.0 * X).sum(axis=1) + 0.3 * random.normal(size=n)


def column() -> Task:
    X, y = rows(1_000_000, 1)
    return lambda: GPRegressor(Matern32(0)).fit(X, y)


def additive() -> Task:
    X, y = rows(200_000, 4)
    return lambda: GPRegressor().fit(X, y)


def contingency() -> Task:
    X, y = rows(1_000_000, 4)
    whole = np.floor(60.0 * X)
    return lambda: GPRegressor().fit(whole, y)


def product() -> Task:
    X, y = rows(100_000, 2)
    return lambda: GPRegressor(Matern32(0) * Matern32(1), frequencies=10).fit(X, y)


def levels() -> Task:
    X, y = rows(200_000, 2)
    X[:, 1] = np.floor(400.0 * X[:, 1])
    return lambda: GPRegressor(Matern32(0) + Categorical(1)).fit(X, y)


def small() -> Task:
    X, y = rows(30, 6)
    return lambda: GPRegressor().fit(X, y)


def pieces() -> Task:
    X, y = rows(200_000, 2)

    def run() -> None:
        model = GPRegressor(Matern32(0) + Matern12(1), domain=(0.0, 1.0), frequencies=20)
        for some in np.array_split(np.arange(200_000), 10):
            model.partial_fit(X[some], y[some])

    return run


def text() -> Task:
    X, y = rows(300_000, 2)
    path = Path(tempfile.mkdtemp()) / "rows.csv"
    np.savetxt(path, np.column_stack([X, y]), "%.6f", ",", header="a,b,y", comments="")
    return lambda: GPRegressor(Matern32("a") + Matern32("b"), frequencies=12).fit(path, "y")


def counts() -> Task:
    X, y = rows(20_000, 2)
    n = random.poisson(np.exp(0.3 * y))
    return lambda: GPRegressor(likelihood="poisson", frequencies=12).fit(X, n)


def labels() -> Task:
    X, y = rows(20_000, 2)
    return lambda: GPClassifier(frequencies=12).fit(X, np.digitize(y, [0.5, 1.5]))


def kronecker() -> Task:
    X, y = rows(3_000, 2)
    kernel = Matern32(0, variance=1.0, lengthscale=0.3) * Matern32(1, variance=1.0, lengthscale=0.3)
    n = random.poisson(np.exp(0.3 * y))
    model = GPRegressor(kernel, likelihood="poisson", covariance="kronecker", frequencies=6, optimizer=None)
    return lambda: model.fit(X, n)


def chains() -> Task:
    X, y = rows(2_000, 1)
    model = GPRegressor(Matern32(0), frequencies=10, inference="mcmc", draws=100, warmup=100, chains=2, random_state=0)
    return lambda: model.fit(X, y)


def iterations() -> Task:
    X, y = rows(20_000, 2)
    kernel = Matern32(0, variance=1.0, lengthscale=0.3) * Matern32(1, variance=1.0, lengthscale=0.3)
    return lambda: GPRegressor(kernel, noise_variance=0.1, frequencies=34, optimizer=None).fit(X, y)


def predictions() -> Task:
    X, y = rows(1_000_000, 2)
    model = GPRegressor(frequencies=20).fit(X[:20_000], y[:20_000])
    return lambda: model.predict(X, return_std=True)


def effects() -> Task:
    X, y = rows(200_000, 4)
    model = GPRegressor(frequencies=12).fit(X[:20_000], y[:20_000])
    return lambda: model.effects(X)


def saved() -> Task:
    X, y = rows(20_000, 4)
    model = GPRegressor(frequencies=30).fit(X, y)
    path = Path(tempfile.mkdtemp()) / "model.vff"

    def run() -> None:
        model.save(path)
        load(path)

    return run


TASKS = {
    task.__name__: task
    for task in (
        column,
        additive,
        contingency,
        product,
        levels,
        small,
        pieces,
        text,
        counts,
        labels,
        kronecker,
        chains,
        iterations,
        predictions,
        effects,
        saved,
    )
}


def main(name: str, repetitions: int) -> None:
    """The first run, which compiles and fills caches, and the least of the others."""
    warnings.simplefilter("ignore")
    run = TASKS[name]()
    seconds = []
    for _ in range(repetitions):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    print(json.dumps({"first": seconds[0], "again": min(seconds[1:])}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
