"""What the columns of rows hold, in the words of terms, before any of them is read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from vff.data.frames import is_missing
from vff.data.meaning import as_written
from vff.data.roles import Roles, UsedColumns
from vff.data.schema import Kind
from vff.data.source import Source
from vff.data.table import Table
from vff.words import shown


class _KindsOfTable(Mapping[str | int, str]):
    """Of a table in memory: objects are looked at one by one, so nothing is before it is asked for."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._columns: Sequence[str | int] = table.names or range(table.n_columns)
        self._places = {column: index for index, column in reversed(list(enumerate(self._columns)))}

    def __getitem__(self, column: str | int) -> str:
        return self._table.kind(self._places[column]).family.value

    def __iter__(self) -> Iterator[str | int]:
        return iter(dict.fromkeys(self._columns))

    def __contains__(self, column: object) -> bool:
        return column in self._places

    def __len__(self) -> int:
        return len(self._places)


def column_kinds(source: Source) -> Mapping[str | int, str] | None:
    """What every column holds, by name, or by number where columns have no names; None where that is not known.

    A column with nothing in it yet is taken for numbers.
    """
    if source.whole is not None:
        return _KindsOfTable(source.whole)
    if source.names is not None:
        return {name: source.kinds.get(name, Kind.UNKNOWN).family.value for name in source.names}
    return None if source.n_columns is None else dict.fromkeys(range(source.n_columns), Kind.NUMBER.value)


def text_in(source: Source, column: str | int) -> tuple[str, str] | None:
    """What a column of text holds, and what to do, where that is numbers or dates: in sentences; None for words."""
    if not source.repeatable or not isinstance(column, str):
        return None
    chosen = source.select(Roles.of(source, UsedColumns((column,), (column,)), None, None))
    with closing(chosen.chunks()) as chunks:
        chunk = next(iter(chunks), None)
    raw = None if chunk is None else chunk.table.raw(chunk.table.index(column))
    values: list[Any] = [] if raw is None else (raw.tolist() if isinstance(raw, np.ndarray) else raw.to_list())
    found = as_written([value for value in values if isinstance(value, str)])
    numbers = [value for value in values if isinstance(value, int | float) and not is_missing(value)]
    if chunk is None or (found is None and 2 * len(numbers) < len(values)):
        return None
    word = "numbers" if found is None else found.what
    written, example = ("", numbers[0]) if found is None else (" written as text", found.example)
    others = set(found.others) if found is not None else {value for value in values if isinstance(value, str)}
    row = next((row for row, value in enumerate(values) if value in others), None)
    if row is None:
        advice = f"convert the column, for instance with {'' if found is None else found.call}(X[{shown(column)}])"
        return f"which holds {word}{written}, such as {shown(example)}", advice
    counted = " (the header is row 1)" if "(the header is row 1)" in chunk.where else ""
    where = f"{shown(values[row])} in row {row + (chunk.first or 0):,}{counted}"
    return f"which holds {word}{written}, but {where}", "mend such values, or write cat(...) for the effects of levels"
