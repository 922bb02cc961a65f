"""Figure 5, one column: how far from the exact posterior, after how long.

10^4 points uniform on [0, 1], Matérn-3/2 (variance 1, lengthscale 0.2), noise variance 0.1, all known; five draws. The
KL divergence from the approximation to the exact posterior is log p(y) minus the bound. Three methods of equal size:
the paper's features on [-0.3, 1.3], features with edge functions on [0, 1], and a regular grid of inducing points.

log p(y) costs O(N): a Matérn-3/2 is the first entry of a two-dimensional Markov process, so a Kalman filter has it, and
the data are drawn from the same process.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _common import BLUE, GREEN, ORANGE, Run, new_figure, split_budget, tidy
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from vff import GPRegressor, Matern32
from vff.baselines import ExactGP, InducingPointGP

KERNEL = Matern32(variance=1.0, lengthscale=0.2)
RATE = np.sqrt(3.0) / 0.2
NOISE = 0.1
SIZES = (5, 9, 21, 41, 81)
GIVEN = {"noise_variance": NOISE, "optimizer": None, "normalize_y": False}
COLOURS = {"paper, [-0.3, 1.3]": BLUE, "inducing grid": ORANGE, "edge functions, [0, 1]": GREEN}
MARKERS = dict(zip(SIZES, "oDvps", strict=True))
Model = GPRegressor | InducingPointGP


def steps(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Transition A (N-1, 2, 2) of the state (f, f') between sorted points, and the covariance Q of what is new."""
    dt = np.diff(x)
    A = np.array([[1.0 + RATE * dt, dt], [-(RATE**2) * dt, 1.0 - RATE * dt]]) * np.exp(-RATE * dt)
    A = np.moveaxis(A, -1, 0)
    stationary = np.diag([1.0, RATE**2])
    return A, stationary - A @ stationary @ np.swapaxes(A, 1, 2)


