"""Counts of many regions: vff beside mgcv::bam with a negative binomial likelihood.

    python benchmarks/counts.py [--rows 368000] [--regions 520] [--basis 20] [--repeats 3] [--quick]

Simulated rows, always the same: regions of unlike sizes with normal effects, four smooth functions of columns of
numbers, counts that vary more than Poisson's. As many rows again to be judged on, by the log-density at the predicted
mean. Each fit is in a process of its own, that of vff twice in one: the first compiles. What is printed is Markdown for
RESULTS.md.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from _machine import cores, describe
from additive import HERE, Found, call, has_bam, progress, show, write_columns
from labels import MISSING, best, line

PACKAGES = ("numpy", "scipy", "finufft", "scikit-learn", "pandas", "jax")
DISPERSION, SPREAD = 0.4, 0.5
"""Of the counts; deviation of the regions' effects."""


def rates(X: np.ndarray, region: np.ndarray, effects: np.ndarray) -> np.ndarray:
    """The means of the counts."""
    f = np.sin(2.0 * np.pi * X[:, 0]) + 0.5 * np.cos(9.0 * X[:, 1]) - 1.2 * (X[:, 2] - 0.5) ** 2
    f += 0.4 * np.sin(25.0 * X[:, 3]) * X[:, 3] + 0.3 * X[:, 0]
    return np.exp(0.9 + 0.6 * f + effects[region])


def write(folder: Path, rows: int, regions: int) -> None:
    """Rows to learn from and to be judged on."""
    rng = np.random.default_rng(11)
    shares, effects = rng.gamma(1.5, size=regions), SPREAD * rng.standard_normal(regions)
    for name in ("", "_test"):
        # every region once, so that none is new
        region = np.concatenate([np.arange(regions), rng.choice(regions, rows - regions, p=shares / shares.sum())])
        X = rng.uniform(size=(rows, 4))
        X[:, 1] = rng.beta(2.0, 3.0, rows)
        rate = rates(X, region, effects) * rng.gamma(1.0 / DISPERSION, DISPERSION, size=rows)
        np.save(folder / f"X{name}.npy", X)
        np.save(folder / f"region{name}.npy", region.astype(float))
        np.save(folder / f"y{name}.npy", rng.poisson(rate).astype(float))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=368_000)
    parser.add_argument("--regions", type=int, default=520)
    parser.add_argument("--basis", type=int, nargs="+", default=[20], help="of every column, for bam, a line each")
    parser.add_argument("--repeats", type=int, default=3, help="of which the best counts, for both")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.regions, options.repeats, options.basis = 5_000, 30, 1, options.basis[:1]
    return options


def main() -> None:
    options = read_options()
    print(describe(PACKAGES), flush=True)
    print(
        f"\n## Counts: vff and mgcv::bam\n\n{options.rows:,} negative binomial counts of {options.regions} regions and "
        "four columns of numbers. `fit s` is from arrays in\nmemory to learnt hyperparameters in a fresh process, "
        f"compilation included, import not; `warm s` a second fit in the same\nprocess. The best of {options.repeats} "
        "runs, of both."
    )
    if not has_bam():
        print(f"\n{MISSING}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder, options.rows, options.regions)
        write_columns(folder)
        runs: dict[str, list[Found]] = {}
        for _ in range(options.repeats):  # in turns: whoever else is at work then slows both
            progress(f"{options.rows:,} counts: vff")
            runs.setdefault("vff", []).append(call(sys.executable, HERE / "_counts_vff.py", folder))
            for k in options.basis if has_bam() else ():
                progress(f"{options.rows:,} counts: mgcv::bam, k = {k}")
                own = call("Rscript", HERE / "_counts_bam.R", folder, str(cores()), str(k))
                runs.setdefault(f"mgcv::bam, nb, discrete, k = {k}", []).append(own)
    ours, _ = best(runs["vff"])
    lines, notes = [], []
    for model, every in runs.items():
        found, spread = best(every)
        lines.append(line(model, found, ours, "log score") | {"dispersion": f"{found['dispersion']:.5f}"})
        notes.append(f"{model}: fits of {spread} s{', ' + found['version'] if 'version' in found else ''}.")
    show(None, lines, notes)


if __name__ == "__main__":
    main()
