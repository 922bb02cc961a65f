"""Fit a year of flights from New York: delay as a sum of effects of eight columns, scored, drawn, and what to add.

Departure, arrival, air time and distance nearly determine one another, so that their effects would be large and offset
one another. The demo says the same in columns that do not: when a flight left, how far it went, and how much longer
than usual on its route it was on the ground and in the air.
"""

import time
from pathlib import Path

import numpy as np
import pandas as pd

from vff import GPRegressor, plot, suggest_interactions
from vff.datasets import FLIGHT_COLUMNS, load_flights_nyc
from vff.report import table

PICTURE = Path("out") / "demo.png"
LABELS = {name: FLIGHT_COLUMNS[name] for name in ("month", "day", "weekday", "dep_time")} | {
    "ground": "on the ground, beyond usual (minutes)",
    "air": "in the air, beyond usual (minutes)",
    "distance": FLIGHT_COLUMNS["distance"],
    "plane_age": FLIGHT_COLUMNS["plane_age"],
}
_HELD_OUT = 3  # one row in three
_SUGGESTIONS = 3
_DAY = 1440  # minutes


def readable(X: pd.DataFrame) -> pd.DataFrame:
    """Eight columns from which the eight of the data set follow; a distance stands for a route.

    The clock runs from departure to arrival for the time in the air, on the ground, and for time zones, which are the
    same for all flights of a route.
    """
    route, clock = X["distance"], X["arr_time"] - X["dep_time"]
    ground = (clock - X["air_time"] + _DAY / 2) % _DAY - _DAY / 2  # arrivals past midnight
    usual = {"ground": ground, "air": X["air_time"]}
    beyond = {name: values - values.groupby(route).transform("median") for name, values in usual.items()}
    # a handful of flights lie further out
    every = X.assign(**{name: values.clip(-60.0, 150.0) for name, values in beyond.items()})
    return pd.DataFrame(every, columns=list(LABELS))


