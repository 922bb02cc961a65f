"""Rows in files: looked at before the first of them is read, and read in chunks of one size."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from vff.data.missing import handled
from vff.data.paths import KEY, find_files, folder_keys, is_path, key_kinds
from vff.data.schema import DECLARABLE, Kind
from vff.data.source import Chunk, Handling, Part, Source, SourceError
from vff.words import listed, shown, shown_path

if TYPE_CHECKING:
    from vff.data.arrow import AbstractReader, FileSchema


class _File(NamedTuple):
    """A reader, and what it found when it looked at its file."""

    reader: "AbstractReader"
    facts: "FileSchema | SourceError"


class FileSource(Source):
    """Rows of CSV, Parquet, Arrow or Feather files, or of a dataset of pyarrow; every file is a part."""

    repeatable = True
    ahead = True

    def __init__(
        self,
        data: Any,
        *,
        types: Mapping[str, str] | None = None,
        delimiter: str | None = None,
        handling: Handling | None = None,
    ) -> None:
        self.handling = handling or Handling()
        types = self._types = self.declared = dict(types or {})
        self._data, self._delimiter = data, delimiter
        _check_types(types)
        readers, key_kinds = _readers(data, types, delimiter)
        self._files = [_File(reader, _looked(reader)) for reader in readers]
        self._kinds = _expected_kinds(self._files, key_kinds, types, self.handling)
        unknown = [name for name in types if name not in self._kinds]
        if unknown:
            raise ValueError(
                f"expected types= to name columns, found {shown(unknown[0])}; the columns are "
                f"{listed(list(self._kinds))}"
            )
        self.kinds = self._kinds
        self.names = tuple(self._kinds)
        self.n_rows = self._count()

    @property
    def identity(self) -> str:
        """With the types of columns, and the character between them."""
        integers = sorted(name for name, kind in self._kinds.items() if kind == Kind.INTEGER)
        types = f"types {dict(sorted(self._types.items()))}, integers {integers}, delimiter {self._delimiter!r}"
        return f"{super().identity}, {types}"

    def with_integers(self, names: Sequence[str]) -> Self:
        """The same rows with these columns as integers, where files show no others and the caller did not say more."""
        open_to_it = [name for name in names if self._kinds.get(name) == Kind.NUMBER and name not in self._types]
        copy = self.handled()
        copy._kinds = {**self._kinds, **{name: Kind.INTEGER for name in open_to_it if self._is_whole(name)}}
        return copy

    def expecting_text(self, names: Sequence[str]) -> "FileSource":
        """With these columns as text, where the caller did not say what they are."""
        wanted = [name for name in names if self._kinds.get(name, Kind.TEXT) != Kind.TEXT and name not in self._types]
        if not wanted:
            return self
        types = {**self._types, **dict.fromkeys(wanted, Kind.TEXT.value)}
        return FileSource(self._data, types=types, delimiter=self._delimiter, handling=self.handling)

    def _is_whole(self, name: str) -> bool:
        """Whether all files that have something in a column show integers there."""
        facts = [file.facts for file in self._files if not isinstance(file.facts, SourceError)]
        shown = [name in each.integers for each in facts if each.kinds.get(name, Kind.UNKNOWN) != Kind.UNKNOWN]
        return bool(shown) and all(shown)

    def restricted(self, columns: Sequence[str]) -> Self:
        """The same rows with these columns alone, in the order of ``names``; others are not even read."""
        absent = [name for name in columns if name not in self._kinds]
        if absent:
            raise ValueError(
                f"expected columns of the files, found {shown(absent[0])}; the columns are {listed(list(self._kinds))}"
            )
        copy = self.handled()
        copy.names = tuple(name for name in self.names or () if name in columns)
        copy.n_rows = copy._count()
        return copy

    def parts(self) -> Iterator[Part]:
        """A part for every file, in the order of their names. All files are checked before the first is read."""
        parts = [
            FilePart(file.reader, self._fault(file), self.names or (), self._kinds, self.handling)
            for file in self._files
        ]
        if self.handling.faulty == "refuse":
            for part in parts:
                part.check()
        yield from parts

    def _count(self) -> int | None:
        """All rows of the files that can be read, where files say how many they are."""
        total = 0
        for file in self._files:
            if self._fault(file) is None and not isinstance(file.facts, SourceError):
                if file.facts.n_rows is None:
                    return None
                total += file.facts.n_rows
        return total

    def _fault(self, file: _File) -> SourceError | None:
        """Why a file cannot be read beside the others."""
        if isinstance(file.facts, SourceError):
            return file.facts
        for name in self.names or ():
            found, expected = file.facts.kinds.get(name), self._kinds[name]
            if found is None:
                return SourceError(
                    f"expected column {shown(name)} in every file, found none of this name in "
                    f"{shown_path(file.reader.name)}; its "
                    f"columns are {listed(list(file.facts.kinds))}: add the column, or leave the file out"
                )
            if found not in (Kind.UNKNOWN, KEY) and Kind(found).family != Kind(expected).family:
                return SourceError(
                    f"expected column {shown(name)} to be {expected}, as in the first file, found {found} in "
                    f"{shown_path(file.reader.name)}; correct the file, or say what it is with "
                    f"types={{{shown(name)}: ...}}"
                )
        return None


class FilePart(Part):
    """One file."""

    def __init__(
        self,
        reader: "AbstractReader",
        fault: SourceError | None,
        columns: Sequence[str],
        kinds: Mapping[str, str],
        handling: Handling,
    ) -> None:
        self.name, self.size = reader.name, reader.size
        self._reader, self._fault, self._columns, self._kinds = reader, fault, columns, kinds
        self._handling = handling

    def check(self) -> None:
        """Raise what was found when the file was looked at."""
        if self._fault is not None:
            raise self._fault

    def fingerprint(self) -> str:
        """Size and time of the last change."""
        return self._reader.fingerprint()

    def chunks(self) -> Iterator[Chunk]:
        """Rows in tables of ``chunk_rows`` each; the last may be smaller."""
        from vff.data.arrow import table_of

        self.check()
        first = 0
        for batches, rows, share in _gathered(
            self._reader.batches(self._columns, self._kinds), self._handling.chunk_rows
        ):
            where = f"{self.name}, rows {first:,} to {first + rows - 1:,}"
            yield handled(Chunk(where, table_of(batches), share_of_part=share), self._handling)
            first += rows


def _readers(
    data: Any, types: Mapping[str, str], delimiter: str | None
) -> tuple[Sequence["AbstractReader"], Mapping[str, str]]:
    """Who reads the data, and what the folders' names mean."""
    from vff.data.arrow import dataset_readers, reader_of

    if not is_path(data):
        return dataset_readers(data, types), {}
    paths = find_files(data)
    return [reader_of(path, types, delimiter) for path in paths], key_kinds(list(map(folder_keys, paths)), types)


