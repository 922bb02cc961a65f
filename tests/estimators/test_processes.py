"""Fits beside fits: threads, and processes by fork, by spawn and by joblib; and how many cores a fit takes.

Every program runs in an interpreter of its own with a limit of time, so that one which hangs fails.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from vff.moments import threads as cores_of_this_machine
from vff.moments.threads import at_most, cores

SOURCES = Path(__file__).parents[2] / "src"
LONGEST = 240  # seconds; a few are enough, and a process that hangs takes more than any

BEGINNING = """
import warnings
import numpy as np
from vff import GPRegressor
from vff.kernels import Matern52

warnings.filterwarnings("ignore", ".*fork.*")  # Python's own, and JAX's

MANY = 2**15  # rows that are worth several threads
x = np.random.default_rng(0).uniform(0, 10, (MANY, 1))
f = np.sin(x[:, 0])

def gaussian(rows=MANY):
    y = f + np.random.default_rng(1).normal(0, 0.1, MANY)
    model = GPRegressor(Matern52(0), engine="nufft").fit(x[:rows], y[:rows])
    return model.elbo_, model.predict(x[:rows]).sum()

def poisson(rows=100):
    counts = np.random.default_rng(2).poisson(np.exp(f))
    return GPRegressor(Matern52(0), likelihood="poisson").fit(x[:rows], counts[:rows])

def both(_=None):
    model = poisson()
    return gaussian(300), (model.elbo_, model.predict(x[:100]).sum())
"""


def run(program: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    file = folder / "program.py"  # a file, since spawned processes import it
    file.write_text(BEGINNING + program)
    paths = os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])
    everything = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", **environment}
    done = subprocess.run([sys.executable, file], env=everything, capture_output=True, text=True, timeout=LONGEST)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_of_a_process_that_fitted_fits_and_predicts_or_says_why_it_cannot(tmp_path: Path) -> None:
    program = """
import multiprocessing

def refused(_):
    try:
        poisson()
    except RuntimeError as error:
        return str(error)

if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    in_parent = gaussian()
    with fork.Pool(1) as pool:  # nothing was done with JAX
        assert pool.apply(gaussian) == in_parent
        (expected,) = pool.map(both, [0])
    assert both() == expected
    model = poisson()

    def predicted(_):
        return model.predict(x).sum(), model.predict_quantiles(x[:50], (0.1, 0.9)).sum()

    with fork.Pool(1) as pool:
        assert pool.map(predicted, [0]) == [predicted(0)]
        assert pool.apply(gaussian) == in_parent
        print(*pool.map(refused, [0]), sep="")
"""
    said = run(program, tmp_path).stdout
    assert re.fullmatch(
        r"expected [^.]*, found a fork of one that had used JAX[^.]*; start processes with .*spawn.*\n", said
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_of_a_process_that_used_jax_by_itself_refuses_too(tmp_path: Path) -> None:
    program = """
import multiprocessing
import jax.numpy

def refused(_):
    try:
        poisson()
    except RuntimeError as error:
        return str(error)

if __name__ == "__main__":
    jax.numpy.arange(3).sum()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(*pool.map(refused, [0]))
"""
    assert "found a fork of one that had used JAX" in run(program, tmp_path).stdout


def test_spawned_processes_and_those_of_joblib_answer_as_this_one(tmp_path: Path) -> None:
    program = """
import multiprocessing
import joblib

if __name__ == "__main__":
    here = both()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(both, [0]) == [here]
    there = joblib.Parallel(n_jobs=2)([joblib.delayed(both)(), joblib.delayed(gaussian)(300)])
    assert there == [here, here[0]], (there, here)
"""
    run(program, tmp_path)


def test_threads_answer_as_one_after_another(tmp_path: Path) -> None:
    program = """
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(4) as pool:
    together = list(pool.map(both, range(4)))  # the first to use anything, so they import it together, too
    large = list(pool.map(lambda _: gaussian(), range(3)))
