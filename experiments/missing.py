"""Numbers that are missing: one in ten of every column, in the rows of the fit and in those to predict.

    python experiments/missing.py [--quick] [--out FOLDER]

Friedman's function of five columns, two of them in a product, with noise of standard deviation one. Beside each other:

- a missing number has an effect of its own (``missing="effect"``), in the columns' own terms and in the product;
- rows with a missing number are left out of the fit (``missing="drop"``), and cannot be predicted;
- gradient boosting with its own treatment (scikit-learn's ``HistGradientBoostingRegressor``, three models: one of the
  mean, and one for each end of the intervals), its trees grown until a tenth of the rows says stop.

Errors are root mean squares of y less its prediction; intervals should hold 95 % of new y. With an effect of missing
values noise has one variance for all rows, while rows with a missing number scatter more: the intervals are right on
average, too wide where all is known, and too narrow where something is missing. So the rows are counted apart.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from _common import BLUE, GREEN, GREY, ORANGE, Run, new_figure, tidy
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingRegressor

from vff import GPRegressor, Matern52

SHARE, LEVEL, COLUMNS = 0.1, 0.95, ("a", "b", "c", "d", "e")
KERNEL = Matern52("a") * Matern52("b") + Matern52("c") + Matern52("d") + Matern52("e")
Answer = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Mean and the ends of intervals; NaN where there is none."""


def table(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows with holes, and y."""
    x = pd.DataFrame(rng.uniform(size=(n, len(COLUMNS))), columns=list(COLUMNS))
    f = 10 * np.sin(np.pi * x.a * x.b) + 20 * (x.c - 0.5) ** 2 + 10 * x.d + 5 * x.e
    return x.mask(rng.random(x.shape) < SHARE), (f + rng.standard_normal(n)).to_numpy()


def process(missing: str) -> Callable[[pd.DataFrame, np.ndarray, pd.DataFrame], Answer]:
    """Of this package."""

    def answer(x: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Answer:
        model = GPRegressor(KERNEL, missing=missing).fit(x, y)
        known = np.ones(len(new), bool) if missing == "effect" else new.notna().all(axis=1).to_numpy()
        found = np.full((3, len(new)), np.nan)
        mean, std = model.predict(new[known], return_std=True)
        found[:, known] = mean, mean - 1.96 * std, mean + 1.96 * std
        return found[0], found[1], found[2]

    return answer


def boosting(x: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Answer:
    losses = [{"loss": "squared_error"}, *({"loss": "quantile", "quantile": q} for q in (0.025, 0.975))]
    models = [HistGradientBoostingRegressor(random_state=0, **own).fit(x, y) for own in losses]
    mean, lower, upper = (model.predict(new) for model in models)
    return mean, lower, upper


METHODS = {
    "effect of its own": process("effect"),
    "rows left out": process("drop"),
    "gradient boosting": boosting,
}


def scores(answer: Answer, y: np.ndarray, rows: np.ndarray) -> tuple[float, float, float]:
    """Error, coverage and width over some rows; nothing where there are no predictions."""
    mean, lower, upper = (part[rows] for part in answer)
    if np.isnan(mean).any():
        return np.nan, np.nan, np.nan
    inside = (lower <= y[rows]) & (y[rows] <= upper)
    return float(np.sqrt(np.mean((y[rows] - mean) ** 2))), float(inside.mean()), float(np.mean(upper - lower))


def picture(rows: list[dict]) -> Figure:
    figure = new_figure(8.0, 3.2)
    names = list(METHODS)
    for number, what in enumerate(("error", "coverage")):
        ax = figure.add_subplot(1, 2, number + 1)
        for offset, (kind, colour) in enumerate(zip(("complete", "incomplete"), (BLUE, ORANGE), strict=True)):
            values = [row[what] for name in names for row in rows if (row["method"], row["rows"]) == (name, kind)]
            ax.bar(np.arange(len(names)) + 0.4 * offset - 0.2, values, 0.38, color=colour, label=f"{kind} rows")
        ax.axhline(LEVEL if number else 1.0, color=GREY if number else GREEN, lw=1.0, ls="--")
        ax.set_xticks(range(len(names)), names, fontsize="small")
        ax.set_title("coverage of 95 % intervals" if number else "error (noise: 1)", fontsize="small")
        tidy(ax)
        if number:
            ax.set_ylim(0.7, 1.0)
    figure.axes[0].legend(frameon=False, fontsize="small")
    return figure


def main(run: Run) -> None:
    n, tables = (300, 1) if run.quick else (1000, 5)
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        (x, y), (new, target) = table(n, rng), table(n, rng)
        complete = new.notna().all(axis=1).to_numpy()
        kinds = {"all": np.ones(n, bool), "complete": complete, "incomplete": ~complete}
        for name, method in METHODS.items():
            answer = method(x, y, new)
            for kind, rows in kinds.items():
                found.setdefault((name, kind), []).append(scores(answer, target, rows))
        run.say(f"table {seed + 1} of {tables}")
    rows = []
    for (name, kind), own in found.items():
        error, coverage, width = np.mean(own, axis=0)
        rows.append({"method": name, "rows": kind, "error": error, "coverage": coverage, "width": width})
    run.finish(rows, picture(rows))


if __name__ == "__main__":
    main(Run.from_command_line(__file__, __doc__))
