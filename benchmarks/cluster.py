"""The same fit with no dask, and with one and two dask workers of one thread each: rows per second, and ratios.

    python benchmarks/cluster.py [--rows 20000000] [--quick]

Rows are made by every partition for itself, from a seed: no file is read and no row travels. The seconds of the passes,
by which rows per second are counted, have the making of the rows in them, twice, except for rows in memory; what one
making costs on one core is printed beside. Learning happens here and costs the same for any number of rows and workers.
Without dask a fit uses all cores; a worker uses one. The last column is the difference of the bound to that in memory,
in nats.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _machine import cores, describe
from dask.delayed import delayed

from vff import Categorical, GPRegressor, Matern32
from vff.report import table

KERNEL = Matern32("a") + Matern32("b") + Categorical("shop")
FREQUENCIES = 30
SHOPS = np.array(["north", "south", "east", "west"])


class Rows(NamedTuple):
    """A table of which every partition can be made from its number."""

    n: int
    per_partition: int

    @property
    def sizes(self) -> list[int]:
        whole, rest = divmod(self.n, self.per_partition)
        return [self.per_partition] * whole + [rest] * (rest > 0)

    def in_memory(self) -> pd.DataFrame:
        return pd.concat(list(self.chunks()), ignore_index=True)

    def chunks(self) -> Iterator[pd.DataFrame]:
        return (made(seed, size) for seed, size in enumerate(self.sizes))

    def delayed(self) -> list[Any]:
        return [delayed(made, pure=True)(seed, size) for seed, size in enumerate(self.sizes)]


def made(seed: int, n: int) -> pd.DataFrame:
    """The rows of one partition."""
    rng = np.random.default_rng(seed)
    a, b, shop = rng.random(n), rng.random(n), rng.integers(0, len(SHOPS), n)
    y = np.sin(9.0 * a) + b * b + 0.2 * shop + rng.standard_normal(n, dtype=np.float32)
    return pd.DataFrame({"a": a, "b": b, "shop": pd.Categorical.from_codes(shop, SHOPS), "y": y})


def fitted(data: Any) -> GPRegressor:
    return GPRegressor(KERNEL, frequencies=FREQUENCIES).fit(data, "y")


def in_memory(rows: Rows) -> GPRegressor:
    frame = rows.in_memory()
    return GPRegressor(KERNEL, frequencies=FREQUENCIES).fit(frame[["a", "b", "shop"]], frame["y"])


def passes(model: GPRegressor) -> float:
    """Seconds that were spent on rows."""
    return model.timing_.get("survey", 0.0) + model.timing_["pass"]


def on_workers(rows: Rows, workers: int) -> GPRegressor:
    """On a cluster that is up, and has imported what it needs for a fit of a few rows."""
    from distributed import Client, LocalCluster

    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster):
        fitted(Rows(4000, 1000).delayed())
        return fitted(rows.delayed())


def compare(rows: Rows) -> list[dict[str, str]]:
    in_memory(Rows(4000, 1000))  # first calls import and plan
    ways: dict[str, Callable[[], GPRegressor]] = {
        f"in memory, {cores()} cores": lambda: in_memory(rows),
        f"in chunks, {cores()} cores": lambda: fitted(rows.chunks),
        "one worker": lambda: on_workers(rows, 1),
        "two workers": lambda: on_workers(rows, 2),
    }
    found = {}
    for name, way in ways.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        found[name] = way()
    first, one = next(iter(found.values())), found["one worker"]
    return [
        {
            "rows": f"{rows.n:,}",
            "where": name,
            "passes s": f"{passes(model):.2f}",
            "rows/s": f"{rows.n / passes(model):,.0f}",
            "to one worker": f"{passes(one) / passes(model):.2f}x",
            "to in memory": f"{passes(first) / passes(model):.2f}x",
            "learning s": f"{model.timing_['learn']:.2f}",
            "bound": f"{model.elbo_ - first.elbo_:+.1e}",
        }
        for name, model in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2 * 10**7)
    parser.add_argument("--partition", type=int, default=10**6, help="rows of a partition")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    options = parser.parse_args()
    rows = Rows(10**6, 10**5) if options.quick else Rows(options.rows, options.partition)
    print(describe(("numpy", "finufft", "dask", "distributed")), flush=True)
    started = time.perf_counter()
    for _ in rows.chunks():
        pass
    print(f"Making the rows once, on one core: {time.perf_counter() - started:.2f} s\n")
    print(table(compare(rows)))


if __name__ == "__main__":
    main()
