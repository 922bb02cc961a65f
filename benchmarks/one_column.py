"""One column against celerite2 (exact, O(N)): hyperparameters learnt, everything included, ratios printed.

    python benchmarks/one_column.py [--rows 1000000 10000000] [--lengthscales 0.2 0.02] [--skip-peer]

Lengthscales are fractions of the range: 0.2 is the task of the paper's Figure 5, 0.02 a function with ten times the
detail. Both sides get the same sorted rows, a draw from a Matérn-3/2 process with noise. vff is timed from arrays in
memory to a fitted model in a fresh process, imports apart; celerite2 from its first likelihood to the optimum that
L-BFGS-B finds from the same kind of start, with its gradients by differences (its NumPy interface has no others).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from vff.report import table

VARIANCE, NOISE = 1.0, 0.1


def draw(rows: int, lengthscale: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sorted x in [0, 1] and y from the model, by celerite2's own O(N) sampler."""
    import celerite2  # pyright: ignore[reportMissingImports]
    from celerite2 import terms  # pyright: ignore[reportMissingImports]

    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 1.0, rows))
    kernel = terms.Matern32Term(sigma=np.sqrt(VARIANCE), rho=lengthscale, eps=1e-3)
    gp = celerite2.GaussianProcess(kernel, mean=0.0)
    gp.compute(x, diag=np.full(rows, NOISE))
    np.random.seed(seed)  # noqa: NPY002  celerite2 draws from NumPy's global generator
    return x, np.asarray(gp.sample())


VFF_CHILD = """
import json, sys, time
import numpy as np

def peak():
    # not getrusage: on Linux its peak is inherited from the process that started this one
    return max(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(("VmHWM", "VmRSS")))

data = np.load(sys.argv[1])
x, y = data["x"][:, None], data["y"]
from vff import GPRegressor, Matern32
loaded, before = time.perf_counter(), peak()
model = GPRegressor(Matern32(0)).fit(x, y)
seconds = time.perf_counter() - loaded
kernel = model.kernel_
print(json.dumps({"seconds": seconds, "variance": kernel.variance, "lengthscale": kernel.lengthscale,
    "noise": model.noise_variance_, "bound": float(model.elbo_), "M": model.frequencies_[0],
    "missed": model.elbo_gap_[0],
    "extra MiB": (peak() - before) / 1024}))
"""


def run_vff(path: Path) -> dict[str, float]:
    """A fresh process: imports, pass, learning."""
    done = subprocess.run([sys.executable, "-c", VFF_CHILD, str(path)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def run_celerite2(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Maximum likelihood over (variance, lengthscale, noise) by L-BFGS-B on celerite2's likelihood."""
    import celerite2  # pyright: ignore[reportMissingImports]
    from celerite2 import terms  # pyright: ignore[reportMissingImports]
    from scipy.optimize import minimize

    started = time.perf_counter()
    mean, calls = float(np.mean(y)), 0
    residual = y - mean
    gp = celerite2.GaussianProcess(terms.Matern32Term(sigma=1.0, rho=1.0))

    def negative(theta: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        variance, lengthscale, noise = np.exp(theta)
        gp.kernel = terms.Matern32Term(sigma=np.sqrt(variance), rho=lengthscale)
        gp.compute(x, diag=np.full(x.size, noise), quiet=True)
        return -float(gp.log_likelihood(residual)) / x.size

    spread = float(np.var(y))
    start = np.log([spread, 0.05 * (x[-1] - x[0]), 0.1 * spread])
    result = minimize(negative, start, method="L-BFGS-B", options={"ftol": 1e-9})
    variance, lengthscale, noise = np.exp(result.x).tolist()
    seconds = time.perf_counter() - started
    found = {"variance": variance, "lengthscale": lengthscale, "noise": noise}
    return {"seconds": seconds, **found, "bound": -result.fun * x.size, "calls": calls}


def compare(rows: int, lengthscale: float, peer: bool) -> dict[str, str]:
    x, y = draw(rows, lengthscale)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, x=x, y=y)
        ours = run_vff(path)
    line = {
        "rows": f"{rows:,}",
        "truth": f"{lengthscale:g}",
        "vff s": f"{ours['seconds']:.2f}",
        "M": str(ours["M"]),
        "bound": f"{ours['bound']:.2f}",
        "lengthscale": f"{ours['lengthscale']:.4f}",
        "noise": f"{ours['noise']:.4f}",
        "extra MiB": f"{ours['extra MiB']:.0f}",
    }
    if peer:
        theirs = run_celerite2(x, y)
        line |= {
            "celerite2 s": f"{theirs['seconds']:.2f}",
            "calls": str(theirs["calls"]),
            "evidence": f"{theirs['bound']:.2f}",
            "its lengthscale": f"{theirs['lengthscale']:.4f}",
            "its noise": f"{theirs['noise']:.4f}",
            "ratio": f"{theirs['seconds'] / ours['seconds']:.1f}x",
        }
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--lengthscales", type=float, nargs="+", default=[0.2, 0.02])
    parser.add_argument("--skip-peer", action="store_true", help="time vff alone")
    options = parser.parse_args()
    lines = []
    for lengthscale in options.lengthscales:
        for rows in options.rows:
            print(f"{rows:,} rows, lengthscale {lengthscale:g} ...", file=sys.stderr)
            lines.append(compare(rows, lengthscale, not options.skip_peer))
    print(table(lines))


if __name__ == "__main__":
    main()
