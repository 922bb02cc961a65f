"""Forecasts of a trend: a Matérn returns to its mean, a trend goes on as a constant (order 1) or a line (order 2).

Monthly series of twelve years that follow an integrated random walk with noise; the last four years are held out. The
picture shows the first of them, drawn on for half as many years again; the table has errors and the coverage of 95 %
intervals over all. These series have a slope, which order 1 knows nothing of. The picture of docs/trend.md is this one.
"""

import numpy as np
from _common import BLUE, GREY, ORANGE, Run, looking_outside
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vff import GPRegressor, Matern52, Trend

YEARS, HELD_OUT = 12, 4
KERNELS = {
    "Trend, order 1": Trend(0, order=1),
    "Trend, order 2": Trend(0, order=2),
    "Matérn-5/2": Matern52(0),
}
SHOWN = 0


def series(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Years, and a walk whose slope walks."""
    rng = np.random.default_rng(seed)
    year = np.arange(12 * YEARS) / 12.0
    slope = 0.8 + np.cumsum(0.15 * rng.normal(size=year.size))
    return year, 20.0 + np.cumsum(slope) / 12.0 + 0.5 * rng.normal(size=year.size)


def draw(axes: Axes, name: str, model: GPRegressor, year: np.ndarray, y: np.ndarray) -> None:
    """What was seen, what came, and what was said of it."""
    seen = year < YEARS - HELD_OUT
    x = np.linspace(0.0, 1.5 * YEARS, 400)
    with looking_outside():
        mean, std = model.predict(x[:, None], return_std=True)
    axes.fill_between(x, mean - 1.96 * std, mean + 1.96 * std, color=BLUE, alpha=0.2, lw=0, label="95 % of new rows")
    axes.plot(x, mean, color=BLUE, lw=1.5, label="mean")
    axes.plot(year[seen], y[seen], ".", color=GREY, ms=3, label="seen")
    axes.plot(year[~seen], y[~seen], ".", color=ORANGE, ms=3, label="held out")
    axes.axvline(YEARS - HELD_OUT, color=GREY, lw=0.8, ls=":")
    axes.set(title=name, xlabel="year")


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    figure = Figure(figsize=(9.6, 3.2), layout="constrained")
    panels = dict(zip(KERNELS, figure.subplots(1, 3, sharey=True), strict=True))
    errors: dict[str, list[tuple[float, float, float]]] = {name: [] for name in KERNELS}
    for seed in range(SHOWN, SHOWN + (2 if run.quick else 40)):
        year, y = series(seed)
        seen = year < YEARS - HELD_OUT
        for name, kernel in KERNELS.items():
            model = GPRegressor(kernel, frequencies=60).fit(year[seen, None], y[seen])
            with looking_outside():
                mean, std = model.predict(year[~seen, None], return_std=True)
            away = y[~seen] - mean
            errors[name].append(
                (float(np.mean(away**2)), float(np.mean(np.abs(away) < 1.96 * std)), float(np.mean(std)))
            )
            if seed == SHOWN:
                draw(panels[name], name, model, year, y)
    first = panels["Trend, order 1"]
    first.set_ylabel("y")
    first.legend(loc="upper left", fontsize=7, frameon=False)
    rows = []
    for name, found in errors.items():
        square, covered, width = np.mean(found, axis=0)
        rows.append({"kernel": name, "rmse": round(float(np.sqrt(square)), 3), "covered": round(float(covered), 3),
                     "mean std": round(float(width), 3), "series": len(found)})  # fmt: skip
    run.finish(rows, figure)


if __name__ == "__main__":
    main()
