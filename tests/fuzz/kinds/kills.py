"""SIGKILL at random moments of a fit from files, and of saving: the next run ends with the same bits."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from fuzz.findings import Finding, Outcome
from fuzz.kinds.base import Effort, Kind, generator
from fuzz.tables import Rng, one_of
from vff import load

_NAME = "kills"
_LONGEST = 240.0  # seconds of a child that nobody kills

# a clock that runs faster writes its checkpoints more often
CHILD = """import hashlib, sys, time
clock = time.monotonic
time.monotonic = lambda: 500.0 * clock()

import numpy as np
import vff

folder, kernel, chunk_rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
source = vff.scan(folder + "/data", checkpoint=folder + "/state", chunk_rows=chunk_rows)
model = vff.GPRegressor(vff.parse_kernel(kernel), frequencies=12)
print("begun", flush=True)
model.fit(source, "y")
for _ in range(20):
    model.save(folder + "/model.vff")
again = vff.load(folder + "/model.vff")
rows = {"x": np.linspace(0.0, 1.0, 50), "day": np.arange(50) % 7}
import pandas as pd
mean, std = again.predict(pd.DataFrame(rows), return_std=True)
print(hashlib.sha256(np.float64(again.elbo_).tobytes() + mean.tobytes() + std.tobytes()).hexdigest(), flush=True)
"""


def write_rows(folder: Path, rng: Rng, n: int, files: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    (folder / "data").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(n), files)):
        x, day = rng.uniform(0, 1, rows.size), rng.integers(0, 7, rows.size)
        table = pa.table({"x": x, "day": day, "y": np.sin(9 * x) + 0.1 * day + 0.3 * rng.normal(size=rows.size)})
        pa.parquet.write_table(table, folder / "data" / f"{number:03d}.parquet")


def child(folder: Path, kernel: str, chunk_rows: int, kill_after: float | None) -> tuple[str, float, int, str]:
    """What a child printed, the seconds since its fit began, its exit code, and what it complained of."""
    command = [sys.executable, "-c", CHILD, str(folder), kernel, str(chunk_rows)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # its fit begins
        began = time.monotonic()
        if kill_after is not None:
            try:
                process.wait(kill_after)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
        out, err = process.communicate(timeout=_LONGEST)
    return out.strip(), time.monotonic() - began, process.returncode, err.strip()


def check_whole(path: Path) -> None:
    """A model that is there is a whole one."""
    if path.exists():
        load(path)


def attempt(seed: int, effort: Effort) -> Outcome:
    rng = generator(_NAME, seed)
    kernel = one_of(rng, ["Matern32('x')", "Matern32('x') + Matern12('day')", "Matern52('x') * Categorical('day')"])
    n, files, chunk_rows = int(rng.integers(20_000, 100_000)), int(rng.integers(1, 6)), int(rng.integers(2000, 20_000))
    kills = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder, rng, n, files)
        expected, seconds, code, said = child(folder, kernel, chunk_rows, None)
        if code != 0:
            return Outcome(Finding("a fit from files ends", said[-400:]))
        (folder / "model.vff").unlink()
        for _ in range(3):
            _, _, code, said = child(folder, kernel, chunk_rows, float(rng.uniform(0.0, seconds)))
            kills += code == -signal.SIGKILL
            if code not in (0, -signal.SIGKILL):
                return Outcome(Finding("a killed fit goes on", said[-400:]))
            check_whole(folder / "model.vff")
        got, _, code, said = child(folder, kernel, chunk_rows, None)
        left = sorted(path.name for path in folder.iterdir())
    if code != 0 or got != expected:
        return Outcome(Finding("a killed fit ends with the same bits", f"{expected} against {got}; {said[-300:]}"))
    if left != ["data", "model.vff"]:
        return Outcome(Finding("nothing is left behind", f"the folder holds {', '.join(left)}"))
    return Outcome(None, {"kills": kills})


KIND = Kind(_NAME, "processes killed while they fit from files and save", attempt, share=1.0, limit=900.0)
AVAILABLE = hasattr(signal, "SIGKILL")