def _looked(reader: "AbstractReader") -> "FileSchema | SourceError":
    try:
        return reader.look()
    except SourceError as error:
        return error


def _expected_kinds(
    files: Sequence[_File], key_kinds: Mapping[str, str], types: Mapping[str, str], handling: Handling
) -> dict[str, str]:
    """Columns of the first file that can be read, each of the first kind that is known."""
    facts = []
    for file in files:
        if not isinstance(file.facts, SourceError):
            facts.append(file.facts)
        elif handling.faulty == "refuse":
            raise file.facts
    if not facts:
        faults = [file.facts for file in files if isinstance(file.facts, SourceError)]
        raise SourceError(f"expected a file that can be read, found none among {len(files)}; the first: {faults[0]}")
    kinds = {}
    for name, kind in facts[0].kinds.items():
        seen = (each.kinds.get(name, Kind.UNKNOWN) for each in facts)
        known = next((kind for kind in seen if kind not in (Kind.UNKNOWN, KEY)), None)
        kinds[name] = types.get(name) or known or key_kinds.get(name, Kind.NUMBER)
        if kind == KEY and known is None:
            kinds[name] = key_kinds[name]
    return kinds


def _gathered(batches: Iterator[tuple[Any, float | None]], n: int) -> Iterator[tuple[list[Any], int, float | None]]:
    """Batches cut and put together so that n rows are in each group."""
    group: list[Any] = []
    rows, share = 0, None
    for batch, share in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, n - rows)
            group.append(piece)
            start, rows = start + piece.num_rows, rows + piece.num_rows
            if rows == n:
                yield group, rows, share
                group, rows = [], 0
    if rows:
        yield group, rows, share


def _check_types(types: Mapping[str, str]) -> None:
    for name, kind in types.items():
        if kind not in list(DECLARABLE):
            raise ValueError(
                f"expected types= to say {listed(DECLARABLE)}, found {shown(kind)} for column {shown(name)}; use one "
                "of these"
            )
