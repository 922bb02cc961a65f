"""Classification: vff beside mgcv::bam and GPyTorch's SVGP, then the cost of a step against rows and harmonics.

    python benchmarks/late_flights.py [--rows 1000000] [--only peers|steps] [--svgp-seconds 600] [--quick]

Eight inputs of the flights from New York in 2013; late is more than 15 minutes behind schedule. Two thirds to learn
from, drawn with replacement until there are as many rows as asked for, and one third to be judged on. Each side gets
its rows as files in a process of its own. What is printed is Markdown for RESULTS.md.
"""

import argparse
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from _machine import cores, describe
from additive import HERE, PACKAGES, Found, Line, call, has_bam, middle, missing_peers, progress, show, write_columns

LATE = 15.0  # minutes


def write(folder: Path, rows: int) -> np.ndarray:
    """Rows to learn from and to be judged on; returns the labels of the latter."""
    from vff.datasets import load_flights_nyc

    data = load_flights_nyc()
    late = (data.y > LATE).astype(float)
    train, test = np.split(np.random.default_rng(0).permutation(late.size), [2 * late.size // 3])
    drawn = train[np.random.default_rng(1).integers(train.size, size=rows)]
    for name, chosen in (("", drawn), ("_test", test)):
        np.save(folder / f"X{name}.npy", data.X[chosen])
        np.save(folder / f"y{name}.npy", late[chosen])
    return late[test]


def run_bam(folder: Path) -> Found:
    write_columns(folder)
    try:
        return call("Rscript", HERE / "_late_bam.R", folder, str(cores()))
    finally:
        for path in folder.glob("*.bin"):
            path.unlink()


def line(model: str, found: Found, ours: Found) -> Line:
    return {
        "model": model,
        "import s": f"{found['import']:.2f}",
        "fit s": f"{found['fit']:.2f}",
        "ratio": f"{found['fit'] / ours['fit']:.2f}",
        "cpu s": f"{found['cpu']:.2f}",
        "log-loss": f"{found['log_loss']:.4f}",
        "coefficients": f"{found['coefficients']:.0f}",
        "looks at the rows": f"{found['looks']:.0f}",
    }


def constant(y: np.ndarray) -> Line:
    p = y.mean()
    return {"model": "a constant", "log-loss": f"{-(p * np.log(p) + (1 - p) * np.log1p(-p)):.4f}"}


def peers(options: argparse.Namespace) -> None:
    print(
        f"\n## Late flights: vff, mgcv::bam, SVGP\n\n{options.rows:,} rows, additive over eight columns. `fit s` is "
        "from arrays in\nmemory to learnt hyperparameters in a fresh process, compilation included, import not; the "
        f"median of {options.repeats} runs.\n`ratio` is to vff. SVGP (500 inducing points, steps of 1024 rows under "
        "`looks`) was stopped when it reached\nvff's log-loss, or when its time was over."
    )
    for sentence in missing_peers():
        print(f"\n{sentence}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        y_test = write(folder, options.rows)
        progress(f"{options.rows:,} rows: vff, {options.repeats} times")
        ours, spread = middle([call(sys.executable, HERE / "_late_vff.py", folder) for _ in range(options.repeats)])
        lines, notes = [line("vff, full covariance", ours, ours)], [f"vff: fits of {spread} s."]
        if has_bam():
            progress(f"{options.rows:,} rows: mgcv::bam, {options.repeats} times")
            theirs, spread = middle([run_bam(folder) for _ in range(options.repeats)])
            lines.append(line("mgcv::bam, binomial, discrete", theirs, ours))
            notes.append(f"mgcv::bam: {theirs['version']}, {cores()} threads, fits of {spread} s.")
        if options.svgp_seconds and find_spec("gpytorch") is not None:
            progress(f"{options.rows:,} rows: SVGP, up to {options.svgp_seconds} s")
            goal = (folder, str(ours["log_loss"]), str(options.svgp_seconds))
            theirs = call(sys.executable, HERE / "_late_svgp.py", *goal)
            lines.append(line("SVGP", theirs, ours))
            reached = "reached" if theirs["log_loss"] <= ours["log_loss"] + 1e-3 else "did not reach"
            notes.append(f"SVGP {reached} vff's log-loss.")
    show(None, [*lines, constant(y_test)], notes)


def seconds_per_look(N: int, M: int, engine: str) -> tuple[float, int]:
    """One continuous column, Poisson counts, hyperparameters held: time per look at the rows, and features."""
    from vff import GPRegressor, Matern32

    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 1.0, N)
    y = rng.poisson(np.exp(1.0 + np.sin(12.0 * x)))
    kernel = Matern32(0, variance=1.0, lengthscale=0.2)
    model = GPRegressor(kernel, likelihood="poisson", optimizer=None, frequencies=M, domain=(0.0, 1.0), engine=engine)
    started = time.perf_counter()
    model.fit(x[:, None], y)
    return (time.perf_counter() - started) / (model.fit_.visits + 2), model.rows_.moments.request.size


def steps(options: argparse.Namespace) -> None:
    print(
        "\n## A step against rows and harmonics\n\nOne continuous column, Poisson counts, hyperparameters held: "
        "seconds per look at all rows (marginals,\nexpectations, sums; survey and first guess shared among them). "
        "`dense` writes the features out, as the paper's\nO(N M^2) does."
    )
    seconds_per_look(1000, 5, "auto")  # compiles
    lines: list[Line] = []
    for N, M in options.settings:
        progress(f"steps: {N:,} rows, M = {M}")
        ours, P = seconds_per_look(N, M, "auto")
        dense = seconds_per_look(N, M, "dense")[0] if options.most_dense >= N * M else None
        lines.append(
            {
                "rows": f"{N:,}",
                "M": str(M),
                "features": str(P),
                "s per look": f"{ours:.3f}",
                "ns per row": f"{1e9 * ours / N:.0f}",
                "dense s": "" if dense is None else f"{dense:.3f}",
                "ratio": "" if dense is None else f"{dense / ours:.1f}",
            }
        )
    show(None, lines, [])


PARTS = {"peers": peers, "steps": steps}


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", choices=PARTS, help="one part instead of both")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--svgp-seconds", type=float, default=600.0, help="how long SVGP may train; 0 leaves it out")
    parser.add_argument("--quick", action="store_true", help="few rows everywhere, to see that it runs")
    options = parser.parse_args()
    options.settings = [(N, 30) for N in (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)]
    options.settings += [(1_000_000, M) for M in (10, 20, 40, 80, 160, 320)]
    options.most_dense = 160 * 1_000_000
    if options.quick:
        options.rows, options.repeats, options.svgp_seconds = min(options.rows, 20_000), 1, 5.0
        options.settings = [(10_000, 10), (30_000, 10), (30_000, 40)]
    return options


def main() -> None:
    options = read_options()
    print(describe((*PACKAGES, "jax")), flush=True)
    for part in [options.only] if options.only else PARTS:
        PARTS[part](options)


if __name__ == "__main__":
    main()
