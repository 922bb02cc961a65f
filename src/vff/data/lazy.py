"""Tables that are not there yet, or are no tables yet, as streams of chunks: lazy frames of polars, datasets of xarray.

Neither library is imported: what somebody hands in brings its methods along.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, Self

from vff.data.source import Handling
from vff.data.streams import StreamSource


def is_lazy_frame(data: Any) -> bool:
    """Whether this is a query of polars."""
    return hasattr(type(data), "collect_schema") and hasattr(type(data), "sink_parquet")


def is_dataset(data: Any) -> bool:
    """Whether this is a dataset of xarray: variables over named dimensions."""
    return hasattr(type(data), "data_vars") and hasattr(type(data), "isel")


class LazySource(StreamSource):
    """Rows of something that gives chunks of any of its columns, as often as it is asked.

    Columns that have no role are left to whoever makes the chunks, who need not work them out.
    """

    def __init__(self, data: Any, chunks: Callable[[Any, Sequence[str] | None, int], Iterator[Any]], *,
                 handling: Handling | None = None) -> None:  # fmt: skip
        self._lazy, self._make = data, chunks
        n = (handling or Handling()).chunk_rows
        super().__init__(lambda: chunks(data, None, n), handling=handling)

    def restricted(self, columns: Sequence[str]) -> Self:
        """The same rows with these columns alone; the others are not even computed."""
        copy = super().restricted(columns)
        names, n = copy.names, self.handling.chunk_rows
        copy._supply = copy._supply.replaced(lambda: self._make(self._lazy, names, n))
        return copy

    @classmethod
    def of_frame(cls, data: Any, *, handling: Handling | None = None) -> Self:
        """A lazy frame, collected a batch at a time."""
        return cls(data, _batches, handling=handling)

    @classmethod
    def of_dataset(cls, data: Any, *, handling: Handling | None = None) -> Self:
        """A dataset: a row for every combination of its coordinates, which are columns as its variables are."""
        if not data.sizes:
            raise ValueError("expected a dataset with dimensions, found one without; give it some, or pass a frame")
        return cls(data, _cells, handling=handling)


def _batches(frame: Any, names: Sequence[str] | None, n: int) -> Iterator[Any]:
    """Batches of a query. Older versions of polars have none, and slice it instead, which begins it anew every time."""
    query = frame if names is None else frame.select(list(names))
    if hasattr(query, "collect_batches"):
        yield from query.collect_batches(chunk_size=n, maintain_order=True)
        return
    start = 0
    while len(batch := query.slice(start, n).collect()):
        yield batch
        start += n


def _cells(dataset: Any, names: Sequence[str] | None, n: int) -> Iterator[Any]:
    """Stretches along the first dimension, flattened, so that at most about n rows are there at a time."""
    sizes = dict(dataset.sizes)
    if names is not None:
        some = dataset[[name for name in dataset.data_vars if name in names]]
        dataset = some if dict(some.sizes) == sizes else dataset
    first, *others = sizes
    step = max(1, n // max(1, prod(sizes[name] for name in others)))
    for start in range(0, sizes[first], step):
        frame = dataset.isel({first: slice(start, start + step)}).to_dataframe(dim_order=list(sizes)).reset_index()
        yield frame if names is None else frame[list(names)]
