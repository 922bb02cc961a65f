"""The banana panels: a classifier with more and more inducing points, more and more frequencies, and without limits.

A product of two Matérn-5/2 on 400 points of two classes, a probit, prior mean zero; hyperparameters are learnt.
Three ways to carry q, and the exact variational Gaussian process (all 400 points) to compare with:

    inducing points   4, 8, 16, 32 of them, their places learnt too
    padded            the paper's features: M = 2, 4, 8, 16 frequencies per column, zero counted, on the range ± 1.5
    edge functions    the defaults: 1, 2, 4, 8 harmonics per column and edge functions on the range of the data

The heavy line is where both classes have probability 1/2, the thin ones 0.1, 0.2 ... 0.9. The last two columns of the
table are departures of the probability from that of the exact process, on a lattice over the picture.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from _common import BLUE, GREY, ORANGE, RED, Run, looking_outside, new_figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vff import GPClassifier, Matern52
from vff.baselines import InducingPointVGP, VariationalGP
from vff.datasets import Dataset, load_banana

POINTS, PADDED, EDGES, FULL = "inducing points", "padded", "edge functions", "exact"
SIZES = {POINTS: (4, 8, 16, 32), PADDED: (2, 4, 8, 16), EDGES: (1, 2, 4, 8)}
QUICK = {POINTS: (4, 8), PADDED: (2, 4), EDGES: (1, 2)}
PADDING, MARGIN, LATTICE = 1.5, 0.3, 90
QUICK_ROWS = 100
LEVELS = [level / 10.0 for level in range(1, 10)]
KERNEL = Matern52(0) * Matern52(1)
Model = GPClassifier | InducingPointVGP | VariationalGP
Lines = list[dict[str, Any]]


class Lattice(NamedTuple):
    """Where probabilities are drawn."""

    x: np.ndarray
    y: np.ndarray

    @classmethod
    def over(cls, X: np.ndarray) -> "Lattice":
        ends = zip(X.min(axis=0) - MARGIN, X.max(axis=0) + MARGIN, strict=True)
        return cls(*(np.linspace(low, high, LATTICE) for low, high in ends))

    def probability(self, model: Model) -> np.ndarray:
        """Of class 1, (Y, X)."""
        points = np.stack(np.meshgrid(self.x, self.y), axis=-1).reshape(-1, 2)
        with looking_outside():
            return model.predict_proba(points)[:, 1].reshape(self.y.size, self.x.size)


class Panel(NamedTuple):
    """One fit, as it is drawn."""

    method: str
    size: int
    model: Model
    probability: np.ndarray
    seconds: float


def makers(data: Dataset) -> dict[str, Callable[[int], Model]]:
    domain = {c: (x.min() - PADDING, x.max() + PADDING) for c, x in enumerate(data.X.T)}
    common: dict[str, Any] = {"likelihood": "probit", "fit_intercept": False}
    return {
        POINTS: lambda P: InducingPointVGP(
            KERNEL, likelihood="probit", n_inducing=P, optimise_inducing=True, normalize_y=False, random_state=0
        ),
        PADDED: lambda M: GPClassifier(KERNEL, frequencies=M - 1, edges=0, domain=domain, **common),
        EDGES: lambda M: GPClassifier(KERNEL, frequencies=M, **common),
        FULL: lambda N: VariationalGP(KERNEL, likelihood="probit", normalize_y=False),
    }


def fit(run: Run, data: Dataset, lattice: Lattice) -> list[Panel]:
    panels, make = [], makers(data)
    for method, sizes in {FULL: (len(data.y),), **(QUICK if run.quick else SIZES)}.items():
        for size in sizes:
            started = time.perf_counter()
            model = make[method](size).fit(data.X, data.y)
            seconds = time.perf_counter() - started
            run.say(f"{method}, {size}: bound {model.elbo_:.2f} in {seconds:.1f} s")
            panels.append(Panel(method, size, model, lattice.probability(model), seconds))
    return panels


def features(panel: Panel) -> int:
    """How many functions carry q, in all."""
    if not isinstance(panel.model, GPClassifier):
        return panel.size
    (M,), (q,) = panel.model.frequencies_.values(), panel.model.edges_.values()
    return int(np.prod([2 * own + 1 + edges for own, edges in zip(M, q, strict=True)]))


def summary(panels: list[Panel]) -> Lines:
    """A line for every panel."""
    exact = panels[0].probability
    lines = []
    for panel in panels:
        away = np.abs(panel.probability - exact)
        line = {"method": panel.method, "size": panel.size, "features": features(panel)}
        line |= {"bound": round(float(panel.model.elbo_), 2), "seconds": round(panel.seconds, 2)}
        lines.append({**line, "mean departure": f"{away.mean():.4f}", "most": f"{away.max():.3f}"})
    return lines


def draw_panel(ax: Axes, data: Dataset, lattice: Lattice, panel: Panel) -> None:
    for label, marker, colour in ((0.0, "o", RED), (1.0, "x", ORANGE)):
        chosen = data.X[data.y == label]
        ax.scatter(*chosen.T, s=9, marker=marker, color=colour, alpha=0.45, lw=0.0 if marker == "o" else 0.8)
    p = panel.probability
    ax.contour(lattice.x, lattice.y, p, levels=[level for level in LEVELS if level != 0.5], colors=GREY, linewidths=0.5)
    ax.contour(lattice.x, lattice.y, p, levels=[0.5], colors=BLUE, linewidths=2.0)
    if isinstance(panel.model, InducingPointVGP):
        ax.plot(*panel.model.inducing_.T, "o", color="black", ms=4, mec="white", mew=0.5)
    names = {POINTS: f"{panel.size} points", PADDED: f"M = {panel.size}", EDGES: f"{panel.size} harmonic"}
    many = "s" if panel.method == EDGES and panel.size > 1 else ""
    ax.set_title(f"{names.get(panel.method, 'exact')}{many}: {panel.model.elbo_:.1f} nats", fontsize=9)
    ax.set(xlim=lattice.x[[0, -1]], ylim=lattice.y[[0, -1]], aspect="equal")
    ax.tick_params(labelsize=7)


def explain(ax: Axes) -> None:
    """What the marks are, in a place of its own."""
    ax.axis("off")
    handles = {
        "class 0": Line2D([], [], color=RED, marker="o", ls="", ms=4),
        "class 1": Line2D([], [], color=ORANGE, marker="x", ls="", ms=4),
        "P(class 1) = 0.5": Line2D([], [], color=BLUE, lw=2.0),
        "0.1, 0.2 … 0.9": Line2D([], [], color=GREY, lw=0.7),
        "inducing point": Line2D([], [], color="black", marker="o", ls="", ms=5, mec="white"),
    }
    ax.legend(list(handles.values()), list(handles), loc="upper center", fontsize=9, frameon=False)


def draw(data: Dataset, lattice: Lattice, panels: list[Panel]) -> Figure:
    """A row for every method; the exact process, and the legend, at the end."""
    methods = dict.fromkeys(panel.method for panel in panels[1:])
    wide = 1 + max(sum(panel.method == method for panel in panels) for method in methods)
    figure = new_figure(2.6 * wide, 2.5 * len(methods) + 0.4)
    axes = figure.subplots(len(methods), wide)
    for row, method in zip(axes, methods, strict=True):
        for ax, panel in zip(row, [panel for panel in panels if panel.method == method], strict=False):
            draw_panel(ax, data, lattice, panel)
        row[0].set_ylabel(f"{method}\n{data.names[1]}", fontsize=9)
    for ax in axes[-1, :-1]:
        ax.set_xlabel(data.names[0], fontsize=9)
    draw_panel(axes[0, -1], data, lattice, panels[0])
    axes[0, -1].set_xlabel(data.names[0], fontsize=9)
    explain(axes[1, -1])
    for ax in axes[2:, -1]:
        ax.axis("off")
    figure.suptitle("The banana data, with the bound on the evidence of every fit", fontsize=12)
    return figure


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    try:
        data = load_banana()
    except OSError as error:
        print(f"banana_panels: skipped, because the data could not be had: {error}")
        return
    if run.quick:
        data = replace(data, X=data.X[:QUICK_ROWS], y=data.y[:QUICK_ROWS])
    lattice = Lattice.over(data.X)
    panels = fit(run, data, lattice)
    run.finish(summary(panels), draw(data, lattice, panels))


if __name__ == "__main__":
    main()
