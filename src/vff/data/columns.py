"""What the columns of rows hold, in the words of terms, before any of them is read."""

from collections.abc import Iterator, Mapping, Sequence

from vff.data.schema import Kind
from vff.data.source import Source
from vff.data.table import Table


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
