"""Figure 5, all four panels: how far from the exact posterior, after how long, for products of one to four columns.

10^4 points uniform on [0, 1]^d, a product of Matérn-3/2 (variance 1, lengthscale 0.2), noise variance 0.1, all known;
five draws. The KL divergence from the approximation to the exact posterior is log p(y) minus the bound. Four methods of
equal size, m features or points per column and m^d in all:

    paper          (m - 1) / 2 harmonics and the constant on [-0.3, 1.3]
    edges=2        (m - 3) / 2 harmonics, the constant and 2 edge functions on [0, 1]
    edges=4        (m - 5) / 2 harmonics, the constant and 4 edge functions on [0, 1]
    inducing grid  m values from 0 to 1 in each column

A method that would be left without a harmonic is left out. The time is that of a fit to given hyperparameters, from
arrays to bound, the best of three. One factor of the covariance of y serves to draw y and to know log p(y).

Every fit is written to figure5_dimensions_repetitions.csv at once, and a rerun goes on where the last one stopped.
"""

import time
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from _common import BLUE, GREEN, ORANGE, RED, Log, Run, new_figure, tidy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from scipy.linalg import cholesky

from vff import GPRegressor, Matern32
from vff.baselines import InducingPointGP, regular_grid
from vff.kernels import Kernel

LENGTHSCALE, NOISE = 0.2, 0.1
SIZES = {1: (11, 21, 41, 81), 2: (7, 11, 15, 21, 27), 3: (5, 7, 9, 11), 4: (3, 5, 7)}
BARS = {2: (15, 21, 27), 3: (7, 9, 11)}  # the better of the two kinds of edges must stand beside the grid here
WORSE = 1.1
GIVEN: dict[str, Any] = {"noise_variance": NOISE, "optimizer": None, "normalize_y": False}
PAPER, GRID, EDGES = "paper, [-0.3, 1.3]", "inducing grid", {2: "edges=2, [0, 1]", 4: "edges=4, [0, 1]"}
COLOURS = {PAPER: BLUE, GRID: ORANGE, EDGES[2]: RED, EDGES[4]: GREEN}
RECORD = ("rows", "d", "repetition", "method", "m", "features", "seconds", "log_evidence", "elbo", "kl")
_BLOCK = 1000
Model = GPRegressor | InducingPointGP
Lines = list[dict[str, Any]]


class Draw(NamedTuple):
    """One data set, and what the exact process says of it."""

    X: np.ndarray
    y: np.ndarray
    log_evidence: float


class Task(NamedTuple):
    """One fit."""

    d: int
    repetition: int
    method: str
    m: int


def kernel(d: int) -> Kernel:
    factors: list[Kernel] = [Matern32(column, variance=1.0, lengthscale=LENGTHSCALE) for column in range(d)]
    return reduce(lambda left, right: left * right, factors)


def covariance(X: np.ndarray) -> np.ndarray:
    """Of y, (N, N), a few rows at a time so that it is the only matrix of its size."""
    K, one = np.empty((len(X), len(X))), Matern32(variance=1.0, lengthscale=LENGTHSCALE)
    for start in range(0, len(X), _BLOCK):
        rows = slice(start, start + _BLOCK)
        K[rows] = one(X[rows, 0], X[:, 0])
        for column in X.T[1:]:
            K[rows] *= one(column[rows], column)
    K[np.diag_indices_from(K)] += NOISE
    return K


def simulate(N: int, d: int, seed: int) -> Draw:
    """y = L z with L L' the covariance of y: then y' (L L')^-1 y = z'z, and log p(y) needs no further solve."""
    rng = np.random.default_rng((seed, d))
    X, z = rng.random((N, d)), rng.standard_normal(N)
    L = cholesky(covariance(X).T, lower=True, overwrite_a=True, check_finite=False)
    log_evidence = -0.5 * float(z @ z) - float(np.log(np.diagonal(L)).sum()) - 0.5 * N * np.log(2.0 * np.pi)
    return Draw(X, L @ z, log_evidence)


