"""The pictures of the pages on functions that come again: python docs/images/seasons.py [--out FOLDER]."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vff import GPRegressor, Matern32, Oscillator, Periodic

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#666666"


def new_figure() -> tuple[Figure, Axes, Axes]:
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.35))
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
        ax.title.set_fontsize(10)
    return figure, left, right


def drawn(kernel: Any, x: np.ndarray, seed: int) -> np.ndarray:
    """A function of the prior."""
    values, vectors = np.linalg.eigh(kernel(x, x))
    return vectors @ (np.sqrt(np.maximum(values, 0.0)) * np.random.default_rng(seed).normal(size=x.size))


def periodic() -> Figure:
    """Kinds of a season, and the forecast of one that drifts."""
    figure, left, right = new_figure()
    hour = np.linspace(0.0, 48.0, 481)
    kinds = {
        "order=0": Periodic("hour", 24, order=0, lengthscale=6.0, variance=1.0),
        "order=1, the usual": Periodic("hour", 24, lengthscale=6.0, variance=1.0),
        "exponential-sine": Periodic("hour", 24, kind="exponential-sine", lengthscale=1.0, variance=1.0),
    }
    for n, ((name, kernel), colour) in enumerate(zip(kinds.items(), (GREY, ORANGE, BLUE), strict=True)):
        day = drawn(kernel, hour, n + 2)
        day = (day - day.mean()) / day.std()
        left.plot(hour, day - 5.0 * n, color=colour, lw=1.2)
        left.text(24.5, 2.3 - 5.0 * n, name, fontsize=8, color=colour)
    left.axvline(24.0, color="0.35", lw=0.9, ls="--")
    left.set(
        xlabel="time (hours)",
        yticks=[],
        xticks=[0, 12, 24, 36, 48],
        title="one day of each kind, drawn twice",
        ylim=(-12.5, 3.5),
    )
    left.spines["left"].set_visible(False)
    rng = np.random.default_rng(1)
    t = np.arange(0.0, 240.0)
    load = (1.0 + t / 400.0) * np.sin(2 * np.pi * t / 24) + 0.5 * np.cos(4 * np.pi * t / 24 + t / 200.0)
    load = load + 0.25 * rng.normal(size=t.size)
    model = GPRegressor(Periodic(0, 24) * Matern32(0)).fit(t[:, None], load)
    ahead = np.linspace(120.0, 480.0, 721)
    mean, sd = _outside(model, ahead)
    right.plot(t[120:], load[120:], ".", ms=3, color=GREY, label="rows of the fit")
    right.fill_between(ahead, mean - 1.96 * sd, mean + 1.96 * sd, color=BLUE, alpha=0.25, lw=0, label="95 % of rows")
    right.plot(ahead, mean, color=BLUE, lw=1.2)
    right.axvline(240.0, color="0.35", lw=0.9, ls="--")
    right.set(xlabel="time (hours)", ylabel="load", title="a season that drifts, ten days ahead")
    right.set(xticks=[120, 192, 240, 312, 384, 480])
    right.legend(fontsize=8, frameon=False, ncols=2, loc="upper left")
    right.set_ylim(None, right.get_ylim()[1] + 1.0)
    return figure


def oscillator() -> Figure:
    """Covariances of some qualities, and a fit of the rows of the page."""
    figure, left, right = new_figure()
    lag = np.linspace(0.0, 5.0, 400)
    for quality, colour in ((0.5, GREY), (3.0, ORANGE), (20.0, BLUE)):
        kernel = Oscillator("t", period=1.0, quality=quality, variance=1.0)
        left.plot(lag, kernel(np.zeros(1), lag)[0], color=colour, lw=1.4, label=f"quality {quality:g}")
    left.axhline(0.0, color="0.8", lw=0.8, zorder=0)
    left.set(xlabel="lag (periods)", ylabel="correlation", title="how long an oscillation lasts")
    left.legend(fontsize=8, frameon=False, loc="upper right", ncols=3, columnspacing=0.8, handlelength=1.2)
    left.set_ylim(-1.0, 1.35)
    rng = np.random.default_rng(0)
    day = np.sort(rng.uniform(0, 400, 2000))
    drift = np.cumsum(0.05 * rng.normal(size=2000))
    flux = np.sin(2 * np.pi * day / 23.7 + drift) + 0.3 * rng.normal(size=2000)
    model = GPRegressor(Oscillator(0)).fit(day[:, None], flux)
    at = np.linspace(300.0, 470.0, 500)
    mean, sd = _outside(model, at)
    kernel: Any = model.kernel_
    right.plot(day[day > 300], flux[day > 300], ".", ms=2, color=GREY, label="rows of the fit")
    right.fill_between(at, mean - 1.96 * sd, mean + 1.96 * sd, color=BLUE, alpha=0.25, lw=0, label="95 % of rows")
    right.plot(at, mean, color=BLUE, lw=1.2)
    right.axvline(400.0, color="0.35", lw=0.9, ls="--")
    title = f"learnt: period {kernel.period:.1f} days, quality {kernel.quality:.0f}"
    right.set(xlabel="time (days)", ylabel="flux", title=title)
    right.legend(fontsize=8, frameon=False, ncols=2, loc="upper left")
    right.set_ylim(None, right.get_ylim()[1] + 0.6)
    return figure


def _outside(model: GPRegressor, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of rows, beyond the data too."""
    import warnings

    from vff import ExtrapolationWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        mean, sd = model.predict(x[:, None], return_std=True)
    return mean, sd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    folder = parser.parse_args().out
    for name, draw in (("periodic", periodic), ("oscillator", oscillator)):
        draw().savefig(folder / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
