"""Rows with error bars: what a pass costs beside a plain one, and a whole fit beside celerite2's (exact, O(N)).

    python benchmarks/error_bars.py [--rows 1000 10000 100000 1000000] [--cycles 20] [--quality 20]

Rows are a draw from celerite2's own sampler at random times, with error bars over a decade and noise beside them,
``diag = err**2 + noise``. Every row meets twelve nodes at most, so that a pass may cost twelve times the plain
one; "nodes" is how many sums are kept. Both learn period, quality, variance and noise from a period 30 % off, vff by a
fit, celerite2 by L-BFGS-B with gradients by differences (its NumPy interface has no others). "z" is the standard
deviation of new residuals divided by their stated one. The second time of a warm process counts on both sides.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _machine import describe
from scipy.optimize import minimize

from vff import GPRegressor, Oscillator
from vff.moments import NODES
from vff.report import table

VARIANCE, NOISE, PERIOD, OFF = 1.0, 0.04, 1.0, 1.3


def process(period: float, quality: float, variance: float) -> Any:
    import celerite2  # pyright: ignore[reportMissingImports]
    from celerite2 import terms  # pyright: ignore[reportMissingImports]

    kernel: Any = terms.SHOTerm  # its own types lack most of its arguments
    return celerite2.GaussianProcess(kernel(sigma=np.sqrt(variance), rho=period, Q=quality), mean=0.0)


def draw(rows: int, cycles: float, quality: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorted times over so many cycles, y from the model, and its error bars."""
    rng = np.random.default_rng(rows)
    t, errors = np.sort(rng.uniform(0.0, cycles * PERIOD, rows)), 0.1 * 10.0 ** rng.uniform(0.0, 1.0, rows)
    gp = process(PERIOD, quality, VARIANCE)
    gp.compute(t, diag=errors**2 + NOISE)
    np.random.seed(rows)  # noqa: NPY002  celerite2 draws from NumPy's global generator
    return t, np.asarray(gp.sample()), errors


def learnt_by_celerite2(t: np.ndarray, y: np.ndarray, errors: np.ndarray, quality: float) -> tuple[float, float]:
    """The maximum of the likelihood, and its noise."""

    def loss(theta: np.ndarray) -> float:
        period, own, variance, noise = np.exp(theta)
        gp = process(period, own, variance)
        gp.compute(t, diag=errors**2 + noise, quiet=True)
        return -float(gp.log_likelihood(y)) / t.size

    start = np.log([OFF * PERIOD, quality, float(np.var(y)), 0.1 * float(np.var(y))])
    found = minimize(loss, start, method="L-BFGS-B", options={"ftol": 1e-10})
    return -float(found.fun) * t.size, float(np.exp(found.x[3]))


def timed(job: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the second time, and the answer."""
    job()
    started = time.perf_counter()
    found = job()
    return time.perf_counter() - started, found


def compare(rows: int, cycles: float, quality: float) -> dict[str, str]:
    t, y, errors = draw(2 * rows, cycles, quality)
    new, (t, y, errors) = (t[1::2], y[1::2], errors[1::2]), (t[::2], y[::2], errors[::2])
    start = Oscillator(0, period=OFF * PERIOD, quality=quality)
    plain_seconds, plain = timed(lambda: GPRegressor(start, normalize_y=False).fit(t[:, None], y))
    X = np.column_stack([t, errors])
    seconds, model = timed(lambda: GPRegressor(start, noise_std=1, normalize_y=False).fit(X, y))
    their_seconds, (value, noise) = timed(lambda: learnt_by_celerite2(t, y, errors, quality))
    mean, std = model.predict(np.column_stack([new[0], new[2]]), return_std=True)
    return {
        "rows": f"{rows:,}",
        "nodes": str(len(model.statistics_.moments.nodes)),
        "pass s": f"{model.timing_['pass']:.3f}",
        "plain": f"{plain.timing_['pass']:.3f}",
        "ratio": f"{model.timing_['pass'] / plain.timing_['pass']:.1f}x",
        "fit s": f"{seconds:.2f}",
        "plain fit": f"{plain_seconds:.2f}",
        "celerite2 s": f"{their_seconds:.2f}",
        "its ratio": f"{their_seconds / seconds:.2f}x",
        "M": str(model.frequencies_[0]),
        "bound": f"{model.elbo_:.2f}",
        "celerite2": f"{value:.2f}",
        "noise": f"{model.noise_variance_:.5f}",
        "its noise": f"{noise:.5f}",
        "z": f"{np.std((new[1] - mean) / std):.3f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6])
    parser.add_argument("--cycles", type=float, default=20.0)
    parser.add_argument("--quality", type=float, default=20.0)
    options = parser.parse_args()
    print(describe(["numpy", "scipy", "finufft", "celerite2"]))
    print(f"K = {NODES} nodes that a row meets")
    lines = []
    for rows in options.rows:
        print(f"{rows:,} rows ...", file=sys.stderr)
        lines.append(compare(rows, options.cycles, options.quality))
    print(table(lines))


if __name__ == "__main__":
    main()