def methods(d: int, m: int) -> dict[str, Callable[[], Model]]:
    """A maker of every method that can have m features per column."""
    product, points = kernel(d), regular_grid(m, [(0.0, 1.0)] * d)
    padded = {"frequencies": (m - 1) // 2, "edges": 0, "domain": (-0.3, 1.3), **GIVEN}
    makers: dict[str, Callable[[], Model]] = {
        PAPER: lambda: GPRegressor(product, **padded),
        GRID: lambda: InducingPointGP(product, inducing=points, **GIVEN),
    }
    for q, name in EDGES.items():
        hugging = {"frequencies": (m - 1 - q) // 2, "edges": q, "domain": (0.0, 1.0), **GIVEN}
        if hugging["frequencies"] > 0:
            makers[name] = lambda hugging=hugging: GPRegressor(product, **hugging)
    return makers


def tasks(sizes: dict[int, tuple[int, ...]], repetitions: int) -> Iterator[Task]:
    """All panels of one draw before the next, so that a picture is there early."""
    for repetition in range(repetitions):
        for d, ms in sizes.items():
            for m in ms:
                yield from (Task(d, repetition, method, m) for method in methods(d, m))


def timed(make: Callable[[], Model], X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The bound, and the seconds from rows to bound, the least of three."""
    seconds, bound = float("inf"), float("nan")
    for _ in range(3):
        started = time.perf_counter()
        bound = float(make().fit(X, y).elbo_)
        seconds = min(seconds, time.perf_counter() - started)
    return bound, seconds


def warm_up() -> None:
    """A first fit of every kind loads what it needs; no time is to have that in it."""
    small = simulate(50, 2, 0)
    for make in methods(2, 7).values():
        timed(make, small.X, small.y)


def repeat(run: Run, log: Log, N: int, planned: list[Task]) -> Lines:
    """Do what no earlier run has done; returns all rows of this N that were planned."""

    def done() -> dict[Task, dict[str, Any]]:
        return {Task(*(row[key] for key in Task._fields)): row for row in log.rows if row["rows"] == N}

    left = [task for task in planned if task not in done()]
    if len(left) < len(planned):
        run.say(f"{len(planned) - len(left)} fits are taken from {log.path}; delete it to begin again")
    if left:
        warm_up()
    for d, repetition in dict.fromkeys((task.d, task.repetition) for task in left):
        data = simulate(N, d, repetition)
        run.say(f"draw {repetition + 1}, {d} column(s): log p(y) = {data.log_evidence:.2f}")
        for task in (task for task in left if (task.d, task.repetition) == (d, repetition)):
            bound, seconds = timed(methods(d, task.m)[task.method], data.X, data.y)
            kl, size = data.log_evidence - bound, task.m**d
            row = {"rows": N, "features": size, "seconds": seconds, "log_evidence": data.log_evidence, "elbo": bound}
            log.append({**task._asdict(), **row, "kl": kl})
            run.say(f"  {task.method}, {task.m}^{d} = {size}: KL {kl:.4g} nats in {1e3 * seconds:.1f} ms")
    found = done()
    return [found[task] for task in planned]


def summary(rows: Lines) -> Lines:
    """Medians over the repetitions, with the range of the KL."""
    found = []
    for d, m, method in dict.fromkeys((row["d"], row["m"], row["method"]) for row in rows):
        same = [row for row in rows if (row["d"], row["m"], row["method"]) == (d, m, method)]
        kl, seconds = (np.array([row[key] for row in same], float) for key in ("kl", "seconds"))
        line = {"d": d, "m": m, "features": m**d, "method": method, "repetitions": len(same)}
        line |= {"kl": float(np.median(kl)), "kl_least": float(kl.min()), "kl_most": float(kl.max())}
        found.append({**line, "milliseconds": 1e3 * float(np.median(seconds))})
    return found


def beside_grid(lines: Lines) -> Lines:
    """For every d and m the better of the two kinds of edges, its medians relative to the grid's, and the bar."""
    found = []
    for d, m in dict.fromkeys((line["d"], line["m"]) for line in lines):
        same = {line["method"]: line for line in lines if (line["d"], line["m"]) == (d, m)}
        ours, grid = [same[name] for name in EDGES.values() if name in same], same[GRID]
        if ours:
            best = min(ours, key=lambda line: line["kl"])
            kl, spent = best["kl"] / grid["kl"], best["milliseconds"] / grid["milliseconds"]
            bar = "-" if m not in BARS.get(d, ()) else "met" if kl <= WORSE and spent < 1.0 else "missed"
            line = {"d": d, "features": m**d, "better edges": best["method"], "KL / grid's": round(kl, 3)}
            found.append({**line, "time / grid's": round(spent, 3), "bar": bar})
    return found


def draw_panel(ax: Axes, d: int, rows: Lines, lines: Lines) -> None:
    """Every draw as a point, medians as a line with the number of features."""
    for method, colour in COLOURS.items():
        points = [row for row in rows if (row["d"], row["method"]) == (d, method)]
        seconds, kl = [row["seconds"] for row in points], [row["kl"] for row in points]
        ax.plot(seconds, kl, ".", color=colour, alpha=0.4, mew=0, ms=7)
        medians = [line for line in lines if (line["d"], line["method"]) == (d, method)]
        x, y = [1e-3 * line["milliseconds"] for line in medians], [line["kl"] for line in medians]
        ax.plot(x, y, "o-", color=colour, ms=4, lw=1.0, label=method)
        for line, *at in zip(medians, x, y, strict=True):
            label, place = str(line["features"]), (at[0], at[1])
            ax.annotate(label, place, xytext=(3, 3), textcoords="offset points", fontsize=6, color=colour)
    ax.set(xscale="log", yscale="log", title=f"{d} column{'s' if d > 1 else ''}")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    ax.grid(alpha=0.25)
    tidy(ax)


def draw(rows: Lines, lines: Lines) -> Figure:
    """KL against time, a panel for every number of columns."""
    figure = new_figure(10.5, 8.0)
    axes = figure.subplots(2, 2)
    for ax, d in zip(axes.ravel(), SIZES, strict=True):
        draw_panel(ax, d, rows, lines)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    for ax in axes[1]:  # a label of the whole figure would lie under the legend
        ax.set_xlabel("time from rows to bound, best of three (s)", fontsize=10)
    figure.supylabel("KL to the exact posterior (nats)", fontsize=10)
    figure.suptitle(
        "Products of columns: accuracy against time\npoints: every draw; lines: medians; numbers: features or points",
        fontsize=11,
    )
    return figure


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    N, repetitions, sizes = (
        (10_000, 5, SIZES) if not run.quick else (500, 2, {1: (11, 21), 2: (7, 9), 3: (5,), 4: (3,)})
    )
    planned = list(tasks(sizes, repetitions))
    log = Log(run.folder / f"{run.name}_repetitions.csv", RECORD)
    rows = repeat(run, log, N, planned)
    lines = summary(rows)
    run.finish(lines, draw(rows, lines), [{**line, "kl": float(f"{line['kl']:.4g}")} for line in lines])
    print(f"\nthe better edges beside the inducing grid, medians; the bar is {WORSE} times its KL in less time\n")
    for line in beside_grid(lines):
        print("  ".join(f"{name} {value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
