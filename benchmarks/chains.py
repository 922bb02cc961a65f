"""Markov chains: effective draws per second beside NumPyro's NUTS, then the cost of a gradient against rows and M.

    python benchmarks/chains.py [--only peers|gradients] [--problems pines line] [--quick]

The peer is NumPyro's Hilbert-space approximation with about as many functions on about as large a domain, in float64,
with the same priors, rows, chains and steps. Each side runs in a process of its own. What is printed is Markdown for
RESULTS.md.

    pines    4096 cells of 127 saplings, a product of two Matérn-3/2 over [-1, 2]^2, 59 functions per column
    line     100,000 counts over one column, a Matérn-3/2, 64 functions
"""

import argparse
import sys
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from _chains_problems import PROBLEMS, SHORT
from _machine import describe
from additive import HERE, Line, call, progress, show, slope

PACKAGES = ("numpy", "scipy", "jax", "blackjax", "numpyro")
CELLS, ROWS = 64, 100_000
LOOP, LEAST_SECONDS = 10, 1.0


class _CapturedError(Exception):
    """The chains were about to run."""


def rows_of(problem: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Places in [0, 1] and counts."""
    if problem == "pines":
        from vff.datasets import load_pines

        x, y = load_pines().X.T
        centres = (np.arange(CELLS) + 0.5) / CELLS
        counts, _, _ = np.histogram2d(x, y, CELLS, ((0.0, 1.0), (0.0, 1.0)))
        return np.stack(np.meshgrid(centres, centres, indexing="ij"), axis=-1).reshape(-1, 2), counts.ravel()
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 1.0, rows)
    return x[:, None], rng.poisson(np.exp(log_rate(x))).astype(float)


def log_rate(x: np.ndarray) -> np.ndarray:
    """Smooth, with a mean rate of about three."""
    return 1.0 + 0.5 * np.sin(9.0 * x) + 0.3 * np.cos(23.0 * x)


def line(model: str, found: dict[str, Any], ours: dict[str, Any]) -> Line:
    """One side's line; ratios are those of our rates to its."""
    rate, cold = found["ess"] / found["sampling"], found["ess"] / found["whole"]
    told = {
        "model": model,
        "sampling s": f"{found['sampling']:.1f}",
        "whole s": f"{found['whole']:.1f}",
        "ESS": f"{found['ess']:.0f}",
        "ESS/s": f"{rate:.3g}",
        "ratio": f"{ours['ess'] / ours['sampling'] / rate:.2f}",
        "whole ESS/s": f"{cold:.3g}",
        "ratio, whole": f"{ours['ess'] / ours['whole'] / cold:.2f}",
    }
    chains = {"R-hat": f"{found['rhat']:.3f}", "gradients per draw": f"{found['steps']:.0f}"}
    return told | chains | {"divergent": str(found["divergences"])}


def translated(found: dict[str, Any], gradient: float) -> dict[str, Any]:
    """The same chain where a gradient takes longer."""
    longer = found["sampling"] * gradient / found["gradient"]
    return found | {"sampling": longer, "whole": found["whole"] - found["sampling"] + longer}


def moments(found: dict[str, Any]) -> str:
    return ", ".join(f"{name} {mean:.3g} ± {found['sds'][name]:.2g}" for name, mean in found["means"].items())


def compare(problem: str, options: argparse.Namespace) -> tuple[list[Line], list[str]]:
    short = [str(SHORT)] if options.quick else []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, values in zip(("X", "y"), rows_of(problem, options.rows), strict=True):
            np.save(folder / f"{name}.npy", values)
        progress(f"{problem}: vff")
        ours: dict[str, Any] = call(sys.executable, HERE / "_chains_vff.py", folder, problem, "nuts", *short)
        progress(f"{problem}: vff, sampler='hmc'")
        turns: dict[str, Any] = call(sys.executable, HERE / "_chains_vff.py", folder, problem, "hmc", *short)
        lines = [line("vff", ours, ours), line("vff, sampler='hmc'", turns, ours)]
        notes = [f"vff: {moments(ours)}. {ours['preparing']:.1f} s before and after."]
        if find_spec("numpyro") is None:
            return lines, [*notes, "NumPyro is not installed; pip install numpyro brings it."]
        script = HERE / "_chains_numpyro.py"
        progress(f"{problem}: NumPyro, by hand")
        hand: dict[str, Any] = call(sys.executable, script, folder, problem, "by hand", *short)
        progress(f"{problem}: NumPyro, stock")
        gradient = call(sys.executable, script, folder, problem, "stock", *short)["gradient"]
        lines.append(line("NumPyro HSGP, by hand", hand, ours))
        lines.append(line("NumPyro HSGP, stock", translated(hand, gradient), ours))
        notes.append(f"NumPyro: {moments(hand)}.")
        notes.append(
            f"A gradient of NumPyro takes {1e3 * hand['gradient']:.2f} ms by hand and {1e3 * gradient:.1f} ms in stock "
            "form; the stock line is the chain by hand, whose posterior is the same, at that price: it was not run."
        )
    return lines, notes


def peers(options: argparse.Namespace) -> None:
    print(
        "\n## Markov chains: vff and NumPyro\n\nTwo chains at a time on the same cores, float64, the same priors, rows "
        "and steps. `ESS` is the least bulk effective\nsample size of all hyperparameters, by the same function for "
        "both. `sampling s` is warm-up and draws with everything\ncompiled; `whole s` is from arrays in memory to "
        "draws in a fresh process, with compilation and, on our side, the\nfirst fit that chains start from and the "
        "record for predictions. `ratio` is our rate over theirs. By hand: two small\nmatrix products instead of one "
        "large matrix (pines); rows pooled into 2000 bins, coefficients not whitened and a\ndense mass matrix (line)."
    )
    for problem in options.problems:
        settings = PROBLEMS[problem]
        title = f"{problem}: {settings.chains} chains, {settings.warmup} + {settings.draws} steps each"
        show(title if not options.quick else f"{problem} (quick)", *compare(problem, options))


def target_of(N: int, M: int, counts: bool) -> tuple[Any, Any, np.ndarray, str]:
    """The log-density that chains would sample, its numbers, a position, and how rows are met."""
    from vff import GPRegressor, Matern32
    from vff.inference.methods.chains import start as sampling

    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 1.0, N)
    y = rng.poisson(np.exp(log_rate(x))) if counts else log_rate(x) + 0.3 * rng.standard_t(4.0, N)
    likelihood = "poisson" if counts else "student-t"
    model = GPRegressor(
        Matern32(0), likelihood=likelihood, frequencies=M, domain=(0.0, 1.0), inference="mcmc", random_state=0
    )
    found: list[Any] = []

    def capture(*given: Any) -> None:
        found.extend(given[:3])
        raise _CapturedError

    with patch.object(sampling, "run", capture), suppress(_CapturedError):
        model.fit(x[:, None], y)
    target, data, starts = found
    points = len(data.rows.terms[0].features[0])
    return target, data, starts[0], f"{points:,} nodes" if points < N else "rows written out"


