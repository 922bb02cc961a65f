"""Two columns in a product: the pass beside the bare FINUFFT calls, then a race against SVGP and KISS-GP.

    python benchmarks/two_columns.py [--rows 10000000] [--only pass|peers] [--cap 300] [--quick]

The pass: scattered points, 30 harmonics per column, without and with edge functions. Beside it, the two-dimensional
type-1 transforms that the sums need when every sheet of letters is a transform of its own (`transforms`, two real
vectors to a complex one, except that the weights and the weighted targets of edges=0 go apart because they need
different numbers of modes), and without edge functions also both in one transform of the larger size (`in one`).
With edge functions the one-dimensional sums are left out, in favour of the bare calls.

The race: 100,000 rows to learn from and 10,000 to be judged on, drawn from a product of two Matérn-3/2 with
lengthscale 0.2 on the unit square, noise variance 0.1. vff learns its hyperparameters as it comes; the peers train
until their NLPD is 0.005 above that of vff, or until a cap. Importing and scoring are not counted. Each side runs in a
process of its own. What is printed is Markdown for RESULTS.md.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from _machine import cores, describe
from _two_columns_race import TOLERANCE

from vff import GPRegressor, Matern32
from vff.report import table

HERE = Path(__file__).parent
EPSILON = 1e-12
LENGTHSCALE, NOISE, WAVES = 0.2, 0.1, 4000
PEERS = {"SVGP, 500 inducing points": "_two_columns_svgp.py", "KISS-GP, 61 x 61 grid": "_two_columns_kiss.py"}
Line = dict[str, str]


def draw(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform points and noisy values of a function drawn from the prior, as a sum of many random waves.

    The spectral density of a Matérn-3/2 is Student's t with three degrees of freedom; the wave numbers of the two
    columns are independent because the kernel is a product.
    """
    law, rng = np.random.default_rng(0), np.random.default_rng(seed)
    omega, phase = law.standard_t(3, (2, WAVES)) / LENGTHSCALE, law.uniform(0.0, 2.0 * np.pi, WAVES)
    X = rng.random((rows, 2))
    f = [np.cos(block @ omega + phase).sum(axis=1) for block in np.array_split(X, 1 + rows // 2000)]
    y = np.sqrt(2.0 / WAVES) * np.concatenate(f) + np.sqrt(NOISE) * rng.standard_normal(rows)
    return X, y


def wavy(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A cheaper function for the pass, whose time does not depend on y."""
    rng = np.random.default_rng(1)
    X = rng.random((rows, 2))
    return X, np.sin(9.0 * X[:, 0]) * np.cos(7.0 * X[:, 1]) + 0.3 * rng.standard_normal(rows)


def best(call: Callable[[], float], repeats: int) -> float:
    return min(call() for _ in range(repeats))


def transform(X: np.ndarray, modes: int, vectors: int) -> float:
    """Seconds of so many complex type-1 transforms over the same points, one after another, as memory demands."""
    import finufft

    strengths = np.ones(len(X), complex)
    x, y = (np.ascontiguousarray(2.0 * np.pi * column - np.pi) for column in X.T)
    started = time.perf_counter()
    plan = finufft.Plan(1, (modes, modes), eps=EPSILON, isign=1, dtype="complex128", nthreads=cores())
    plan.setpts(x, y)
    for _ in range(vectors):
        plan.execute(strengths)
    return time.perf_counter() - started


def bare(X: np.ndarray, M: int, q: int, repeats: int) -> dict[str, float]:
    """Seconds of the two-dimensional transforms behind the sums: (4M + 1)^2 modes for products of features."""
    large, small = 4 * M + 1, 2 * M + 1
    if q == 0:
        apart = best(lambda: transform(X, large, 1) + transform(X, small, 1), repeats)
        return {"transforms": apart, "in one": best(lambda: transform(X, large, 1), repeats)}
    # w R_i(a) R_j(b) for i, j = 0 ... q, and the weighted targets with no edge function
    vectors = (1 + q) ** 2 + 1
    return {"transforms": best(lambda: transform(X, large, (vectors + 1) // 2), repeats)}


def pass_line(X: np.ndarray, y: np.ndarray, M: int, edges: int | str, options: argparse.Namespace) -> Line:
    kernel = Matern32(0, variance=1.0, lengthscale=0.2) * Matern32(1, variance=1.0, lengthscale=0.2)
    given = GPRegressor(kernel, noise_variance=0.1, frequencies=M, edges=edges, optimizer=None)
    progress(f"{len(y):,} rows, M = {M}, edges = {edges}: the pass")
    seconds = best(lambda: given.fit(X, y).timing_["pass"], options.repeats)
    ((q, _),) = given.edges_.values()
    progress("the bare transforms")
    calls = bare(X, M, q, options.repeats)
    line = {"features": f"{2 * M + 1 + q} x {2 * M + 1 + q}", "edges": str(q), "engine": given.engine_}
    line |= {"pass s": f"{seconds:.2f}"}
    for name, spent in calls.items():
        line |= {f"{name} s": f"{spent:.2f}", f"pass / {name}": f"{seconds / spent:.2f}"}
    if options.skip_learning:
        return line
    progress("a fit that learns")
    learnt = GPRegressor(Matern32(0) * Matern32(1), frequencies=M, edges=edges)
    started = time.perf_counter()
    learnt.fit(X, y)
    whole = time.perf_counter() - started
    evaluations = sum(milestone.optimum.evaluations for milestone in learnt.fit_.history)
    return line | {
        "fit s": f"{whole:.1f}",
        "learn s": f"{learnt.timing_['learn']:.1f}",
        "evaluations": str(evaluations),
    }


def the_pass(options: argparse.Namespace) -> None:
    X, y = wavy(options.rows)
    lines = [pass_line(X, y, options.M, edges, options) for edges in (0, "auto")]
    print(
        f"\n## Two columns: the pass\n\n{options.rows:,} scattered rows, {cores()} threads, best of {options.repeats}."
    )
    for line in lines:
        print(f"\n```text\n{table([line])}\n```", flush=True)


def call(file: str, *arguments: str | Path) -> dict[str, Any]:
    """What a fresh process found, from the last line it prints."""
    command = [sys.executable, str(HERE / file), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def peers(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for ending, rows, seed in (("", options.learn, 1), ("_test", options.learn // 10, 2)):
            for name, array in zip(("X", "y"), draw(rows, seed), strict=True):
                np.save(folder / f"{name}{ending}.npy", array)
        progress(f"{options.learn:,} rows: vff, {options.repeats} times")
        runs = sorted((call("_two_columns_vff.py", folder) for _ in range(options.repeats)), key=lambda one: one["fit"])
        ours, times = runs[len(runs) // 2], ", ".join(f"{one['fit']:.2f}" for one in runs)
        lines = [{"model": "vff", "NLPD": f"{ours['nlpd']:.4f}", "seconds": f"{ours['fit']:.2f}", "ratio": "1"}]
        notes = [f"vff: fits of {times} s; M = {ours['M']}, P = {ours['P']:,}, noise variance {ours['noise']:.4f}."]
        for name, file in PEERS.items() if find_spec("gpytorch") else ():
            progress(f"{name}, until NLPD {ours['nlpd'] + TOLERANCE:.4f} or {options.cap:g} s")
            theirs = call(file, folder, str(ours["nlpd"]), str(options.cap))
            lines.append(peer_line(name, theirs, ours["fit"]))
            notes.append(f"{name}: {theirs['steps']} steps; {course(theirs['course'])}.")
    if find_spec("gpytorch") is None:
        notes.append("SVGP and KISS-GP are left out: GPyTorch is not installed; pip install torch gpytorch brings it.")
    print(
        f"\n## Two columns: seconds to the NLPD of vff\n\n{options.learn:,} rows; scores on {options.learn // 10:,} "
        f"others (the truth has {0.5 * np.log(2 * np.pi * np.e * NOISE):.4f} or more);\nwithout imports and scoring.\n"
    )
    print(f"```text\n{table(lines)}\n```\n\n" + "\n".join(f"- {note}" for note in notes), flush=True)


def peer_line(name: str, found: dict[str, Any], ours: float) -> Line:
    """Seconds to the score, or the cap that was not enough."""
    reached = found["reached"]
    seconds, more = (reached, "") if reached is not None else (found["spent"], "> ")
    ratio = f"{more}{seconds / ours:.1f}"
    return {"model": name, "NLPD": f"{found['nlpd']:.4f}", "seconds": f"{more}{seconds:.1f}", "ratio": ratio}


def course(points: list[tuple[float, float]]) -> str:
    """NLPD against seconds, at some five moments."""
    some = points[:: max(1, len(points) // 5)]
    return "NLPD " + ", ".join(f"{nlpd:.3f} at {seconds:.0f} s" for seconds, nlpd in some)


def progress(message: str) -> None:
    print(f"{message} ...", file=sys.stderr, flush=True)


PARTS = {"pass": the_pass, "peers": peers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**7, help="rows of the pass")
    parser.add_argument("--learn", type=int, default=10**5, help="rows of the race")
    parser.add_argument("--M", type=int, default=30, help="harmonics per column of the pass")
    parser.add_argument("--cap", type=float, default=300.0, help="seconds of training after which a peer stops")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=PARTS, help="one part instead of both")
    parser.add_argument("--skip-learning", action="store_true", help="time the pass alone, without a fit that learns")
    parser.add_argument("--quick", action="store_true", help="few rows everywhere, to see that it runs")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.learn, options.M, options.cap, options.repeats = 10**5, 3000, 6, 5.0, 1
    print(describe(("numpy", "scipy", "finufft", "torch", "gpytorch")), flush=True)
    for part in [options.only] if options.only else PARTS:
        PARTS[part](options)


if __name__ == "__main__":
    main()
