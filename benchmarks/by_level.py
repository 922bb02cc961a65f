"""Functions of their own for many levels: intercepts and slopes beside lme4, and smooth functions by themselves.

    OPENBLAS_NUM_THREADS=1 python benchmarks/by_level.py [--rows 1000000] [--levels 100000] [--smooth 2000] [--quick]

``lines``: every level has an intercept and a slope, which are correlated, as the reaction times of many subjects.
lme4 fits the same model in the same run. ``smooth``: every level has a Matérn of its own beside two columns that all
share. Seconds are those of the processor, from rows in memory to effects of all levels with their deviations. Each fit
is in a process of its own; what is printed is Markdown.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _machine import describe, peak_mib

from vff.report import table

HERE = Path(__file__).parent


def write_rows(folder: Path, rows: int, levels: int) -> None:
    """Rows of levels with lines of their own, for both languages."""
    rng = np.random.default_rng(0)
    g, x = rng.integers(levels, size=rows), rng.uniform(0.0, 10.0, rows)
    lines = rng.multivariate_normal([0.0, 0.0], [[625.0, 30.0], [30.0, 36.0]], levels)
    y = 250.0 + 10.0 * x + lines[g, 0] + lines[g, 1] * x + 25.0 * rng.normal(size=rows)
    for name, values in (("x", x), ("y", y), ("g", g.astype(np.int32))):
        values.tofile(folder / f"{name}.bin")


def fit_lines(folder: Path) -> dict[str, Any]:
    import pandas as pd

    from vff import Categorical, GPRegressor, Linear

    x, y = (np.fromfile(folder / f"{name}.bin") for name in "xy")
    frame = pd.DataFrame({"x": x, "g": np.fromfile(folder / "g.bin", np.int32)})
    before = time.process_time()
    model = GPRegressor(Linear("x") + Linear("x", intercept=True) * Categorical("g")).fit(frame, y)
    model.coefficients()
    cpu, term = time.process_time() - before, model.fit_.terms[1]
    slope, correlation = term.lengthscales
    found = {"cpu": cpu, "noise": model.noise_variance_, "intercept": term.variance}
    found |= {"slope": term.variance * slope**2, "correlation": correlation}
    return found | {"solver": model.solver_, "peak": peak_mib()}


def fit_smooth(rows: int, levels: int) -> dict[str, Any]:
    import pandas as pd

    from vff import Categorical, GPRegressor, Matern32

    rng = np.random.default_rng(0)
    g, (t, x, z) = rng.integers(levels, size=rows), rng.uniform(size=(3, rows))
    phase, size = rng.uniform(0.0, 6.0, levels), rng.normal(size=levels)
    y = size[g] * np.sin(5.0 * t + phase[g]) + np.cos(4.0 * x) + z**2 + 0.3 * rng.normal(size=rows)
    frame = pd.DataFrame({"t": t, "x": x, "z": z, "g": g})
    before = time.process_time()
    kernel = Matern32("t") * Categorical("g") + Matern32("x") + Matern32("z")
    model = GPRegressor(kernel).fit(frame, y)
    model.effects(frame[:1000])
    found = {"cpu": time.process_time() - before, "noise": model.noise_variance_, "solver": model.solver_}
    return found | {"features": model.fit_.posterior.request.size, "peak": peak_mib()}


def call(*command: str | Path) -> dict[str, Any]:
    """What a fresh process found, from the last line it prints."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--levels", type=int, default=100_000)
    parser.add_argument("--smooth", type=int, default=2000, help="levels with smooth functions, of 50 rows each")
    parser.add_argument("--quick", action="store_true", help="a hundredth of everything")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = read_options()
    if options.part:
        part, *given = options.part
        print(json.dumps(fit_lines(Path(given[0])) if part == "lines" else fit_smooth(*map(int, given))))
        return
    share = 100 if options.quick else 1
    rows, levels, smooth = options.rows // share, options.levels // share, options.smooth // share
    with tempfile.TemporaryDirectory() as temporary:
        write_rows(Path(temporary), rows, levels)
        ours = call(sys.executable, __file__, "--part", "lines", temporary)
        theirs = call("Rscript", HERE / "_by_level_lme4.R", temporary)
    print(f"## Functions of their own for many levels\n\n{describe(('numpy', 'scipy'))}\n")
    print(f"{rows:,} rows, {levels:,} levels with an intercept and a slope each; solver `{ours['solver']}`.\n")
    names = ("cpu", "noise", "intercept", "slope", "correlation")
    found = (("vff", ours), ("lme4", theirs))
    lines = [{"model": model, **{name: f"{own[name]:.5g}" for name in names}} for model, own in found]
    print(table(lines))
    print(f"\nRatio of seconds: {theirs['cpu'] / ours['cpu']:.2f}; peak of vff {ours['peak']:.0f} MiB.\n")
    by = call(sys.executable, __file__, "--part", "smooth", str(50 * smooth), str(smooth))
    print(
        f"{50 * smooth:,} rows, {smooth:,} levels with a Matérn each beside two columns: {by['features']:,} features, "
        f"solver `{by['solver']}`, {by['cpu']:.2f} s, peak {by['peak']:.0f} MiB, noise {by['noise']:.4g} of 0.09."
    )


if __name__ == "__main__":
    main()
