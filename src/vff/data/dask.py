"""Rows that lie on other machines, as dask has them: work goes to the partitions, and only sums come back."""

import pickle
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from itertools import chain
from typing import Any, Self

import cloudpickle
import dask.array
import dask.config
import dask.dataframe
from dask.base import compute, tokenize
from dask.callbacks import Callback
from dask.delayed import Delayed, delayed

from vff.data.checkpoint import PartRecord, PassState
from vff.data.frames import column_names, is_table, known_kinds, selected
from vff.data.passes import FaultyPartWarning, merged, run_task
from vff.data.schema import Kind
from vff.data.source import Chunk, Part, Progress, ReadOptions, ReadPart, Report, Source, SourceError
from vff.data.streams import check_lengths
from vff.words import listed, shown

FAN_IN = 8
_LARGE_GRAPHS = {"distributed.admin.large-graph-warning-threshold": "4 GiB"}
_DISTRIBUTED = ("dask.distributed", "distributed")


class DaskSource(Source):
    """Rows of a dask frame, a dask array, or a list of delayed tables; every partition is a part.

    ``y`` and ``w`` are dask arrays or series with the same partitions.
    """

    unit = "partitions"

    def __init__(self, data: Any, y: Any = None, w: Any = None, *, options: ReadOptions | None = None) -> None:
        self.options = options or ReadOptions()
        if isinstance(data, tuple):
            data, y, w = (*data, None, None)[:3]
        self._data = _one_block_of_columns(data)
        if isinstance(self._data, dask.array.Array):
            self.names, self.n_columns, self.kinds = None, int(self._data.shape[1]), {}
            rows = self._data.shape[0]
            self.n_rows = int(rows) if rows == rows else None  # an unknown number is NaN
        else:
            seen = (
                delayed(_seen_in)(self._data[0]).compute()
                if isinstance(self._data, list)
                else _seen_in(self._data._meta)
            )
            self.names, self.n_columns, self.kinds = seen
        self._y, self._w = (self._beside(part, what) for part, what in ((y, "y"), (w, "w")))

    def restricted(self, columns: Sequence[str]) -> Self:
        copy = super().restricted(columns)
        vars(copy).pop("_pieces", None)  # cut for other columns
        return copy

    def with_targets(self, y: Any, w: Any) -> tuple[Source, Any, Any]:
        """Targets and weights that are dask collections go along with the rows; names are left to be looked up."""
        if all(value is None or isinstance(value, str) for value in (y, w)):
            return self, y, w
        # what was beside the rows already stays, where nobody brings another
        beside = ((y, self._y), (w, self._w))
        others = [None if isinstance(value, str) else own if value is None else value for value, own in beside]
        names = [value if isinstance(value, str) else None for value in (y, w)]
        return DaskSource(self._data, *others, options=self.options), names[0], names[1]

    def parts(self) -> Iterator[Part]:
        """A part for every partition, in order."""
        token = tokenize(self._data, self._y, self._w, self.names)
        for index, (name, *piece) in enumerate(self._pieces):
            mark = f"{token} {index}"  # what dask calls the graph that leads to it
            yield ReadPart(name, partial(self._fetched, name, piece), lambda mark=mark: mark)

    def _fetched(self, name: str, piece: list[Any]) -> list[Chunk]:
        return [self._make(name, *compute(*piece))]

    def reduce(self, task: Any, checkpoint: Any = None, without: tuple[str, ...] = ()) -> PassState[Any]:
        """The answers of a task to all chunks, computed where the partitions are, and merged.

        Partitions without rows are not asked, nor are those named in ``without``. Answers are merged in a tree of eight
        at a time whose shape depends on the number of partitions alone, so that the same rows give the same bits,
        whoever computes them. A worker that dies is replaced: the scheduler asks another. An exception of ``task``
        comes back as it was raised, with the partition's name in front.
        """
        report = self.options.report
        # made by a task, so that it travels to a worker once and not with every partition
        task = getattr(task, "on_one_core", task)  # a worker has a thread for every task that it runs at a time
        tools = delayed(_Parcel)(cloudpickle.dumps((task, self._make, self.options.faulty)))
        leaves = [delayed(_answer)(tools, *piece) for piece in self._pieces if piece[0] not in without]
        if not leaves:
            raise SourceError("expected a partition that can be read, found that all are to be left out; repair one")
        root = leaves
        while len(root) > 1:
            root = [delayed(_merged)(tools, root[i : i + FAN_IN]) for i in range(0, len(root), FAN_IN)]
        # only beside a client: set before distributed is imported, it would take all other settings along at the end
        with dask.config.set({} if _client() is None else _LARGE_GRAPHS):
            if report is None:
                return _finished(root[0].compute())
            phase = getattr(task, "phase", "summing")
            return _finished(_watched(root[0], leaves, report, phase, self.n_rows))

    def checkpoint(self, identity: str) -> None:
        """There is none."""
        if self.options.checkpoint is not None:
            raise ValueError(
                "a checkpoint is for rows that are read here; on a cluster the scheduler computes again what a dead "
                "worker took with it: leave checkpoint out"
            )

    @property
    def _make(self) -> Callable[..., Chunk]:
        """How a worker makes a chunk of what a partition holds."""
        # whoever listens to reports stays here: it may not even be possible to send it
        return partial(_chunk, self.names, self.n_columns, replace(self.options, report=None, checkpoint=None))

    @cached_property
    def _pieces(self) -> list[tuple[str, Any, Any, Any]]:
        """Every partition's name, table, targets and weights. Kept, since dask takes long to cut many."""
        data = self._data
        if self.names is not None and not isinstance(data, list):
            data = data[list(self.names)]
        X = _partitions(data)
        y, w = ([None] * len(X) if part is None else _partitions(part) for part in (self._y, self._w))
        names = [f"partition {index} of {len(X)}" for index in range(len(X))]
        return list(zip(names, X, y, w, strict=True))

    def _beside(self, part: Any, what: str) -> Any:
        """Targets or weights, cut as the rows are."""
        if part is None:
            return None
        if not _is_partitioned(part):
            raise TypeError(
                f"expected {what} to be a dask array or series beside dask rows, or the name of a column, found "
                f"{type(part).__name__}; use dask.array.from_array"
            )
        part = _aligned(part, self._data)
        n, expected = len(_partitions(part)), len(_partitions(self._data))
        if n != expected:
            raise ValueError(
                f"expected {what} to have {expected} partitions, as X has, found {n}; repartition one like the other"
            )
        return part


