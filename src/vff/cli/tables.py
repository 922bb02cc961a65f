"""Tables written piece by piece, as Parquet or CSV: the one file of the room that knows pyarrow."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vff.storage import written_whole


class TableWriter:
    """Takes columns in pieces; the first piece settles their names and types."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None
        self.rows = 0

    def write(self, columns: Mapping[str, Any]) -> None:
        """Some rows: every column an Arrow or a NumPy array."""
        import pyarrow as pa
        from pyarrow import csv, parquet

        piece = pa.table(dict(columns))
        if self._writer is None:
            kind = parquet.ParquetWriter if self._path.suffix.lower() == ".parquet" else csv.CSVWriter
            self._schema, self._writer = piece.schema, kind(self._path, piece.schema)
        self._writer.write_table(piece if piece.schema == self._schema else piece.cast(self._schema))
        self.rows += piece.num_rows


@contextmanager
def table_written(path: Path) -> Iterator[TableWriter]:
    """A table to write to, which is complete in the end or not there at all."""
    with written_whole(path) as draft:
        writer = TableWriter(draft)
        yield writer
        if writer._writer is not None:
            writer._writer.close()