assert together == [both()] * 4
np.testing.assert_allclose(large, [gaussian()] * 3, rtol=1e-9)
"""
    run(program, tmp_path)


def test_a_fit_has_as_many_threads_as_openmp_is_told_to_and_is_quiet(tmp_path: Path) -> None:
    program = """
import concurrent.futures
import finufft

asked = set()
plan, pool = finufft.Plan.__init__, concurrent.futures.ThreadPoolExecutor.__init__

def noted_plan(self, *given, nthreads, **more):
    asked.add(("FINUFFT", nthreads))
    plan(self, *given, nthreads=nthreads, **more)

def noted_pool(self, max_workers, *given, **more):
    asked.add(("pool", max_workers))
    pool(self, max_workers, *given, **more)

finufft.Plan.__init__, concurrent.futures.ThreadPoolExecutor.__init__ = noted_plan, noted_pool
gaussian()
poisson(MANY)
assert asked == {("FINUFFT", 1), ("pool", 1)}, asked
"""
    # older releases of JAX report what they load from a store of compiled functions
    done = run(program, tmp_path, OMP_NUM_THREADS="1", JAX_ENABLE_COMPILATION_CACHE="false")
    assert done.stdout == ""
    assert done.stderr == ""


def test_finufft_is_quiet_about_threads_that_openmp_does_not_have(tmp_path: Path) -> None:
    """OpenMP looks at the environment when it starts; a caller's limit in another thread it does not know."""
    program = """
from threadpoolctl import threadpool_limits
import vff.moments.engines.nufft as engine

gaussian()
engine._threads = lambda rows: 64
gaussian()
"""
    assert run(program, tmp_path).stderr == ""


def test_cores_are_the_least_that_anybody_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cores_of_this_machine, "_quota", lambda: None)
    monkeypatch.setattr(cores_of_this_machine, "_from_openmp", lambda _: None)
    assert cores() == 8
    monkeypatch.setenv("OMP_NUM_THREADS", "6,2")
    assert cores() == 6
    for nonsense in ("", "many", "0", "-3", "²"):
        monkeypatch.setenv("OMP_NUM_THREADS", nonsense)
        assert cores() == 8
    monkeypatch.setattr(cores_of_this_machine, "_quota", lambda: 4)
    assert cores() == 4
    with at_most(2):
        assert cores() == 2


def test_limits_of_threadpoolctl_are_kept() -> None:
    import finufft  # noqa: F401  brings OpenMP

    before = cores()
    with threadpool_limits(1):
        assert cores() == 1
    with threadpool_limits(1, user_api="blas"):  # which says nothing of other threads
        assert cores() == before


@pytest.mark.parametrize(
    ("listed", "files", "expected"),
    [
        ("0::/job/step\n", {"job/cpu.max": "150000 100000\n", "job/step/cpu.max": "max 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
        ("2:cpu,cpuacct:/job\n", {"cpu/job/cpu.cfs_quota_us": "300000", "cpu/job/cpu.cfs_period_us": "100000"}, 3),
        ("2:cpu,cpuacct:/job\n", {"cpu/job/cpu.cfs_quota_us": "-1", "cpu/job/cpu.cfs_period_us": "100000"}, None),
        ("4:memory:/job\n0::/gone\n", {}, None),
    ],
)
def test_the_quota_of_a_container(
    listed: str, files: dict[str, str], expected: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    own = tmp_path / "cgroup"
    own.write_text(listed)
    monkeypatch.setattr(cores_of_this_machine, "_CGROUPS", tmp_path)
    monkeypatch.setattr(cores_of_this_machine, "_OWN_GROUPS", own)
    assert cores_of_this_machine._quota.__wrapped__() == expected


def test_jax_has_one_door() -> None:
    doors = [path.name for path in SOURCES.rglob("*.py") if "enable_x64" in path.read_text()]
    assert doors == ["float64.py"]
