"""The parts of a one-column fit, each beside what it is made of.

    python benchmarks/parts.py

Prints: the data pass against the bare FINUFFT calls it makes; one hyperparameter step against N; prediction at 10^6
points; a first and a second small fit; the import; peak memory of a chunked pass against N.
"""

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from vff.report import table


def best(call: Callable[[], object], repeats: int = 3) -> float:
    """Seconds of the fastest of a few runs: the machine is shared, the arithmetic is not."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def bare_finufft(t: np.ndarray, M: int, q: int) -> Callable[[], object]:
    """The transforms of one pass and nothing else: q edge functions evaluated, 1 + q + 1 real vectors summed."""
    import finufft

    synthesis, analysis = (q + 1) // 2, (q + 3) // 2
    strengths, coefficients = np.ones((analysis, t.size), complex), np.ones((synthesis, 2 * M + 1), complex)
    angle = np.pi * t

    def call() -> None:
        for kind, size, data in ((2, 2 * M + 1, coefficients), (1, 4 * M + 1, strengths)):
            plan = finufft.Plan(kind, (size,), n_trans=data.shape[0], eps=1e-14, isign=1, dtype="complex128")
            plan.setpts(angle)
            plan.execute(data)

    return call


def data_pass() -> list[dict[str, str]]:
    from vff.basis import ColumnBasis, Interval
    from vff.moments import ColumnRequest, MomentRequest, moments_of_arrays

    lines = []
    for rows in (10**6, 10**7):
        rng = np.random.default_rng(0)
        t, y, w = rng.uniform(-1, 1, rows), rng.normal(size=rows), np.ones(rows)
        request = MomentRequest.of_columns([ColumnRequest(Interval(-1.0, 1.0), ColumnBasis(1024, 3))])
        ours = best(lambda r=request, t=t, y=y, w=w: moments_of_arrays(r, [t], y, w, "nufft"))
        bare = best(bare_finufft(t, 1024, 3))
        lines.append(
            {"rows": f"{rows:,}", "pass s": f"{ours:.3f}", "bare s": f"{bare:.3f}", "ratio": f"{ours / bare:.2f}"}
        )
    return lines


def hyperparameter_step() -> list[dict[str, str]]:
    from vff.basis import ColumnBasis, Interval
    from vff.factors.interval.factor import MaternFactor
    from vff.inference import SumModel, Term
    from vff.linalg import threads_for
    from vff.moments import ColumnRequest, MomentRequest, moments_of_arrays

    lines = []
    for rows in (10**4, 10**7):
        rng = np.random.default_rng(0)
        t = rng.uniform(-1, 1, rows)
        y = np.sin(20 * t) + rng.normal(size=rows)
        request = MomentRequest.of_columns([ColumnRequest(Interval(-1.0, 1.0), ColumnBasis(200, 3))])
        model = SumModel((Term((MaternFactor(1),)),), moments_of_arrays(request, [t], y, np.ones(rows), "nufft"))
        theta = np.log([1.0, 0.2, 1.0])

        def step(model: SumModel = model, theta: np.ndarray = theta) -> None:
            closed = model.at(theta)
            model.pull_back(theta, closed.cotangents)

        size = request.size
        with threads_for(size):  # as in a fit
            milliseconds = 1e3 * best(step, 20)
        lines.append({"rows": f"{rows:,}", "features": str(size), "step ms": f"{milliseconds:.1f}"})
    return lines


def prediction() -> list[dict[str, str]]:
    from vff import GPRegressor

    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 20_000)
    model = GPRegressor(frequencies=200).fit(x[:, None], np.sin(x) + rng.normal(size=x.size))
    low, high = model.domain_[0]
    new = rng.uniform(low, high, 10**6)[:, None]
    seconds = best(lambda: model.predict(new, return_std=True))
    return [{"points": "1,000,000", "M": "200", "mean and std s": f"{seconds:.3f}"}]


SMALL_FIT = """
import time
start = time.perf_counter()
import vff
imported = time.perf_counter() - start
import numpy as np
x = np.random.default_rng(0).uniform(0, 10, 1000)
y = np.sin(x) + 0.3 * np.random.default_rng(1).normal(size=1000)
start = time.perf_counter()
vff.GPRegressor().fit(x[:, None], y)
cold = time.perf_counter() - start
warm = []
for _ in range(9):
    start = time.perf_counter()
    vff.GPRegressor().fit(x[:, None], y)
    warm.append(time.perf_counter() - start)
print(imported, cold, sorted(warm)[0], sorted(warm)[4])
"""


def small_fit() -> list[dict[str, str]]:
    done = subprocess.run([sys.executable, "-c", SMALL_FIT], capture_output=True, text=True, check=True)
    imported, cold, fastest, median = map(float, done.stdout.split())
    warm = f"{1e3 * fastest:.0f} / {1e3 * median:.0f}"
    return [
        {"import vff s": f"{imported:.3f}", "first fit, N = 1000, s": f"{cold:.2f}", "second, best / median ms": warm}
    ]


MEMORY = """
import sys
import numpy as np
from vff import GPRegressor
chunks = int(sys.argv[1])
model = GPRegressor(domain=(0.0, 10.0), frequencies=100, optimizer=None, noise_variance=1.0)
for seed in range(chunks):
    x = np.random.default_rng(seed).uniform(0, 10, 2**20)
    model.partial_fit(x[:, None], np.sin(x))
# not getrusage: on Linux its peak is inherited from the process that started this one
print(max(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(("VmHWM", "VmRSS"))) / 1024)
"""


def memory() -> list[dict[str, str]]:
    lines = []
    for chunks in (2, 20):
        done = subprocess.run([sys.executable, "-c", MEMORY, str(chunks)], capture_output=True, text=True, check=True)
        lines.append({"rows, in chunks of 2^20": f"{chunks * 2**20:,}", "peak MiB": f"{float(done.stdout):.0f}"})
    return lines


def main() -> None:
    parts = {
        "data pass, M = 1024, 3 edge functions": data_pass,
        "one hyperparameter step (value and gradient)": hyperparameter_step,
        "prediction": prediction,
        "small fits and import": small_fit,
        "memory of a chunked pass": memory,
    }
    for title, part in parts.items():
        print(f"\n{title}", flush=True)
        print(table(part()), flush=True)


if __name__ == "__main__":
    main()
