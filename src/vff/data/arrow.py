"""Files as Arrow reads them, a batch at a time: the one module that knows pyarrow."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

from vff.data.delimited import Head, check_all_read, check_last_value, explained, read_head
from vff.data.encodings import check_letters, is_packed
from vff.data.fingerprints import dataset_mark
from vff.data.frames import kinds_of
from vff.data.paths import KEY, file_format, folder_keys, is_integer
from vff.data.schema import Kind
from vff.data.source import SourceError
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

    kinds: Mapping[str, str]
    """Of every column, in order; ``KEY`` for those that folders make."""
    n_rows: int | None
    integers: frozenset[str] = frozenset()
    """Numbers without a fraction, as far as was looked."""


class AbstractReader(ABC):
    """One file, or what else counts as one."""

    name: str
    size: int | None

    @abstractmethod
    def look(self) -> FileSchema:
        """Columns and rows, from the file's head or foot."""

    @abstractmethod
    def batches(self, columns: Sequence[str], kinds: Mapping[str, str]) -> Batches:
        """All rows of some columns; those of unknown kind become what ``kinds`` says."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Changes when the file does."""


def reader_of(path: str, types: Mapping[str, str], delimiter: str | None) -> AbstractReader:
    """Whoever reads a file of this format."""
    name = file_format(path)
    if name == "csv":
        return CsvReader(path, types, "\t" if ".tsv" in path.lower() and delimiter is None else delimiter)
    return ParquetReader(path, types) if name == "parquet" else IpcReader(path, types)


@dataclass
class AbstractFileReader(AbstractReader):
    """What files of all formats share: a path that may say something of its own, and a size."""

    name: str
    types: Mapping[str, str]
    size: int | None = field(init=False, default=None)
    _own: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        self.size = os.stat(self.name).st_size if os.path.exists(self.name) else None

    def fingerprint(self) -> str:
        """Size and time of the last change. A file that is gone says so here, and is refused when it is read."""
        if not os.path.exists(self.name):
            return "not there"
        status = os.stat(self.name)
        return f"{status.st_size} bytes, {status.st_mtime_ns} ns"

    def look(self) -> FileSchema:
        """The columns of the file and of its folders."""
        facts = guarded(self._look, self._explained)
        self._own = tuple(facts.kinds)
        keys = {key: Kind.UNKNOWN if value is None else KEY for key, value in folder_keys(self.name).items()}
        whole = {key for key, value in folder_keys(self.name).items() if value is not None and is_integer(value)}
        return FileSchema({**keys, **_overridden(facts.kinds, self.types)}, facts.n_rows, facts.integers | whole)

    def batches(self, columns: Sequence[str], kinds: Mapping[str, str]) -> Batches:
        """Rows of the file beside the constant columns of its folders."""
        # without a column of its own, a batch would not know how many rows it has
        steps = self._batches([name for name in columns if name in self._own] or self._own[:1], kinds)
        while (step := guarded(lambda: next(steps, None), self._explained)) is not None:
            batch, share = step
            yield guarded(lambda batch=batch: self._shaped(batch, columns, kinds), self._explained), share

    def _explained(self, message: str) -> str:
        return (
            f"expected a file that can be read to its end, found {message!r} in {shown_path(self.name)}; write it again"
        )

    def _shaped(self, batch: Any, columns: Sequence[str], kinds: Mapping[str, str]) -> Any:
        """The batch with all its columns, in order, of the types that were asked for."""
        keys = folder_keys(self.name)
        arrays = []
        for name in columns:
            if name in self._own:
                arrays.append(self._finished(name, batch.column(name), kinds[name]))
            else:
                value = _cast(name, pa.array([keys[name]], pa.string()), kinds[name], self.name)
                arrays.append(pa.repeat(value[0], batch.num_rows))
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _finished(self, name: str, array: Any, kind: str) -> Any:
        return _converted(name, array, kind, self.types, self.name)

    @abstractmethod
    def _look(self) -> FileSchema: ...

    @abstractmethod
    def _batches(self, columns: Sequence[str], kinds: Mapping[str, str]) -> Batches: ...


