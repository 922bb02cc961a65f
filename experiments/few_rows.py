"""How often do 95 % intervals hold the truth?

Tables are drawn from the model itself: a sum of Matérn-3/2 functions of uniform columns, each of variance one and of a
lengthscale between a tenth and one and a half of the range, with noise of variance between 0.01 and one; or counts
whose log mean is such a sum of total variance one around log 2. Hyperparameters are learnt, and taken for known
(``maximised``; ``flat`` without the weak priors of fewer than twenty rows), or averaged over where that matters, as the
``default`` does. Every table is asked at a hundred new rows for the function and for new observations. The standard
error is over tables, whose rows share one fit.
"""

from typing import Any, NamedTuple

import numpy as np
from _common import BLUE, GREEN, GREY, ORANGE, Run, new_figure, tidy
from scipy.stats import norm

from vff import GPRegressor
from vff.priors import LogNormal

SHAPES = ((5, 1), (10, 1), (20, 1), (100, 1), (10, 3), (20, 3), (100, 3), (500, 4))
COUNTED = ((20, 2), (500, 2))
NEW, LEVEL, TABLES = 100, 0.95, 200
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


def functions(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A sum of one function of every column."""
    lengthscales = np.exp(rng.uniform(np.log(0.1), np.log(1.5), X.shape[1]))
    covariance = np.sum([matern32(x, own) for x, own in zip(X.T, lengthscales, strict=True)], axis=0)
    return np.linalg.cholesky(covariance + 1e-9 * np.eye(len(X))) @ rng.standard_normal(len(X))


def draw(rows: int, columns: int, seed: int, *, counts: bool) -> Table:
    """From the model, hyperparameters and all."""
    rng = np.random.default_rng((rows, columns, seed))
    X, noise = rng.random((rows + NEW, columns)), 10.0 ** rng.uniform(-2.0, 0.0)
    f = functions(X, rng)
    if counts:
        f = np.log(2.0) + f / np.sqrt(columns)
        y = rng.poisson(np.exp(f)).astype(float)
    else:
        y = f + np.sqrt(noise) * rng.standard_normal(len(X))
    return Table(X[:rows], y[:rows], X[rows:], f[rows:], y[rows:])


METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "maximised": {"hyperparameters": "maximise"},
    "flat": {"hyperparameters": "maximise", "priors": FLAT},
}
COLOURS = {"default": GREEN, "maximised": BLUE, "flat": ORANGE}


def covered(model: GPRegressor, table: Table) -> tuple[float, float, float]:
    """Shares of new rows whose function, and whose observation, lie in their intervals; whether these average."""
    ends = (0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL)
    mean, variance = model.predict_f(table.new_X)
    of_f = np.mean(np.abs(table.new_f - mean) <= norm.ppf(ends[1]) * np.sqrt(variance))
    least, most = model.predict_quantiles(table.new_X, ends).T
    return (
        float(of_f),
        float(np.mean((table.new_y >= least) & (table.new_y <= most))),
        float(model.samples_ is not None),
    )


def measured(rows: int, columns: int, tables: int, *, counts: bool) -> list[dict[str, Any]]:
    """A line by method."""
    lines = []
    for name, how in METHODS.items():
        if counts and "priors" in how:
            continue
        shares = []
        for seed in range(tables):
            table = draw(rows, columns, seed, counts=counts)
            model = GPRegressor(domain=(0.0, 1.0), likelihood="poisson" if counts else "gaussian", **how)
            shares.append(covered(model.fit(table.X, table.y), table))
        mean, error = np.mean(shares, axis=0), np.std(shares, axis=0) / np.sqrt(tables)
        lines.append({
            "rows": rows, "columns": columns, "y": "counts" if counts else "numbers", "tables": tables,
            "hyperparameters": name, "averaged": round(float(mean[2]), 2), "function": round(float(mean[0]), 3),
            "its error": round(float(error[0]), 3), "new rows": round(float(mean[1]), 3),
            "their error": round(float(error[1]), 3), "worst": round(float(np.min(shares, axis=0)[0]), 2),
        })  # fmt: skip
    return lines


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    lines = []
    shapes = [(own, False) for own in SHAPES] + [(own, True) for own in COUNTED]
    for (rows, columns), counts in [shapes[1], shapes[-2]] if run.quick else shapes:
        lines += measured(rows, columns, 3 if run.quick else TABLES, counts=counts)
        run.say(f"{rows} rows of {columns} columns{' with counts' if counts else ''} done")
    figure = new_figure(9.0, 3.4)
    first = [line for line in lines if line["hyperparameters"] == "default"]
    labels = [f"{line['rows']} × {line['columns']}{' counts' * (line['y'] == 'counts')}" for line in first]
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
