"""The picture of the page on terms, functions drawn from the prior of each: python docs/images/terms.py."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from scipy.spatial import Voronoi

from vff import Areas, Categorical, Linear, Matern12, Matern32, Matern52, Ordered, Oscillator, Periodic, Sphere, Trend

COLOURS = ("#0072B2", "#E69F00", "#009E73")
X = np.linspace(0.0, 10.0, 401)
UNIT = {"variance": 1.0}


def drawn(covariance: np.ndarray, seed: int, count: int = 3) -> np.ndarray:
    """Functions with this covariance, (count, N)."""
    values, vectors = np.linalg.eigh(covariance)
    white = np.random.default_rng(seed).standard_normal((len(values), count))
    return (vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * white)).T


def curves(ax: Axes, covariance: np.ndarray, seed: int, label: str = "t") -> None:
    for own, colour in zip(drawn(covariance, seed), COLOURS, strict=True):
        ax.plot(X, own, color=colour, lw=1.1)
    ax.set_xlabel(label, fontsize=8)


def varying_slope(ax: Axes) -> None:
    """x g(t) at three values of x."""
    (g,) = drawn(Matern32("t", lengthscale=3.0, **UNIT)(X, X), 5, 1)
    for x, colour in zip((1.0, 0.5, -0.5), COLOURS, strict=True):
        ax.plot(X, x * g, color=colour, lw=1.1, label=f"x = {x:g}")
    ax.legend(fontsize=7, frameon=False, loc="lower left")
    ax.set_xlabel("t", fontsize=8)


def random_lines(ax: Axes) -> None:
    kernel = Linear("x", intercept=True, slope=0.3, correlation=-0.5, **UNIT)
    for own in drawn(kernel(X, X), 3, 9):
        ax.plot(X, own, color=COLOURS[0], lw=0.9, alpha=0.8)
    ax.set_xlabel("x, a line per group", fontsize=8)


def levels(ax: Axes, covariance: np.ndarray, seed: int, label: str, style: str = "o") -> None:
    for own, colour in zip(drawn(covariance, seed, 2), COLOURS, strict=False):
        ax.plot(own, style, color=colour, ms=4, lw=0.6)
    ax.set_xticks(range(len(covariance)), [chr(65 + n) for n in range(len(covariance))], fontsize=7)
    ax.set_xlabel(label, fontsize=8)


def globe(ax: Axes) -> None:
    lat, lon = np.linspace(-88.0, 88.0, 45), np.linspace(-180.0, 180.0, 73)
    points = np.stack(np.meshgrid(lat, lon, indexing="ij"), axis=-1).reshape(-1, 2)
    field = drawn(Sphere("lat", "lon", lengthscale=30.0, **UNIT)(points, points), 2, 1).reshape(45, 73)
    ax.pcolormesh(lon, lat, field, cmap="RdBu_r", shading="nearest", rasterized=True)
    ax.set(xticks=[-180, 0, 180], yticks=[-90, 0, 90])
    ax.set_xticklabels(["180°", "0°", "180°"])
    ax.set_yticklabels(["90° S", "0°", "90° N"])


def regions(ax: Axes) -> None:
    """A field of BYM2 over the cells of random points."""
    points = np.random.default_rng(4).uniform(size=(90, 2))
    mirrored = [points * sign + shift for sign, shift in (((-1, 1), (0, 0)), ((-1, 1), (2, 0)), ((1, -1), (0, 0)),
                                                          ((1, -1), (0, 2)))]  # fmt: skip
    cells = Voronoi(np.concatenate([points, *mirrored]))
    pairs = [(f"{a}", f"{b}") for a, b in cells.ridge_points.tolist() if a < 90 and b < 90]
    kernel = Areas("region", pairs, ratio=9.0, **UNIT)
    names = [f"{n}" for n in range(90)]
    shade = drawn(kernel(names, names), 1, 1)[0]
    shapes = [cells.vertices[cells.regions[cells.point_region[n]]] for n in range(90)]
    ax.add_collection(PolyCollection(shapes, array=shade, cmap="RdBu_r", edgecolors="white", linewidths=0.4))
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[], aspect="equal")


def panels() -> dict[str, Any]:
    """What is written, and what draws it."""
    five = [chr(65 + n) for n in range(9)]
    season = Periodic("t", 2.0, lengthscale=0.7, **UNIT)(X, X)
    smooth = [kind("x", lengthscale=2.0, **UNIT)(X, X) for kind in (Matern12, Matern32, Matern52)]

    def three_orders(ax: Axes) -> None:
        for n, (covariance, colour) in enumerate(zip(smooth, COLOURS, strict=True)):
            ax.plot(X, drawn(covariance, 7, 1)[0] - 3.5 * n, color=colour, lw=1.0)
        ax.set_xlabel("x: 12, 32, 52 from above", fontsize=8)
        ax.set_yticks([])

    return {
        'Matern12, 32, 52("x")': three_orders,
        'Trend("t", order=1)': lambda ax: curves(ax, Trend("t", lengthscale=3.0, order=1, start=0.0, **UNIT)(X, X), 1),
        'Trend("t")': lambda ax: curves(ax, Trend("t", lengthscale=4.0, start=0.0, **UNIT)(X, X), 2),
        'Periodic("t", 2)': lambda ax: curves(ax, season, 3),
        'Periodic("t", 2) * Matern32("t")': lambda ax: curves(
            ax, season * Matern32("t", lengthscale=5.0, **UNIT)(X, X), 3
        ),
        'Oscillator("t")': lambda ax: curves(ax, Oscillator("t", period=2.0, quality=8.0, **UNIT)(X, X), 4),
        'Linear("x", intercept=True)\n* Categorical("g")': random_lines,
        'Linear("x") * Matern32("t")': varying_slope,
        'Categorical("g")': lambda ax: levels(ax, Categorical("g", **UNIT)(five, five), 1, "g"),
        'Ordered("g")': lambda ax: levels(ax, Ordered("g", five, **UNIT)(five, five), 2, "g, in its order", "o-"),
        'Areas("region", pairs)': regions,
        'Sphere("lat", "lon")': globe,
    }


def terms() -> Figure:
    """Functions drawn from every prior."""
    figure = Figure(figsize=(10.0, 7.2), layout="constrained")
    for ax, (name, draw) in zip(figure.subplots(3, 4).ravel(), panels().items(), strict=True):
        draw(ax)
        ax.set_title(name, fontsize=8, family="monospace")
        ax.tick_params(labelsize=7)
        ax.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    terms().savefig(parser.parse_args().out / "terms.png", dpi=80)
