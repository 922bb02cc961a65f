"""A temperature on the globe from 20,000 scattered stations: no seam at 180 degrees, and no pole.

A January is made of formulas: warm at the thermal equator, cold continents in the north and warm ones in the south,
with outlines of a few dozen corners; stations measure it with an error of 2 degrees. ``Sphere`` is compared with a
product of two Matérns over latitude and longitude as if they were a rectangle. The table has errors on held-out places
everywhere, within ten degrees of the 180th meridian and beyond the 75th parallels, and how far the two sides of that
meridian are apart. ``--picture FILE`` writes the picture of the manual.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import BLUE, RED, Run, new_figure, tidy
from matplotlib.path import Path as Outline

from vff import GPRegressor, Matern32, Sphere, plot

NOISE = 2.0
PARALLEL = 68.0
# Longitude and latitude of corners, good enough to be recognised.
LAND = {
    "Eurasia": [(-10, 37), (0, 44), (-5, 49), (8, 58), (5, 62), (25, 71), (60, 69), (105, 78), (140, 73), (180, 69),
                (190, 66), (163, 58), (142, 59), (130, 43), (122, 37), (121, 28), (108, 20), (103, 2), (98, 16),
                (80, 8), (72, 20), (57, 26), (59, 22), (45, 13), (34, 29), (36, 36), (26, 38), (15, 41)],
    "Africa": [(-17, 15), (-10, 32), (10, 37), (32, 31), (43, 12), (51, 12), (40, -10), (35, -24), (20, -35), (12, -16),
               (9, 4), (-8, 5)],
    "North America": [(-168, 66), (-156, 71), (-115, 73), (-80, 73), (-65, 60), (-56, 52), (-70, 43), (-81, 30),
                      (-97, 28), (-97, 18), (-84, 10), (-105, 20), (-117, 32), (-124, 46), (-140, 60), (-160, 56)],
    "South America": [(-80, 0), (-72, 12), (-50, 0), (-35, -7), (-40, -22), (-58, -38), (-68, -55), (-74, -48),
                      (-71, -20)],
    "Australia": [(114, -22), (131, -11), (142, -11), (153, -27), (147, -39), (131, -32), (116, -35)],
    "Greenland": [(-55, 82), (-20, 82), (-22, 70), (-44, 60), (-55, 70)],
}  # fmt: skip


def land(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """Where there is land; all of it beyond the 72nd parallel in the south."""
    found = lat < -72.0
    for corners in LAND.values():
        outline = Outline(corners)
        for turn in (0.0, 360.0):
            found |= outline.contains_points(np.stack([lon % 360.0 - turn, lat], axis=1))
    return found


def temperature(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """A January in degrees Celsius."""
    sea = 28.0 - 0.008 * (lat + 8.0) ** 2
    inland = np.where(lat > 0.0, -24.0 * np.sin(np.radians(lat)), np.where(lat < -60.0, -18.0, 6.0))
    return sea + np.where(land(lat, lon), inland, 0.0)


def places(n: int, seed: int) -> pd.DataFrame:
    """Spread evenly over the sphere."""
    rng = np.random.default_rng(seed)
    lat, lon = np.degrees(np.arcsin(rng.uniform(-1.0, 1.0, n))), rng.uniform(-180.0, 180.0, n)
    return pd.DataFrame({"lat": lat, "lon": lon, "temperature": temperature(lat, lon)})


def judged(name: str, model: GPRegressor, new: pd.DataFrame, seconds: float) -> dict[str, Any]:
    """Errors at held-out places, and the step across the 180th meridian."""
    error = model.predict(new) - new["temperature"].to_numpy()
    near, polar = 180.0 - new["lon"].abs() < 10.0, new["lat"].abs() > 75.0
    lat = np.linspace(-85.0, 85.0, 35)
    ends = [pd.DataFrame({"lat": lat, "lon": np.full(35, end)}) for end in (-180.0, 180.0)]
    west, east = (model.predict_f(end)[0] for end in ends)
    return {
        "model": name,
        "features": model.fit_.posterior.request.size,
        "seconds": round(seconds, 1),
        "rmse": round(float(np.sqrt(np.mean(error**2))), 3),
        "rmse_at_180": round(float(np.sqrt(np.mean(error[near] ** 2))), 3),
        "rmse_at_poles": round(float(np.sqrt(np.mean(error[polar] ** 2))), 3),
        "step_at_180": round(float(np.sqrt(np.mean((west - east) ** 2))), 3),
    }


def draw(models: dict[str, GPRegressor]) -> Any:
    """The map, and both models along a parallel from one side of the 180th meridian to the other."""
    figure = new_figure(11.0, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1.0))
    plot.map(models["Sphere"], ax=left, label="temperature (°C)", xlabel="longitude", ylabel="latitude")
    left.set_title("posterior mean of a January, 20,000 stations", fontsize="small")
    left.tick_params(labelsize="small")
    lon = np.linspace(140.0, 220.0, 401)
    where = pd.DataFrame({"lat": np.full(lon.size, PARALLEL), "lon": (lon + 180.0) % 360.0 - 180.0})
    right.plot(lon, temperature(where["lat"].to_numpy(), where["lon"].to_numpy()), color="0.6", lw=1.0, label="truth")
    for (name, model), colour in zip(models.items(), (BLUE, RED), strict=True):
        mean, variance = model.predict_f(where)
        for side in (lon <= 180.0, lon > 180.0):
            right.plot(lon[side], mean[side], color=colour, lw=1.4, label=name if side[0] else None)
            half = 1.96 * np.sqrt(variance[side])
            right.fill_between(lon[side], mean[side] - half, mean[side] + half, color=colour, alpha=0.2, lw=0.0)
    right.axvline(180.0, color="0.4", lw=0.8, ls=":")
    right.set_xticks([140, 160, 180, 200, 220], ["140° E", "160° E", "180°", "160° W", "140° W"])
    right.set(xlabel=f"longitude at {PARALLEL:g}° N", ylabel="temperature (°C)")
    right.legend(fontsize="small", frameon=False)
    tidy(right)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--picture", type=Path)
    chosen, sys.argv[1:] = parser.parse_known_args()
    run = Run.from_command_line(__file__, __doc__)
    n = 2000 if run.quick else 20_000
    stations, new = places(n, 0), places(5000, 1)
    stations["temperature"] += NOISE * np.random.default_rng(2).standard_normal(n)
    options: dict[str, Any] = {"frequencies": 8} if run.quick else {}
    models = {
        "Sphere": GPRegressor(Sphere("lat", "lon"), **options),
        "product": GPRegressor(Matern32("lat") * Matern32("lon"), **options),
    }
    rows = []
    for name, model in models.items():
        started = time.perf_counter()
        model.fit(stations, "temperature")
        rows.append(judged(name, model, new, time.perf_counter() - started))
        run.say(f"{name}: {model.kernel_}, frequencies {model.frequencies_}")
    figure = draw(models)
    run.finish(rows, figure)
    if chosen.picture is not None:
        figure.savefig(chosen.picture, dpi=85)


if __name__ == "__main__":
    main()
