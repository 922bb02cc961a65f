"""Additive models: vff beside mgcv::bam and GPyTorch's SVGP, then vff alone against the number of rows.

    python benchmarks/additive.py [--rows 4000000] [--only peers|growth|predict] [--tables flights continuous]
                                  [--svgp-rows 500000] [--quick]

Eight inputs of the flights from New York in 2013, their arrival delay, two thirds to learn from and one third to be
judged on. The rows to learn from are drawn with replacement until there are as many as asked for. The table "flights"
has the ties of the original (whole minutes, days, miles); "continuous" has none: every value of every column is moved
by up to half of that column's smallest step. Each side gets its rows as files in a process of its own, so that a cold
start is one. What is printed is Markdown for RESULTS.md.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from _machine import cores, describe

from vff.report import table

HERE = Path(__file__).parent
TABLES = ("flights", "continuous")
PACKAGES = ("numpy", "scipy", "finufft", "scikit-learn", "torch", "gpytorch")
Found = dict[str, Any]
Line = dict[str, str]


@dataclass(frozen=True)
class Flights:
    """The original rows, split, with y in units of its mean and deviation over the rows to learn from."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    steps: np.ndarray
    """Smallest distance of two different values, by column."""


def load(seed: int = 0) -> Flights:
    from vff.datasets import load_flights_nyc

    data = load_flights_nyc()
    order = np.random.default_rng(seed).permutation(data.y.size)
    train, test = np.split(order, [2 * data.y.size // 3])
    centre, spread = data.y[train].mean(), data.y[train].std()
    y = (data.y - centre) / spread
    steps = np.array([np.diff(np.unique(column)).min() for column in data.X.T])
    return Flights(data.X[train], y[train], data.X[test], y[test], steps)


def jitter(X: np.ndarray, steps: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Moves every value by up to half a step, in place: order between different values stays, ties go."""
    for column, step in zip(X.T, steps, strict=True):
        column += step * rng.uniform(-0.5, 0.5, column.size)
    return X


def resample(X: np.ndarray, rows: int, name: str, steps: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows drawn with replacement, as the named table has them, and which they were."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(X.shape[0], size=rows)
    drawn = X[chosen]
    return (jitter(drawn, steps, rng) if name == "continuous" else drawn), chosen


def write_training(folder: Path, flights: Flights, name: str, rows: int) -> None:
    X, chosen = resample(flights.X, rows, name, flights.steps, seed=1)
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", flights.y[chosen])


def write_test(folder: Path, flights: Flights, name: str) -> None:
    X = flights.X_test.copy()
    np.save(folder / "X_test.npy", jitter(X, flights.steps, np.random.default_rng(2)) if name == "continuous" else X)
    np.save(folder / "y_test.npy", flights.y_test)


def write_columns(folder: Path) -> None:
    """The same numbers for R, which reads plain doubles, column after column."""
    for path in folder.glob("*.npy"):
        np.load(path).T.tofile(path.with_suffix(".bin"))


def call(*command: str | Path) -> Found:
    """What a fresh process found, from the last line it prints; what it complains about goes to the terminal."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def run_vff(folder: Path) -> Found:
    return call(sys.executable, HERE / "_additive_vff.py", folder)


def run_bam(folder: Path) -> Found:
    write_columns(folder)
    try:
        return call("Rscript", HERE / "_bam.R", folder, str(cores()))
    finally:
        for path in folder.glob("*.bin"):
            path.unlink()


def run_svgp(folder: Path, rows: int) -> Found:
    return call(sys.executable, HERE / "_additive_svgp.py", folder, str(rows))


@cache
def has_bam() -> bool:
    """Whether R and mgcv are here; asked once, since R takes a second to answer."""
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(mgcv)"], capture_output=True).returncode == 0


def missing_peers() -> list[str]:
    """A sentence for each peer that is not here."""
    said = []
    if not has_bam():
        said.append("mgcv::bam is left out: there is no Rscript with mgcv; apt-get install r-cran-mgcv brings both.")
    if find_spec("gpytorch") is None:
        said.append("SVGP is left out: GPyTorch is not installed; pip install torch gpytorch brings it.")
    return said


def peer_line(model: str, found: Found, seconds: float, ours: Found) -> Line:
    """One model's line; its ratios are to vff, without and with the imports of both."""
    return {
        "model": model,
        "import s": f"{found['import']:.2f}",
        "fit s": f"{seconds:.2f}",
        "ratio": f"{seconds / ours['fit']:.2f}",
        "with imports": f"{(seconds + found['import']) / ours['cold']:.2f}",
        "cpu s": f"{found['cpu']:.2f}",
        "MSE": f"{found['mse']:.4f}",
        "NLPD": f"{found['nlpd']:.4f}",
        "scoring s": f"{found['score_seconds']:.2f}",
    }


def constant_line(y: np.ndarray) -> Line:
    """The rows' mean and deviation and nothing else: what any model must beat."""
    mse = float(np.mean(y**2))
    nlpd = 0.5 * np.log(2 * np.pi) + 0.5 * mse
    return {"model": "a constant", "MSE": f"{mse:.4f}", "NLPD": f"{nlpd:.4f}"}


def middle(runs: list[Found]) -> tuple[Found, str]:
    """The run of median time, and all times."""
    ordered = sorted(runs, key=lambda found: found["fit"])
    return ordered[len(ordered) // 2], ", ".join(f"{found['fit']:.2f}" for found in ordered)


def compare(flights: Flights, name: str, rows: int, svgp_rows: int, repeats: int) -> tuple[list[Line], list[str]]:
    """The lines of one table, and what a reader must know of them."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_training(folder, flights, name, rows)
        write_test(folder, flights, name)
        progress(f"{name}, {rows:,} rows: vff, {repeats} times")
        ours, spread = middle([run_vff(folder) for _ in range(repeats)])
        lines = [peer_line("vff", ours, ours["fit"], ours)]
        notes = [f"vff: fits of {spread} s; {ours['evaluations']:.0f} evaluations."]
        if has_bam():
            progress(f"{name}, {rows:,} rows: mgcv::bam, {repeats} times")
            theirs, spread = middle([run_bam(folder) for _ in range(repeats)])
            lines.append(peer_line("mgcv::bam, discrete, fREML", theirs, theirs["fit"], ours))
            notes.append(f"{bam_note(theirs)} Fits of {spread} s.")
        if svgp_rows and find_spec("gpytorch") is not None:
            progress(f"{name}, {min(svgp_rows, rows):,} rows: SVGP")
            theirs = run_svgp(folder, svgp_rows)
            lines.append(peer_line("SVGP, one epoch", theirs, theirs["fit"] * rows / theirs["rows"], ours))
            notes.append(svgp_note(theirs, rows))
    return [*lines, constant_line(flights.y_test)], notes


def bam_note(found: Found) -> str:
    return (
        f"mgcv::bam: {found['version']}, {cores()} threads, {found['coefficients']:.0f} coefficients, "
        f"residual variance {found['sig2']:.4f}, BLAS {found['blas']}."
    )


def svgp_note(found: Found, rows: int) -> str:
    run = f"SVGP: {found['steps']:.0f} steps over {found['rows']:,.0f} rows took {found['fit']:.1f} s"
    if found["rows"] < rows:
        return f"{run}; `fit s` is that time scaled to {rows:,} rows (not measured); nothing else is scaled."
    return f"{run}: a whole epoch, nothing scaled."


def peers(flights: Flights, options: argparse.Namespace) -> None:
    print(
        f"\n## Additive models: vff, mgcv::bam, SVGP\n\n{options.rows:,} rows drawn from {flights.y.size:,}, scores on "
        f"{flights.y_test.size:,} others,\nin units of the delay's deviation. `fit s` is from arrays in memory to "
        "learnt hyperparameters,\nin a fresh process, without the import; the median of the runs. `ratio` is to "
        "vff,\nwithout and with imports. `cpu s` is the sum over threads; a `fit s` above it says that others had the "
        "processor\n(waiting threads may also burn it). SVGP: 500 inducing points, Matérn-3/2 with a lengthscale per "
        "column,\nminibatches of 1024, Adam at 0.01, one epoch."
    )
    for sentence in missing_peers():
        print(f"\n{sentence}")
    for name in options.tables:
        lines, notes = compare(flights, name, options.rows, options.svgp_rows, options.repeats)
        show(f"Table: {name}", lines, notes)


def growth_line(rows: int, found: Found) -> Line:
    step = 1e3 * found["learn_seconds"] / max(found["evaluations"], 1)
    return {
        "rows": f"{rows:,}",
        "pass s": f"{found['pass_seconds']:.3f}",
        "learn s": f"{found['learn_seconds']:.3f}",
        "evaluations": f"{found['evaluations']:.0f}",
        "step ms": f"{step:.1f}",
        "fit s": f"{found['fit']:.2f}",
        "extra MiB": f"{found['extra_mib']:.0f}",
        "of X and y": f"{100 * found['extra_mib'] / (rows * 9 * 8 / 2**20):.0f} %",
    }


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Exponent of the power of N that the times follow, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth(flights: Flights, options: argparse.Namespace) -> None:
    print(
        "\n## vff against the number of rows, eight columns\n\nA fresh process for each N. `pass s` reads the rows,\n"
        "`learn s` does not see them, `step ms` is learning per evaluation of bound and gradient, `extra MiB` is the\n"
        "peak of the fit beyond X and y, which are in memory before."
    )
    for name in options.tables:
        found = []
        for rows in options.sizes:
            progress(f"{name}, {rows:,} rows: growth")
            with tempfile.TemporaryDirectory() as temporary:
                write_training(Path(temporary), flights, name, rows)
                found.append(run_vff(Path(temporary)))
        passes, fits = (slope(options.sizes, [each[key] for each in found]) for key in ("pass_seconds", "fit"))
        note = f"Time goes as N to the power {passes:.2f} for the pass, {fits:.2f} for the whole fit."
        show(f"Table: {name}", [growth_line(*each) for each in zip(options.sizes, found, strict=True)], [note])


def predict(flights: Flights, options: argparse.Namespace) -> None:
    print("\n## Prediction with vff, eight columns\n\nMean and standard deviation of the sum at new rows.")
    lines = []
    for name in options.tables:
        progress(f"{name}: prediction at {options.points:,} rows")
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            write_training(folder, flights, name, min(options.rows, flights.y.size))
            new, _ = resample(flights.X, options.points, name, flights.steps, seed=3)
            np.save(folder / "X_new.npy", new)
            found = run_vff(folder)
        seconds = {f"{key} s": f"{found[f'predict_{key}']:.2f}" for key in ("first", "best")}
        lines.append({"table": name, "points": f"{options.points:,}"} | seconds)
    show(None, lines, [])


def show(title: str | None, lines: list[Line], notes: list[str]) -> None:
    """An aligned table in a fence, so that it is the same on a terminal and on a page, and its notes below."""
    heading = f"\n{title}\n" if title else ""
    print(f"{heading}\n```text\n{table(lines)}\n```", flush=True)
    if notes:
        print("\n" + "\n".join(f"- {note}" for note in notes), flush=True)


def progress(message: str) -> None:
    print(f"{message} ...", file=sys.stderr, flush=True)


PARTS = {"peers": peers, "growth": growth, "predict": predict}


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows to learn from, beside the peers")
    parser.add_argument("--only", choices=PARTS, help="one part instead of all")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--svgp-rows", type=int, default=500_000, help="rows of SVGP's epoch; 0 leaves it out")
    parser.add_argument("--repeats", type=int, default=3, help="runs of vff and of bam, of which the median counts")
    parser.add_argument("--quick", action="store_true", help="few rows everywhere, to see that it runs")
    options = parser.parse_args()
    options.sizes, options.points = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000), 1_000_000
    if options.quick:
        options.rows, options.svgp_rows = min(options.rows, 30_000), min(options.svgp_rows, 10_000)
        options.sizes, options.points = (10_000, 30_000, 100_000), 100_000
    return options


def main() -> None:
    options = read_options()
    print(describe(PACKAGES), flush=True)
    flights = load()
    for part in [options.only] if options.only else PARTS:
        PARTS[part](flights, options)


if __name__ == "__main__":
    main()
