"""Interactions: flights from New York as a sum of eight effects, and with the three pairs of columns that add most.

The rows, the held-out third and the scores of examples/demo.py. The additive model is fitted first; what it leaves
unexplained says which pairs of columns are worth a product of their own (vff.suggest_interactions), and the three most
promising are added to the sum. Beside it, interactions="auto" lets pairs join as long as they pay. Errors are for
delays less the mean of the training rows, divided by their standard deviation; the gain is what the bound was expected
to win from a pair, in nats.
"""

import runpy
import time
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import Run, looking_outside

from vff import GPRegressor, Matern32, plot, suggest_interactions
from vff.datasets import FLIGHT_COLUMNS, load_flights_nyc
from vff.kernels import Kernel
from vff.report import table

DEMO = runpy.run_path(str(Path(__file__).resolve().parents[1] / "examples" / "demo.py"))
PAIRS = 3
CLOCK = ("dep_time", "arr_time")
Pair = tuple[str, str]


def with_pairs(columns: Sequence[str], pairs: Sequence[Pair]) -> Kernel:
    """A Matérn-3/2 for every column, and a product of two for every pair."""
    mains: list[Kernel] = [Matern32(column) for column in columns]
    return reduce(lambda left, right: left + right, mains + [Matern32(a) * Matern32(b) for a, b in pairs])


def features(model: GPRegressor) -> int:
    """How many the fit came to: 2M + 1 + q for a column, and the product of these for a pair."""
    sizes = [
        2 * np.atleast_1d(model.frequencies_[term]) + 1 + np.atleast_1d(model.edges_[term])
        for term in model.frequencies_
    ]
    return int(sum(np.prod(size) for size in sizes))


def fit(kernel: Kernel, options: dict[str, Any], X: pd.DataFrame, y: np.ndarray) -> tuple[GPRegressor, float]:
    started = time.perf_counter()
    model = GPRegressor(kernel, **options).fit(X, y)
    return model, time.perf_counter() - started


def score(name: str, model: GPRegressor, seconds: float, X: pd.DataFrame, y: np.ndarray, train: np.ndarray) -> dict:
    """The scores of the demo as numbers."""
    with looking_outside():
        found = {label: text for label, text, _ in DEMO["scores"](model, X, y, train)}
    mse, nlpd = (float(found[f"{measure}, standardised"].split()[0]) for measure in ("MSE", "NLPD"))
    line = {"model": name, "mse": mse, "nlpd": nlpd, "seconds": round(seconds, 2), "features": features(model)}
    return {**line, "elbo": round(float(model.elbo_), 1)}


def draw(model: GPRegressor, pairs: Sequence[Pair], target: str) -> Any:
    """A panel for every pair, clock times ticked as such."""
    names = [" * ".join(pair) for pair in pairs]
    figure = plot.effects(model, terms=names, ylabel=f"effect on {target}", ncols=len(names))
    for ax in figure.axes:
        pair = str(ax.get_label()).split(" * ")
        for axis, column in zip((ax.xaxis, ax.yaxis), pair, strict=False):
            if len(pair) == 2 and column in CLOCK:
                low, high = sorted(axis.get_view_interval())
                hours = [hour for hour in range(0, 25, 6) if low <= 60 * hour <= high]
                axis.set_ticks([60 * hour for hour in hours], [f"{hour:02d}:00" for hour in hours])
    figure.suptitle("What pairs of columns add to the arrival delay beyond the sum of their effects", fontsize=11)
    return figure


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    try:
        data = load_flights_nyc()
    except (OSError, ImportError) as error:
        print(f"interactions: skipped, because the data could not be had: {error}")
        return
    X, options = pd.DataFrame(data.X, columns=list(FLIGHT_COLUMNS)), {"frequencies": 2} if run.quick else {}
    train, test = DEMO["split"](len(X))
    if run.quick:
        train, test = train[:3000], test[:1000]
    learn, held_out = (X.iloc[train], data.y[train]), (X.iloc[test], data.y[test], data.y[train])
    additive, seconds = fit(with_pairs(list(X), ()), options, *learn)
    rows = [score("additive", additive, seconds, *held_out)]
    run.say(f"additive: NLPD {rows[0]['nlpd']:.4f} in {seconds:.1f} s; looking at pairs ...")
    started = time.perf_counter()
    suggested = suggest_interactions(additive, *learn)[:PAIRS]
    pairs: list[Pair] = [tuple(found.columns) for found in suggested]
    run.say(f"{', '.join(' * '.join(pair) for pair in pairs)} after {time.perf_counter() - started:.1f} s; fitting ...")
    model, seconds = fit(with_pairs(list(X), pairs), options, *learn)
    rows.append(score(f"with {len(pairs)} interactions", model, seconds, *held_out))
    run.say(f"NLPD {rows[1]['nlpd']:.4f} in {seconds:.1f} s; letting pairs join ...")
    chosen, seconds = fit(with_pairs(list(X), ()), {**options, "interactions": "auto"}, *learn)
    rows.append(score('interactions="auto"', chosen, seconds, *held_out))
    run.finish(rows, draw(model, pairs, data.target))
    gained = rows[1]["elbo"] - rows[0]["elbo"]
    print(f"\nthe bound gained {gained:.0f} nats; expected of the pairs one by one:\n")
    print(
        table([{"pair": " * ".join(found.columns), "gain (nats)": round(float(found.gain), 1)} for found in suggested])
    )
    print(f'\ninteractions="auto":\n\n{chosen.interactions_!r}\n')
    for note in model.notes_:
        print(f"note: {note}")


if __name__ == "__main__":
    main()
