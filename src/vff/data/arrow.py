"""Files as Arrow reads them, a batch at a time: the one module that knows pyarrow."""

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, ClassVar, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

from vff.data.delimited import Head, check_all_read, check_last_value, check_letters, explained, is_packed, read_head
from vff.data.fingerprints import dataset_mark
from vff.data.frames import kinds_of
from vff.data.paths import folder_keys
from vff.data.schema import Kind
from vff.data.source import Chunk, Part, Source, SourceError
from vff.words import shown, shown_path

_BATCH_ROWS = 1 << 16
_BLOCK_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 20
_ARROW_MAGIC = b"ARROW1"
_COUNTED = ("ParquetFileFormat", "IpcFileFormat", "FeatherFileFormat")
_TYPES: dict[str, Any] = {
    Kind.TEXT: pa.string(),
    Kind.NUMBER: pa.float64(),
    Kind.INTEGER: pa.int64(),
    Kind.DATETIME: pa.timestamp("us"),
    Kind.BOOLEAN: pa.bool_(),
}
Batches = Iterator[tuple[Any, float | None]]
"""Record batches, each with the share of the file that has been read."""


class FileSchema(NamedTuple):
    """What a file says of itself before a row is read."""

    kinds: Mapping[str, Kind]
    """Of every column, in order; those that folders make are not known."""
    n_rows: int | None
    integers: frozenset[str]
    """Numbers without a fraction, as far as was looked."""


class FilePart(Part):
    """One file, or what else counts as one."""

    header_rows: ClassVar[int] = 0
    """Before the first row: one in a file of text, whose rows are counted as an editor shows them."""
    found: FileSchema | SourceError
    """What was found when the file was looked at."""
    source: Source
    """Which columns are asked for, and how."""
    kinds: Mapping[str, Kind]
    """What they are to be."""
    fault: SourceError | None = None
    """Why it cannot be read beside the others."""

    def __init__(self, name: str, types: Mapping[str, Kind], delimiter: str | None = None) -> None:
        self.name, self.types, self.delimiter = name, types, delimiter
        self.keys = folder_keys(name)
        """Constant columns that the names of folders make."""
        self.size = os.stat(name).st_size if os.path.exists(name) else None

    def look(self) -> Self:
        """Columns and rows, from the file's head or foot."""
        try:
            with self._explaining():
                schema, n_rows = self._look()
                kinds = {name: self.types.get(name, kind) for name, kind in _kinds(schema).items()}
        except SourceError as error:
            self.found = error
            return self
        self._own = tuple(kinds)
        kinds = {**dict.fromkeys(self.keys, Kind.UNKNOWN), **kinds}
        self.keys = {key: value for key, value in self.keys.items() if key not in self._own}
        integers = frozenset(own.name for own in schema if pa.types.is_integer(own.type))
        self.found = FileSchema(kinds, n_rows, integers)
        return self

    def of(self, source: Source, kinds: Mapping[str, Kind], fault: SourceError | None) -> Self:
        """The same file, as a part of a source."""
        twin = copy(self)
        twin.source, twin.kinds, twin.fault = source, kinds, fault
        return twin

    def fingerprint(self) -> str:
        """Size and time of the last change. A file that is gone says so here, and is refused when it is read."""
        if not os.path.exists(self.name):
            return "not there"
        status = os.stat(self.name)
        return f"{status.st_size} bytes, {status.st_mtime_ns} ns"

    def chunks(self) -> Iterator[Chunk]:
        """Rows in tables of ``chunk_rows`` each; the last may be smaller."""
        if self.fault is not None:
            raise self.fault
        first = 0
        for table, share in _gathered(self._shaped(), self.source.options.chunk_rows):
            number = first + (self.header_rows + 1 if self.header_rows else 0)
            where = f"{self.name}, rows {number:,} to {number + table.num_rows - 1:,}"
            where += " (the header is row 1)" if self.header_rows else ""
            yield Chunk(where, table, first=number, share_of_part=share).counted(self.source.options)
            first += table.num_rows

    def _shaped(self) -> Batches:
        """Batches with all columns, in order, of the types that were asked for."""
        with self._explaining():
            columns, kinds = self.source.names or (), self.kinds
            keys = {
                name: _cast(name, pa.array([value], pa.string()), kinds[name], self.name)[0]
                for name, value in self.keys.items()
                if name in columns
            }
            # without a column of its own, a batch would not know how many rows it has
            own = [name for name in columns if name not in keys]
            for batch, share in self._batches(own or self._own[:1]):
                arrays = [
                    pa.repeat(keys[name], batch.num_rows) if name in keys else self._converted(name, batch.column(name))
                    for name in columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns)), share

    def _converted(self, name: str, array: Any) -> Any:
        """Left as it is, unless the caller said what it is to be, or it is empty and others say what it is."""
        kind = self.kinds[name]
        if name not in self.types and not pa.types.is_null(array.type):
            return array
        if kind == Kind.DATETIME and (pa.types.is_timestamp(array.type) or pa.types.is_date(array.type)):
            return array
        return _cast(name, array, kind, self.name)

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """What Arrow complains of becomes one sentence."""
        try:
            yield
        except (pa.ArrowException, OSError, EOFError) as error:
            raise SourceError(self._explained(" ".join(str(error).split())[:300])) from error

    def _explained(self, message: str) -> str:
        return (
            f"expected a file that can be read to its end, found {message!r} in {shown_path(self.name)}; write it again"
        )

    @abstractmethod
    def _look(self) -> tuple[Any, int | None]:
        """The schema, and how many rows there are."""

    @abstractmethod
    def _batches(self, columns: Sequence[str]) -> Batches: ...


