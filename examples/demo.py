"""Fit arrival delays of a year of flights from New York against the minute of departure, and draw the fit."""

import time
from pathlib import Path

import numpy as np
from matplotlib import pyplot

from vff import GPRegressor, Matern32, plot
from vff.datasets import Dataset, load_flights_nyc
from vff.report import table

PICTURE = Path("out") / "demo.png"
_HELD_OUT = 3  # one row in three


def split(data: Dataset, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to learn from, and a held-out third."""
    order = np.random.default_rng(seed).permutation(data.y.size)
    cut = data.y.size // _HELD_OUT
    return order[cut:], order[:cut]


def scores(model: GPRegressor, X: np.ndarray, y: np.ndarray, train: np.ndarray) -> list[tuple[str, str, str]]:
    """Mean squared error and negative log predictive density of the model, and of one normal law for all flights."""
    mse = np.mean((y - model.predict(X)) ** 2)
    nlpd = -np.mean(model.log_predictive_density(X, y))
    mean, variance = train.mean(), train.var()
    flat_mse = np.mean((y - mean) ** 2)
    flat_nlpd = 0.5 * (np.log(2 * np.pi * variance) + flat_mse / variance)
    return [
        ("held-out MSE", f"{mse:.1f} minutes²", f"a constant: {flat_mse:.1f}"),
        ("held-out NLPD", f"{nlpd:.4f} nats per row", f"a constant: {flat_nlpd:.4f}"),
    ]


def describe(model: GPRegressor, seconds: float, rows: int) -> list[tuple[str, str, str]]:
    """What was chosen and learnt."""
    (a, b), M = model.domain_[0], model.frequencies_[0]
    kernel = model.kernel_
    assert isinstance(kernel, Matern32)
    assert kernel.variance
    assert kernel.lengthscale
    least, most = model.elbo_gap_
    return [
        ("fit", f"{seconds:.2f} s", f"{rows:,} rows, hyperparameters learnt"),
        ("frequencies", f"M = {M}", f"{2 * M + 1} harmonics and {model.edges_[0]} edge functions, chosen by the fit"),
        ("domain", f"[{a:g}, {b:g}] minutes", "chosen by the fit"),
        ("engine", model.engine_, model.engine_reason_.removeprefix(f"{model.engine_}: ")),
        ("lengthscale", f"{kernel.lengthscale:.1f} minutes", "over which delays stay alike"),
        ("signal", f"{np.sqrt(kernel.variance):.2f} minutes", "standard deviation of f"),
        ("noise", f"{np.sqrt(model.noise_variance_):.2f} minutes", "standard deviation about f"),
        ("ELBO", f"{model.elbo_:.2f} nats", "lower bound on log p(y)"),
        ("its gap", f"{least:.1f} to {most:.1f} nats", "expected below log p(y), if the model is right"),
    ]


def draw(model: GPRegressor, data: Dataset) -> None:
    """The fit over all flights, with clock times under the minutes."""
    figure, ax = pyplot.subplots(figsize=(8.0, 4.6), layout="constrained")
    plot.fit(model, data.X, data.y, ax, xlabel=data.names[0], ylabel=data.target)
    hours = np.arange(0, 25, 3)
    ax.set_xticks(60 * hours, [f"{60 * h}\n{h:02d}:00" for h in hours])
    ax.set_title("Flights from New York City, 2013")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


def main() -> None:
    data = load_flights_nyc(["dep_time"])
    print(f"{data.target} against {data.names[0]}")
    print(f"{data.y.size:,} flights; {data.dropped:,} without a departure or arrival (cancelled, diverted) left out\n")
    train, test = split(data)
    started = time.perf_counter()
    model = GPRegressor(Matern32(0)).fit(data.X[train], data.y[train])
    seconds = time.perf_counter() - started
    rows = describe(model, seconds, train.size)
    print(table([*rows, *scores(model, data.X[test], data.y[test], data.y[train])]))
    for note in model.notes_:
        print(f"note: {note}")
    draw(model, data)
    print(f"\nthe picture is in {PICTURE}")


if __name__ == "__main__":
    main()
