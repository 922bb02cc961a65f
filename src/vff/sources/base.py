"""Rows that come in chunks: nobody holds them all.

A source is a list of *parts*, and a part is read in *chunks*. A part is what counts as a whole or not at all: a file, a
partition. A chunk is what is in memory at one time. A room that wants to know something of all rows hands a *task* to
``passes.reduce``: it is asked of every chunk, and its answers are merged.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self

KINDS = ("text", "number", "integer", "datetime", "boolean")
"""What a column may be said to hold."""


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
    n_rows: int = 0
    """Rows that are here; those that were left out are not among them."""
    dropped: int = 0
    """Rows that were left out, as asked, because something in them is missing."""
    share_of_part: float | None = None
    """How much of its part has been read when this chunk is there, where that is known."""


class AbstractPart(ABC):
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
class Handling:
    """How a source is to be read, apart from what is in it."""

    missing: Literal["refuse", "drop"] = "refuse"
    """Rows with a missing value in a column that is used: refused by name, or left out and counted."""
    keep_missing: tuple[str | int, ...] = ()
    """Columns where missing is a level of its own: no reason to leave a row out. Numbers where there are no names."""
    faulty: Literal["refuse", "skip"] = "refuse"
    """Parts that cannot be read: refused by name, or left out whole, with a warning."""
    chunk_rows: int = 2**20
    checkpoint: str | None = None
    """File that a long pass writes its state to, and goes on from."""
    report: Report | None = None


class AbstractSource(ABC):
    """Rows in parts. ``names`` are known before the first row is read."""

    names: tuple[str, ...] | None
    """Columns; None where these have no names."""
    n_columns: int | None = None
    """How many there are, where they have no names."""
    kinds: Mapping[str, str] = MappingProxyType({})
    """What the columns hold ("number", "text", "datetime", ...), where that is known before the first row is read."""
    declared: Mapping[str, str] = MappingProxyType({})
    """What whoever opened the source said that columns hold."""
    n_rows: int | None
    """All rows, where that is known without reading them."""
    repeatable: bool
    """Whether the rows can be read a second time."""
    ahead: bool = False
    """Whether the next chunk may be read, in another thread, while one is worked on."""
    handling: Handling

    @property
    def identity(self) -> str:
        """All that settles which rows come out of the same data, in writing: sums of others are of no use."""
        how = self.handling
        kept = ", ".join(map(repr, how.keep_missing)) or "none"
        # not imported above: it knows the rooms over this one
        version = import_module("vff").__version__
        return f"vff {version}, chunks of {how.chunk_rows:,} rows, missing {how.missing!r} but kept in {kept}"

    @abstractmethod
    def restricted(self, columns: Sequence[str]) -> Self:
        """The same rows with these columns alone, in the order of ``names``; others are not even read."""

    @abstractmethod
    def parts(self) -> Iterator[AbstractPart]:
        """All parts, in an order that does not change."""

    def with_targets(self, y: Any, w: Any) -> "tuple[AbstractSource, Any, Any]":
        """The same rows with targets and weights beside them, and what names are left to be looked up in them."""
        return self, y, w

    def with_integers(self, names: Sequence[str]) -> Self:
        """The same rows where these columns are levels or labels, which floats would run together above 2**53."""
        return self

    def handled(self, **changes: Any) -> Self:
        """The same rows, to be read in another way."""
        twin = copy(self)
        twin.handling = replace(self.handling, **changes)
        return twin
