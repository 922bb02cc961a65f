"""Late flights: the probability of arriving more than 15 minutes late, as a sum of eight effects on the logit scale.

The flights that left New York in 2013 (or, with --us, those of the whole country, if VFF_DATA has them), two thirds to
learn from and one third to be predicted, with GPClassifier as it comes, a logistic regression on the same columns, and
the share of late flights among the training rows. Log-loss and Brier score are means over the held-out rows, the less
the better; AUC is the probability that of two flights, one late and one not, the late one has the higher prediction.
Departure, arrival and air time nearly say how long a flight was under way, so that their effects offset one another:
each is large by itself.

A second picture shows whether the probabilities can be believed: held-out flights in ten groups of equal size, by the
probability they were given, with the share of late ones in each.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _common import BLUE, GREEN, GREY, Run, looking_outside, new_figure, tidy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vff import GPClassifier, plot
from vff.datasets import FLIGHT_COLUMNS, load_flights_nyc, load_flights_us

LATE, SEED, GROUPS = 15.0, 0, 10
QUICK_ROWS, QUICK_HARMONICS = 2000, 4
CLOCK = ("dep_time", "arr_time")
VFF, LOGISTIC, CONSTANT = "GPClassifier", "logistic regression", "constant"
Lines = list[dict[str, Any]]


class Split(NamedTuple):
    """Flights to learn from and flights to be predicted."""

    X: pd.DataFrame
    y: np.ndarray
    X_new: pd.DataFrame
    y_new: np.ndarray


class Reliability(NamedTuple):
    """Groups of rows by their predicted probability."""

    predicted: np.ndarray
    """Mean in every group."""
    observed: np.ndarray
    """Share of ones in every group."""
    error: np.ndarray
    """Standard deviation of that share, were the predictions true."""
    rows: np.ndarray


def flights(us: bool = False) -> Split:
    """All flights of which everything is known, in a random order that is always the same."""
    data = (load_flights_us if us else load_flights_nyc)()
    X, y = pd.DataFrame(data.X, columns=list(FLIGHT_COLUMNS)), data.y > LATE
    train, test = np.split(np.random.default_rng(SEED).permutation(len(y)), [round(2 * len(y) / 3)])
    return Split(X.iloc[train], y[train], X.iloc[test], y[test])


def first_rows(part: Split, learn: int, predict: int) -> Split:
    return Split(part.X.iloc[:learn], part.y[:learn], part.X_new.iloc[:predict], part.y_new[:predict])


def reliability(p: np.ndarray, y: np.ndarray, groups: int = GROUPS) -> Reliability:
    """Groups of equal size; as y is a sum of independent zeros and ones, its variance is that of p (1 - p)."""
    parts = np.array_split(np.argsort(p, kind="stable"), groups)
    rows = np.array([own.size for own in parts])
    predicted, observed = (np.array([values[own].mean() for own in parts]) for values in (p, y))
    spread = np.array([np.sum(p[own] * (1.0 - p[own])) for own in parts])
    return Reliability(predicted, observed, np.sqrt(spread) / rows, rows)


def draw_reliability(ax: Axes, found: Reliability, colour: str = BLUE, label: str | None = None) -> None:
    """Shares against probabilities, with two standard deviations either way; the truth is on the diagonal."""
    ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, lw=0.8, zorder=0)
    ax.errorbar(
        found.predicted, found.observed, yerr=2.0 * found.error, fmt="o", ms=4, lw=1.2, color=colour, label=label
    )
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    tidy(ax)


def constant(part: Split) -> np.ndarray:
    return np.full(len(part.y_new), part.y.mean())


def logistic(part: Split) -> np.ndarray:
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(part.X, part.y)
    return model.predict_proba(part.X_new)[:, 1]


def additive(model: GPClassifier, part: Split) -> np.ndarray:
    model.fit(part.X, part.y)
    with looking_outside():  # a flight may be longer than any that was learnt from
        return model.predict_proba(part.X_new)[:, 1]


def score(name: str, p: np.ndarray, y: np.ndarray, seconds: float) -> dict[str, Any]:
    groups = reliability(p, y)
    line = {"model": name, "log-loss": f"{log_loss(y, p):.4f}", "Brier": f"{brier_score_loss(y, p):.4f}"}
    line |= {"AUC": f"{roc_auc_score(y, p):.4f}", "seconds": f"{seconds:.1f}"}
    return {**line, "worst group (%)": f"{100.0 * np.abs(groups.observed - groups.predicted).max():.2f}"}


def draw_effects(model: GPClassifier, rows: int) -> Figure:
    """A panel for every column, clock times ticked as such."""
    labels = FLIGHT_COLUMNS | {"dep_time": "departure (clock time)", "arr_time": "arrival (clock time)"}
    figure = plot.effects(model, xlabels=labels, ylabel="effect on the logit of P(late)", ncols=4)
    for ax in figure.axes:
        if ax.get_label() in CLOCK:
            ax.set_xticks([60 * hour for hour in range(0, 25, 6)], [f"{hour:02d}:00" for hour in range(0, 25, 6)])
    figure.suptitle(f"What each column adds to the log-odds of arriving late, from {rows:,} flights", fontsize=11)
    return figure


def draw_groups(predictions: dict[str, np.ndarray], y: np.ndarray) -> Figure:
    figure = new_figure(5.6, 5.4)
    ax = figure.subplots()
    most = 0.0
    for name, colour in ((LOGISTIC, GREEN), (VFF, BLUE)):
        found = reliability(predictions[name], y)
        draw_reliability(ax, found, colour, name)
        most = max(most, 1.1 * float(found.predicted.max()), 1.1 * float(found.observed.max()))
    ax.set(xlim=(0.0, min(1.0, most)), ylim=(0.0, min(1.0, most)))
    ax.set_xlabel(f"predicted probability of being more than {LATE:g} minutes late", fontsize=9)
    ax.set_ylabel("share that was", fontsize=9)
    ax.legend(fontsize=8, frameon=False, loc="upper left")
    ax.set_title(f"{y.size:,} held-out flights in {GROUPS} groups, ± 2 standard deviations", fontsize=10)
    return figure


def wants_us() -> bool:
    """Take --us from the command line, which the other options know nothing of."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--us", action="store_true", help="flights of the whole country")
    chosen, rest = parser.parse_known_args(sys.argv[1:])
    sys.argv[1:] = rest
    return chosen.us


