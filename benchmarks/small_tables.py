"""Small tables with many columns: a warm fit of vff beside scikit-learn's exact process, in processor seconds.

    python benchmarks/small_tables.py [--repeats 5] [--quick]

Rows are uniform, the function a sum of three effects, the noise a fifth of its standard deviation or so. vff fits the
sum of a Matérn-3/2 of every column, as ``GPRegressor()`` comes, which averages over hyperparameters where these are in
doubt, and with ``hyperparameters="maximise"``. The peer has the same sum, an amplitude and a lengthscale for every
column and white noise, and its own optimiser at its defaults: one start, gradients known. scikit-learn's kernels see
all columns at once, so that each of the peer's reads one, by a subclass of a few lines. What is printed is Markdown.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _machine import describe
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from vff import GPRegressor
from vff.report import table

SIZES = ((50, 6), (30, 10), (8, 20))


class OneColumn(Matern):
    """A Matérn of one of the columns."""

    def __init__(self, column=0, length_scale=1.0, length_scale_bounds=(1e-5, 1e5), nu=1.5):
        super().__init__(length_scale, length_scale_bounds, nu)
        self.column = column

    def __call__(self, X, Y=None, eval_gradient=False):
        own = slice(self.column, self.column + 1)
        return super().__call__(X[:, own], None if Y is None else Y[:, own], eval_gradient)


def draw(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((rows, columns))
    f = np.sin(6.0 * X[:, 0]) + 4.0 * (X[:, 1] - 0.5) ** 2 + 0.5 * np.cos(9.0 * X[:, 2])
    return X, f + 0.2 * rng.standard_normal(rows)


def peer(X: np.ndarray, y: np.ndarray) -> Any:
    terms = [ConstantKernel(1.0) * OneColumn(c, 1.0) for c in range(X.shape[1])]
    kernel = sum(terms[1:], terms[0]) + WhiteKernel(0.1)
    return GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)


def seconds(fit: Callable[[np.ndarray, np.ndarray], Any], rows: int, columns: int, repeats: int) -> tuple[float, float]:
    """Processor time of a fit, and its root mean squared error against new rows, averaged over tables."""
    fit(*draw(rows, columns, 0))  # what a first call loads
    spent, errors = [], []
    for seed in range(repeats):
        X, y = draw(rows, columns, seed)
        started = time.process_time()
        model = fit(X, y)
        spent.append(time.process_time() - started)
        X_new, y_new = draw(500, columns, 1000 + seed)
        errors.append(np.sqrt(np.mean((model.predict(X_new) - y_new) ** 2)))
    return float(np.median(spent)), float(np.mean(errors))


def line(rows: int, columns: int, repeats: int) -> dict[str, str]:
    fits = {
        "vff": lambda X, y: GPRegressor().fit(X, y),
        "maximise": lambda X, y: GPRegressor(hyperparameters="maximise").fit(X, y),
        "scikit-learn": peer,
    }
    found = {name: seconds(fit, rows, columns, repeats) for name, fit in fits.items()}
    theirs = found["scikit-learn"][0]
    said = {"rows x columns": f"{rows} x {columns}"}
    for name, (spent, error) in found.items():
        said |= {f"{name} s": f"{spent:.3f}", f"{name} RMSE": f"{error:.3f}"}
    return said | {
        name: f"{theirs / found[own][0]:.1f}" for name, own in (("ratio", "vff"), ("at the mode", "maximise"))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one table of each size, to see that it runs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of notes, and of optima at a bound
    repeats = 1 if options.quick else options.repeats
    print(describe(("numpy", "scipy", "scikit-learn")), flush=True)
    print(f"\n```text\n{table([line(*size, repeats) for size in SIZES])}\n```")


if __name__ == "__main__":
    main()