@dataclass
class CsvReader(AbstractFileReader):
    """Delimited text, packed with gzip or not. Its types are those of its first megabyte."""

    delimiter: str | None = None
    _head: Head | None = field(init=False, default=None)
    _seen: dict[str, Any] = field(init=False, default_factory=dict)

    def _look(self) -> FileSchema:
        if not self.size:
            raise SourceError(
                f"expected a header line with the columns' names in {shown_path(self.name)}, found an empty file; "
                "leave it out"
            )
        self._head = read_head(self.name, self.delimiter)
        types = {name: _TYPES[kind] for name, kind in self.types.items() if name in self._head.names}
        _, stream = self._opened()
        schema = self._csv(stream, types, None).schema
        self._seen = dict(zip(schema.names, schema.types, strict=True))
        kinds = kinds_of(schema.empty_table())
        # what nobody has a word for, like 12:30:00, stays text
        kinds = {name: kind if kind in (*_TYPES, Kind.UNKNOWN) else Kind.TEXT for name, kind in kinds.items()}
        return FileSchema(kinds, None, _integers(schema))

    def _batches(self, columns: Sequence[str], kinds: Mapping[str, str]) -> Batches:
        types = {name: self._wanted(name, kinds.get(name, Kind.TEXT)) for name in columns}
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

    def _wanted(self, name: str, kind: str) -> Any:
        """Integers are numbers, so that a late 1.5 is no fault, unless asked for; times keep a zone and nine digits."""
        seen = self._seen[name]
        if kind == Kind.DATETIME and pa.types.is_timestamp(seen) and (seen.tz or seen.unit == "ns"):
            return seen
        return _TYPES.get(kind, pa.float64())

    def _opened(self) -> tuple[Any, Any]:
        """The file and what unpacks it. Nobody closes them: Arrow reads ahead in a thread that knows the file by its
        number, and closed under its hands, that would be the number of the next file to be opened."""
        raw = pa.OSFile(self.name)
        return raw, pa.CompressedInputStream(raw, "gzip") if is_packed(self.name) else raw

    def _csv(self, stream: Any, types: Mapping[str, Any], columns: Sequence[str] | None) -> Any:
        assert self._head is not None
        # threads would lose the number of the row that is at fault
        read = pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES)
        alone = len(self._head.names) == 1  # then an empty line is a missing value
        parse = pyarrow.csv.ParseOptions(
            delimiter=self._head.delimiter, newlines_in_values=True, ignore_empty_lines=not alone
        )
        convert = pyarrow.csv.ConvertOptions(column_types=dict(types), include_columns=columns and list(columns))
        return pyarrow.csv.open_csv(stream, read, parse, convert)

    def _finished(self, name: str, array: Any, kind: str) -> Any:
        """Empty text is missing; "NA" is text like any other."""
        if pa.types.is_string(array.type):
            check_letters(name, array.buffers()[2], self.name)
            empty = pc.call_function("equal", [array, ""])
            return pc.call_function("if_else", [empty, pa.scalar(None, array.type), array])
        return array

    def _explained(self, message: str) -> str:
        return explained(message, self.name, self._head or Head((), ","))


@dataclass
class ParquetReader(AbstractFileReader):
    """A Parquet file. A row group is read page by page, so that its size does not matter."""

    def _look(self) -> FileSchema:
        with self._opened() as file:
            return FileSchema(_kinds(file.schema_arrow), file.metadata.num_rows, _integers(file.schema_arrow))

    def _batches(self, columns: Sequence[str], kinds: Mapping[str, str]) -> Batches:
        with self._opened() as file:
            n_rows, done = file.metadata.num_rows, 0
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns), use_threads=False):
                done += batch.num_rows
                yield batch, done / n_rows

    def _opened(self) -> Any:
        return pyarrow.parquet.ParquetFile(
            self.name, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
        )


@dataclass
class IpcReader(AbstractFileReader):
    """Arrow's own format, file or stream, and Feather. It is mapped into memory, not read into it."""

    def _look(self) -> FileSchema:
        with pa.memory_map(self.name) as file:
            schema = self._opened(file, None).schema
            is_file = self._is_file(file)
        n_rows = pyarrow.dataset.dataset(self.name, format="ipc").count_rows() if is_file else None
        return FileSchema(_kinds(schema), n_rows, _integers(schema))

    def _batches(self, columns: Sequence[str], kinds: Mapping[str, str]) -> Batches:
        with pa.memory_map(self.name) as file:
            schema = self._opened(file, None).schema
            file.seek(0)
            reader = self._opened(file, [schema.get_field_index(name) for name in columns])
            is_file = self._is_file(file)
            n = reader.num_record_batches if is_file else None
            for index, batch in enumerate(map(reader.get_batch, range(n)) if n is not None else reader):
                batch.validate()
                yield batch, (index + 1) / n if n else file.tell() / file.size()

    def _is_file(self, file: Any) -> bool:
        place = file.tell()
        file.seek(0)
        magic = file.read(len(_ARROW_MAGIC))
        file.seek(place)
        return magic == _ARROW_MAGIC

    def _opened(self, file: Any, fields: list[int] | None) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        return (pa.ipc.open_file if self._is_file(file) else pa.ipc.open_stream)(file, options=options)


