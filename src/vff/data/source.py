"""Rows that come in chunks: nobody holds them all.

A source is a list of *parts*, and a part is read in *chunks*. A part is what counts as a whole or not at all: a file, a
partition. A chunk is what is in memory at one time. A room that wants to know something of all rows hands a *task* to
``passes.reduce``: it is asked of every chunk, and its answers are merged.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from vff.data.frames import column, column_at, column_names, filtered, present
from vff.data.roles import Positive, Roles, UsedColumns
from vff.data.schema import Kind
from vff.data.table import Table
from vff.words import listed, shown

if TYPE_CHECKING:
    from vff.data.checkpoint import Checkpoint, PassState


NEEDS_REVISITS = "another likelihood than the Gaussian asks the rows again and again"


class SourceError(ValueError):
    """A part that cannot be read: it is not there, truncated, damaged, or has other columns than the rest."""


@dataclass(frozen=True)
class Chunk:
    """Some rows, in memory."""

    where: str
    """Which rows these are, for messages: "b.csv, rows 1,048,576 to 2,097,151"."""
    data: Any
    """An Arrow table, a pandas or polars frame, or an array: whatever an estimator takes for X."""
    y: Any = None
    """The targets, where they are not a column of ``data``."""
    w: Any = None
    """The weights, where they are not a column of ``data``."""
    n_rows: Any = None
    """Rows that are here; those that were left out are not among them. None until they were counted."""
    dropped: int = 0
    """Rows that were left out, as asked, because something in them is missing."""
    errors: Any = None
    """Known standard deviations of the targets, where they are not a column of ``data``."""
    first: int | None = None
    """What number messages give to the first row, as ``where`` counts them; None where they count from zero."""
    share_of_part: float | None = None
    """How much of its part has been read when this chunk is there, where that is known."""

    def counted(self, options: "ReadOptions") -> "Chunk":
        """As it is asked for: with or without its incomplete rows, and with its count."""
        if options.missing != "drop":
            return replace(self, n_rows=len(self.data))
        whole = np.ones(len(self.data), dtype=bool)
        for found in self._columns(options.keep_missing):
            there = present(found)
            whole = whole if there is None else whole & there
        if whole.all():
            return replace(self, n_rows=len(whole))
        left = int(whole.sum())
        own = {"data": self.data, "y": self.y, "w": self.w, "errors": self.errors}
        kept = {name: None if part is None else filtered(part, whole) for name, part in own.items()}
        return replace(self, **kept, n_rows=left, dropped=len(whole) - left, first=None)

    def _columns(self, keep: Sequence[str | int]) -> Iterator[Any]:
        """All but some, and what stands beside them."""
        names = column_names(self.data)
        if names is None:
            array = np.asarray(self.data)
            yield from (array[:, i] for i in range(array.shape[1]) if i not in keep)
        else:
            yield from (column_at(self.data, i, 0, None) for i, name in enumerate(names) if name not in keep)
        yield from (column(part) for part in (self.y, self.w, self.errors) if part is not None)

    @cached_property
    def memo(self) -> dict[str, Any]:
        """What was worked out about these rows, and may be asked for again."""
        return {}

    @cached_property
    def table(self) -> Table:
        """The columns, each of which is converted once however often it is asked for."""
        return Table.of(self.data)


class Part(ABC):
    """Rows that count together or not at all."""

    name: str
    """What messages call it."""
    size: int | None = None
    """In bytes, where that is known."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A text that changes when the part does. Reads all of it only where that is in memory anyway."""

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """All rows, in order; the same chunks every time. Raises ``SourceError`` for what cannot be read."""


class ReadPart(Part):
    """A part of which all is known: its name, how it is read, and what changes with it.

    Nothing does where rows stay as they are while a fit looks at them, and where nobody knows.
    """

    def __init__(self, name: str, read: Callable[[], Iterable[Chunk]], mark: Callable[[], str] = lambda: "") -> None:
        self.name, self._read, self._mark = name, read, cache(mark)

    def fingerprint(self) -> str:
        return self._mark()

    def chunks(self) -> Iterator[Chunk]:
        return iter(self._read())


class Progress(NamedTuple):
    """How far a pass over the rows has come."""

    phase: str
    """What is being done: "looking at the columns", "summing"."""
    rows: int
    n_rows: int | None
    """All rows, where that is known."""
    share: float | None
    """Part of the work that is done, where that is known, by bytes if not by rows."""
    seconds: float
    """Since the pass began."""
    part: str
    resumed: int = 0
    """Rows that an earlier run had already done."""


Report = Callable[[Progress], None]


@dataclass(frozen=True)
class ReadOptions:
    """How a source is to be read, apart from what is in it."""

    missing: Literal["effect", "drop", "refuse"] | None = None
    """Rows with a missing value in a column that is used: it has an effect of its own, they are left out and counted,
    or refused by name. None is what the model says.
    """
    keep_missing: tuple[str | int, ...] = ()
    """Columns where missing is a level of its own: no reason to leave a row out. Numbers where there are no names."""
    faulty: Literal["refuse", "skip"] = "refuse"
    """Parts that cannot be read: refused by name, or left out whole, with a warning."""
    chunk_rows: int = 2**20
    checkpoint: str | None = None
    """File that a long pass writes its state to, and goes on from."""
    report: Report | None = None


