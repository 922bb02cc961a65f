"""A map of disease: counts in areas that know their neighbours, beside what is true and what the raw ratios say.

The map is made: Voronoi cells of points that crowd around towns, within a coast, with a strait through it and islands
off the shore. The relative risk is a smooth surface with an outbreak, and a part of every area's own. Counts are
Poisson with the expected number of cases as exposure, which is small in the country and large in towns; some areas
report nothing. Five models: the raw ratios (SMR), independent effects of areas, BYM2, which is centred on every land,
BYM2 with a level of its own for every land, and a proper field. They are scored on the true logarithm of the relative
risk: root mean squared error, and how often an interval of 90 % holds it, in areas that report and in those that do
not.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from _common import Run, looking_outside, new_figure
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from scipy.spatial import Voronoi

from vff import Areas, Categorical, GPRegressor, likelihoods

TOWNS = np.array([[0.35, 0.62], [0.66, 0.38], [0.55, 0.72]])
SILENT = 0.06  # share of areas without a report
WITHIN = 1.645  # standard deviations, for 90 %

Answers = dict[str, tuple[np.ndarray, np.ndarray]]
"""Mean and standard deviation of the log relative risk of every area, by model."""


@dataclass(frozen=True)
class Land:
    """Areas with their polygons, their neighbours by name, and where they lie."""

    names: list[str]
    polygons: list[np.ndarray]
    pairs: list[tuple[str, str]]
    centres: np.ndarray
    towns: np.ndarray
    """How near a town an area is, from zero to one."""


def make_land(cells: int, rng: np.random.Generator) -> Land:
    """Voronoi cells within a coast; their mirror images beyond the frame close those at its edge."""
    crowd = TOWNS[rng.integers(len(TOWNS), size=cells // 3)] + 0.07 * rng.standard_normal((cells // 3, 2))
    points = np.clip(np.concatenate([rng.uniform(size=(cells - len(crowd), 2)), crowd]), 0.01, 0.99)
    for _ in range(2):  # a little more even, as counties are
        diagram = _diagram(points)
        points = np.array([diagram.vertices[diagram.regions[r]].mean(axis=0) for r in diagram.point_region[:cells]])
    diagram = _diagram(points)
    near = [(i, j) for i, j in diagram.ridge_points if i < cells and j < cells]
    kept = _on_land(points)
    for cell in np.flatnonzero(~kept & (np.abs(points - 0.5).max(axis=1) < 0.47)):  # islands: cells among sea alone
        if kept.sum() and not any(kept[j] for pair in near if cell in pair for j in pair) and rng.uniform() < 0.08:
            kept[cell] = True
    numbers = np.flatnonzero(kept)
    names = {cell: f"area {n:03d}" for n, cell in enumerate(numbers)}
    away = np.linalg.norm(points[numbers][:, None] - TOWNS, axis=2).min(axis=1)
    return Land(
        list(names.values()),
        [diagram.vertices[diagram.regions[diagram.point_region[cell]]] for cell in numbers],
        [(names[i], names[j]) for i, j in near if kept[i] and kept[j]],
        points[numbers],
        np.exp(-((away / 0.12) ** 2)),
    )


def _diagram(points: np.ndarray) -> Voronoi:
    mirrored = [points]
    for axis in (0, 1):
        for wall in (0.0, 1.0):
            other = points.copy()
            other[:, axis] = 2.0 * wall - other[:, axis]
            mirrored.append(other)
    return Voronoi(np.concatenate(mirrored))


def _on_land(points: np.ndarray) -> np.ndarray:
    x, y = (points - 0.5).T
    angle = np.arctan2(y, x)
    coast = 0.40 + 0.05 * np.sin(3.0 * angle) + 0.03 * np.cos(5.0 * angle + 1.0)
    strait = np.abs(x + 0.6 * y - 0.22 - 0.03 * np.sin(15.0 * y)) < 0.045
    return (np.hypot(x, y) < coast) & ~strait


def make_counts(land: Land, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Expected and observed cases by area, NaN where nothing was reported; and the true log relative risk."""
    x, y = land.centres.T
    outbreak = 0.9 * np.exp(-((x - 0.36) ** 2 + (y - 0.4) ** 2) / 0.012)
    smooth = 0.35 * np.sin(5.0 * x + 1.0) * np.cos(4.0 * y) + outbreak
    log_risk = smooth - smooth.mean() + 0.12 * rng.standard_normal(x.size)
    expected = rng.gamma(3.0, 2.0, x.size) * (1.0 + 9.0 * land.towns)
    cases = rng.poisson(expected * np.exp(log_risk)).astype(float)
    cases[rng.uniform(size=x.size) < SILENT] = np.nan
    table = pd.DataFrame({"area": land.names, "land": lands(land), "expected": expected, "cases": cases})
    return table, log_risk


def lands(land: Land) -> np.ndarray:
    """Which of the connected lands every area is part of; islands of one area are told apart by nobody."""
    found = np.full(len(land.names), "isle", dtype=object)
    for number, places in enumerate(Areas("area", land.pairs, levels=land.names).neighbours.components):
        if places.size > 1:
            found[places] = f"land {number}"
    return found


