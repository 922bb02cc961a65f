"""What a user hands in, opened as a source of rows by the first kind that knows it."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, overload

from vff.data.database import DatabaseTable, Relation
from vff.data.frames import is_frame, is_table
from vff.data.memory import MemorySource
from vff.data.paths import is_path
from vff.data.source import ReadOptions, Report, Source
from vff.data.streams import LazySource, StreamSource, batches_of_frame, cells_of_dataset
from vff.data.table import Table
from vff.registry import Registry
from vff.words import shown, shown_path

Missing = Literal["effect", "drop", "refuse"] | None


class SourceKind(NamedTuple):
    """A kind of source: whether it opens what was given, and how. Foreign libraries are imported when one is opened."""

    name: str
    opens: Callable[[Any], bool]
    open: Callable[..., Source]
    """What was given, ``options=``, and where ``typed`` also ``types=`` and ``delimiter=`` -> a source."""
    typed: bool = False
    """Whether a user may say what columns are."""


def is_chunked(X: Any) -> bool:
    """Whether rows have to be fetched: files, streams, clusters, databases. False for what is in memory."""
    return isinstance(X, Source) or kind_of(X) is not _MEMORY


def kind_of(data: Any, otherwise: SourceKind | None = None) -> SourceKind:
    """The first kind that opens this; what nobody knows is taken for a table, which has sentences about it."""
    return next((kind for kind in SOURCES if kind.opens(data)), otherwise or _MEMORY)


def open_rows(X: Any) -> Source:
    """A source as it is, and anything else as the first kind that knows it opens it."""
    return X if isinstance(X, Source) else kind_of(X).open(X, options=ReadOptions())


@overload
def scan(  # pyright: ignore[reportOverlappingOverload] - anything else is rows
    data: Relation | DatabaseTable, *, missing: Missing = None
) -> DatabaseTable: ...


@overload
def scan(
    data: Any,
    *,
    missing: Missing = None,
    faulty: Literal["refuse", "skip"] = "refuse",
    checkpoint: str | os.PathLike[str] | None = None,
    chunk_rows: int = 2**20,
    types: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    report: Report | None = None,
) -> Source: ...


def scan(
    data: Any,
    *,
    missing: Missing = None,
    faulty: Literal["refuse", "skip"] = "refuse",
    checkpoint: str | os.PathLike[str] | None = None,
    chunk_rows: int = 2**20,
    types: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    report: Report | None = None,
) -> Source:
    """Rows that do not fit into memory, to be handed to ``fit``, ``predict`` and the like in place of X.

    Parameters
    ----------
    data : path, list of paths, pyarrow Dataset, iterator, list or function that gives chunks, dask collection, polars
        LazyFrame, xarray Dataset, table of a database as an Ibis expression or a DuckDB relation, or a table in memory
        A path is a file, a pattern like ``"2024-*.csv"``, or a folder; names like ``year=2024`` of folders become
        columns. Formats are CSV and TSV (packed with gzip or not), Parquet, Arrow IPC and Feather. A function without
        arguments returns a new iterator every time, so that the rows can be read twice. A dataset of xarray has a row
        for every combination of its coordinates.
    missing : "effect", "drop", "refuse" or None
        What happens to rows with a missing value in a column of numbers that is used: an effect of their own, they are
        left out (as those with an infinite one are), or refused. None is what the model says.
    faulty : "refuse" or "skip"
        What happens to files that cannot be read, or have other columns than the first.
    checkpoint : path, optional
        File that a long pass writes its state to, and goes on from.
    chunk_rows : int
        Rows that are in memory at one time; smaller chunks of a stream are put together up to so many.
    types : mapping from columns to "text", "number", "integer", "datetime" or "boolean", optional
        What columns are, where their first rows do not say it.
    delimiter : str, optional
        Character between the columns of a CSV file, where the header does not show it.
    report : callable, optional
        Is told the ``Progress`` now and then.

    Returns
    -------
    Source
        The rows as they can be read; nothing but names and types is read yet.

    Examples
    --------
    >>> np.savetxt("rows.csv", np.linspace(0, 3, 31)[:, None].repeat(2, axis=1), "%.1f", ",", header="x,y", comments="")
    >>> model = vff.GPRegressor(domain={"x": (0, 3)}, frequencies=5).fit(vff.scan("rows.csv", missing="drop"), "y")
    >>> model.predict("rows.csv").round(1)[:3]
    array([0. , 0.1, 0.2])
    """
    path = None if checkpoint is None else os.fspath(checkpoint)
    options = ReadOptions(missing=missing, faulty=faulty, checkpoint=path, chunk_rows=chunk_rows, report=report)
    _check(options, delimiter)
    if isinstance(data, Source):
        return data.with_options(**{name: getattr(options, name) for name in options.__dataclass_fields__})
    kind = kind_of(data, _STREAM)
    if kind.typed:
        return kind.open(data, types=types, delimiter=delimiter, options=options)
    if types or delimiter:
        raise ValueError("types= and delimiter= are for files, and these rows come from none; leave them out")
    return kind.open(data, options=options)


def _check(options: ReadOptions, delimiter: str | None) -> None:
    if options.missing not in (None, "effect", "drop", "refuse"):
        raise ValueError(
            f'expected missing="effect", "drop" or "refuse", found {shown(options.missing)}; use one of these'
        )
    if options.faulty not in ("refuse", "skip"):
        raise ValueError(f'expected faulty="refuse" or "skip", found {shown(options.faulty)}; use one of these')
    if isinstance(options.chunk_rows, bool) or not isinstance(options.chunk_rows, int) or options.chunk_rows < 1:
        raise ValueError(f"expected chunk_rows to be a positive integer, found {shown(options.chunk_rows)}; try 2**20")
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(
            f"expected delimiter= to be one character, found {shown(delimiter)}; give the one in the header"
        )


def _library(data: Any) -> str:
    """Where the type of this comes from: "dask", "ibis", "pyarrow.dataset"; "" for what needs no opener."""
    modules = [base.__module__ for base in type(data).__mro__]
    if any(name in ("pyarrow._dataset", "pyarrow.dataset") for name in modules):
        return "pyarrow.dataset"
    library = modules[0].split(".")[0]
    if library == "dask_expr":
        return "dask"
    is_list = isinstance(data, list | tuple) and len(data) > 0
    if is_list and all(type(item).__module__.split(".")[0] == "dask" for item in data):
        return "dask"
    return library


def _has(*methods: str) -> Callable[[Any], bool]:
    """Known by what its type can do, of a library that is not imported for that: polars, xarray."""
    return lambda data: all(hasattr(type(data), name) for name in methods)


def _is_stream(data: Any) -> bool:
    """Iterators, functions that return them, and lists of chunks; a class is no stream, nor is what has a shape.

    Frames in a list are chunks; arrays in a list could be one array, unless targets stand beside them.
    """
    if isinstance(data, list) and data:
        return all(is_frame(item) or (isinstance(item, tuple) and item and is_table(item[0])) for item in data)
    return not isinstance(data, type) and not hasattr(data, "shape") and (isinstance(data, Iterator) or callable(data))


def _open_files(data: Any, *, options: ReadOptions, types: Any = None, delimiter: str | None = None) -> Source:
    try:
        from vff.data.files import FileSource
    except ImportError as error:
        raise ImportError(
            f"expected pyarrow, to read {shown_path(data)}, found none; pip install 'vff[files]'"
        ) from error
    return FileSource(data, types=types, delimiter=delimiter, options=options)


def _open_dask(data: Any, *, options: ReadOptions) -> Source:
    try:
        from vff.data.dask import DaskSource
    except ImportError as error:
        raise ImportError(f"expected all of dask, found no {error.name}; pip install 'vff[dask]'") from error
    return DaskSource(data, options=options)


def _open_table(data: Any, *, options: ReadOptions) -> Source:
    """In memory; as a single chunk where rows may be left out, or a state is to be kept."""
    if is_table(data) and (options.missing == "drop" or options.checkpoint is not None):
        return StreamSource([data], options=options)
    return MemorySource(data, options=options)


_MEMORY = SourceKind("table", lambda data: isinstance(data, Table) or is_table(data), _open_table)
_STREAM = SourceKind("stream", _is_stream, StreamSource)
SOURCES: Registry[SourceKind] = Registry(
    "a kind of source",
    SourceKind("files", lambda data: is_path(data) or _library(data) == "pyarrow.dataset", _open_files, typed=True),
    SourceKind("dask", lambda data: _library(data) == "dask", _open_dask),
    SourceKind("lazy frame", _has("collect_schema", "sink_parquet"), partial(LazySource, batches_of_frame)),
    SourceKind("dataset", _has("data_vars", "isel"), partial(LazySource, cells_of_dataset)),
    SourceKind("database", lambda data: _library(data) in ("duckdb", "_duckdb", "ibis"), DatabaseTable),
    _STREAM,
    _MEMORY,
)
"""In the order in which they are asked; one's own is registered ``first``."""