@dataclass
class DatasetReader(AbstractReader):
    """A fragment of a dataset of pyarrow's, or the whole where it is filtered and has none."""

    dataset: Any
    fragment: Any
    index: int
    types: Mapping[str, str]

    def __post_init__(self) -> None:
        self._path, self._mark = getattr(self.fragment, "path", None), ""
        self.name = self._path or ("dataset" if self.fragment is None else f"fragment {self.index}")
        self.size = None if self._path is None else self._info().size

    def _info(self) -> Any:
        return self.fragment.filesystem.get_file_info(self._path)

    def fingerprint(self) -> str:
        """Size and time of the last change; of what is no single file, the columns and a checksum."""
        if self._path is None:
            self._mark = self._mark or dataset_mark(self.dataset, self.fragment)
            return f"{self.name} of {self.dataset.schema.to_string(show_schema_metadata=False)}, {self._mark}"
        info = self._info()
        return f"{info.size} bytes, {info.mtime_ns} ns"

    def look(self) -> FileSchema:
        """Columns that the fragment has itself, or that its place says."""
        return guarded(self._look, self._explained)

    def _look(self) -> FileSchema:
        kinds = _kinds(self.dataset.schema)
        if self.fragment is None:
            return FileSchema(_overridden(kinds, self.types), None)
        keys = pyarrow.dataset.get_partition_keys(self.fragment.partition_expression)
        own = {**dict.fromkeys(keys, Kind.UNKNOWN), **_kinds(self.fragment.physical_schema)}
        kinds = {name: kinds[name] if name in keys else own[name] for name in kinds if name in own}
        counted = self._path is None or type(self.fragment.format).__name__ in _COUNTED
        return FileSchema(_overridden(kinds, self.types), self.fragment.count_rows() if counted else None)

    def batches(self, columns: Sequence[str], kinds: Mapping[str, str]) -> Batches:
        """All rows, with little read ahead."""
        little = {"batch_size": _BATCH_ROWS, "batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
        if self.fragment is None:
            steps = self.dataset.to_batches(columns=list(columns), **little)
        else:
            steps = self.fragment.to_batches(schema=self.dataset.schema, columns=list(columns), **little)
        while (batch := guarded(lambda: next(steps, None), self._explained)) is not None:
            arrays = [_converted(name, batch.column(name), kinds[name], self.types, self.name) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns)), None

    def _explained(self, message: str) -> str:
        return (
            f"expected a dataset that can be read to its end, found {message!r} in {shown_path(self.name)}; repair it"
        )


def dataset_readers(dataset: Any, types: Mapping[str, str]) -> list[AbstractReader]:
    """A reader for every fragment, sorted by path."""
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # a filtered dataset does not show its fragments
        return [DatasetReader(dataset, None, 0, types)]
    readers = [DatasetReader(dataset, fragment, index, types) for index, fragment in enumerate(fragments)]
    if not readers:
        raise ValueError("expected a dataset with files, found one without; check what it was made of")
    return sorted(readers, key=lambda reader: reader.name if reader.size is not None else "")


def guarded(work: Callable[[], Any], explain: Callable[[str], str]) -> Any:
    """The answer of ``work``; what Arrow complains of becomes one sentence."""
    try:
        return work()
    except SourceError:
        raise
    except (pa.ArrowException, OSError, EOFError) as error:
        raise SourceError(explain(" ".join(str(error).split())[:300])) from error


def in_chunks(data: Any) -> Any:
    """A record batch as a table, an array as a column of one chunk."""
    return pa.Table.from_batches([data]) if hasattr(data, "schema") else pa.chunked_array([data])


def table_of(batches: Sequence[Any]) -> Any:
    """One table of some batches, without a copy."""
    return pa.Table.from_batches(batches)


def _kinds(schema: Any) -> Mapping[str, str]:
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise SourceError(f"expected every column to have a name of its own, found {shown(twice[0])} twice; rename it")
    return kinds_of(schema.empty_table())


def _integers(schema: Any) -> frozenset[str]:
    return frozenset(own.name for own in schema if pa.types.is_integer(own.type))


def _overridden(kinds: Mapping[str, str], types: Mapping[str, str]) -> dict[str, str]:
    return {name: types.get(name, kind) for name, kind in kinds.items()}


def _converted(name: str, array: Any, kind: str, types: Mapping[str, str], where: str) -> Any:
    """Left as it is, unless the caller said what it is to be, or it is empty and others say what it is."""
    if name not in types and not pa.types.is_null(array.type):
        return array
    if kind == Kind.DATETIME and (pa.types.is_timestamp(array.type) or pa.types.is_date(array.type)):
        return array
    return _cast(name, array, kind, where)


def _cast(name: str, array: Any, kind: str, where: str) -> Any:
    try:
        return array.cast(_TYPES.get(kind, array.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SourceError(
            f"expected column {shown(name)} to be {kind}, found {shown(str(error))} in {shown_path(where)}; correct "
            "it, or ask for another type with types="
        ) from error
