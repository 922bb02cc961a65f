"""Rows in files: looked at before the first of them is read, and read in chunks of one size."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from vff.data.arrow import FORMATS, FilePart, FileSchema, fragments_of
from vff.data.paths import file_format, find_files, folder_keys, is_integer, is_number, is_path
from vff.data.schema import DECLARABLE, Kind
from vff.data.source import Part, ReadOptions, Source, SourceError
from vff.words import listed, shown, shown_path


class FileSource(Source):
    """Rows of CSV, Parquet, Arrow or Feather files, or of a dataset of pyarrow; every file is a part."""

    unit = "files"
    ahead = True

    def __init__(
        self,
        data: Any,
        *,
        types: Mapping[str, str] | None = None,
        delimiter: str | None = None,
        options: ReadOptions | None = None,
    ) -> None:
        self.options = options or ReadOptions()
        self._data, self._delimiter = data, delimiter
        self._types = self.declared = _checked_types(types or {})
        paths = find_files(data) if is_path(data) else ()
        parts = [FORMATS[file_format(path)](path, self._types, delimiter) for path in paths]
        self._files = [part.look() for part in parts or fragments_of(data, self._types)]
        self.kinds = self._read_as = self._expected_kinds([folder_keys(path) for path in paths])
        unknown = [name for name in self._types if name not in self.kinds]
        if unknown:
            raise ValueError(
                f"expected types= to name columns, found {shown(unknown[0])}; the columns are "
                f"{listed(list(self.kinds))}"
            )
        self.names = tuple(self.kinds)
        self.n_rows = self._count()

    def _expected_kinds(self, folders: Sequence[Mapping[str, str | None]]) -> dict[str, Kind]:
        """Columns of the first file that can be read, each of the first kind that is known.

        Those that the names of folders make are numbers if all their values are.
        """
        faults = [file.found for file in self._files if isinstance(file.found, SourceError)]
        if faults and self.options.faulty == "refuse":
            raise faults[0]
        schemas = self._schemas
        if not schemas:
            raise SourceError(
                f"expected a file that can be read, found none among {len(self._files)}; the first: {faults[0]}"
            )
        kinds = {}
        for name in schemas[0].kinds:
            seen = (each.kinds.get(name, Kind.UNKNOWN) for each in schemas)
            known = next((kind for kind in seen if kind != Kind.UNKNOWN), None)
            keys = [each[name] for each in folders if name in each]
            if known is None and keys:
                values = [value for value in keys if value is not None]
                known = Kind.NUMBER if values and all(map(is_number, values)) else Kind.TEXT
            kinds[name] = self._types.get(name, known or Kind.NUMBER)
        return kinds

    @property
    def _schemas(self) -> list[FileSchema]:
        """Of the files that can be read."""
        return [file.found for file in self._files if not isinstance(file.found, SourceError)]

    @property
    def identity(self) -> str:
        """With the types of columns, and the character between them."""
        integers = sorted(name for name, kind in self._read_as.items() if kind == Kind.INTEGER)
        types = f"types {dict(sorted(self._types.items()))}, integers {integers}, delimiter {self._delimiter!r}"
        return f"{super().identity}, {types}"

    def with_integers(self, names: Sequence[str]) -> Self:
        """The same rows with these columns as integers, where files show no others and the caller did not say more."""
        open_to_it = [name for name in names if self.kinds.get(name) == Kind.NUMBER and name not in self._types]
        copy = self.with_options()
        copy._read_as = {**self._read_as, **{name: Kind.INTEGER for name in open_to_it if self._is_whole(name)}}
        return copy

    def _is_whole(self, name: str) -> bool:
        """Whether all files that have something in a column show integers there."""
        seen = [name in each.integers for each in self._schemas if each.kinds.get(name, Kind.UNKNOWN) != Kind.UNKNOWN]
        keys = [file.keys.get(name) for file in self._files]
        seen += [is_integer(value) for value in keys if value is not None]
        return bool(seen) and all(seen)

    def expecting_text(self, names: Sequence[str]) -> "FileSource":
        """With these columns as text, where the caller did not say what they are."""
        wanted = [name for name in names if self.kinds.get(name, Kind.TEXT) != Kind.TEXT and name not in self._types]
        if not wanted:
            return self
        types = {**self._types, **dict.fromkeys(wanted, Kind.TEXT)}
        return FileSource(self._data, types=types, delimiter=self._delimiter, options=self.options)

    def restricted(self, columns: Sequence[str]) -> Self:
        copy = super().restricted(columns)
        copy.n_rows = copy._count()
        return copy

    def parts(self) -> Iterator[Part]:
        """A part for every file, in the order of their names. All files are checked before the first is read."""
        faults = [self._fault(file) for file in self._files]
        for fault in faults:
            if fault is not None and self.options.faulty == "refuse":
                raise fault
        for file, fault in zip(self._files, faults, strict=True):
            yield file.of(self, self._read_as, fault)

    def _count(self) -> int | None:
        """All rows of the files that can be read, where files say how many they are."""
        readable = [file.found for file in self._files if self._fault(file) is None]
        counts = [found.n_rows for found in readable if not isinstance(found, SourceError)]
        return None if None in counts else sum(n for n in counts if n is not None)

    def _fault(self, file: FilePart) -> SourceError | None:
        """Why a file cannot be read beside the others."""
        if isinstance(file.found, SourceError):
            return file.found
        for name in self.names or ():
            found, expected = file.found.kinds.get(name), self._read_as[name]
            if found is None:
                return SourceError(
                    f"expected column {shown(name)} in every file, found none of this name in "
                    f"{shown_path(file.name)}; its "
                    f"columns are {listed(list(file.found.kinds))}: add the column, or leave the file out"
                )
            if found != Kind.UNKNOWN and found.family != expected.family:
                return SourceError(
                    f"expected column {shown(name)} to be {expected}, as in the first file, found {found} in "
                    f"{shown_path(file.name)}; correct the file, or say what it is with "
                    f"types={{{shown(name)}: ...}}"
                )
        return None


def _checked_types(types: Mapping[str, str]) -> dict[str, Kind]:
    for name, kind in types.items():
        if kind not in list(DECLARABLE):
            raise ValueError(
                f"expected types= to say {listed(DECLARABLE)}, found {shown(kind)} for column {shown(name)}; use one "
                "of these"
            )
    return {name: Kind(kind) for name, kind in types.items()}