class CsvFile(FilePart):
    """Delimited text, packed with gzip or not. Its types are those of its first megabyte."""

    header_rows = 1
    _head = Head((), ",")

    def _look(self) -> tuple[Any, int | None]:
        if not self.size:
            raise SourceError(
                f"expected a header line with the columns' names in {shown_path(self.name)}, found an empty file; "
                "leave it out"
            )
        tabs = ".tsv" in self.name.lower() and self.delimiter is None
        self._head = read_head(self.name, "\t" if tabs else self.delimiter)
        _, stream = self._opened()
        types = {name: _TYPES[kind] for name, kind in self.types.items() if name in self._head.names}
        self._seen = self._csv(stream, types, None).schema
        return self._seen, None

    def _batches(self, columns: Sequence[str]) -> Batches:
        types = {name: self._wanted(name) for name in columns}
        # the last column is always read, for a quote that stays open hides in it all rows that follow
        types.setdefault(self._own[-1], pa.binary())
        raw, stream = self._opened()
        last = None
        for batch in self._csv(stream, types, list(types)):
            last = batch.column(self._own[-1])[-1] if batch.num_rows else last
            yield batch, min(1.0, raw.tell() / self.size) if self.size else None
        if stream is raw:
            check_all_read(raw.tell(), self.size, self.name)
        check_last_value(last and last.as_py(), self.name)

    def _wanted(self, name: str) -> Any:
        """Integers are numbers, so that a late 1.5 is no fault, unless asked for; times keep a zone and nine digits."""
        kind, seen = self.kinds.get(name, Kind.TEXT), self._seen.field(name).type
        if kind == Kind.DATETIME and pa.types.is_timestamp(seen) and (seen.tz or seen.unit == "ns"):
            return seen
        return _TYPES.get(kind, pa.float64())

    def _opened(self) -> tuple[Any, Any]:
        """The file and what unpacks it. Nobody closes them: Arrow reads ahead in a thread that knows the file by its
        number, and closed under its hands, that would be the number of the next file to be opened."""
        raw = pa.OSFile(self.name)
        return raw, pa.CompressedInputStream(raw, "gzip") if is_packed(self.name) else raw

    def _csv(self, stream: Any, types: Mapping[str, Any], columns: Sequence[str] | None) -> Any:
        # threads would lose the number of the row that is at fault
        read = pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES)
        alone = len(self._head.names) == 1  # then an empty line is a missing value
        parse = pyarrow.csv.ParseOptions(
            delimiter=self._head.delimiter, newlines_in_values=True, ignore_empty_lines=not alone
        )
        convert = pyarrow.csv.ConvertOptions(column_types=dict(types), include_columns=columns and list(columns))
        return pyarrow.csv.open_csv(stream, read, parse, convert)

    def _converted(self, name: str, array: Any) -> Any:
        """Empty text is missing; "NA" is text like any other."""
        if not pa.types.is_string(array.type):
            return array
        check_letters(name, array.buffers()[2], self.name)
        empty = pc.call_function("equal", [array, ""])
        return pc.call_function("if_else", [empty, pa.scalar(None, array.type), array])

    def _explained(self, message: str) -> str:
        return explained(message, self.name, self._head)


class ParquetFile(FilePart):
    """A row group is read page by page, so that its size does not matter; a scan of a dataset would read it whole."""

    def _look(self) -> tuple[Any, int | None]:
        with self._opened() as file:
            return file.schema_arrow, file.metadata.num_rows

    def _batches(self, columns: Sequence[str]) -> Batches:
        with self._opened() as file:
            n_rows, done = file.metadata.num_rows, 0
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns), use_threads=False):
                done += batch.num_rows
                yield batch, done / n_rows

    def _opened(self) -> Any:
        return pyarrow.parquet.ParquetFile(
            self.name, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
        )


