"""Rows that somebody else brings, a chunk at a time: iterators, lists of chunks, functions that return iterators.

And tables that are not there yet, or are no tables yet: lazy frames of polars, datasets of xarray. Neither library is
imported: what somebody hands in brings its methods along.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from math import prod
from typing import Any, Self

import numpy as np

from vff.data.fingerprints import content_mark
from vff.data.frames import column_names, is_table, joined, known_kinds, made_of, selected, sliced
from vff.data.source import Chunk, Part, ReadOptions, ReadPart, Source, SourceError
from vff.words import listed, shown


class StreamSource(Source):
    """Chunks that come one after another: tables, or tuples (X, y) or (X, y, w).

    Small ones are put together up to ``chunk_rows``, as long as they are made alike; what comes of it is a part.

    An iterator can be read once. A list, and a function without arguments that returns a new iterator every time it is
    called, can be read as often as one likes.
    """

    unit = "chunks"

    def __init__(self, data: Any, *, options: ReadOptions | None = None) -> None:
        self.options = options or ReadOptions()
        self._supply = _Supply(data)
        self._lent = not isinstance(data, list | tuple)
        self.repeatable = self._supply.repeatable
        first = item_of(self._supply.first, 0)
        self._model = first
        self.names = column_names(first.data)
        if self.names is not None and len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ValueError(
                f"expected every column to have a name of its own, found {shown(twice)} twice in chunk 0; rename it"
            )
        self.kinds = {} if self.names is None else known_kinds(first.data)
        self.n_columns = None if self.names is not None else np.shape(first.data)[1]
        self.n_rows = sum(len(item_of(item, 0).data) for item in data) if isinstance(data, list | tuple) else None

    def parts(self) -> Iterator[Part]:
        """A part for every group of neighbours that are made alike, and have at most ``chunk_rows`` rows together.

        Every chunk that is worked on costs something, however few its rows are. Of an iterator, a part is gone when the
        next one is asked for; since somebody may fill the same arrays anew, they are copied before that.
        """
        group: list[tuple[int, Chunk]] = []
        group_made, rows, most = None, 0, self.options.chunk_rows
        for index, item in enumerate(self._supply.items()):
            made, n = None, 0
            try:
                chunk = conforming(item_of(item, index), self._model, self.names)
                n = len(chunk.data)
                if n < most:
                    made = tuple(map(made_of, _parts(chunk)))
            except SourceError as error:
                chunk = error
            apart = made is None or () in made  # faulty, large, or such that nobody knows how to join it
            if group and (apart or made != group_made or rows + n > most):
                yield self._joined(group)
                group, rows = [], 0
            if isinstance(chunk, SourceError) or apart:
                yield self._part(f"chunk {index}", chunk)
            else:
                group.append((index, _copied(chunk) if self._lent else chunk))
                group_made, rows = made, rows + n
        if group:
            yield self._joined(group)

    def _joined(self, group: list[tuple[int, Chunk]]) -> Part:
        (first, chunk), last = group[0], group[-1][0]
        if first == last:
            return self._part(f"chunk {first}", chunk)
        name, columns = f"chunks {first} to {last}", zip(*(_parts(each) for _, each in group), strict=True)
        return self._part(name, Chunk(name, *(joined(parts) for parts in columns)))

    def _part(self, name: str, chunk: Chunk | SourceError) -> Part:
        """Chunks that were brought, put together; or one that is not like the others, and why."""
        return ReadPart(name, partial(self._cut, name, chunk), partial(_mark, chunk))

    def _cut(self, name: str, chunk: Chunk | SourceError) -> Iterator[Chunk]:
        """The rows, cut where they are more than ``chunk_rows``."""
        if isinstance(chunk, SourceError):
            raise chunk
        n, step = len(chunk.data), self.options.chunk_rows
        for start in range(0, n, step):
            stop = min(start + step, n)
            data, y, w = (None if part is None else sliced(part, start, stop) for part in _parts(chunk))
            where = name if n <= step else f"{name}, rows {start:,} to {stop - 1:,}"
            yield Chunk(where, data, y, w, share_of_part=stop / n).counted(self.options)


def _mark(chunk: Chunk | SourceError) -> str:
    """Number of rows, and a checksum of all that was brought. What is no table is refused when it is read."""
    if isinstance(chunk, SourceError):
        return str(chunk)
    return f"{len(chunk.data):,} rows, {content_mark(*_parts(chunk))}"


def _parts(chunk: Chunk) -> tuple[Any, Any, Any]:
    return chunk.data, chunk.y, chunk.w


def _copied(chunk: Chunk) -> Chunk:
    """With copies of what can be changed in place, which values of polars and Arrow cannot."""
    lent = [isinstance(part, list | np.ndarray) or hasattr(part, "iloc") for part in _parts(chunk)]
    parts = zip(_parts(chunk), lent, strict=True)
    return Chunk(chunk.where, *(part.copy() if changes else part for part, changes in parts))


class _Supply:
    """Where chunks come from; the first is looked at without being lost. Copies of a source share it."""

    def __init__(self, data: Any) -> None:
        self._make: Callable[[], Any] | None = None
        if not isinstance(data, Iterator) and callable(data):
            self._make = data
        elif isinstance(data, Iterable) and not isinstance(data, Iterator):
            self._make = lambda: iter(data)
        elif not isinstance(data, Iterator):
            raise TypeError(
                "expected a path, an iterator, a list or a function that gives chunks of rows, or a dask collection, "
                f"found {type(data).__name__}; rows that are in memory are handed to fit as they are"
            )
        self.repeatable = self._make is not None
        self._made: Any = data if self._make is None else self._called(self._make)
        self._rest: Iterator[Any] | None = iter(self._made)
        try:
            self.first = next(self._rest)
        except StopIteration:
            raise ValueError("expected at least one chunk of rows, found none; is the iterator used up?") from None

    def replaced(self, make: Callable[[], Any]) -> "_Supply":
        """Chunks of the same rows, made in another way."""
        twin = copy(self)
        twin._make, twin._made, twin._rest = make, None, None
        return twin

    def items(self) -> Iterator[Any]:
        """All chunks from the first on."""
        rest, self._rest = self._rest, None
        if rest is not None:
            yield self.first
            yield from rest
            return
        if self._make is None:
            raise ValueError(
                "expected rows that can be read again, found an iterator that is used up; "
                "pass a function without arguments that returns a new iterator"
            )
        made = self._called(self._make)
        if made is self._made and isinstance(made, Iterator):
            raise ValueError(
                "expected a function that returns a new iterator every time it is called, found the same one again; "
                "make it inside the function"
            )
        yield from made

    def _called(self, make: Callable[[], Any]) -> Any:
        made = make()
        if not isinstance(made, Iterable):
            raise TypeError(f"expected a function that returns an iterator of chunks, found {type(made).__name__}")
        return made


def item_of(item: Any, index: int) -> Chunk:
    """A chunk as somebody brings it: a table, or a tuple with targets and weights beside it."""
    parts, found = (item,), type(item).__name__
    if isinstance(item, tuple):
        parts, found = item, f"a tuple of {len(item)} ({', '.join(type(part).__name__ for part in item[:4])})"
    elif getattr(item, "shape", None) is not None:
        found += f" of shape {tuple(item.shape)}"
    if not 1 <= len(parts) <= 3 or not is_table(parts[0]):
        raise SourceError(
            f"expected every chunk to be a table or a tuple (X, y) or (X, y, w), found {found} as chunk "
            f"{index}; X is a frame, an Arrow table or an array with rows and columns"
        )
    chunk = Chunk(f"chunk {index}", *parts)
    check_lengths(chunk)
    return chunk


def check_lengths(chunk: Chunk) -> None:
    """Targets and weights are as many as rows."""
    for what, values in (("y", chunk.y), ("w", chunk.w)):
        if values is not None and len(values) != len(chunk.data):
            raise SourceError(
                f"expected as many values of {what} as rows, found {len(values)} and {len(chunk.data)} "
                f"in {chunk.where}; bring them together"
            )


def conforming(chunk: Chunk, model: Chunk, names: tuple[str, ...] | None) -> Chunk:
    """The chunk with the columns that are asked for, if it is made like the first."""
    found, expected = column_names(chunk.data), column_names(model.data)
    beside = [[each.y is None, each.w is None] for each in (chunk, model)]
    if (found is None) != (expected is None) or beside[0] != beside[1]:
        raise SourceError(
            f"expected every chunk to be made like the first, {_shape(model)}, found {_shape(chunk)} in {chunk.where}; "
            "bring all of them in the same way"
        )
    if found is None or names is None:
        if chunk.data.shape[1] != model.data.shape[1]:
            raise SourceError(
                f"expected {model.data.shape[1]} column(s), as in the first chunk, found {chunk.data.shape[1]} "
                f"in {chunk.where}; bring the same columns in all of them"
            )
        return chunk
    absent = [name for name in names if name not in found]
    if absent:
        raise SourceError(
            f"expected column {shown(absent[0])}, as in the first chunk, found {listed(found)} "
            f"in {chunk.where}; bring the same columns in all of them"
        )
    return chunk if found == names else Chunk(chunk.where, selected(chunk.data, names), chunk.y, chunk.w)


def _shape(chunk: Chunk) -> str:
    extra = "".join(f", {what}" for what, part in (("y", chunk.y), ("w", chunk.w)) if part is not None)
    return f"({'array' if column_names(chunk.data) is None else 'table with names'}{extra})"


class LazySource(StreamSource):
    """Rows of something that gives chunks of any of its columns, as often as it is asked.

    Columns that have no role are left to whoever makes the chunks, who need not work them out.
    """

    def __init__(self, chunks: Callable[..., Iterator[Any]], data: Any, *, options: ReadOptions | None = None) -> None:
        """``chunks`` takes the data, names of columns or None for all, and how many rows at a time."""
        self._lazy, self._make = data, chunks
        n = (options or ReadOptions()).chunk_rows
        super().__init__(lambda: chunks(data, None, n), options=options)

    def restricted(self, columns: Sequence[str]) -> Self:
        copy = super().restricted(columns)
        names, n = copy.names, self.options.chunk_rows
        copy._supply = copy._supply.replaced(lambda: self._make(self._lazy, names, n))
        return copy


def batches_of_frame(frame: Any, names: Sequence[str] | None, n: int) -> Iterator[Any]:
    """Batches of a query. Older versions of polars have none, and slice it instead, which begins it anew every time."""
    query = frame if names is None else frame.select(list(names))
    if hasattr(query, "collect_batches"):
        yield from query.collect_batches(chunk_size=n, maintain_order=True)
        return
    start = 0
    while len(batch := query.slice(start, n).collect()):
        yield batch
        start += n


def cells_of_dataset(dataset: Any, names: Sequence[str] | None, n: int) -> Iterator[Any]:
    """A row for every combination of the coordinates, which are columns as the variables are.

    Stretches along the first dimension are flattened, so that at most about n rows are there at a time.
    """
    if not dataset.sizes:
        raise ValueError("expected a dataset with dimensions, found one without; give it some, or pass a frame")
    sizes = dict(dataset.sizes)
    if names is not None:
        some = dataset[[name for name in dataset.data_vars if name in names]]
        dataset = some if dict(some.sizes) == sizes else dataset
    first, *others = sizes
    step = max(1, n // max(1, prod(sizes[name] for name in others)))
    for start in range(0, sizes[first], step):
        frame = dataset.isel({first: slice(start, start + step)}).to_dataframe(dim_order=list(sizes)).reset_index()
        yield frame if names is None else frame[list(names)]
