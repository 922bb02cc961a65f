"""Labels of a table of middling size: vff beside mgcv::bam.

    python benchmarks/labels.py [--rows 12700] [--columns 10] [--basis 20 40] [--repeats 3] [--quick]

Simulated rows, always the same: columns that are correlated, some with long tails, smooth effects of unlike detail, the
last two without any, through a logit. As many rows again to be judged on. Each fit is in a process of its own, that of
vff twice in one: the first compiles. What is printed is Markdown for RESULTS.md.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from _machine import cores, describe
from additive import HERE, Found, Line, call, has_bam, progress, show, write_columns

PACKAGES = ("numpy", "scipy", "finufft", "scikit-learn", "jax")
MISSING = "mgcv::bam is left out: there is no Rscript with mgcv; apt-get install r-cran-mgcv brings both."
IDLE = 2
"""Columns without an effect."""


def inputs(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Correlated columns, a third of them uniform, a third normal, a third with a long tail to the right."""
    mixing = np.eye(columns) + 0.35 * np.random.default_rng(5).standard_normal((columns, columns)) / np.sqrt(columns)
    z = rng.standard_normal((rows, columns)) @ mixing
    z /= np.sqrt(np.sum(mixing**2, axis=0))
    shapes = (lambda t: np.arctan(1.2 * t), lambda t: t, lambda t: np.exp(0.6 * t))
    return np.stack([shapes[d % 3](z[:, d]) for d in range(columns)], axis=1)


def effects(X: np.ndarray, centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """The latent function: waves of one to five turns and a slope in each column, but for the last two."""
    t, rng = (X - centre) / spread, np.random.default_rng(7)
    f = np.full(len(X), -0.8)
    for d in range(X.shape[1] - IDLE):
        turns, size, phase, slope = 0.3 + 0.25 * d, rng.uniform(0.4, 0.9), rng.uniform(0, 6), rng.normal(0, 0.6)
        f += size * np.sin(turns * np.pi * np.tanh(t[:, d]) * 1.5 + phase) + slope * np.tanh(t[:, d])
    return f


def write(folder: Path, rows: int, columns: int) -> np.ndarray:
    """Rows to learn from and to be judged on; returns the probabilities of the latter."""
    rng = np.random.default_rng(3)
    both = [inputs(rows, columns, rng) for _ in range(2)]
    centre, spread = both[0].mean(axis=0), both[0].std(axis=0)
    p = np.empty(0)
    for name, X in zip(("", "_test"), both, strict=True):
        p = 1.0 / (1.0 + np.exp(-effects(X, centre, spread)))
        np.save(folder / f"X{name}.npy", X)
        np.save(folder / f"y{name}.npy", (rng.uniform(size=rows) < p).astype(float))
    return p


def best(runs: list[Found]) -> tuple[Found, str]:
    """The run that took the least processor time, and the wall seconds of all; others may be at work on the machine."""
    spread = ", ".join(f"{run['fit']:.2f}" for run in runs)
    least = dict(min(runs, key=lambda run: run["cpu"]))
    for name in ("fit", "warm_fit", "warm_cpu"):
        if name in least:
            least[name] = min(run[name] for run in runs)
    return least, spread


def line(model: str, found: Found, ours: Found, score: str) -> Line:
    cells = {"model": model, "import s": f"{found['import']:.2f}"}
    cells |= {"fit s": f"{found['fit']:.2f}", "ratio": f"{found['fit'] / ours['fit']:.2f}"}
    cells |= {"cpu s": f"{found['cpu']:.2f}", "cpu ratio": f"{found['cpu'] / ours['cpu']:.2f}"}
    warm = found.get("warm_cpu")
    cells |= {"warm s": "" if warm is None else f"{found['warm_fit']:.2f}"}
    cells |= {"warm cpu s": "" if warm is None else f"{warm:.2f}"}
    cells |= {"to warm cpu": f"{(warm or found['cpu']) / ours['warm_cpu']:.2f}"}
    cells |= {score: f"{found[score.replace('-', '_').replace(' ', '_')]:.4f}"}
    return cells | {"coefficients": f"{found['coefficients']:.0f}", "looks at the rows": f"{found['looks']:.0f}"}


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=12_700)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--basis", type=int, nargs="+", default=[20, 40], help="of every column, for bam, a line each")
    parser.add_argument("--repeats", type=int, default=3, help="of which the best counts, for both")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.columns, options.repeats, options.basis = 1_000, 4, 1, options.basis[:1]
    return options


def main() -> None:
    options = read_options()
    print(describe(PACKAGES), flush=True)
    print(
        f"\n## Labels: vff and mgcv::bam\n\n{options.rows:,} rows of {options.columns} continuous columns, additive. "
        f"`fit s` is from arrays in memory to learnt\nhyperparameters in a fresh process, compilation included, import "
        f"not; `warm s` a second fit in the same process.\nThe best of {options.repeats} runs, of both."
    )
    if not has_bam():
        print(f"\n{MISSING}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        p = write(folder, options.rows, options.columns)
        write_columns(folder)
        runs: dict[str, list[Found]] = {}
        for _ in range(options.repeats):  # in turns: whoever else is at work then slows both
            progress(f"{options.rows:,} labels: vff")
            runs.setdefault("vff", []).append(call(sys.executable, HERE / "_labels_vff.py", folder))
            for k in options.basis if has_bam() else ():
                progress(f"{options.rows:,} labels: mgcv::bam, k = {k}")
                own = call("Rscript", HERE / "_labels_bam.R", folder, str(cores()), str(k))
                runs.setdefault(f"mgcv::bam, binomial, discrete, k = {k}", []).append(own)
    ours, _ = best(runs["vff"])
    lines, notes = [], []
    for model, every in runs.items():
        found, spread = best(every)
        lines.append(line(model, found, ours, "log-loss"))
        notes.append(f"{model}: fits of {spread} s{', ' + found['version'] if 'version' in found else ''}.")
    entropy = -float(np.mean(p * np.log(p) + (1 - p) * np.log1p(-p)))
    lines.append({"model": "the probabilities that labels were drawn with", "log-loss": f"{entropy:.4f}"})
    show(None, lines, notes)


if __name__ == "__main__":
    main()
