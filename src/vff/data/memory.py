"""A table in memory: a source of one part."""

from collections.abc import Generator, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from vff.data.frames import column, filtered, present, sliced
from vff.data.roles import Roles, UsedColumns
from vff.data.schema import Kind
from vff.data.source import Chunk, Part, ReadOptions, ReadPart, Source
from vff.data.table import Table
from vff.words import listed, perhaps, shown


def column_or_values(table: Table, value: Any, what: str) -> Any:
    """Targets or weights: those that were given, or the column of the table that has this name."""
    if not isinstance(value, str):
        return value
    if table.names is None:
        raise ValueError(f"{what} names column {shown(value)}, and X has no column names; give one number per row")
    if table.names.count(value) != 1:
        found = "has more than once" if value in table.names else "does not have"
        raise ValueError(
            f"{what} names column {shown(value)}, which X {found}; its columns are {listed(table.names)}; name one of "
            f"them{perhaps(value, table.names)}"
        )
    return table.raw(table.names.index(value))


class MemorySource(Source):
    """A table in memory, with targets and weights beside it, or among its columns."""

    expensive_pass = False
    roles = Roles(())  # whatever columns there are

    def __init__(self, X: Any, y: Any = None, w: Any = None, *, options: ReadOptions | None = None) -> None:
        self.options = options or ReadOptions()
        self.y, self.w, self.errors = y, w, None
        self.target_name: str | None = None
        self.dropped = 0
        """Rows that were left out before these came into memory."""
        self._chunk: Chunk | None = None
        self._take(Table.of(X))

    def _take(self, table: Table) -> None:
        self.whole, self._table, self._chunk = table, table, None
        self.names, self.n_columns, self.n_rows = table.names, table.n_columns, table.n_rows

    def assigned(
        self, used: UsedColumns | None, y: Any, sample_weight: Any = None, known: Sequence[str] | None = None
    ) -> "MemorySource":
        """Targets and weights stand beside the rows, or among their columns, where they go by name."""
        table, used_names = self._table, set(() if used is None else used.columns or ())
        target, weight = (value if isinstance(value, str) else None for value in (y, sample_weight))
        twin = copy(self)
        twin.y, twin.w = column_or_values(table, y, "y"), column_or_values(table, sample_weight, "sample_weight")
        twin.target_name = target
        if target is not None and target in used_names:
            raise ValueError(f"the kernel has a term of {target!r}, which is the target; leave it out of the kernel")
        offset = None if used is None else used.offset
        if isinstance(offset, str) and offset == target:
            raise ValueError(f"offset names column {shown(offset)}, which is the target; name another column")
        used_names |= {offset}
        named = [name for name in (target, weight) if name is not None]
        left = [name for name in table.names or () if name != target and (name != weight or name in used_names)]
        if named and not left:
            raise ValueError(f"X has no column beside {listed(named)}; give it one to model")
        twin._take(table.arranged(left, ()) if named else table)
        return twin._complete(used) if self.options.missing == "drop" else twin

    def _complete(self, used: UsedColumns | None) -> "MemorySource":
        """The rows without those where something that is used is missing, unless missing is a level there."""
        table = self._table
        named = None if used is None or used.columns is None else {*used.columns, used.offset} - {None}
        every = range(table.n_columns) if named is None else sorted({table.index(name) for name in named})  # pyright: ignore[reportArgumentType]
        levels = {table.index(name) for name in (() if used is None else used.levels)}
        columns = [
            table.raw(c) for c in every if c not in levels and not (named is None and table.kind(c) == Kind.TEXT)
        ]
        beside = [column(part) for part in (self.y, self.w, self.errors) if part is not None]
        found = [there for there in map(present, (*columns, *beside)) if there is not None]
        whole = np.logical_and.reduce(
            [np.ones(table.n_rows, bool), *(own for own in found if len(own) == table.n_rows)]
        )
        if whole.all():
            return self
        twin = copy(self)
        own = (None if part is None else filtered(part, whole) for part in (self.y, self.w, self.errors))
        twin.y, twin.w, twin.errors = own
        twin.dropped = self.dropped + int(np.count_nonzero(~whole))
        twin._take(replace(table, data=filtered(table.data, whole), n_rows=int(whole.sum()), converted={}))
        return twin

    @property
    def target(self) -> str | None:
        return self.target_name

    def with_table(self, table: Table) -> Self:
        """The same rows with the columns of another table over them."""
        twin = copy(self)
        twin._take(table)
        return twin

    def with_errors(self, noise_std: Any) -> "MemorySource":
        twin = copy(self)
        twin.errors, twin._chunk = noise_std, None
        return twin

    def select(self, roles: Roles) -> Self:
        """All columns stay: one that nobody asks for is not converted."""
        return self

    def parts(self) -> Iterator[Part]:
        """All rows together, in one chunk that is kept: engines cut it as they need it."""
        table = self._table
        beside = {"n_rows": table.n_rows, "dropped": self.dropped, "errors": self.errors}
        self._chunk = self._chunk or Chunk("", table, self.y, self.w, **beside)
        chunk = self._chunk
        yield ReadPart("X", lambda: [chunk])

    def chunks(self) -> Generator[Chunk]:
        """The rows cut, so that what is made of them does not all have to be in memory."""
        for start in range(0, self._table.n_rows, self.options.chunk_rows):
            stop = min(start + self.options.chunk_rows, self._table.n_rows)
            y, w = (None if part is None else sliced(part, start, stop) for part in (self.y, self.w))
            yield Chunk("", self._table.sliced(start, stop), y, w, n_rows=stop - start)
