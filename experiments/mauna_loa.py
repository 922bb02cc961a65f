"""Carbon dioxide at Mauna Loa, 1958 to 2001: a trend, a season that drifts and what passes, with a forecast checked.

Weekly means that statsmodels ships (Keeling and Whorf; public domain). The last years are held out, forecast, and
intervals counted, and so are those of forecasts from earlier years: the table has the error of every forecast and the
share of weeks inside its 50 %, 80 % and 95 % intervals. ``TERMS`` is the model; change it there.
"""

import time
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from _common import BLUE, GREY, ORANGE, RED, Run, draw_band, looking_outside, new_figure, tidy
from matplotlib.figure import Figure
from scipy.special import ndtri

from vff import GPRegressor, Matern12, Matern32, Periodic, Trend
from vff.kernels import Sum

TERMS = {
    "trend": Trend(0),
    "season": Periodic(0, period=1.0, order=2) * Matern32(0, lengthscale=60.0),
    "what passes": Matern12(0, lengthscale=0.5, variance=0.3),
}
LEVELS = (0.5, 0.8, 0.95)
HELD_OUT = 8  # years


class Weeks(NamedTuple):
    """Weekly means."""

    year: np.ndarray
    co2: np.ndarray


def load_weeks() -> Weeks:
    """What statsmodels ships, missing weeks left out, dates as years."""
    from statsmodels.datasets import co2  # pyright: ignore[reportMissingImports]

    data: Any = co2.load_pandas().data
    data = data["co2"].dropna()
    days = (data.index - np.datetime64("1958-01-01")).days.to_numpy(float)
    return Weeks(1958.0 + days / 365.25, data.to_numpy(float))


def fitted(weeks: Weeks, before: float, quick: bool) -> GPRegressor:
    """The model of the weeks before a date."""
    some = weeks.year < before
    frequencies = {"0": 8, "0 * 0": (4, 5), "0_2": 20} if quick else {"0": 12, "0 * 0": (8, 10), "0_2": 100}
    model = GPRegressor(Sum(tuple(TERMS.values())), frequencies=frequencies)
    return model.fit(weeks.year[some, None], weeks.co2[some])


def checked(model: GPRegressor, weeks: Weeks, start: float, years: int) -> dict[str, Any]:
    """The forecast of some years beside what was measured."""
    some = (weeks.year >= start) & (weeks.year < start + years)
    with looking_outside():
        mean, sd = model.predict(weeks.year[some, None], return_std=True)
    error = weeks.co2[some] - mean
    shares = {
        f"in {level:.0%}": round(float(np.mean(np.abs(error) < ndtri(0.5 + level / 2) * sd)), 3) for level in LEVELS
    }
    return {
        "from": f"{start:.1f}",
        "years": years,
        "weeks": int(some.sum()),
        "rmse (ppm)": round(float(np.sqrt(np.mean(error**2))), 2),
        "mean sd (ppm)": round(float(sd.mean()), 2),
        **shares,
    }


def draw(model: GPRegressor, weeks: Weeks, start: float) -> Figure:
    """Weeks and forecast, then every term."""
    figure = new_figure(9.0, 8.0)
    grid = figure.add_gridspec(3, 2, height_ratios=(1.5, 1.0, 1.0))
    panels = [figure.add_subplot(where) for where in (grid[0, :], grid[1, 0], grid[1, 1], grid[2, 0], grid[2, 1])]
    whole, trend, season, passing, ahead = panels
    at = np.arange(weeks.year[0], weeks.year[-1], 1.0 / 52.0)
    with looking_outside():
        mean, sd = model.predict(at[:, None], return_std=True)
        effects = model.effects(at[:, None])
    known = weeks.year < start
    for ax in (whole, ahead):
        ax.plot(weeks.year[known], weeks.co2[known], ".", ms=2, color=GREY, label="weeks of the fit")
        ax.plot(weeks.year[~known], weeks.co2[~known], ".", ms=2, color=RED, label="held out")
        draw_band(ax, at, mean, 1.96 * sd, label="95 % interval")
        ax.set_ylabel("CO$_2$ (ppm)")
    whole.legend(loc="upper left", fontsize=8, frameon=False, markerscale=3)
    ahead.set(
        xlim=(start - 2.0, at[-1]), ylim=(weeks.co2[weeks.year > start - 2.0].min() - 3.0, None), title="forecast"
    )
    for ax, place, name in ((trend, 0, "trend"), (passing, 2, "what passes")):
        draw_band(ax, at, effects.mean[:, place], 1.96 * effects.std[:, place], ORANGE if place else BLUE)
        ax.set(title=name, ylabel="ppm")
        ax.axvline(start, color="0.35", lw=0.9, ls="--")
    for year, colour in ((1960, GREY), (1976, ORANGE), (1992, BLUE)):
        some = (at >= year) & (at < year + 1)
        season.plot(12 * (at[some] - year), effects.mean[some, 1], color=colour, label=str(year))
    season.set(title="season", xlabel="months since the first of January", ylabel="ppm")
    season.legend(fontsize=8, frameon=False)
    for ax in panels:
        tidy(ax)
        ax.title.set_fontsize(10)
        if ax is not season:
            ax.set_xlabel("year")
    figure.suptitle("Carbon dioxide at Mauna Loa", fontsize=11)
    return figure


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    if find_spec("statsmodels") is None:
        print(
            "mauna_loa: skipped, because statsmodels, which ships the data, is not installed: pip install statsmodels"
        )
        return
    weeks = load_weeks()
    if run.quick:
        weeks = Weeks(weeks.year[::8], weeks.co2[::8])
    last = float(weeks.year[-1]) - HELD_OUT
    spans = [(last, HELD_OUT)] if run.quick else [(1978.0, 5), (1983.0, 5), (1988.0, 5), (last, HELD_OUT)]
    rows: list[dict[str, Any]] = []
    model = GPRegressor()
    for start, years in spans:
        started = time.perf_counter()
        model = fitted(weeks, start, run.quick)
        run.say(f"before {start:.1f}: {model.kernel_}, {time.perf_counter() - started:.1f} s")
        rows.append(checked(model, weeks, start, years))
    run.finish(rows, draw(model, weeks, last))


if __name__ == "__main__":
    main()