class IpcFile(FilePart):
    """Arrow's own format, file or stream, and Feather. It is mapped into memory, not read into it."""

    def _look(self) -> tuple[Any, int | None]:
        with pa.memory_map(self.name) as file:
            reader = self._opened(file)
        is_file = isinstance(reader, pa.RecordBatchFileReader)
        return reader.schema, pyarrow.dataset.dataset(self.name, format="ipc").count_rows() if is_file else None

    def _batches(self, columns: Sequence[str]) -> Batches:
        with pa.memory_map(self.name) as file:
            schema = self._opened(file).schema
            reader = self._opened(file, [schema.get_field_index(name) for name in columns])
            n = reader.num_record_batches if isinstance(reader, pa.RecordBatchFileReader) else None
            for index, batch in enumerate(map(reader.get_batch, range(n)) if n is not None else reader):
                batch.validate()
                yield batch, (index + 1) / n if n else file.tell() / file.size()

    def _opened(self, file: Any, fields: list[int] | None = None) -> Any:
        file.seek(0)
        opened = pa.ipc.open_file if file.read(len(_ARROW_MAGIC)) == _ARROW_MAGIC else pa.ipc.open_stream
        file.seek(0)
        return opened(file, options=pa.ipc.IpcReadOptions(included_fields=fields))


class Fragment(FilePart):
    """A fragment of a dataset of pyarrow's, or the whole where it is filtered and has none."""

    def __init__(self, dataset: Any, fragment: Any, index: int, types: Mapping[str, Kind]) -> None:
        self._dataset, self._fragment, self._mark = dataset, fragment, ""
        self._path = getattr(fragment, "path", None)
        super().__init__(self._path or ("dataset" if fragment is None else f"fragment {index}"), types)
        self.keys = {}  # the dataset knows them
        self.size = None if self._path is None else self._info().size

    def _info(self) -> Any:
        return self._fragment.filesystem.get_file_info(self._path)

    def fingerprint(self) -> str:
        """Size and time of the last change; of what is no single file, the columns and a checksum."""
        if self._path is None:
            self._mark = self._mark or dataset_mark(self._dataset, self._fragment)
            return f"{self.name} of {self._dataset.schema.to_string(show_schema_metadata=False)}, {self._mark}"
        info = self._info()
        return f"{info.size} bytes, {info.mtime_ns} ns"

    def _look(self) -> tuple[Any, int | None]:
        """Columns that the fragment has itself, or that its place says."""
        schema, fragment = self._dataset.schema, self._fragment
        if fragment is None:
            return schema, None
        own, keys = fragment.physical_schema, pyarrow.dataset.get_partition_keys(fragment.partition_expression)
        for each in (own, schema):
            _kinds(each)  # refuses names that are there twice
        names = [name for name in schema.names if name in keys or name in own.names]
        fields = [schema.field(name) if name in keys else own.field(name) for name in names]
        counted = self._path is None or type(fragment.format).__name__ in _COUNTED
        return pa.schema(fields), fragment.count_rows() if counted else None

    def _batches(self, columns: Sequence[str]) -> Batches:
        """All rows, with little read ahead."""
        little = {"batch_size": _BATCH_ROWS, "batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
        if self._fragment is None:
            found = self._dataset.to_batches(columns=list(columns), **little)
        else:
            found = self._fragment.to_batches(schema=self._dataset.schema, columns=list(columns), **little)
        yield from ((batch, None) for batch in found)

    def _explained(self, message: str) -> str:
        return (
            f"expected a dataset that can be read to its end, found {message!r} in {shown_path(self.name)}; repair it"
        )


FORMATS: Mapping[str, type[FilePart]] = {"csv": CsvFile, "parquet": ParquetFile, "ipc": IpcFile}


def fragments_of(dataset: Any, types: Mapping[str, Kind]) -> list[FilePart]:
    """All fragments of a dataset, sorted by path."""
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # a filtered dataset does not show its fragments
        return [Fragment(dataset, None, 0, types)]
    found = [Fragment(dataset, fragment, index, types) for index, fragment in enumerate(fragments)]
    if not found:
        raise ValueError("expected a dataset with files, found one without; check what it was made of")
    return sorted(found, key=lambda part: part.name if part.size is not None else "")


def in_chunks(data: Any) -> Any:
    """A record batch as a table, an array as a column of one chunk."""
    return pa.Table.from_batches([data]) if hasattr(data, "schema") else pa.chunked_array([data])


def _kinds(schema: Any) -> Mapping[str, Kind]:
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise SourceError(f"expected every column to have a name of its own, found {shown(twice[0])} twice; rename it")
    return kinds_of(schema.empty_table())


def _cast(name: str, array: Any, kind: str, where: str) -> Any:
    try:
        return array.cast(_TYPES.get(kind, array.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SourceError(
            f"expected column {shown(name)} to be {kind}, found {shown(str(error))} in {shown_path(where)}; correct "
            "it, or ask for another type with types="
        ) from error


def _gathered(batches: Batches, n: int) -> Iterator[tuple[Any, float | None]]:
    """Tables of n rows, of batches that are cut and put together without a copy."""
    group: list[Any] = []
    rows, share = 0, None
    for batch, share in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, n - rows)
            group.append(piece)
            start, rows = start + piece.num_rows, rows + piece.num_rows
            if rows == n:
                yield pa.Table.from_batches(group), share
                group, rows = [], 0
    if rows:
        yield pa.Table.from_batches(group), share
