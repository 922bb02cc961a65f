"""Rows on other machines: the same answer from any scheduler, bit for bit, even when a worker dies on the way."""

import operator
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from vff.data.dask import FAN_IN, DaskSource
from vff.data.opening import scan
from vff.data.passes import FaultyPartWarning, check_same_rows
from vff.data.source import SourceError

# workers do not import the tests
cloudpickle.register_pickle_by_value(sys.modules[__name__])

N = 1000
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({"x": RNG.normal(size=N), "y": RNG.normal(size=N), "city": ["a", "b"] * (N // 2)})
FRAME_20 = dd.from_pandas(FRAME, npartitions=20)


@pytest.fixture(scope="module")
def client():
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


@dataclass(frozen=True)
class Merging:
    """A task of two functions."""

    task: Any
    merge: Any
    phase: ClassVar[str] = "summing"

    def __call__(self, chunk: Any) -> Any:
        return self.task(chunk)


def reduced(source: DaskSource, task: Any, merge: Any, report: Any = None) -> Any:
    return source.with_options(report=report).reduce(Merging(task, merge))


def total(chunk) -> float:
    return float(np.sum(np.asarray(chunk.data["x"])))


def in_order(chunk) -> list:
    return [(chunk.where, chunk.n_rows, chunk.dropped)]


def by_hand(values: list, merge) -> float:
    """The tree, as its definition has it."""
    while len(values) > 1:
        groups = [values[i : i + FAN_IN] for i in range(0, len(values), FAN_IN)]
        values = []
        for group in groups:
            result = group[0]
            for value in group[1:]:
                result = merge(result, value)
            values.append(result)
    return values[0]


def test_parts_are_partitions() -> None:
    source = scan(FRAME_20)
    assert isinstance(source, DaskSource)
    assert (source.names, source.n_rows, source.repeatable) == (("x", "y", "city"), None, True)
    parts = list(source.restricted(["city", "x"]).parts())
    assert [part.name for part in parts[:2]] == ["partition 0 of 20", "partition 1 of 20"]
    frames = [chunk.data for part in parts for chunk in part.chunks()]
    pd.testing.assert_frame_equal(pd.concat(frames), FRAME[["x", "city"]], check_dtype=False)
    marks = [part.fingerprint() for part in parts]
    assert len(set(marks)) == 20
    assert marks == [part.fingerprint() for part in source.restricted(["city", "x"]).parts()]
    with pytest.raises(
        ValueError, match="expected columns of the partitions, found 'q'; the columns are 'x', 'y', 'city'"
    ):
        source.restricted(["q"])


def test_the_tree_is_the_same_for_every_scheduler(client) -> None:
    source = scan(FRAME_20)
    totals = [total(chunk) for part in source.parts() for chunk in part.chunks()]
    reference = by_hand(totals, operator.add)
    assert reduced(source, total, operator.add).committed == reference
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            assert reduced(source, total, operator.add).committed == reference
    order = reduced(source, in_order, operator.add).committed
    assert [where for where, _, _ in order] == [f"partition {i} of 20" for i in range(20)]


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("rows", [100, 333])
def test_arrays_with_targets_and_weights(rows, columns) -> None:
    Z, y, w = RNG.normal(size=(N, 3)), RNG.normal(size=N), RNG.uniform(size=N)
    X = da.from_array(Z, chunks=(rows, columns))
    source = scan((X, da.from_array(y, chunks=250), da.from_array(w, chunks=N)))
    assert (source.names, source.n_rows) == (None, N)
    with dask.config.set(scheduler="synchronous"):
        found = reduced(source, lambda chunk: [(chunk.data, chunk.y, chunk.w)], operator.add).committed
    for whole, parts in zip((Z, y, w), zip(*found, strict=True), strict=True):
        assert np.array_equal(np.concatenate(parts), whole)


def test_targets_of_unknown_length_are_aligned_by_partitions() -> None:
    kept = FRAME_20[FRAME_20.x > 0]
    with dask.config.set(scheduler="synchronous"):
        for y in (kept.y, kept.y.to_dask_array()):
            source = DaskSource(kept[["x", "y"]], y)
            pairs = reduced(source, lambda chunk: [(chunk.data.x, chunk.y)], operator.add).committed
            inside = FRAME[FRAME.x > 0]
            assert np.array_equal(np.concatenate([x for x, _ in pairs]), inside.x)
            assert np.array_equal(np.concatenate([y for _, y in pairs]), inside.y)
        assert scan(kept).assigned(None, "y", "x").roles.features == ("city",)
        X = kept[["x", "y"]].to_dask_array()
        found = reduced(DaskSource(X, kept.y.to_dask_array()), lambda chunk: chunk.n_rows, operator.add).committed
        assert found == int((FRAME.x > 0).sum())
        with pytest.raises(
            SourceError, match=r"expected as many values of y as rows, found 50 and \d+ in partition \d+ of"
        ):
            reduced(DaskSource(kept, FRAME_20.y), total, operator.add)


def test_delayed_tables() -> None:
    @dask.delayed
    def load(i: int):
        return pa.table({"x": [float(i)], "z": [1]}) if i != 2 else pd.DataFrame({"z": [1]})

    with dask.config.set(scheduler="synchronous"):
        assert reduced(scan([load(0), load(1)]), total, operator.add).committed == 1.0
        source = scan([load(i) for i in range(4)])
        assert source.names == ("x", "z")
        with pytest.raises(SourceError, match=r"expected column 'x', as in the first .* found 'z' in partition 2 of 4"):
            reduced(source, total, operator.add)
        with pytest.warns(FaultyPartWarning, match="left out: expected column 'x'"):
            assert reduced(source.with_options(faulty="skip"), total, operator.add).committed == 4.0
        assert reduced(source.restricted(["z"]), lambda chunk: chunk.n_rows, operator.add).committed == 4
        with pytest.raises(SourceError, match="expected a table in partition 1 of 2, found int"):
            reduced(scan([load(0), dask.delayed(operator.add)(1, 1)]), total, operator.add)


def test_partitions_without_rows_are_not_asked() -> None:
    def whole(chunk) -> int:
        assert chunk.n_rows
        return chunk.n_rows

    with dask.config.set(scheduler="synchronous"):
        assert reduced(scan(FRAME_20[FRAME_20.x > np.sort(FRAME.x)[-11]]), whole, operator.add).committed == 10
        with pytest.raises(ValueError, match="expected rows, found only partitions without any"):
            reduced(scan(FRAME_20[FRAME_20.x > 1e9]), whole, operator.add)


def test_incomplete_rows_are_left_out_on_the_workers(client) -> None:
    holes = FRAME.assign(x=FRAME.x.where(FRAME.index % 10 != 0))
    found = reduced(scan(dd.from_pandas(holes, npartitions=4), missing="drop"), in_order, operator.add).committed
    assert [(rows, dropped) for _, rows, dropped in found] == [(225, 25)] * 4


class Odd(Exception):
    """An exception that is not made of a text."""

    def __init__(self, code: int, place: str) -> None:
        super().__init__(code, place)


def test_an_exception_comes_back_as_itself_with_its_place(client) -> None:
    def refuse(chunk):
        if chunk.where.startswith("partition 7 "):
            raise ZeroDivisionError("there is nothing here")

    def odd(chunk):
        raise Odd(3, "here")

    source = scan(FRAME_20)
    for scheduler in (None, "synchronous"):
        with dask.config.set({} if scheduler is None else {"scheduler": scheduler}):
            with pytest.raises(ZeroDivisionError, match=r"^partition 7 of 20: there is nothing here$"):
                reduced(source, refuse, lambda one, other: None)
            with pytest.raises(Odd):
                reduced(source, odd, lambda one, other: None)


def test_progress_is_told(client) -> None:
    lock = threading.Lock()  # what cannot be sent to a worker
    source = scan(da.ones((100, 2), chunks=(10, 2)), report=lambda progress: lock.locked() and None)
    for scheduler in (None, "synchronous"):
        told: list = []
        with dask.config.set({} if scheduler is None else {"scheduler": scheduler}):
            assert reduced(source, lambda chunk: chunk.n_rows, operator.add, told.append).committed == 100
        assert [progress.rows for progress in told] == list(range(10, 101, 10))
        assert (told[-1].share, told[-1].n_rows, told[-1].part) == (1.0, 100, "10 of 10 partitions")


class Large:
    """A task that is slow to send, and notes in a folder where it was unpacked."""

    def __init__(self, folder: str) -> None:
        self.folder, self.weight = folder, np.arange(2_000_000.0)

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        (Path(self.folder) / f"{os.getpid()}-{time.monotonic_ns()}").touch()

    def __call__(self, chunk) -> float:
        return total(chunk) + float(self.weight[1])


def test_a_large_task_is_sent_once_to_a_worker(client, tmp_path) -> None:
    reduced(scan(FRAME_20), Large(str(tmp_path)), operator.add)
    # unpacked where it is first wanted, and again by the other worker, which fetches it
    assert 1 <= len(list(tmp_path.iterdir())) <= 4


def test_a_worker_may_die(client, tmp_path) -> None:
    """Last in its module: the cluster has been through something."""
    mark = tmp_path / "begun"

    def slow(chunk):
        mark.touch()
        time.sleep(0.05)
        return total(chunk)

    source = scan(FRAME_20)
    with dask.config.set(scheduler="synchronous"):
        reference = reduced(source, total, operator.add).committed
    victim = next(iter(client.run(os.getpid).values()))

    def kill() -> None:
        while not mark.exists():
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    told: list = []
    assert reduced(source, slow, operator.add, told.append).committed == reference
    killer.join()
    assert told[-1].rows == N
    client.wait_for_workers(2, timeout=180)  # a worker starts slowly where others do too
    assert victim not in client.run(os.getpid).values()


class CountRows:
    phase: ClassVar[str] = "counting"
    kind: ClassVar[Any] = int

    def __call__(self, chunk) -> int:
        return chunk.n_rows

    def merge(self, one: int, other: int) -> int:
        return one + other


def test_a_pass_says_what_it_read_of_every_partition() -> None:
    holes = FRAME.assign(x=FRAME.x.where(FRAME.index % 10 != 0))
    source = scan(dd.from_pandas(holes, npartitions=4), missing="drop")
    with dask.config.set(scheduler="synchronous"):
        found = source.reduce(CountRows())
        some = source.reduce(CountRows(), without=("partition 1 of 4", "partition 2 of 4"))
        with pytest.raises(SourceError, match="found that all are to be left out"):
            source.reduce(CountRows(), without=tuple(part.name for part in found.done))
    assert (found.committed, found.rows, found.dropped, found.skipped, found.complete) == (900, 900, 100, (), True)
    assert [(part.name, part.rows, part.dropped) for part in found.done] == [
        (f"partition {i} of 4", 225, 25) for i in range(4)
    ]
    assert [part.name for part in some.done] == ["partition 0 of 4", "partition 3 of 4"]
    assert some.committed == 450


def test_a_partition_that_fails_later_is_missed(tmp_path) -> None:
    bad = tmp_path / "bad"

    @dask.delayed(pure=False)
    def load(i: int):
        return pd.DataFrame({"z" if i == 2 and bad.exists() else "x": [1.0, 2.0]})

    source = scan([load(i) for i in range(4)], faulty="skip")
    with dask.config.set(scheduler="synchronous"):
        first = source.reduce(CountRows())
        bad.touch()
        with pytest.warns(FaultyPartWarning, match="found 'z' in partition 2 of 4"):
            second = source.reduce(CountRows())
        third = source.reduce(CountRows(), without=second.skipped)
    assert (second.rows, second.skipped) == (6, ("partition 2 of 4",))
    with pytest.raises(ValueError, match=r"^partition 2 of 4 changed after the first pass over the rows"):
        check_same_rows(first, second)
    with pytest.raises(ValueError, match=r"^partition 2 of 4 was there in the first pass over the rows, and is gone"):
        check_same_rows(first, third)
    check_same_rows(second, third)


def test_kinds_are_known_without_a_row() -> None:
    times = FRAME.assign(at=pd.Timestamp("2024-01-01"), ok=True, level=FRAME.city.astype("category"))
    kinds = {"x": "number", "y": "number", "city": "text", "at": "datetime", "ok": "boolean", "level": "text"}
    assert scan(dd.from_pandas(times, npartitions=2)).kinds == kinds
    with dask.config.set(scheduler="synchronous"):
        assert scan([dask.delayed(pa.table)({"x": [1.0], "s": ["a"]})]).kinds == {"x": "number", "s": "text"}
    assert scan(da.ones((4, 2))).kinds == {}


def test_what_is_refused() -> None:
    with pytest.raises(
        TypeError, match="expected a dask frame, a dask array or a list of delayed tables, found Series"
    ):
        scan(FRAME_20.x)
    with pytest.raises(ValueError, match=r"expected a dask array with rows and columns, found 1 dimension\(s\)"):
        scan(da.ones(3))
    with pytest.raises(ValueError, match="y names column 'q', and there are 'x', 'y', 'city'; name one of them"):
        scan(FRAME_20).assigned(None, "q")
    with pytest.raises(TypeError, match=r"expected y to be a dask array or series beside dask rows, .* found ndarray"):
        DaskSource(FRAME_20, np.ones(N))
    with pytest.raises(ValueError, match="expected y to have 20 partitions, as X has, found 3; repartition"):
        DaskSource(FRAME_20, FRAME_20.y.repartition(npartitions=3))
    with pytest.raises(ValueError, match="expected one target or weight per row, found 3 for 4 rows"):
        DaskSource(da.ones((4, 2)), da.ones(3))