def gradient_seconds(target: Any, data: Any, z: np.ndarray) -> float:
    """Of one value and gradient, in a compiled loop."""
    import jax

    with jax.enable_x64(True):
        data, at = jax.device_put(data), jax.device_put(z)
        slope_at = jax.grad(target, argnums=1)
        loop = jax.jit(lambda data, z: jax.lax.fori_loop(0, LOOP, lambda _, z: z - 1e-12 * slope_at(data, z), z))
        loop(data, at).block_until_ready()
        best, started = np.inf, time.perf_counter()
        while time.perf_counter() - started < LEAST_SECONDS:
            before = time.perf_counter()
            loop(data, at).block_until_ready()
            best = min(best, (time.perf_counter() - before) / LOOP)
    return best


def gradients(options: argparse.Namespace) -> None:
    print(
        "\n## A gradient against rows and harmonics\n\nOne continuous column, Matérn-3/2, domain the range of the "
        "data: one gradient of the log-density, the best of\nseveral. Counts are carried to nodes where rows are many; "
        "others (Student-t) are carried from nodes."
    )
    for counts, title in ((True, "Poisson counts"), (False, "Student-t, continuous targets")):
        lines: list[Line] = []
        seconds: dict[tuple[int, int], float] = {}
        for N, M in options.settings:
            if not counts and options.most_written < N:
                continue
            progress(f"gradients: {title}, {N:,} rows, M = {M}")
            *parts, how = target_of(N, M, counts)
            seconds[N, M] = gradient_seconds(*parts)
            own = {"rows": f"{N:,}", "M": str(M), "rows are": how}
            lines.append(own | {"variables": str(parts[0].size), "ms": f"{1e3 * seconds[N, M]:.3f}"})
        show(title, lines, [powers(seconds, options.M)])


def powers(seconds: dict[tuple[int, int], float], M: int) -> str:
    """How the times grow, in words."""
    N = max(rows for rows, harmonics in seconds if harmonics != M)
    of_rows = [(rows, took) for (rows, harmonics), took in seconds.items() if harmonics == M]
    of_M = [(harmonics, took) for (rows, harmonics), took in seconds.items() if rows == N]
    first, second = slope(*zip(*of_rows, strict=True)), slope(*zip(*of_M, strict=True))
    last = slope(*zip(*of_rows[-2:], strict=True))
    return (
        f"Time goes as N to the power {first:.2f} at M = {M} ({last:.2f} between the last two), and as M to the power "
        f"{second:.2f} at N = {N:,}."
    )


PARTS = {"peers": peers, "gradients": gradients}


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, help="one part instead of both")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--quick", action="store_true", help="few steps and rows, to see that it runs")
    options = parser.parse_args()
    options.rows, options.M, options.most_written = ROWS, 30, 300_000
    options.settings = [(N, 30) for N in (1_000, 10_000, 100_000, 300_000, 1_000_000)]
    options.settings += [(100_000, M) for M in (10, 20, 60, 100)]
    if options.quick:
        options.settings = [(1_000, 30), (10_000, 30), (30_000, 30), (30_000, 10)]
        options.rows = 20_000
    return options


def main() -> None:
    options = read_options()
    print(describe(PACKAGES), flush=True)
    for part in [options.only] if options.only else PARTS:
        PARTS[part](options)


if __name__ == "__main__":
    main()
