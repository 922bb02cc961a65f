"""How often do 95 % intervals of a handful of rows hold the truth?

Tables are drawn from the model itself: a sum of Matérn-3/2 functions of uniform columns, each of variance one and of a
lengthscale between a tenth and one and a half of the range, with noise of variance between 0.01 and one.
Hyperparameters are learnt, and intervals take them as known: fewer than twenty rows have weak priors by themselves
(``defaults``), ``flat`` priors are as good as none; or they are ``integrated``. Every table is asked at a hundred new
rows for the function and for new observations. The standard error is over tables, whose rows share one fit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from _common import BLUE, GREEN, GREY, ORANGE, Run, new_figure, tidy
from scipy.stats import norm

from vff import GPRegressor
from vff.priors import LogNormal

SHAPES = ((5, 1), (10, 1), (20, 1), (100, 1), (10, 3), (20, 3), (100, 3))
NEW, LEVEL = 100, 0.95
FLAT = {"variance": LogNormal(1.0, 30.0), "lengthscale": LogNormal(1.0, 30.0), "noise_variance": LogNormal(1.0, 30.0)}


class Table(NamedTuple):
    """Rows to learn from, and new ones whose function is known."""

    X: np.ndarray
    y: np.ndarray
    new_X: np.ndarray
    new_f: np.ndarray
    new_y: np.ndarray


def matern32(x: np.ndarray, lengthscale: float) -> np.ndarray:
    """Covariance between all rows of one column."""
    r = np.sqrt(3.0) * np.abs(np.subtract.outer(x, x)) / lengthscale
    return (1.0 + r) * np.exp(-r)


def draw(rows: int, columns: int, seed: int) -> Table:
    """From the model, hyperparameters and all."""
    rng = np.random.default_rng((rows, columns, seed))
    X = rng.random((rows + NEW, columns))
    lengthscales, noise = np.exp(rng.uniform(np.log(0.1), np.log(1.5), columns)), 10.0 ** rng.uniform(-2.0, 0.0)
    covariance = np.sum([matern32(x, own) for x, own in zip(X.T, lengthscales, strict=True)], axis=0)
    f = np.linalg.cholesky(covariance + 1e-9 * np.eye(len(X))) @ rng.standard_normal(len(X))
    y = f + np.sqrt(noise) * rng.standard_normal(len(X))
    return Table(X[:rows], y[:rows], X[rows:], f[rows:], y[rows:])


def defaults(table: Table) -> GPRegressor:
    return GPRegressor(domain=(0.0, 1.0)).fit(table.X, table.y)


def flat(table: Table) -> GPRegressor:
    return GPRegressor(domain=(0.0, 1.0), priors=FLAT).fit(table.X, table.y)


def integrated(table: Table) -> GPRegressor:
    return GPRegressor(domain=(0.0, 1.0), hyperparameters="integrate").fit(table.X, table.y)


METHODS: dict[str, Callable[[Table], GPRegressor]] = {"defaults": defaults, "flat": flat, "integrated": integrated}
COLOURS = {"defaults": BLUE, "flat": ORANGE, "integrated": GREEN}


def covered(model: GPRegressor, table: Table) -> tuple[float, float]:
    """Shares of new rows whose function, and whose observation, lie in their intervals."""
    reach = norm.ppf(0.5 + 0.5 * LEVEL)
    mean, variance = model.predict_f(table.new_X)
    predicted, std = model.predict(table.new_X, return_std=True)
    of_f = np.mean(np.abs(table.new_f - mean) <= reach * np.sqrt(variance))
    return float(of_f), float(np.mean(np.abs(table.new_y - predicted) <= reach * std))


def measured(rows: int, columns: int, tables: int) -> list[dict[str, Any]]:
    """A line by method."""
    lines = []
    for name, method in METHODS.items():
        shares = np.array([covered(method(own), own) for own in (draw(rows, columns, s) for s in range(tables))])
        errors = shares.std(axis=0) / np.sqrt(tables)
        lines.append({
            "rows": rows, "columns": columns, "tables": tables, "hyperparameters": name,
            "function": round(float(shares[:, 0].mean()), 3), "its error": round(float(errors[0]), 3),
            "new rows": round(float(shares[:, 1].mean()), 3), "their error": round(float(errors[1]), 3),
            "covers nothing": int(np.count_nonzero(shares[:, 0] < 0.05)),
        })  # fmt: skip
    return lines


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    lines = []
    for rows, columns in SHAPES[:2] if run.quick else SHAPES:
        lines += measured(rows, columns, 3 if run.quick else 100)
        run.say(f"{rows} rows of {columns} columns done")
    figure = new_figure(9.0, 3.4)
    labels = [f"{line['rows']} × {line['columns']}" for line in lines if line["hyperparameters"] == "defaults"]
    for axes, what, error in zip(
        figure.subplots(1, 2, sharey=True), ("function", "new rows"), ("its error", "their error"), strict=True
    ):
        for shift, (name, colour) in zip((-0.2, 0.0, 0.2), COLOURS.items(), strict=True):
            own = [line for line in lines if line["hyperparameters"] == name]
            at = np.arange(len(own)) + shift
            axes.errorbar(
                at, [line[what] for line in own], [2 * line[error] for line in own], fmt="o", color=colour, label=name
            )
        axes.axhline(LEVEL, color=GREY, lw=1.0)
        axes.set(
            xticks=range(len(labels)),
            xlabel="rows × columns",
            title=f"95 % intervals of {'the function' if what == 'function' else what}",
        )
        axes.set_xticklabels(labels, rotation=30, color=GREY)
        tidy(axes)
    figure.axes[0].set_ylabel("share that they hold")
    figure.axes[1].legend(frameon=False, title="hyperparameters")
    run.finish(lines, figure)


if __name__ == "__main__":
    main()
