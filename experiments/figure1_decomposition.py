"""Figure 1: a Matérn-3/2 process f split into its projection g on the features and the residual h.

    g ~ GP(0, k_u(x)' K_uu^-1 k_u(x')),   h = f - g independent of g          (paper, "Linking conditioning and
                                                                              decomposition")

sigma = 1, lengthscale 0.2. Rows: 16 inducing points; 31 harmonics as in the paper on an interval wider than the data;
and as many features, edge functions among them, on the range of the data itself. The variance of h is what the
features cannot learn; it should vanish where data are, here on [0, 1].
"""

from dataclasses import dataclass

import numpy as np
from _common import BLUE, GREEN, RED, Run, mark_domain, new_figure, split_budget, tidy
from matplotlib.figure import Figure

from vff import Matern32
from vff.basis import ColumnBasis, Interval
from vff.features import ColumnPrior, tail_features

KERNEL = Matern32(variance=1.0, lengthscale=0.2)
ORDER = KERNEL.order
DATA = (0.0, 1.0)
PADDED = (-0.5, 1.5)
HARMONICS = 31
POINTS = np.linspace(*DATA, 16)


@dataclass(frozen=True)
class Row:
    """One decomposition."""

    title: str
    features: int
    domain: tuple[float, float]
    Q: np.ndarray
    """Covariance of g on the grid."""
    points: np.ndarray | None = None
    """Inducing points, where there are any."""


def inducing_row(x: np.ndarray) -> Row:
    """Values of f at points: k_u(x) = k(z, x)."""
    cross = KERNEL(POINTS, x)
    Q = cross.T @ np.linalg.solve(KERNEL(POINTS, POINTS), cross)
    return Row(f"{POINTS.size} inducing points", POINTS.size, DATA, Q, POINTS)


def fourier_row(title: str, x: np.ndarray, M: int, q: int, domain: tuple[float, float]) -> Row:
    """M harmonics and q edge functions on the domain, with their tails beyond it (paper, Table 1)."""
    interval, basis = Interval(*domain), ColumnBasis(M, q)
    assert KERNEL.lengthscale
    rate = np.sqrt(2 * ORDER + 1) / KERNEL.lengthscale * interval.half_length
    prior = ColumnPrior(basis, ORDER, float(rate))
    t = interval.to_unit(x)
    inside = np.abs(t) <= 1.0
    phi = np.empty((basis.size, x.size))
    phi[:, inside] = prior.transform.forward(basis.evaluate(t[inside]).T)
    phi[:, ~inside] = tail_features(prior, t[~inside]).T
    return Row(title, basis.size, domain, phi.T @ prior.matrix().solve(phi))


def draws(covariance: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Samples of a Gaussian process on a grid, (N, n). Its covariance may be singular, as that of g is."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * rng.standard_normal((values.size, n)))


def residual_variance(row: Row, x: np.ndarray) -> np.ndarray:
    """Variance of h at every point; only rounding can carry it below zero."""
    return np.maximum(np.diagonal(KERNEL(x, x) - row.Q), 0.0)


def summary(row: Row, x: np.ndarray) -> dict[str, object]:
    """How much of f is left in h where the data are."""
    left = residual_variance(row, x)[(x >= DATA[0]) & (x <= DATA[1])]
    return {
        "features": row.title,
        "number": row.features,
        "a": row.domain[0],
        "b": row.domain[1],
        "mean_var_h": float(left.mean()),
        "max_var_h": float(left.max()),
    }


def draw(rows: list[Row], x: np.ndarray) -> Figure:
    """Panels f, g, h; samples obey f = g + h along each row."""
    figure = new_figure(11.0, 7.6)
    axes = figure.subplots(len(rows), 3, sharex=True, sharey=True)
    K = KERNEL(x, x)
    for line, row in zip(axes, rows, strict=True):
        rng = np.random.default_rng(4)
        g, h = draws(row.Q, 3, rng), draws(K - row.Q, 3, rng)
        deviations = np.ones(x.size), np.sqrt(np.maximum(np.diagonal(row.Q), 0.0)), np.sqrt(residual_variance(row, x))
        panels = zip(line, "fgh", deviations, (g + h, g, h), (BLUE, GREEN, RED), strict=True)
        for ax, name, deviation, samples, colour in panels:
            ax.fill_between(x, -2.0 * deviation, 2.0 * deviation, color=colour, alpha=0.25, lw=0)
            ax.plot(x, samples, color="black", lw=0.7)
            ax.axvspan(*DATA, color="0.94", zorder=0)
            if row.points is None:
                mark_domain(ax, row.domain)
            else:
                ax.plot(row.points, np.full(row.points.size, -2.9), "k|", ms=7)
            ax.set_ylim(-3.2, 3.2)
            tidy(ax)
            ax.set_title(f"{name}(x)" if name != "g" else f"{name}(x):  {row.title}", fontsize=10)
        line[0].set_ylabel("value (prior std = 1)")
    for ax in axes[-1]:
        ax.set_xlabel("x (lengthscale 0.2)")
    figure.suptitle(
        "f = g + h: edge functions leave next to no residual where the data are ([0, 1], grey), without padding\n"
        "bands: two standard deviations; lines: samples; dashed: [a, b]; ticks: inducing points",
        fontsize=11,
    )
    return figure


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    x = np.linspace(-1.0, 2.0, 151 if run.quick else 601)
    M, q = split_budget(2 * HARMONICS + 1, ORDER)
    rows = [
        inducing_row(x),
        fourier_row(f"{HARMONICS} harmonics, as in the paper", x, HARMONICS, 0, PADDED),
        fourier_row(f"{M} harmonics + {q} edge functions", x, M, q, DATA),
    ]
    run.finish([summary(row, x) for row in rows], draw(rows, x))


if __name__ == "__main__":
    main()