class _Parcel:
    """A task as bytes, unpacked where it is first wanted.

    What travels on to the next worker is what was sent, not what a task has worked out for itself meanwhile, perhaps
    in a thread that is still at it.
    """

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    @cached_property
    def contents(self) -> tuple[Any, Callable[..., Chunk], str]:
        """The task, how a chunk is made, and what happens to partitions that cannot be read."""
        return pickle.loads(self._packed)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Parcel, (self._packed,)

    def __sizeof__(self) -> int:
        return len(self._packed)


def _answer(tools: _Parcel, name: str, X: Any, y: Any, w: Any) -> PassState[Any]:
    task, make, faulty = tools.contents
    try:
        chunk = make(name, X, y, w)
    except SourceError as error:
        if faulty == "refuse":
            raise
        return PassState((PartRecord(name, "", fault=str(error)),))
    # the graph is the same in every pass: that its rows are is for their number to show
    record = PartRecord(name, "", chunk.n_rows, chunk.dropped, 1)
    return PassState((record,), committed=run_task(task, chunk, (Exception,)) if chunk.n_rows else None)


def _merged(tools: _Parcel, states: Sequence[PassState[Any]]) -> PassState[Any]:
    answer = reduce(partial(merged, tools.contents[0]), [state.committed for state in states])
    return PassState(tuple(chain.from_iterable(state.done for state in states)), committed=answer)


def _finished(state: PassState[Any]) -> PassState[Any]:
    faults = [part.fault for part in state.done if part.fault]
    for fault in faults:
        warnings.warn(f"left out: {fault}", FaultyPartWarning, stacklevel=4)
    if state.committed is None and faults:
        raise SourceError(f"expected a partition that can be read, found none; the first: {faults[0]}")
    if state.committed is None:
        raise ValueError("expected rows, found only partitions without any; look at what was filtered or left out")
    return replace(state, complete=True)


