"""The rotation of a spotted star from its light: two oscillators, at a period and near half of it, with a posterior.

A simulated light curve, of which the truth is known: two oscillators (spots on both sides of the star), a slow change
and white noise, seen at irregular times with two gaps. Periods, qualities and variances are found from no start at all;
then ``inference="mcmc"`` says how well they are known. The table has every hyperparameter with its 90 % interval.
"""

import time
from typing import Any

import numpy as np
from _common import BLUE, GREY, ORANGE, Run, draw_band, new_figure, tidy
from matplotlib.figure import Figure
from scipy.signal import lombscargle

from vff import GPRegressor, Matern52, Oscillator

PERIOD, DAYS, NOISE = 8.4, 90.0, 0.3
GAPS = ((27.0, 33.0), (61.0, 66.0))
STAR = (
    Oscillator(0, period=PERIOD, quality=25.0, variance=1.0)
    + Oscillator(0, period=0.5 * PERIOD, quality=15.0, variance=0.35)
    + Matern52(0, lengthscale=25.0, variance=0.6)
)


def simulated(rows: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Days and relative flux (parts per thousand), by the Cholesky factor of the dense kernel."""
    rng = np.random.default_rng(seed)
    day = np.sort(rng.uniform(0.0, DAYS, rows))
    for low, high in GAPS:
        day = day[(day < low) | (day > high)]
    K = sum(term(day, day) for term in STAR.terms)  # pyright: ignore[reportCallIssue]
    f = np.linalg.cholesky(K + 1e-9 * np.eye(day.size)) @ rng.normal(size=day.size)
    return day, f + NOISE * rng.normal(size=day.size)


def found(day: np.ndarray, flux: np.ndarray) -> GPRegressor:
    """Two oscillators from no start at all; then all terms, the slower oscillator first, from where these ended."""
    swings: Any = GPRegressor(Oscillator(0) + Oscillator(0)).fit(day[:, None], flux).kernel_
    first, second = sorted(swings.terms, key=lambda own: -own.period)
    return GPRegressor(first + second + Matern52(0, lengthscale=0.5 * DAYS, variance=0.1)).fit(day[:, None], flux)


def sampled(model: GPRegressor, day: np.ndarray, flux: np.ndarray, quick: bool) -> dict[str, np.ndarray]:
    """Draws of all hyperparameters by name: enough harmonics for the lines, few for the slow change."""
    M = 24 if quick else 36
    effort: dict[str, Any] = (
        {"draws": 10, "warmup": 20, "chains": 1} if quick else {"draws": 250, "warmup": 250, "chains": 2}
    )
    chain = GPRegressor(
        model.kernel_, inference="mcmc", frequencies={"0": M, "0_2": M, "0_3": 6}, random_state=0, **effort
    )
    samples = chain.fit(day[:, None], flux).samples_
    assert samples is not None
    return {name: np.ravel(draws) for name, draws in samples.values.items()}


NAMES = {
    "rotation period (days)": ("period[0 in 0]", 0, "period"),
    "its quality": ("quality[0 in 0]", 0, "quality"),
    "its variance": ("variance[0]", 0, "variance"),
    "second period (days)": ("period[0 in 0_2]", 1, "period"),
    "quality of the second": ("quality[0 in 0_2]", 1, "quality"),
    "variance of the second": ("variance[0_2]", 1, "variance"),
}


def tabled(model: GPRegressor, draws: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    kernel: Any = model.kernel_
    rows = []
    for title, (name, place, field) in NAMES.items():
        low, middle, high = np.quantile(draws[name], [0.05, 0.5, 0.95])
        truth, learnt = (float(getattr(own.terms[place], field)) for own in (STAR, kernel))
        numbers = {"truth": truth, "learnt": learnt, "median": middle, "lower": low, "upper": high}
        rows.append({"hyperparameter": title, **{key: float(f"{value:.4g}") for key, value in numbers.items()}})
    return rows


def draw(model: GPRegressor, draws: dict[str, np.ndarray], day: np.ndarray, flux: np.ndarray) -> Figure:
    figure = new_figure(9.0, 6.0)
    grid = figure.add_gridspec(2, 2, height_ratios=(1.15, 1.0))
    curve, lines, zoom = figure.add_subplot(grid[0, :]), figure.add_subplot(grid[1, 0]), figure.add_subplot(grid[1, 1])
    at = np.linspace(0.0, DAYS, 900)
    mean, variance = model.predict_f(at[:, None])
    curve.plot(day, flux, ".", ms=2.5, color=GREY, label="light")
    draw_band(curve, at, mean, 1.96 * np.sqrt(variance), label="fit, 95 %")
    curve.set(xlabel="time (days)", ylabel="relative flux (parts per thousand)", xlim=(0.0, DAYS))
    curve.legend(loc="upper right", fontsize=8, frameon=False, ncols=2, markerscale=3)
    periods = np.geomspace(2.5, 25.0, 1200)
    power = lombscargle(day, flux - flux.mean(), 2.0 * np.pi / periods, normalize=True)
    lines.fill_between(periods, power, color=GREY, alpha=0.4, lw=0, label="Lomb-Scargle periodogram")
    lines.set(xscale="log", xlabel="period (days)", ylabel="power", ylim=(0.0, None))
    lines.set_xticks([3, 5, 8, 12, 20], ["3", "5", "8", "12", "20"])
    lines.minorticks_off()
    beside = lines.twinx()
    for name, colour, label in (
        ("period[0 in 0]", BLUE, "posterior, rotation"),
        ("period[0 in 0_2]", ORANGE, "posterior, second"),
    ):
        edges = np.geomspace(2.5, 25.0, 140)
        beside.hist(draws[name], bins=edges.tolist(), density=True, color=colour, alpha=0.8, label=label)
    beside.set_yticks([])
    beside.spines[["top", "right"]].set_visible(False)
    handles = [own for ax in (lines, beside) for own in ax.get_legend_handles_labels()[0]]
    labels = [own for ax in (lines, beside) for own in ax.get_legend_handles_labels()[1]]
    lines.legend(handles, labels, fontsize=7, frameon=False, loc="upper right")
    zoom.hist(draws["period[0 in 0]"], bins=40, density=True, color=BLUE, alpha=0.8)
    zoom.axvline(PERIOD, color="black", lw=1.0, ls="--")
    zoom.text(PERIOD, zoom.get_ylim()[1], " truth", fontsize=8, va="top")
    zoom.set(xlabel="rotation period (days)", ylabel="posterior density (per day)")
    for ax in (curve, lines, zoom):
        tidy(ax)
    figure.suptitle("A spotted star: its light, and how well its rotation is known", fontsize=11)
    return figure


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    day, flux = simulated(400 if run.quick else 900)
    started = time.perf_counter()
    model = found(day, flux)
    run.say(f"{day.size} rows: {model.kernel_}, {time.perf_counter() - started:.1f} s")
    started = time.perf_counter()
    draws = sampled(model, day, flux, run.quick)
    run.say(f"{draws['noise_variance'].size} draws, {time.perf_counter() - started:.1f} s")
    run.finish(tabled(model, draws), draw(model, draws, day, flux))


if __name__ == "__main__":
    main()