def simulate(N: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sorted x (N,) and y (N,), without a matrix of size N."""
    x = np.sort(rng.random(N))
    A, Q = steps(x)
    # Root of Q, the slope first: its variance is of order dt and that of f of order dt^3.
    slope = np.sqrt(np.maximum(Q[:, 1, 1], 1e-300))
    shared = Q[:, 0, 1] / slope
    own = np.sqrt(np.maximum(Q[:, 0, 0] - shared**2, 0.0))
    z = rng.standard_normal((N, 2))
    new = np.stack([shared * z[1:, 0] + own * z[1:, 1], slope * z[1:, 0]], axis=1)
    state = np.array([1.0, RATE]) * z[0]
    f = np.empty(N)
    f[0] = state[0]
    for n in range(N - 1):
        state = A[n] @ state + new[n]
        f[n + 1] = state[0]
    return x, f + np.sqrt(NOISE) * rng.standard_normal(N)


def log_evidence(x: np.ndarray, y: np.ndarray) -> float:
    """log p(y) by the Kalman filter, O(N): the sum of log N(y_n; what is predicted from y_1 ... y_(n-1))."""
    order = np.argsort(x)
    A, Q = steps(x[order])
    mean, covariance = np.zeros(2), np.diag([1.0, RATE**2])
    total = -0.5 * y.size * np.log(2.0 * np.pi)
    for n, value in enumerate(y[order]):
        if n:
            mean = A[n - 1] @ mean
            covariance = A[n - 1] @ covariance @ A[n - 1].T + Q[n - 1]
        variance = covariance[0, 0] + NOISE
        residual = value - mean[0]
        total -= 0.5 * (np.log(variance) + residual**2 / variance)
        gain = covariance[0] / variance
        mean = mean + gain * residual
        covariance = covariance - np.outer(gain, covariance[0])
    return float(total)


def filter_error(N: int) -> float:
    """Largest difference per row between the filter and the exact process, on a few small problems."""
    worst = 0.0
    for seed in range(3):
        x, y = simulate(N, np.random.default_rng(seed))
        exact = ExactGP(KERNEL, **GIVEN).fit(x[:, None], y).log_marginal_likelihood_
        worst = max(worst, abs(exact - log_evidence(x, y)) / N)
    return worst


def methods(size: int) -> dict[str, tuple[int, Callable[[], Model]]]:
    """Features used, and a maker of the model, for a budget of ``size`` features."""
    M, q = split_budget(size, KERNEL.order)
    padded = {"frequencies": (size - 1) // 2, "edges": 0, "domain": (-0.3, 1.3), **GIVEN}
    hugging = {"frequencies": M, "edges": q, "domain": (0.0, 1.0), **GIVEN}
    points = np.linspace(0.0, 1.0, size)
    return {
        "paper, [-0.3, 1.3]": (size, lambda: GPRegressor(KERNEL, **padded)),
        "inducing grid": (size, lambda: InducingPointGP(KERNEL, inducing=points, **GIVEN)),
        "edge functions, [0, 1]": (2 * M + 1 + q, lambda: GPRegressor(KERNEL, **hugging)),
    }


def timed(make: Callable[[], Model], X: np.ndarray, y: np.ndarray) -> tuple[Model, float]:
    """A fitted model and the seconds from rows to bound, the least of three."""
    seconds, model = float("inf"), make()
    for _ in range(3):
        started = time.perf_counter()
        model = make().fit(X, y)
        seconds = min(seconds, time.perf_counter() - started)
    return model, seconds


def repetition(seed: int, N: int, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """All methods and sizes on one draw."""
    x, y = simulate(N, np.random.default_rng(100 + seed))
    evidence, X, rows = log_evidence(x, y), x[:, None], []
    for size in sizes:
        for name, (used, make) in methods(size).items():
            model, seconds = timed(make, X, y)
            row = {"method": name, "features": size, "used": used, "repetition": seed, "rows": N, "seconds": seconds}
            rows.append({**row, "log_evidence": evidence, "elbo": model.elbo_, "kl": evidence - model.elbo_})
    return rows


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians over the repetitions, with the range of the KL."""
    found = []
    for name, size in dict.fromkeys((row["method"], row["features"]) for row in rows):
        same = [row for row in rows if (row["method"], row["features"]) == (name, size)]
        kl, seconds = (np.array([row[key] for row in same], float) for key in ("kl", "seconds"))
        line = {"method": name, "features": size, "used": same[0]["used"], "kl_median": float(np.median(kl))}
        line |= {"kl_least": float(kl.min()), "kl_most": float(kl.max())}
        found.append({**line, "milliseconds": 1e3 * float(np.median(seconds))})
    return sorted(found, key=lambda line: (list(COLOURS).index(line["method"]), line["features"]))


def draw(rows: list[dict[str, Any]], shown: list[dict[str, Any]]) -> Figure:
    """KL against time, as in the paper, and against the number of features."""
    figure = new_figure(11.0, 4.8)
    left, right = figure.subplots(1, 2, sharey=True)
    for row in rows:
        colour, marker = COLOURS[row["method"]], MARKERS[row["features"]]
        left.plot(1e3 * row["seconds"], row["kl"], marker, color=colour, alpha=0.6, ms=6, mew=0)
    for size in sorted({row["features"] for row in rows}):
        left.plot([], [], MARKERS[size], color="0.3", ms=6, label=f"{size} features")
    for name, colour in COLOURS.items():
        lines = [line for line in shown if line["method"] == name]
        right.plot([line["used"] for line in lines], [line["kl_median"] for line in lines], "o-", color=colour)
        right.text(
            0.97, 0.95 - 0.07 * list(COLOURS).index(name), name, color=colour, transform=right.transAxes, ha="right"
        )
    left.set(
        xscale="log",
        yscale="log",
        xlabel="time from rows to bound, best of three (ms)",
        title="accuracy against time, every draw",
    )
    right.set(xscale="log", xlabel="features", title="accuracy against size, medians")
    right.set_xticks(SIZES, [str(size) for size in SIZES], minor=False)
    left.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    left.xaxis.set_major_formatter("{x:g}")
    left.set_ylabel("KL to the exact posterior (nats)")
    left.legend(fontsize=8)
    for ax in (left, right):
        ax.xaxis.set_minor_locator(NullLocator())
        ax.grid(alpha=0.25)
        tidy(ax)
    figure.suptitle("The paper's features stall on their own edges; with edge functions the bound keeps closing")
    return figure


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    N, repetitions, sizes = (1000, 2, (9, 21, 41)) if run.quick else (10_000, 5, SIZES)
    error = filter_error(200)
    assert error < 1e-9, f"the Kalman filter is off by {error:g} nats per row"
    run.say(f"log p(y) by the Kalman filter agrees with the exact process to {error:.0e} nats per row")
    rows = []
    for seed in range(repetitions):
        rows += repetition(seed, N, sizes)
        run.say(f"{seed + 1} of {repetitions} draws done")
    shown = summary(rows)
    run.finish(rows, draw(rows, shown), shown)


if __name__ == "__main__":
    main()