def models(land: Land) -> dict[str, GPRegressor]:
    counts: dict[str, Any] = {"likelihood": likelihoods.Poisson(exposure="expected")}
    near = Areas("area", land.pairs, levels=land.names).neighbours
    return {
        "independent": GPRegressor(Categorical("area"), **counts),
        "BYM2": GPRegressor(Areas("area", near), **counts),
        "BYM2, a level per land": GPRegressor(Areas("area", near) + Categorical("land"), **counts),
        "proper": GPRegressor(Areas("area", near, kind="proper"), **counts),
    }


def score(mean: np.ndarray, sd: np.ndarray, truth: np.ndarray, some: np.ndarray) -> tuple[float, float]:
    """Root mean squared error, and the share of true values within 90 %."""
    apart = np.abs(mean - truth)[some]
    return float(np.sqrt(np.mean(apart**2))), float(np.mean(apart < WITHIN * sd[some]))


def fitted(model: GPRegressor, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the log relative risk of every area, those without a report too."""
    reported = table.dropna()
    model.fit(reported[["area", "land", "expected"]], reported["cases"].to_numpy())
    with looking_outside():  # independent effects know nothing of silent areas
        mean, variance = model.predict_f(table[["area", "land", "expected"]])
    return mean, np.sqrt(variance)


def raw(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """log SMR with half a case more, and its usual standard error."""
    cases = table["cases"].to_numpy() + 0.5
    return np.log(cases / (table["expected"].to_numpy() + 0.5)), 1.0 / np.sqrt(cases)


def draw(land: Land, panels: Sequence[tuple[str, np.ndarray, Any, str, str]]) -> Figure:
    figure = new_figure(11.0, 3.6)
    for ax, (title, values, norm, colours, label) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        cells = PolyCollection(land.polygons, cmap=colours, norm=norm, edgecolor="0.35", linewidth=0.3)
        cells.set_array(np.ma.masked_invalid(values))
        ax.add_collection(cells)
        silent = [own for own, value in zip(land.polygons, values, strict=True) if np.isnan(value)]
        ax.add_collection(PolyCollection(silent, facecolor="white", edgecolor="0.35", linewidth=0.3, hatch="////"))
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.set_title(title, fontsize=9)
        bar = figure.colorbar(cells, ax=ax, orientation="horizontal", shrink=0.85, pad=0.02, aspect=25)
        bar.set_label(label, fontsize=8)
        if isinstance(norm, LogNorm):
            bar.set_ticks([0.5, 1.0, 2.0], labels=["½", "1", "2"])
            bar.minorticks_off()
        bar.ax.tick_params(labelsize=8)
    return figure


def one_map(run: Run, number: int, cells: int) -> tuple[list[dict[str, Any]], Land, Answers]:
    rng = np.random.default_rng(number)
    land = make_land(cells, rng)
    table, truth = make_counts(land, rng)
    reported, rows = table["cases"].notna().to_numpy(), []
    answers: Answers = {"truth": (truth, np.zeros(truth.size)), "raw SMR": raw(table)}
    line: dict[str, Any] = {"map": number, "areas": len(land.names), "model": "raw SMR"}
    error, held = score(*answers["raw SMR"], truth, reported)
    rows.append(line | {"rmse": error, "covered": held, "rmse, silent": "", "covered, silent": "", "seconds": ""})
    for name, model in models(land).items():
        started = time.perf_counter()
        answers[name] = fitted(model, table)
        seconds = round(time.perf_counter() - started, 2)
        error, held = score(*answers[name], truth, reported)
        far, seen = score(*answers[name], truth, ~reported)
        found = {"rmse": error, "covered": held, "rmse, silent": far, "covered, silent": seen, "seconds": seconds}
        rows.append(line | {"model": name} | found)
        run.say(f"map {number}, {name}: {model.kernel_}, covered {held:.2f} in {seconds:.1f} s")
    return rows, land, answers


def picture(land: Land, answers: Answers) -> Figure:
    """What is true, what the raw ratios say, and what was fitted."""
    risk, sd = LogNorm(0.4, 2.5), Normalize(0.0, 0.25)
    mean, spread = answers["BYM2, a level per land"]
    return draw(
        land,
        [
            ("true", np.exp(answers["truth"][0]), risk, "RdBu_r", "relative risk"),
            (
                "raw ratio (hatched: no report)",
                np.exp(answers["raw SMR"][0]),
                risk,
                "RdBu_r",
                "relative risk",
            ),
            ("fitted, with neighbours", np.exp(mean), risk, "RdBu_r", "relative risk"),
            ("how uncertain", spread, sd, "viridis", "standard deviation of log relative risk"),
        ],
    )


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    maps, cells = (1, 120) if run.quick else (10, 600)
    rows, land, answers = one_map(run, 0, cells)
    figure = picture(land, answers)
    for number in range(1, maps):
        rows += one_map(run, number, cells)[0]
    run.finish(rows, figure, shown=[averaged(rows, name) for name in dict.fromkeys(row["model"] for row in rows)])


def averaged(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Of one model over all maps."""
    own = [row for row in rows if row["model"] == name]
    means = {key: [row[key] for row in own if row[key] != ""] for key in own[0] if key not in ("map", "areas", "model")}
    return {"model": name} | {key: round(float(np.mean(some)), 3) if some else "" for key, some in means.items()}


if __name__ == "__main__":
    main()