def _watched(root: Any, leaves: Sequence[Any], report: Report, phase: str, n_rows: int | None) -> PassState[Any]:
    """The outcome, with a word whenever a partition is done."""
    began, rows, done = time.monotonic(), 0, 0
    counts = [leaf.rows for leaf in leaves]

    def report_one(more: int) -> None:
        nonlocal rows, done
        rows, done = rows + more, done + 1
        title = f"{done} of {len(leaves)} partitions"
        report(Progress(phase, rows, n_rows, done / len(leaves), time.monotonic() - began, title))

    client = _client()
    if client is None:
        keys = {count.key for count in counts}
        with Callback(posttask=lambda key, result, *_: report_one(result) if key in keys else None):
            return compute(root, *counts)[0]
    from distributed import as_completed

    future, *futures = client.compute([root, *counts])
    for _, more in as_completed(futures, with_results=True):
        report_one(more)
    return future.result()


def _client() -> Any:
    """The cluster that is active, if there is one and no other scheduler was asked for."""
    if "distributed" not in sys.modules or dask.config.get("scheduler", None) not in (None, *_DISTRIBUTED):
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def _chunk(
    names: tuple[str, ...] | None, n_columns: int | None, options: ReadOptions, name: str, X: Any, y: Any, w: Any
) -> Chunk:
    """What a partition holds, checked and cut to what is asked for."""
    if not is_table(X):
        raise SourceError(
            f"expected a table in {name}, found {type(X).__name__}; give frames or arrays of two dimensions"
        )
    found = column_names(X)
    absent = [one for one in names or () if one not in (found or ())]
    if absent or (names is None and X.shape[1] != n_columns):
        expected = f"column {shown(absent[0])}" if absent else f"{n_columns} columns"
        has = listed(found) if found else f"{X.shape[1]} without names"
        raise SourceError(f"expected {expected}, as in the first partition, found {has} in {name}; make them alike")
    if names is not None and names != found:
        X = selected(X, names)
    chunk = Chunk(name, X, y, w, share_of_part=1.0)
    check_lengths(chunk)
    return chunk.counted(options)


def _one_block_of_columns(data: Any) -> Any:
    """Dask rows whose partitions hold all columns."""
    if isinstance(data, dask.array.Array):
        if data.ndim != 2:
            raise ValueError(f"expected a dask array with rows and columns, found {data.ndim} dimension(s); reshape it")
        columns: Any = {1: -1}
        return data if data.numblocks[1] == 1 else data.rechunk(columns)
    if isinstance(data, Delayed):
        return [data]
    if isinstance(data, list) and data and all(isinstance(item, Delayed) for item in data):
        return data
    if isinstance(data, dask.dataframe.DataFrame):
        return data
    raise TypeError(
        f"expected a dask frame, a dask array or a list of delayed tables, found {type(data).__name__}; "
        "use dask.dataframe or dask.array"
    )


def _seen_in(X: Any) -> tuple[tuple[str, ...] | None, int, Mapping[str, Kind]]:
    return column_names(X), X.shape[1], known_kinds(X) if column_names(X) else {}


def _is_partitioned(part: Any) -> bool:
    kinds = (dask.array.Array, dask.dataframe.Series, dask.dataframe.DataFrame)
    return isinstance(part, kinds) or (isinstance(part, list) and all(isinstance(item, Delayed) for item in part))


def _partitions(data: Any) -> list[Any]:
    pieces: Any = data if isinstance(data, list) else data.to_delayed()
    return list(pieces.ravel() if isinstance(data, dask.array.Array) else pieces)


def _aligned(part: Any, data: Any) -> Any:
    """Targets cut where the rows are, if the numbers of both are known; else they must have as many partitions."""
    arrays = all(isinstance(array, dask.array.Array) for array in (data, part))
    if not arrays or any(size != size for array in (data, part) for size in array.chunks[0]):  # unknown ones are NaN
        return part
    if part.shape[0] != data.shape[0]:
        raise ValueError(f"expected one target or weight per row, found {part.shape[0]} for {data.shape[0]} rows")
    return part if part.chunks[0] == data.chunks[0] else part.rechunk({0: data.chunks[0]})
