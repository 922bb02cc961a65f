"""Fits from dask frames and arrays: the model of the same rows in memory, whoever computes it, and whoever dies."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from vff import Categorical, GPClassifier, GPRegressor, Matern32
from vff.data.dask import DaskSource, _Parcel
from vff.estimators.tasks import OneCore
from vff.inference.methods.natural.oracle import ExpectedSites
from vff.moments import LARGEST_SAMPLE
from vff.moments.threads import at_most, cores

# workers do not import the tests
cloudpickle.register_pickle_by_value(sys.modules[__name__])

N = 3000
RNG = np.random.default_rng(8)
FRAME = pd.DataFrame({"a": RNG.uniform(0, 1, N), "b": RNG.normal(size=N), "city": RNG.choice(["u", "v", "x"], N)})
FRAME.loc[N - 100 :, "city"] = "z"  # in the last partition alone
FUNCTION = np.sin(7 * FRAME.a) + 0.3 * FRAME.b + (FRAME.city == "v")
FRAME["y"] = FUNCTION + 0.3 * RNG.normal(size=N)
FRAME["count"] = RNG.poisson(np.exp(0.5 * FUNCTION)).astype(float)
FRAME["label"] = np.where(RNG.uniform(size=N) < 1 / (1 + np.exp(-FUNCTION)), "yes", "no")
FRAME["w"] = RNG.uniform(0.5, 2.0, N)
X = FRAME[["a", "b", "city"]]
Z = X[["a", "b"]].to_numpy()
ROWS_9 = dd.from_pandas(FRAME, npartitions=9)
ARRAY = da.from_array(Z, chunks=(450, 1))

A, B = Matern32("a", lengthscale=0.2), Matern32("b", lengthscale=2.0)
SUM = A + B + Categorical("city", variance=1.0)
KEPT: dict[str, Any] = {"optimizer": None, "noise_variance": 0.1, "frequencies": 12}


@pytest.fixture(scope="module")
def client():
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(params=["workers", "threads"])
def scheduler(request: pytest.FixtureRequest):
    """A cluster, or the threads of this process."""
    if request.param == "threads":
        with dask.config.set(scheduler="threads"):
            yield None
    else:
        yield request.getfixturevalue("client")


def column(name: str, rows: int = 700) -> Any:
    return da.from_array(FRAME[name].to_numpy(), chunks=rows)


def check_same(found: Any, expected: Any, rows: Any, within: float) -> None:
    """The same sums, and the same predictions."""
    mine, other = found.rows_.moments, expected.rows_.moments
    assert (mine.n, mine.request) == (other.n, other.request)
    sums = [(*moments.grams, *moments.projects, *moments.blocks.values()) for moments in (mine, other)]
    for one, two in zip(*sums, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-12 * np.abs(two).max())
    assert found.elbo_ == pytest.approx(expected.elbo_, rel=within, abs=within)
    for one, two in zip(found.predict(rows, return_std=True), expected.predict(rows, return_std=True), strict=True):
        np.testing.assert_allclose(one, two, rtol=within, atol=within)


@pytest.mark.parametrize("kernel", [SUM, A * B, None], ids=["sum", "product", "none"])
def test_a_frame_gives_the_model_of_the_rows_in_memory(kernel, scheduler) -> None:
    names = ["a", "b"] if kernel == A * B else list(X)
    kept = KEPT if kernel is not None else KEPT | {"optimizer": "lbfgs"}
    kept = kept | {"frequencies": 6}
    expected = GPRegressor(kernel, **kept).fit(X[names], FRAME.y)
    found = GPRegressor(kernel, **kept).fit(ROWS_9[[*names, "y"]], "y")
    check_same(found, expected, X[names][:40], 1e-9 if kernel is not None else 1e-8)
    assert list(found.feature_names_in_) == names


@pytest.mark.parametrize("kernel", [Matern32(0, lengthscale=0.2) + Matern32(1, lengthscale=2.0), None])
def test_an_array_gives_the_model_of_the_rows_in_memory(kernel, scheduler) -> None:
    kept = KEPT if kernel is not None else {"frequencies": 12}
    expected = GPRegressor(kernel, **kept).fit(Z, FRAME.y, FRAME.w)
    found = GPRegressor(kernel, **kept).fit(ARRAY, column("y"), sample_weight=column("w", 1000))
    check_same(found, expected, Z[:40], 1e-9 if kernel is not None else 1e-8)
    assert found.n_features_in_ == 2
    with pytest.raises(ValueError, match="has 1 features"):
        found.predict(Z[:3, :1])


def test_targets_and_weights_are_named_or_beside_the_rows() -> None:
    expected = GPRegressor(SUM, **KEPT).fit(X, FRAME.y, FRAME.w)
    levels = ROWS_9.assign(city=ROWS_9.city.astype("category"))
    for rows, y, w in (
        (ROWS_9, "y", "w"),
        (ROWS_9[list(X)], ROWS_9.y, ROWS_9.w),
        (ROWS_9.clear_divisions(), "y", ROWS_9.w.to_dask_array()),
        (levels, "y", "w"),
    ):
        with dask.config.set(scheduler="synchronous"):
            found = GPRegressor(SUM, **KEPT).fit(rows, y, sample_weight=w)
        check_same(found, expected, X[:40], 1e-9)


def test_partitions_without_rows_and_levels_of_one_partition(client) -> None:
    some = FRAME[FRAME.city.isin(["z", "v"]) & (FRAME.index > 2000)]
    kept = ROWS_9[ROWS_9.city.isin(["z", "v"]) & (ROWS_9.index > 2000)]
    expected = GPRegressor(SUM, **KEPT).fit(some[list(X)], some.y)
    check_same(GPRegressor(SUM, **KEPT).fit(kept, "y"), expected, some[list(X)][:40], 1e-9)


def test_settings_of_dask_stay_as_they_are(monkeypatch) -> None:
    """A pass may be what imports distributed, which brings settings of its own along."""
    monkeypatch.setattr("vff.data.dask._client", lambda: None)
    monkeypatch.delitem(dask.config.config, "distributed", raising=False)

    def import_distributed(chunk: Any) -> int:
        dask.config.update(dask.config.config, {"distributed": {"comm": "settings"}})
        return 0

    with dask.config.set(scheduler="synchronous"):
        import_distributed.merge = max  # type: ignore[attr-defined]
        DaskSource(ARRAY).reduce(import_distributed)
    assert dask.config.get("distributed.comm") == "settings"


COUNTS = GPRegressor(A + B, likelihood="poisson", frequencies=6)
LABELS = GPClassifier(A + B, frequencies=6)


def check_same_climb(found: Any, expected: Any, within: float = 1e-8) -> None:
    assert found.elbo_ == pytest.approx(expected.elbo_, rel=within)
    rows = X[["a", "b"]][:40]
    for one, two in zip(found.predict_f(rows), expected.predict_f(rows), strict=True):
        np.testing.assert_allclose(one, two, rtol=within, atol=within)


@pytest.fixture
def walking(client, monkeypatch):
    """Samples so small that the partitions are asked again at every step."""
    monkeypatch.setattr("vff.moments.sample.LARGEST_SAMPLE", 500)
    monkeypatch.setattr("vff.estimators.fitting.LARGEST_SAMPLE", 500)
    client.run(patch_workers, 500)
    yield client
    client.run(patch_workers, LARGEST_SAMPLE)


def patch_workers(rows: int) -> None:
    import vff.moments.sample

    vff.moments.sample.LARGEST_SAMPLE = rows


def fresh(model: Any) -> Any:
    from sklearn.base import clone

    return clone(model)


@pytest.mark.parametrize(("model", "target"), [(COUNTS, "count"), (LABELS, "label")], ids=["counts", "labels"])
def test_few_rows_come_here_as_one_sample(model, target, client) -> None:
    expected = fresh(model).fit(X[["a", "b"]], FRAME[target])
    found = fresh(model).fit(ROWS_9, target)
    check_same_climb(found, expected)
    if model is LABELS:
        assert list(found.classes_) == ["no", "yes"]
        check_same_climb(fresh(model).fit(ROWS_9[["a", "b"]], ROWS_9.label), expected)


@pytest.fixture(scope="module")
def by_workers() -> dict[str, Any]:
    """Fits that nothing happened to."""
    return {}


def test_many_rows_are_asked_where_they_are(walking, by_workers) -> None:
    by_workers["counts"] = fresh(COUNTS).fit(ROWS_9, "count")
    check_same_climb(by_workers["counts"], fresh(COUNTS).fit(X[["a", "b"]], FRAME["count"]))
    with dask.config.set(scheduler="threads"):
        found = fresh(LABELS).fit(ROWS_9, "label")
    check_same_climb(found, fresh(LABELS).fit(X[["a", "b"]], FRAME["label"]))


def test_a_query_is_small_and_travels_without_what_it_worked_out(walking, monkeypatch) -> None:
    sent: list[tuple[Any, int]] = []
    plain = _Parcel.__init__

    def weigh(self: _Parcel, packed: bytes) -> None:
        plain(self, packed)
        sent.append((self.contents[0], len(packed)))

    with monkeypatch.context() as patched, dask.config.set(scheduler="synchronous"):
        patched.setattr(_Parcel, "__init__", weigh)
        fresh(COUNTS).fit(ROWS_9, "count")
    queries = [(one.task.query, size) for one, size in sent if hasattr(one.task, "query")]
    assert all(isinstance(one, OneCore) for one, _ in sent)
    assert len(queries) >= 3
    for query, size in queries:
        if isinstance(query, ExpectedSites):
            assert size < 20_000 + 40 * query.posterior.request.size**2
    parcel = _Parcel(cloudpickle.dumps((1, 2, 3)))
    assert parcel.contents == (1, 2, 3)
    assert cloudpickle.loads(cloudpickle.dumps(parcel)).__dict__.keys() == {"_packed"}


def test_a_task_has_one_core(monkeypatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # which clusters set for their workers
    every = cores()
    assert OneCore(lambda chunk: cores())(None) == 1
    with at_most(10**6):
        assert cores() == every


def test_an_error_names_its_partition(client) -> None:
    wrong = FRAME.assign(count=FRAME["count"].where(FRAME.index != 1500, -1.0), y=FRAME.y.where(FRAME.index != 10))
    rows = dd.from_pandas(wrong, npartitions=9)
    with pytest.raises(
        ValueError, match=r"^partition 4 of 9: .* expects whole numbers from zero, but y is -1"
    ) as caught:
        fresh(COUNTS).fit(rows, "count")
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"^partition 0 of 9: .*NaN"):
        GPRegressor(SUM, **KEPT).fit(rows, "y")


@pytest.mark.parametrize("kind", ["counts", "gaussian"])
def test_a_worker_may_die_in_the_middle_of_a_fit(kind, walking, by_workers, monkeypatch, tmp_path) -> None:
    """Last in its module: the cluster has been through something. Pass number two or four loses a worker."""
    client, mark = walking, tmp_path / "begun"
    fatal, model, target = (2, GPRegressor(SUM, **KEPT), "y") if kind == "gaussian" else (4, fresh(COUNTS), "count")
    expected = by_workers.get(kind) or fresh(model).fit(ROWS_9, target)
    victim = next(iter(client.run(os.getpid).values()))
    plain, passes = DaskSource.reduce, []

    def reduce(self: DaskSource, task: Any, checkpoint: Any = None, without: Any = ()) -> Any:
        passes.append(task)
        return plain(self, Slow(task, str(mark)) if len(passes) == fatal else task, checkpoint, without)

    def kill() -> None:
        while not mark.exists():
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(victim, signal.SIGKILL)

    monkeypatch.setattr(DaskSource, "reduce", reduce)
    killer = threading.Thread(target=kill)
    killer.start()
    found = model.fit(ROWS_9, target)
    killer.join()
    assert len(passes) >= fatal
    assert found.elbo_ == expected.elbo_
    rows = X[list(found.feature_names_in_)][:40]
    for one, two in zip(found.predict_f(rows), expected.predict_f(rows), strict=True):
        assert np.array_equal(one, two)
    client.wait_for_workers(2, timeout=180)  # a worker starts slowly where others do too
    assert victim not in client.run(os.getpid).values()
    client.run(patch_workers, 500)


class Slow:
    """A task that takes its time, and says when it begins."""

    def __init__(self, task: Any, mark: str) -> None:
        self.task, self.mark = task, mark

    def __call__(self, chunk: Any) -> Any:
        Path(self.mark).touch()
        time.sleep(0.1)
        return self.task(chunk)

    def merge(self, one: Any, other: Any) -> Any:
        return self.task.merge(one, other)
