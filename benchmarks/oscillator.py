"""An oscillator against celerite2's ``SHOTerm`` (exact, O(N)), side by side: time and log-likelihood.

    python benchmarks/oscillator.py [--rows 1000 10000 100000] [--cycles 20] [--quality 20]

Rows are a draw from celerite2's own sampler at random times. Two comparisons in this process, one after another: "held"
has vff's bound at the true hyperparameters, M grown by itself, beside celerite2's likelihood there; "learnt" lets both
find period, quality, variance and noise from a period 30 % off, vff by a fit, celerite2 by L-BFGS-B with gradients by
differences (its NumPy interface has no others). The second time of a warm process counts on both sides. celerite2 may
end on another peak; the difference of the log-likelihoods is positive then.
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
from vff.report import table

VARIANCE, NOISE, PERIOD = 1.0, 0.1, 1.0
OFF = 1.3


def process(period: float, quality: float, variance: float) -> Any:
    import celerite2  # pyright: ignore[reportMissingImports]
    from celerite2 import terms  # pyright: ignore[reportMissingImports]

    kernel: Any = terms.SHOTerm  # its own types lack most of its arguments
    return celerite2.GaussianProcess(kernel(sigma=np.sqrt(variance), rho=period, Q=quality), mean=0.0)


def draw(rows: int, cycles: float, quality: float) -> tuple[np.ndarray, np.ndarray]:
    """Sorted times over so many cycles, and y from the model."""
    t = np.sort(np.random.default_rng(rows).uniform(0.0, cycles * PERIOD, rows))
    gp = process(PERIOD, quality, VARIANCE)
    gp.compute(t, diag=np.full(rows, NOISE))
    np.random.seed(rows)  # noqa: NPY002  celerite2 draws from NumPy's global generator
    return t, np.asarray(gp.sample())


def likelihood(t: np.ndarray, y: np.ndarray, period: float, quality: float, variance: float, noise: float) -> float:
    gp = process(period, quality, variance)
    gp.compute(t, diag=np.full(t.size, noise), quiet=True)
    return float(gp.log_likelihood(y))


def learnt_by_celerite2(t: np.ndarray, y: np.ndarray, quality: float) -> tuple[float, float]:
    """The maximum of the likelihood, and its period."""
    start = np.log([OFF * PERIOD, quality, float(np.var(y)), 0.1 * float(np.var(y))])
    found = minimize(
        lambda theta: -likelihood(t, y, *np.exp(theta)) / t.size, start, method="L-BFGS-B", options={"ftol": 1e-10}
    )
    return -float(found.fun) * t.size, float(np.exp(found.x[0]))


def timed(job: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the second time, and the answer."""
    job()
    started = time.perf_counter()
    found = job()
    return time.perf_counter() - started, found


def compare(rows: int, cycles: float, quality: float) -> list[dict[str, str]]:
    t, y = draw(rows, cycles, quality)
    truth = Oscillator(0, period=PERIOD, quality=quality, variance=VARIANCE)
    start = Oscillator(0, period=OFF * PERIOD, quality=quality)

    def held() -> GPRegressor:
        model = GPRegressor(truth, noise_variance=NOISE, optimizer=None, normalize_y=False)
        return model.fit(t[:, None], y)

    def learnt() -> GPRegressor:
        return GPRegressor(start, normalize_y=False).fit(t[:, None], y)

    lines = []
    for task, ours, theirs in (
        ("held", held, lambda: (likelihood(t, y, PERIOD, quality, VARIANCE, NOISE), PERIOD)),
        ("learnt", learnt, lambda: learnt_by_celerite2(t, y, quality)),
    ):
        own_seconds, model = timed(ours)
        their_seconds, (value, period) = timed(theirs)
        kernel: Any = model.kernel_
        lines.append(
            {
                "rows": f"{rows:,}",
                "task": task,
                "vff s": f"{own_seconds:.3f}",
                "celerite2 s": f"{their_seconds:.3f}",
                "ratio": f"{their_seconds / own_seconds:.2f}x",
                "M": str(model.frequencies_[0]),
                "bound": f"{model.elbo_:.2f}",
                "celerite2": f"{value:.2f}",
                "difference": f"{model.elbo_ - value:.3f}",
                "period": f"{kernel.period:.4f}",
                "its period": f"{period:.4f}",
            }
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**3, 10**4, 10**5])
    parser.add_argument("--cycles", type=float, default=20.0)
    parser.add_argument("--quality", type=float, default=20.0)
    options = parser.parse_args()
    print(describe(["numpy", "scipy", "finufft", "celerite2"]))
    lines = []
    for rows in options.rows:
        print(f"{rows:,} rows ...", file=sys.stderr)
        lines += compare(rows, options.cycles, options.quality)
    print(table(lines))


if __name__ == "__main__":
    main()
