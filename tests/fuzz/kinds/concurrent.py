"""Fits in threads, in processes by fork and by spawn, and by joblib: the answers of a fit alone, and never a hang."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from fuzz.findings import Finding, Outcome
from fuzz.kinds.base import Effort, Kind, generator
from fuzz.tables import one_of

_NAME = "concurrent"
_LONGEST = 120.0  # seconds of a program; alone it takes a few

WAYS = {
    "threads": "with ThreadPoolExecutor(3) as pool:\n        together = list(pool.map(answer, SEEDS))",
    "fork": "with multiprocessing.get_context('fork').Pool(2) as pool:\n        together = pool.map(answer, SEEDS)",
    "spawn": "with multiprocessing.get_context('spawn').Pool(2) as pool:\n        together = pool.map(answer, SEEDS)",
    "joblib processes": "together = Parallel(n_jobs=2)(delayed(answer)(seed) for seed in SEEDS)",
    "joblib threads": "together = Parallel(n_jobs=3, prefer='threads')(delayed(answer)(seed) for seed in SEEDS)",
    "one model in threads": "model = fitted(0)\n    alone = [asked(model)] * len(SEEDS)\n"
    "    with ThreadPoolExecutor(4) as pool:\n        together = list(pool.map(lambda seed: asked(model), SEEDS))",
}
PROGRAM = """import multiprocessing
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import Parallel, delayed
from vff import GPClassifier, GPRegressor, Matern32, Matern52

warnings.simplefilter("ignore", DeprecationWarning)  # Python's own about fork in a process with threads
SEEDS = range(4)
AT = np.linspace(0, 1, 20)[:, None]


def fitted(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, ({rows}, 1))
    f = np.sin(8 * x[:, 0])
    return {model}


def asked(model):
    mean, variance = model.predict_f(AT)
    return np.concatenate([mean, variance, [model.elbo_]])


def answer(seed):
    return asked(fitted(seed))


if __name__ == "__main__":
    {first}
    {way}
    {last}
    np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-12)
    print("the same")
"""
MODELS = {
    "gaussian": "GPRegressor(Matern32(0)).fit(x, f + rng.normal(size=len(x)))",
    "large gaussian": "GPRegressor(Matern52(0), engine='nufft').fit(x, f + rng.normal(size=len(x)))",
    "poisson": "GPRegressor(Matern32(0), likelihood='poisson', frequencies=6).fit(x, rng.poisson(np.exp(f)))",
    "labels": "GPClassifier(Matern32(0), frequencies=6).fit(x, f + rng.logistic(size=len(x)) > 0)",
}


def random_program(seed: int) -> tuple[str, str]:
    """What it is, and its text."""
    rng = generator(_NAME, seed)
    way, model, before = one_of(rng, WAYS), one_of(rng, MODELS), one_of(rng, [True, False])
    alone = "alone = [answer(seed) for seed in SEEDS]"
    own = way == "one model in threads"
    first, last = (alone, "") if before else ("", alone)
    rows = 4000 if model == "large gaussian" else 60
    text = PROGRAM.format(
        rows=rows, model=MODELS[model], way=WAYS[way], first="" if own else first, last="" if own else last
    )
    return f"{model} by {way}{', after fits alone' if before and not own else ''}", text


def attempt(seed: int, effort: Effort) -> Outcome:
    what, text = random_program(seed)
    counts = {"programs": 1}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(text, encoding="utf-8")
        # a session of its own, so that children of a program that hangs can be ended with it
        command = [sys.executable, str(path)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            _, err = process.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return Outcome(Finding("no hang", f"{what}: no answer within {_LONGEST:.0f} seconds", text), counts)
    last = (err.strip().splitlines() or [""])[-1]
    if process.returncode == 0 or last.startswith(("ValueError: ", "RuntimeError: ")):
        return Outcome(None, counts)
    return Outcome(Finding("the answers of a fit alone", f"{what}: {last[:400]}", text), counts)


KIND = Kind(_NAME, "threads, processes by fork and spawn, joblib", attempt, share=1.0, limit=240.0)