def main() -> None:
    us = wants_us()
    run = Run.from_command_line(__file__, __doc__)
    try:
        part = flights(us)
    except (OSError, ImportError) as error:
        print(f"late_flights: skipped, because the data could not be had: {error}")
        return
    if run.quick:
        part = first_rows(part, QUICK_ROWS, QUICK_ROWS)
    model = GPClassifier(frequencies=QUICK_HARMONICS) if run.quick else GPClassifier()
    methods: dict[str, Callable[[Split], np.ndarray]] = {
        CONSTANT: constant,
        LOGISTIC: logistic,
        VFF: partial(additive, model),
    }
    rows, predictions = [], {}
    for name, method in methods.items():
        started = time.perf_counter()
        predictions[name] = method(part)
        rows.append(score(name, predictions[name], part.y_new, time.perf_counter() - started))
        run.say(f"{name}: log-loss {rows[-1]['log-loss']} after {rows[-1]['seconds']} s")
    run.finish(rows, draw_effects(model, len(part.y)))
    draw_groups(predictions, part.y_new).savefig(
        run.folder / f"{run.name}_reliability.png", dpi=70 if run.quick else 150
    )
    print(f"\n{100 * part.y.mean():.1f} % of {len(part.y):,} flights were late; {len(part.y_new):,} were held out")
    for note in model.notes_:
        print(f"note: {note}")


if __name__ == "__main__":
    main()
