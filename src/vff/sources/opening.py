"""What a user hands in, recognised by the library it comes from, and opened as a source of rows."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal, overload

from vff.sources.base import AbstractSource, Handling, Report
from vff.sources.database import DatabaseTable, Relation
from vff.sources.frames import is_frame, is_table
from vff.sources.paths import is_path
from vff.words import shown, shown_path


def is_chunked(X: Any) -> bool:
    """Whether rows have to be fetched: files, streams, clusters, databases. False for what is in memory."""
    opened = isinstance(X, AbstractSource | DatabaseTable) or is_path(X) or _library(X) in _OPENERS
    return opened or _is_stream(X) or _is_list_of_chunks(X)


@overload
def scan(  # pyright: ignore[reportOverlappingOverload] - anything else is rows
    data: Relation | DatabaseTable, *, missing: Literal["refuse", "drop"] = "refuse"
) -> DatabaseTable: ...


@overload
def scan(
    data: Any,
    *,
    missing: Literal["refuse", "drop"] = "refuse",
    faulty: Literal["refuse", "skip"] = "refuse",
    checkpoint: str | os.PathLike[str] | None = None,
    chunk_rows: int = 2**20,
    types: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    report: Report | None = None,
) -> AbstractSource: ...


def scan(
    data: Any,
    *,
    missing: Literal["refuse", "drop"] = "refuse",
    faulty: Literal["refuse", "skip"] = "refuse",
    checkpoint: str | os.PathLike[str] | None = None,
    chunk_rows: int = 2**20,
    types: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    report: Report | None = None,
) -> AbstractSource | DatabaseTable:
    """Rows that do not fit into memory, to be handed to ``fit`` in place of X.

    Parameters
    ----------
    data : path, list of paths, pyarrow Dataset, iterator, list or function that gives chunks, dask collection, table
        of a database as an Ibis expression or a DuckDB relation
        A path is a file, a pattern like ``"2024-*.csv"``, or a folder; names like ``year=2024`` of folders become
        columns. Formats are CSV and TSV (packed with gzip or not), Parquet, Arrow IPC and Feather. A function without
        arguments returns a new iterator every time, so that the rows can be read twice.
    missing : "refuse" or "drop"
        What happens to rows with a missing, NaN or infinite value in a column that is used.
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
    """
    path = None if checkpoint is None else os.fspath(checkpoint)
    handling = Handling(missing=missing, faulty=faulty, checkpoint=path, chunk_rows=chunk_rows, report=report)
    _check(handling, delimiter)
    if isinstance(data, AbstractSource | DatabaseTable):
        return data.handled(**{name: getattr(handling, name) for name in handling.__dataclass_fields__})
    if is_path(data) or _library(data) == "pyarrow.dataset":
        return _open_files(data, types, delimiter, handling)
    if types or delimiter:
        raise ValueError("types= and delimiter= are for files, and these rows come from none; leave them out")
    if _library(data) in _OPENERS:
        return _OPENERS[_library(data)](data, handling)
    return _open_stream(data, handling)


def opened(data: Any) -> AbstractSource | DatabaseTable:
    """A source as it is, and anything else scanned."""
    return data if isinstance(data, AbstractSource | DatabaseTable) else scan(data)


def _check(handling: Handling, delimiter: str | None) -> None:
    if handling.missing not in ("refuse", "drop"):
        raise ValueError(f'expected missing="refuse" or "drop", found {shown(handling.missing)}; use one of these')
    if handling.faulty not in ("refuse", "skip"):
        raise ValueError(f'expected faulty="refuse" or "skip", found {shown(handling.faulty)}; use one of these')
    if isinstance(handling.chunk_rows, bool) or not isinstance(handling.chunk_rows, int) or handling.chunk_rows < 1:
        raise ValueError(f"expected chunk_rows to be a positive integer, found {shown(handling.chunk_rows)}; try 2**20")
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


def _is_stream(data: Any) -> bool:
    """Iterators, and functions that return them; a class is no stream, nor is what has a shape."""
    if isinstance(data, type) or hasattr(data, "shape"):
        return False
    return isinstance(data, Iterator) or callable(data)


def _is_list_of_chunks(data: Any) -> bool:
    """Frames in a list are chunks; arrays in a list could be one array, unless targets stand beside them."""
    if not isinstance(data, list) or not data:
        return False
    return all(is_frame(item) or (isinstance(item, tuple) and item and is_table(item[0])) for item in data)


def _open_files(
    data: Any, types: Mapping[str, str] | None, delimiter: str | None, handling: Handling
) -> AbstractSource:
    try:
        import vff.sources.arrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"expected pyarrow, to read {shown_path(data)}, found none; pip install 'vff[files]'"
        ) from error
    from vff.sources.files import FileSource

    return FileSource(data, types=types, delimiter=delimiter, handling=handling)


def _open_dask(data: Any, handling: Handling) -> AbstractSource:
    try:
        from vff.sources.clusters import DaskSource
    except ImportError as error:
        raise ImportError(f"expected all of dask, found no {error.name}; pip install 'vff[dask]'") from error
    return DaskSource(data, handling=handling)


def _open_database(data: Any, handling: Handling) -> DatabaseTable:
    return DatabaseTable.of(data, handling)


def _open_stream(data: Any, handling: Handling) -> AbstractSource:
    from vff.sources.streams import StreamSource

    return StreamSource(data, handling=handling)


# one line for every library whose objects are opened in a way of their own
_OPENERS = {
    "dask": _open_dask,
    "duckdb": _open_database,
    "_duckdb": _open_database,
    "ibis": _open_database,
    "pyarrow.dataset": _open_files,
}
