"""Figure 4: setting a, b and M, and what edge functions do about it.

The authors' own twenty points, seed and all: Matérn-3/2, sigma^2 = 1, lengthscale 0.2, noise variance 0.05, all known;
log p(y) = -15.99. Rows: [a, b] inside the data (legal, not advised), too near them, right, and too wide; then the
default of this library, [a, b] = range of the data with edge functions, at no more features than the others. Columns:
the authors' M = 8, 16, 32, which count the zero frequency: 7, 15, 31 harmonics.
"""

from dataclasses import dataclass

import numpy as np
from _common import BLUE, GREEN, Run, draw_band, looking_outside, mark_domain, new_figure, split_budget, tidy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vff import GPRegressor, Matern32
from vff.baselines import ExactGP

KERNEL = Matern32(variance=1.0, lengthscale=0.2)
NOISE = 0.05
STARTS = {0.2: "inside the data", -0.1: "too near", -0.5: "right", -1.5: "too wide"}
SIZES = (8, 16, 32)
BOX = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
GRID = np.linspace(-2.0, 3.0, 501)


@dataclass(frozen=True)
class Panel:
    """One fit."""

    row: str
    M: int
    """As the authors count."""
    edges: int
    model: GPRegressor

    @property
    def domain(self) -> tuple[float, float]:
        return self.model.domain_[0]

    @property
    def features(self) -> int:
        return 2 * self.model.frequencies_[0] + 1 + self.edges


def simulate() -> tuple[np.ndarray, np.ndarray]:
    """The paper's data: the authors' script draws them so, with NumPy's first generator."""
    rng = np.random.RandomState(0)
    x = rng.random_sample(20)
    covariance = KERNEL(x, x) + NOISE * np.eye(x.size)
    return x[:, None], rng.multivariate_normal(np.zeros(x.size), covariance)


def fits(X: np.ndarray, y: np.ndarray) -> list[Panel]:
    """All panels, row by row."""
    given = {"noise_variance": NOISE, "optimizer": None, "normalize_y": False}
    panels = []
    for a, name in STARTS.items():
        for M in SIZES:
            model = GPRegressor(KERNEL, frequencies=M - 1, edges=0, domain=(a, 1.0 - a), **given)
            panels.append(Panel(name, M, 0, model.fit(X, y)))
    for M in SIZES:
        harmonics, q = split_budget(2 * M - 1, KERNEL.order)
        model = GPRegressor(KERNEL, frequencies=harmonics, edges=q, **given)
        panels.append(Panel("edge functions", M, q, model.fit(X, y)))
    return panels


def draw_panel(ax: Axes, panel: Panel, X: np.ndarray, y: np.ndarray) -> None:
    with looking_outside():
        mean, variance = panel.model.predict_f(GRID[:, None])
    draw_band(ax, GRID, mean, 2.0 * np.sqrt(variance), GREEN if panel.edges else BLUE)
    ax.plot(X[:, 0], y, "kx", ms=4)
    mark_domain(ax, panel.domain)
    ax.text(0.03, 0.95, f"ELBO {panel.model.elbo_:.2f}", transform=ax.transAxes, va="top", fontsize=9, bbox=BOX)
    tidy(ax)


def draw(panels: list[Panel], evidence: float, X: np.ndarray, y: np.ndarray) -> Figure:
    """Intervals down, numbers of features across."""
    figure = new_figure(10.5, 11.5)
    axes = figure.subplots(len(panels) // len(SIZES), len(SIZES), sharex=True, sharey=True)
    for ax, panel in zip(axes.ravel(), panels, strict=True):
        draw_panel(ax, panel, X, y)
    for line, panel in zip(axes, panels[:: len(SIZES)], strict=True):
        a, b = panel.domain
        line[0].set_ylabel(f"{panel.row}\n[a, b] = [{a:.2g}, {b:.2g}]\n\ny")
    for ax, M in zip(axes[0], SIZES, strict=True):
        ax.set_title(f"M = {M}: {2 * M - 1} features", fontsize=10)
    for ax, panel in zip(axes[-1], panels[-len(SIZES) :], strict=True):
        ax.set_title(f"{panel.features} features, {panel.edges} of them for the edges", fontsize=10)
        ax.set_xlabel("x")
    axes[0, 0].set_ylim(-3.6, 4.2)
    figure.suptitle(
        f"The paper's features need the right [a, b]; edge functions may hug the data.   log p(y) = {evidence:.3f}\n"
        "bands: two standard deviations of f; dashed: [a, b]",
        fontsize=11,
    )
    return figure


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    X, y = simulate()
    exact = ExactGP(KERNEL, noise_variance=NOISE, optimizer=None, normalize_y=False).fit(X, y)
    panels = fits(X, y)
    rows = [
        {
            "interval": panel.row,
            "a": panel.domain[0],
            "b": panel.domain[1],
            "M": panel.M,
            "features": panel.features,
            "elbo": float(panel.model.elbo_),
            "log_evidence": exact.log_marginal_likelihood_,
            "missed": float(exact.log_marginal_likelihood_ - panel.model.elbo_),
        }
        for panel in panels
    ]
    run.finish(rows, draw(panels, exact.log_marginal_likelihood_, X, y))


if __name__ == "__main__":
    main()
