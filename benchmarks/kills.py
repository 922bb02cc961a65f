"""A fit that is killed again and again, and what it ends with: ``python benchmarks/kills.py --rows 10000000``.

A table is written in several files. A child process fits a model to it with a checkpoint, and prints a digest of the
bound, the kernel and some predictions. The parent kills such children by SIGKILL at random moments of their run, some
of them while they write the checkpoint, and starts them again until one comes to its end. The digest must be that of a
run that nobody disturbed.
"""

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROWS, KILLS, FILES = 10_000_000, 50, 8
LONGEST = 3600.0  # seconds that a child may take
_BESIDE_THE_CHECKPOINT = ".state.*"  # names of half-written states


@dataclass(frozen=True)
class Run:
    """A child that ended by itself, or was killed."""

    digest: str | None
    seconds: float
    """In all; of a fit that came to its end, those of the fit."""
    resumed: str
    """Phase and row that it went on from."""
    writing: bool = False
    """Whether it was writing its checkpoint when it was killed."""


def write_table(folder: Path, rows: int, files: int, form: str) -> None:
    """One continuous column, one of integers, and a target."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(1)
    for number, n in enumerate(np.diff(np.linspace(0, rows, files + 1).astype(int)).tolist()):
        x, day = rng.uniform(0.0, 10.0, n), rng.integers(0, 365, n)
        y = np.sin(3.0 * x) + np.cos(day * 2.0 * np.pi / 365.0) + 0.3 * rng.normal(size=n)
        table = pa.table({"x": x, "day": day, "y": y})
        path = str(folder / f"part-{number:03d}.{form}")
        if form == "csv":
            pyarrow.csv.write_csv(table, path)
        else:
            pyarrow.parquet.write_table(table, path)


def child(arguments: argparse.Namespace) -> None:
    """Fit, and print the digest of what came out."""
    import vff
    from vff.data import checkpoint

    checkpoint._INTERVAL = arguments.interval
    told: set[str] = set()

    def report(progress: Any) -> None:
        if progress.phase not in told:
            told.add(progress.phase)
            print(f"resumed {progress.phase} from {progress.resumed}", flush=True)

    folder = Path(arguments.child)
    source = vff.scan(
        str(folder / "data"), checkpoint=str(folder / "state"), chunk_rows=arguments.chunk_rows, report=report
    )
    model = vff.GPRegressor(vff.parse_kernel(arguments.kernel), frequencies=30)
    (folder / "begun").touch()
    started = time.monotonic()
    model.fit(source, "y")
    print(f"seconds {time.monotonic() - started}", flush=True)
    rng = np.random.default_rng(2)
    X = {"x": rng.uniform(0.0, 10.0, 1000), "day": rng.integers(0, 365, 1000)}
    ask = [name for name in X if f"'{name}'" in arguments.kernel]
    mean, std = model.predict(_frame({name: X[name] for name in ask}), return_std=True)
    digest = hashlib.sha256(np.float64(model.elbo_).tobytes() + repr(model.kernel_).encode())
    digest.update(mean.tobytes() + std.tobytes())
    print(f"digest {digest.hexdigest()}", flush=True)


def _frame(columns: dict[str, np.ndarray]) -> Any:
    import pyarrow as pa

    return pa.table(columns)


def run_child(folder: Path, more: list[str], kill_after: float | None = None, aimed: bool = False) -> Run:
    """Start a child; kill it some seconds after its fit began, or then as soon as it writes its checkpoint."""
    (folder / "begun").unlink(missing_ok=True)
    started = time.monotonic()
    command = [sys.executable, __file__, "--child", str(folder), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        writing = kill_after is not None and _killed(process, folder, kill_after, aimed)
        out, _ = process.communicate(timeout=LONGEST)
    lines = [line.split(" ", 1) for line in out.splitlines()]
    digests = [rest for word, rest in lines if word == "digest"]
    if process.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the child ended with {process.returncode}")
    resumed = "; ".join(rest for word, rest in lines if word == "resumed") or "no row was read yet"
    seconds = [float(rest) for word, rest in lines if word == "seconds"] or [time.monotonic() - started]
    return Run(digests[0] if digests else None, seconds[0], resumed, writing)


def _killed(process: subprocess.Popen, folder: Path, after: float, aimed: bool) -> bool:
    """Whether the child was writing when it was killed. One that ends before is left alone."""
    before, moment = set(folder.glob(_BESIDE_THE_CHECKPOINT)), float("inf")
    while process.poll() is None:
        if moment == float("inf") and (folder / "begun").exists():
            moment = time.monotonic() + after
        writing = bool(set(folder.glob(_BESIDE_THE_CHECKPOINT)) - before)
        if time.monotonic() > moment and (writing or not aimed):
            os.kill(process.pid, signal.SIGKILL)
            return writing
        time.sleep(0.0005 if aimed else 0.002)
    return False


def torment(
    folder: Path, kills: int, undisturbed: Run, more: list[str], seed: int = 0, reach: float = 0.6
) -> tuple[int, list[Run]]:
    """Kill children until there were so many kills, then let one end; how many kills hit, and the runs that ended.

    Moments are random ones of the first part of an undisturbed run, ``reach`` of it.
    """
    rng, hits, ended = random.Random(seed), 0, []
    while hits < kills:
        aimed = hits % 4 == 3
        # a child that goes on from a checkpoint has less to do, so that some come to their end
        run = run_child(folder, more, rng.uniform(0.0, reach) * undisturbed.seconds, aimed)
        if run.digest is not None:
            ended.append(run)
            continue
        hits += 1
        where = "while it wrote" if run.writing else ""
        print(f"kill {hits:3d} after {run.seconds:6.2f} s  resumed: {run.resumed} {where}", flush=True)
    ended.append(run_child(folder, more))
    return hits, ended


def main(arguments: argparse.Namespace) -> int:
    """The whole test in a temporary folder; returns how many digests differ."""
    more = [
        "--interval",
        str(arguments.interval),
        "--chunk-rows",
        str(arguments.chunk_rows),
        "--kernel",
        arguments.kernel,
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data").mkdir()
        write_table(folder / "data", arguments.rows, arguments.files, arguments.format)
        undisturbed = [run_child(folder, more) for _ in range(arguments.undisturbed)]
        for run in undisturbed:
            print(f"undisturbed: {run.seconds:.1f} s, {run.digest}", flush=True)
        hits, ended = torment(folder, arguments.kills, undisturbed[-1], more, arguments.seed)
        left = sorted(path.name for path in folder.iterdir() if path.name not in ("data", "begun"))
    expected = undisturbed[0].digest
    differ = sum(run.digest != expected for run in (*undisturbed, *ended))
    print(f"{'rows':>12} {'kills':>6} {'ended':>6} {'differ':>7}  files left behind")
    print(f"{arguments.rows:>12,} {hits:>6} {len(ended):>6} {differ:>7}  {', '.join(left) or 'none'}")
    return differ


def parsed(given: list[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--interval", type=float, default=0.2, help="seconds between checkpoints")
    parser.add_argument("--chunk-rows", type=int, default=2**17)
    parser.add_argument("--kernel", default="Matern32('x') + Matern32('day')")
    parser.add_argument("--undisturbed", type=int, default=2, help="runs that nobody kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", metavar="FOLDER", help="fit, and be killed")
    return parser.parse_args(given)


if __name__ == "__main__":
    options = parsed()
    if options.child:
        child(options)
    else:
        sys.exit(min(1, main(options)))
