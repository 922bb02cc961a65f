"""How far one machine goes: tables made chunk by chunk and never held, from ten million to a hundred million rows.

    python benchmarks/scale.py [--rows 10000000 100000000] [--quick]

One continuous column, and three columns of integers, fitted from a function that returns an iterator of chunks: in two
passes (domain found in the rows), and in one (domain given). Every fit is a process of its own; `peak` is the most
memory it held, `making` the time that the chunks themselves took, which is taken off. `slope` is that of time against
rows in logarithms. The peer, in the same run on fewer rows, is what one would write by hand: the normal equations of a
ridge regression on the cubic B-splines of scikit-learn, summed over the same chunks, with about as many features.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from _machine import describe, peak_mib

CHUNK = 2**20
PEER_ROWS = 2**22
CASES = {"one continuous column": ("x",), "three integer columns": ("hour", "day", "load")}
SIZES = {"hour": 24, "day": 366, "load": 100}
DOMAINS: dict[str, tuple[float, float]] = {"x": (0.0, 1.0), "hour": (0, 23), "day": (0, 365), "load": (0, 99)}


def chunks(names: tuple[str, ...], rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The table, the same every time."""
    for number, start in enumerate(range(0, rows, CHUNK)):
        rng, n = np.random.default_rng(number), min(CHUNK, rows - start)
        y = 0.5 * rng.standard_normal(n)
        columns = []
        for name in names:
            if name == "x":
                column = rng.random(n)
                y += np.sin(20.0 * column)
            else:
                column = rng.integers(0, SIZES[name], n).astype(float)
                y += np.sin(6.0 * column / SIZES[name])
            columns.append(column)
        yield np.stack(columns, axis=1), y


def run(case: str, rows: int, passes: int) -> dict[str, Any]:
    """One fit, timed."""
    from vff import GPRegressor, Matern32

    names = CASES[case]
    spent = 0.0

    def timed() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        nonlocal spent
        table = chunks(names, rows)
        while True:
            started = time.perf_counter()
            chunk = next(table, None)
            spent += time.perf_counter() - started
            if chunk is None:
                return
            yield chunk

    kernel = Matern32(0)
    for c in range(1, len(names)):
        kernel = kernel + Matern32(c)
    domain = {c: DOMAINS[name] for c, name in enumerate(names)} if passes == 1 else "auto"
    started = time.perf_counter()
    model = GPRegressor(kernel, domain=domain).fit(timed)
    total = time.perf_counter() - started
    learn = model.timing_["learn"]
    return {
        "total": total - spent,
        "pass": total - spent - learn,
        "learn": learn,
        "making": spent,
        "peak": peak_mib(),
        "features": model.fit_.posterior.request.size,
        "sd": float(np.sqrt(model.noise_variance_)),
    }


def run_peer(case: str, rows: int, features: int) -> float:
    """Rows per second of normal equations on B-splines."""
    from sklearn.preprocessing import SplineTransformer

    names = CASES[case]
    knots = max(4, features // len(names) - 2)
    first = next(chunks(names, CHUNK))[0]
    splines = SplineTransformer(n_knots=knots, extrapolation="linear").fit(first)
    gram, project, spent = 0.0, 0.0, 0.0
    for X, y in chunks(names, rows):
        started = time.perf_counter()
        for at in range(0, len(y), 2**16):
            phi = splines.transform(X[at : at + 2**16])
            gram = gram + phi.T @ phi
            project = project + phi.T @ y[at : at + 2**16]
        spent += time.perf_counter() - started
    return rows / spent


def child(arguments: list[str]) -> dict[str, Any]:
    """The result of a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--child", *arguments], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**7, 10**8])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--child", nargs=3)
    options = parser.parse_args()
    if options.child:
        case, rows, passes = options.child
        print(json.dumps(run(case, int(rows), int(passes)) if int(passes) else {}))
        return
    sizes = [10**6, 3 * 10**6] if options.quick else options.rows
    print(describe(["vff", "numpy", "scipy", "finufft"]))
    for case in CASES:
        print(f"\n{case}\n")
        print("| rows | passes | fit s | pass s | learn s | M rows/s | making s | peak MiB | features | noise sd |")
        print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
        features, rate = 0, 0.0
        for passes in (2, 1):
            found = {rows: child([case, str(rows), str(passes)]) for rows in sizes}
            for rows, one in found.items():
                print(
                    f"| {rows:.0e} | {passes} | {one['total']:.2f} | {one['pass']:.2f} | {one['learn']:.2f} | "
                    f"{rows / one['total'] / 1e6:.2f} | {one['making']:.1f} | {one['peak']:.0f} | {one['features']} | "
                    f"{one['sd']:.4f} |"
                )
                features, rate = one["features"], rows / one["total"]
            for (few, a), (many, b) in pairwise(found.items()):
                slope = np.log(b["total"] / a["total"]) / np.log(many / few)
                billion = b["total"] + b["pass"] * (1e9 / many - 1)
                print(f"\nslope {slope:.3f}; at the rate of the last, 10⁹ rows take {billion / 60:.1f} minutes\n")
        peer = run_peer(case, PEER_ROWS // (8 if options.quick else 1), features)
        print(f"peer, {features} B-splines: {peer / 1e6:.3f} M rows/s; ratio {rate / peer:.1f}")


if __name__ == "__main__":
    main()
