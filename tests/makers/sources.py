"""One table in every registered kind of source, whole and damaged."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl

N = 240
CUTS = (70, 150)  # rows at which a table is cut into parts


@dataclass(frozen=True)
class Case:
    """One kind of source."""

    kind: str
    make: Callable[[pd.DataFrame, Path], Any]
    """A table of named columns, and a folder that is empty -> what a user hands in."""
    damaged: Callable[[pd.DataFrame, Path], Any] | None = None
    """The same, where the second of three parts cannot be read; None for kinds whose parts cannot be damaged."""
    resumes: bool = True
    """Whether a pass that was interrupted goes on from a checkpoint."""
    name: str = ""

    @property
    def text(self) -> str:
        return self.name or self.kind


def table(n: int = N, seed: int = 0) -> pd.DataFrame:
    """Numbers with few and with many values, levels of which one comes late, targets, labels and weights."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.uniform(0.0, 1.0, n), "k": rng.integers(0, 12, n), "g": rng.choice(list("abc"), n)})
    frame.loc[n // 2 :, "g"] = frame.loc[n // 2 :, "g"].replace("a", "z")
    mean = np.sin(6.0 * frame["x"]) + 0.3 * np.cos(frame["k"] / 2.0) + 0.5 * (frame["g"] == "b")
    frame["y"] = 10.0 + mean + 0.2 * rng.normal(size=n)
    frame["label"] = np.where(mean + 0.3 * rng.normal(size=n) > 0.5, "yes", "no")
    frame["w"] = rng.integers(0, 3, n).astype(float)
    return frame


def cut(frame: pd.DataFrame) -> list[pd.DataFrame]:
    bounds = [0, *CUTS, len(frame)]
    return [frame.iloc[a:b].reset_index(drop=True) for a, b in itertools.pairwise(bounds)]


def _parquet(frame: pd.DataFrame, folder: Path) -> list[str]:
    paths = [str(folder / f"{number}.parquet") for number in range(len(CUTS) + 1)]
    for path, piece in zip(paths, cut(frame), strict=True):
        piece.to_parquet(path, row_group_size=40)
    return paths


def _csv(frame: pd.DataFrame, folder: Path) -> str:
    for number, piece in enumerate(cut(frame)):
        piece.to_csv(folder / f"{number}.csv", index=False)
    return str(folder)


def _truncated(frame: pd.DataFrame, folder: Path) -> list[str]:
    paths = _parquet(frame, folder)
    content = Path(paths[1]).read_bytes()
    Path(paths[1]).write_bytes(content[: len(content) // 2] + b"\0" * (len(content) - len(content) // 2))
    return paths


def _broken_csv(frame: pd.DataFrame, folder: Path) -> str:
    path = _csv(frame, folder)
    with open(folder / "1.csv", "a") as file:
        file.write("0.5,no number,b,1.0,yes,1.0\n")
    return path


def _chunks(frame: pd.DataFrame, folder: Path) -> Callable[[], Any]:
    return lambda: iter(cut(frame))


def _strange_chunk(frame: pd.DataFrame, folder: Path) -> Callable[[], Any]:
    first, second, third = cut(frame)
    return lambda: iter([first, second.drop(columns="x"), third])


def _delayed(frame: pd.DataFrame, folder: Path) -> list[Any]:
    return [dask.delayed(piece) for piece in cut(frame)]


def _strange_partition(frame: pd.DataFrame, folder: Path) -> list[Any]:
    first, second, third = cut(frame)
    return [dask.delayed(piece) for piece in (first, second.drop(columns="x"), third)]


def _dataset(frame: pd.DataFrame, folder: Path) -> Any:
    import xarray

    return xarray.Dataset.from_dataframe(frame.rename_axis("row"))


MAKERS = (
    Case("files", _parquet, _truncated, name="parquet"),
    Case("files", _csv, _broken_csv, name="csv"),
    Case("stream", _chunks, _strange_chunk),
    Case("dask", _delayed, _strange_partition, resumes=False, name="delayed"),
    Case("dask", lambda frame, _: dd.from_pandas(frame, npartitions=3), resumes=False, name="dask frame"),
    Case("database", lambda frame, _: duckdb.from_df(frame), resumes=False),
    Case("lazy frame", lambda frame, _: pl.from_pandas(frame).lazy()),
    Case("dataset", _dataset),
    Case("table", lambda frame, _: frame, name="pandas"),
    Case("table", lambda frame, _: pl.from_pandas(frame), name="polars"),
    Case("table", lambda frame, _: pl.from_pandas(frame).to_arrow(), name="arrow"),
)
