"""How often a 95 % interval of the function holds the truth where nothing depends on x: 400 tables of pure noise each.

The constant is all there is to know, and the question is whether the model knows how well it knows it.
"""

import sys
import time
import warnings

import numpy as np

from vff import ExtrapolationWarning, GPRegressor, Matern32
from vff.likelihoods import Bernoulli

TABLES, ROWS = 400, 100
PLACES = np.linspace(0.02, 0.98, 25)[:, None]


def table(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """x, y and the true f."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(ROWS, 1))
    if kind == "gaussian":
        return x, 5.0 + rng.standard_normal(ROWS), 5.0
    if kind == "poisson":
        return x, rng.poisson(3.0, ROWS).astype(float), float(np.log(3.0))
    return x, (rng.uniform(size=ROWS) < 0.3).astype(float), float(np.log(0.3 / 0.7))


def main() -> None:
    warnings.simplefilter("ignore", ExtrapolationWarning)
    print(f"{TABLES} tables of {ROWS} rows; 95 % intervals of f at {len(PLACES)} places, and of its mean over the rows")
    print(f"{'likelihood':<12}{'at places':>12}{'mean':>8}{'seconds':>10}")
    for kind in ("gaussian", "poisson", "bernoulli"):
        started, places, means = time.perf_counter(), [], []
        for seed in range(TABLES):
            x, y, truth = table(kind, seed)
            likelihood = Bernoulli("logit") if kind == "bernoulli" else kind
            model = GPRegressor(Matern32(0), likelihood=likelihood).fit(x, y)
            mean, variance = model.predict_f(PLACES)
            places.append(np.mean(np.abs(mean - truth) < 1.96 * np.sqrt(variance)))
            means.append(abs(model.intercept_ - truth) < 1.96 * model.intercept_std_)
            if sys.stderr.isatty():
                print(f"\r{kind}: {seed + 1} of {TABLES}", end="", file=sys.stderr)
        print(f"{kind:<12}{np.mean(places):>12.3f}{np.mean(means):>8.3f}{time.perf_counter() - started:>10.0f}")


if __name__ == "__main__":
    main()
