"""Bayesian optimisation by expected improvement: three standard functions, from five rows to forty, without noise.

A deterministic function is interpolated (``noise_variance=fixed(...)``, as good as none), so the improvement expected
where it is known is zero and no point is proposed twice. The next row is where it is largest over 2,500 candidates; the
search ends where no more than the noise is left to gain.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from _common import BLUE, GREY, ORANGE
from _common import Run as Experiment
from matplotlib.figure import Figure
from scipy.stats import norm, qmc

from vff import GPRegressor, Matern52, fixed

FIRST, LAST, CANDIDATES = 5, 40, 2000


class Problem(NamedTuple):
    """A function to be minimised over a box."""

    name: str
    function: Callable[[np.ndarray], np.ndarray]
    box: np.ndarray
    """(D, 2)."""
    minimum: float


def forrester(x: np.ndarray) -> np.ndarray:
    """Forrester, Sobester and Keane (2008)."""
    return (6 * x[:, 0] - 2) ** 2 * np.sin(12 * x[:, 0] - 4)


def branin(x: np.ndarray) -> np.ndarray:
    """Branin (1972)."""
    a, b = x.T
    return (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10


def six_hump_camel(x: np.ndarray) -> np.ndarray:
    """Dixon and Szegö (1978)."""
    a, b = x.T
    return (4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (-4 + 4 * b**2) * b**2


PROBLEMS = (
    Problem("Forrester", forrester, np.array([[0.0, 1.0]]), -6.020740),
    Problem("Branin", branin, np.array([[-5.0, 10.0], [0.0, 15.0]]), 0.397887),
    Problem("six-hump camel", six_hump_camel, np.array([[-2.0, 2.0], [-1.0, 1.0]]), -1.031628),
)


class Run(NamedTuple):
    """What one optimisation came to."""

    regret: float
    """Best value found less the minimum, relative to the range of the function."""
    rows: int
    twice: int
    """Points that were proposed although they were known."""
    seconds: np.ndarray
    """Of every fit with its predictions."""
    best: np.ndarray
    """The regret after every row."""


def optimise(problem: Problem, seed: int) -> Run:
    """From a few rows, one at a time."""
    D, low, size = len(problem.box), problem.box[:, 0], np.ptp(problem.box, axis=1)
    everywhere = low + size * qmc.Sobol(D, rng=seed).random(2048)[:CANDIDATES]
    spread = float(np.ptp(problem.function(everywhere)))
    X = low + size * qmc.LatinHypercube(D, rng=seed).random(FIRST)
    y, seconds, twice = problem.function(X), [], 0
    kernel = Matern52(0) if D == 1 else Matern52(0) * Matern52(1)
    domain = {d: tuple(ends) for d, ends in enumerate(problem.box.tolist())}
    while len(X) < LAST and y.min() - problem.minimum > 1e-6 * spread:
        rng = np.random.default_rng(len(X))
        near = X[np.argmin(y)] + 0.02 * size * rng.standard_normal((CANDIDATES // 4, D))
        candidates = np.concatenate([everywhere, np.clip(near, low, low + size)])
        started = time.perf_counter()
        noise = 1e-8 * float(np.var(y))
        model = GPRegressor(kernel, noise_variance=fixed(noise), domain=domain).fit(X, y)
        mean, variance = model.predict_f(candidates)
        seconds.append(time.perf_counter() - started)
        improvement = expected_improvement(mean, np.sqrt(variance), float(y.min()))
        if improvement.max() < noise**0.5:  # what the noise, small as it is, would hide
            break
        best = candidates[np.argmax(improvement)]
        twice += int(np.min(np.linalg.norm((X - best) / size, axis=1)) < 1e-9)
        X, y = np.vstack([X, best]), np.append(y, problem.function(best[None]))
    regret = (np.minimum.accumulate(y) - problem.minimum) / spread
    return Run(float(regret[-1]), len(X), twice, np.array(seconds), regret)


def expected_improvement(mean: np.ndarray, sd: np.ndarray, best: float) -> np.ndarray:
    """E max(0, best - f)."""
    z = (best - mean) / np.maximum(sd, 1e-300)
    return (best - mean) * norm.cdf(z) + sd * norm.pdf(z)


def main() -> None:
    experiment = Experiment.from_command_line(__file__, __doc__)
    figure, rows = Figure(figsize=(9.6, 3.0), layout="constrained"), []
    panels = figure.subplots(1, len(PROBLEMS), sharey=True)
    for problem, axes in zip(PROBLEMS, panels, strict=True):
        runs = [optimise(problem, seed) for seed in range(1 if experiment.quick else 10)]
        for run in runs:
            axes.plot(np.arange(1, run.rows + 1), np.maximum(run.best, 1e-9), color=BLUE, alpha=0.5, lw=1.0)
        axes.axhline(0.01, color=ORANGE, lw=1.0, label="1 % of the range")
        axes.axvline(FIRST, color=GREY, lw=0.8, ls=":")
        axes.set(title=problem.name, xlabel="rows", yscale="log")
        ms = 1e3 * np.concatenate([run.seconds for run in runs])
        rows.append({
            "function": problem.name,
            "runs": len(runs),
            "worst regret": float(f"{max(run.regret for run in runs):.2g}"),
            "rows until 1 %": max(int(np.argmax(run.best < 0.01)) + 1 for run in runs),
            "proposed twice": sum(run.twice for run in runs),
            "median ms": round(float(np.median(ms)), 1),
            "95 % of ms": round(float(np.quantile(ms, 0.95)), 1),
        })  # fmt: skip
        experiment.say(f"{problem.name} done")
    panels[0].set_ylabel("regret / range of the function")
    panels[0].legend(loc="upper right", fontsize=7, frameon=False)
    experiment.finish(rows, figure)


if __name__ == "__main__":
    main()