def split(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to learn from, and a held-out third."""
    order = np.random.default_rng(seed).permutation(rows)
    cut = rows // _HELD_OUT
    return order[cut:], order[:cut]


def describe(model: GPRegressor, rows: int) -> list[tuple[str, str, str]]:
    """What the fit cost and came to."""
    seconds = model.timing_
    phases = ", ".join(f"{phase} {spent:.2f} s" for phase, spent in seconds.items())
    return [
        ("rows", f"{rows:,}", "to learn from"),
        ("fit", f"{sum(seconds.values()):.2f} s", phases),
        ("noise", f"{np.sqrt(model.noise_variance_):.2f} minutes", "standard deviation about the sum of effects"),
        ("ELBO", f"{model.elbo_:.1f} nats", "lower bound on log p(y)"),
    ]


def scores(model: GPRegressor, X: pd.DataFrame, y: np.ndarray, train: np.ndarray) -> list[tuple[str, str, str]]:
    """Errors on held-out rows, beside those of one normal law for all flights.

    Standardised: for delays less the mean of the training rows, divided by their standard deviation.
    """
    mean, variance = train.mean(), train.var()
    mse, flat_mse = np.mean((y - model.predict(X)) ** 2), np.mean((y - mean) ** 2)
    nlpd = -np.mean(model.log_predictive_density(X, y))
    flat_nlpd = 0.5 * (np.log(2 * np.pi * variance) + flat_mse / variance)
    unit = 0.5 * np.log(variance)  # a density of delays in minutes, per standard deviation
    return [
        ("held-out rows", f"{y.size:,}", "a third, drawn at random"),
        ("MSE, standardised", f"{mse / variance:.4f}", f"a constant: {flat_mse / variance:.4f}"),
        ("MSE", f"{mse:.1f} minutes²", f"a constant: {flat_mse:.1f}"),
        ("NLPD, standardised", f"{nlpd - unit:.4f} nats per row", f"a constant: {flat_nlpd - unit:.4f}"),
        ("NLPD", f"{nlpd:.4f} nats per row", f"a constant: {flat_nlpd:.4f}"),
    ]


def shares(model: GPRegressor) -> list[float]:
    """Of the variance of the delay, by term."""
    return [term.variance_share or 0.0 for term in model.fit_.terms]


def describe_terms(model: GPRegressor) -> list[dict[str, object]]:
    """What was chosen and learnt for every column."""
    rows = []
    for bound, term, share in zip(model.rows_.terms, model.fit_.terms, shares(model), strict=True):
        column = str(bound.term.columns[0])
        a, b = model.domain_[column]
        rows.append(
            {
                "term": LABELS[column],
                "lengthscale": float(f"{term.lengthscales[0]:.3g}"),
                "M": term.M,
                "domain": f"[{a:g}, {b:g}]",
                "determined": round(term.edf, 1),
                "concurvity": None if term.concurvity is None else round(term.concurvity, 2),
                "% of variance": round(100 * share, 2),
            }
        )
    return rows


def explain(model: GPRegressor) -> str:
    """How M, the domains and the engine were chosen, and how to read the shares."""
    stages, explained = model.fit_.history, sum(shares(model))
    missed, allowed = stages[-1].bound_gap, stages[-1].tolerance
    end = "until it was enough" if missed <= allowed else "as far as these reach"
    sentences = [
        f"M grew in {len(stages)} stage(s), on the sums of one pass over the rows, {end}; the bound may gain "
        f"about {missed:.1f} nats more ({allowed:.1f} are aimed at).",
        "The domains are the ranges of the data: edge functions take care of the ends.",
        f"Engine {model.engine_}: {model.engine_reason_.removeprefix(f'{model.engine_}: ')}.",
        f"All together explain {100 * explained:.2f} % of the variance of the delay, and the shares add up to it.",
        "Determined is how many of a term's coefficients the data determine; concurvity, how much of its effect the "
        "other terms could stand in for.",
    ]
    return "\n".join(sentences)


def suggest(model: GPRegressor, X: pd.DataFrame, y: np.ndarray) -> str:
    """The pairs of columns whose products would add most to the sum."""
    best = suggest_interactions(model, X, y)[:_SUGGESTIONS]
    pairs = ", ".join(f"{pair.name} ({pair.gain:,.0f} nats)" for pair in best)
    return f"Products worth adding to the sum, and about what each would gain: {pairs}."


def draw(model: GPRegressor, target: str) -> None:
    """One panel per column, ticked as its unit asks."""
    labels = LABELS | {"weekday": "day of the week", "dep_time": "departure"}
    figure = plot.effects(model, xlabels=labels, ylabel=f"effect on {target}", ncols=4)
    panels = {ax.get_label(): ax for ax in figure.axes}
    hours = np.arange(0, 25, 6)
    panels["dep_time"].set_xticks(60 * hours, [f"{hour:02d}:00" for hour in hours])
    panels["month"].set_xticks(range(1, 13))
    panels["day"].set_xticks([1, *range(5, 31, 5)])
    panels["weekday"].set_xticks(range(1, 8), ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
    figure.suptitle("Flights from New York City, 2013: what each column adds to the delay")
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


def main() -> None:
    started = time.perf_counter()
    data = load_flights_nyc()
    X = readable(pd.DataFrame(data.X, columns=list(FLIGHT_COLUMNS)))
    print(f"{data.target} as a sum of effects of {X.shape[1]} columns")
    print(f"{data.y.size:,} flights; {data.dropped:,} left out (cancelled, diverted, or a plane of unknown age)\n")
    train, test = split(data.y.size)
    model = GPRegressor().fit(X.iloc[train], data.y[train])
    held_out = scores(model, X.iloc[test], data.y[test], data.y[train])
    print(table([*describe(model, train.size), *held_out]), end="\n\n")
    print(table(describe_terms(model)), end="\n\n")
    print(explain(model))
    for note in model.notes_:
        print(f"note: {note}")
    print(suggest(model, X.iloc[train], data.y[train]))
    draw(model, data.target)
    print(f"\nthe picture is in {PICTURE}; all of this took {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