class Source(ABC):
    """Rows in parts. ``names`` are known before the first row is read."""

    unit: str = "parts"
    """What messages call its parts."""
    names: tuple[str, ...] | None
    """Columns; None where these have no names."""
    n_columns: int | None = None
    """How many there are, where they have no names."""
    kinds: Mapping[str, Kind] = MappingProxyType({})
    """What the columns hold, where that is known before the first row is read."""
    declared: Mapping[str, str] = MappingProxyType({})
    """What whoever opened the source said that columns hold."""
    n_rows: int | None = None
    """All rows, where that is known without reading them."""
    repeatable: bool = True
    """Whether the rows can be read a second time."""
    ahead: bool = False
    """Whether the next chunk may be read, in another thread, while one is worked on."""
    whole: Table | None = None
    """All rows, where they are in memory, and what stands beside them."""
    y: Any = None
    w: Any = None
    expensive_pass: bool = True
    """Whether a pass over the rows costs so much that one which looks and sums at once is worth more sums."""
    options: ReadOptions = ReadOptions()
    roles: Roles | None = None
    """What the columns are for, once that is known."""

    @property
    def target(self) -> str | None:
        """What y is called, where it is a column."""
        return None if self.roles is None else self.roles.target

    @property
    def identity(self) -> str:
        """All that settles which rows come out of the same data, in writing: sums of others are of no use."""
        how = self.options
        kept = ", ".join(map(repr, how.keep_missing)) or "none"
        # not imported above: it knows the rooms over this one
        version = import_module("vff").__version__
        return f"vff {version}, chunks of {how.chunk_rows:,} rows, missing {how.missing!r} but kept in {kept}"

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """All parts, in an order that does not change."""

    def reduce(self, task: Any, checkpoint: "Checkpoint | None" = None, without: tuple[str, ...] = ()) -> "PassState":
        """The answers of a task to all rows, merged; parts named in ``without`` are not asked.

        Chunk by chunk and here, unless a source knows better: the task may travel to the rows, or be answered by sums.
        """
        from vff.data.passes import read_through  # which knows sources

        return read_through(self, task, checkpoint, without)

    def checkpoint(self, identity: str) -> "Checkpoint | None":
        """The state of a fit that is made of these rows, as far as an earlier run came with it, where one is kept."""
        from vff.data.checkpoint import Checkpoint  # which knows storage

        path = self.options.checkpoint
        return None if path is None else Checkpoint.at(path, f"{identity}, {self.identity}")

    def finish(self) -> None:
        """All that was to be made of these rows is made: no state has to be kept."""
        from vff.data.checkpoint import Checkpoint

        if self.options.checkpoint is not None:
            Checkpoint(Path(self.options.checkpoint), "").remove()

    def chunks(self) -> Generator[Chunk]:
        """All rows in order, for predictions. What cannot be read is refused or left out as in a pass."""
        from vff.data.passes import in_order

        return in_order(self)

    def assigned(
        self, used: UsedColumns | None, y: Any, sample_weight: Any = None, known: Sequence[str] | None = None
    ) -> "Source":
        """The same rows with a role for every column that is read; ``known`` are the features of an earlier fit."""
        beside = y.column if isinstance(y, Positive) else y
        source, column, sample_weight = self.with_targets(beside, sample_weight)
        y = y._replace(column=column) if isinstance(y, Positive) else column
        return source.select(Roles.of(source, used, y, sample_weight).ordered(known))

    def select(self, roles: Roles) -> Self:
        """The same rows with the columns that have a role; nothing else is read."""
        names = [name for name in roles.levels if isinstance(name, str)]
        chosen = self.with_options(keep_missing=roles.levels).with_integers([*names, *roles.labels])
        chosen = chosen if roles.features is None else chosen.restricted(roles.all)
        chosen.roles = roles
        return chosen

    def restricted(self, columns: Sequence[str]) -> Self:
        """The same rows with these columns alone, in the order of ``names``; others are not even read if possible."""
        names = self.names or ()
        absent = [name for name in columns if name not in names]
        if absent:
            known = listed(names) or "without names"
            raise ValueError(f"expected columns of the {self.unit}, found {shown(absent[0])}; the columns are {known}")
        twin = self.with_options()
        twin.names = tuple(name for name in names if name in columns)
        return twin

    def with_table(self, table: Table) -> Self:
        """Rows in memory with the columns of another table over them."""
        raise NotImplementedError

    def with_targets(self, y: Any, w: Any) -> "tuple[Source, Any, Any]":
        """The same rows with targets and weights beside them, and what names are left to be looked up in them."""
        return self, y, w

    def with_errors(self, noise_std: Any) -> "Source":
        """The same rows with standard deviations of the targets beside them."""
        raise ValueError(
            "noise_std as an array is for rows in memory; where rows come in chunks, name the column that holds the "
            "standard deviations in GPRegressor(noise_std=...)"
        )

    def expecting_text(self, names: Sequence[str]) -> "Source":
        """The same rows for a model that knows these columns as text: some formats can read numbers so, too."""
        return self

    def revisitable(self) -> "Source":
        """The same rows, to be asked at every step, as likelihoods other than the Gaussian do; or why they cannot."""
        if self.options.checkpoint is not None:
            raise ValueError(
                "a checkpoint keeps sums over the rows, which say all with Gaussian noise alone; another likelihood "
                "asks the rows again at every step: leave checkpoint out"
            )
        if not self.repeatable:
            raise ValueError(
                f"{NEEDS_REVISITS}, and an iterator gives them once; pass a function that returns a new iterator"
            )
        return self

    def with_integers(self, names: Sequence[str]) -> Self:
        """The same rows where these columns are levels or labels, which floats would run together above 2**53."""
        return self

    def with_options(self, **changes: Any) -> Self:
        """The same rows, to be read in another way."""
        twin = copy(self)
        twin.options = replace(self.options, **changes)
        return twin
