"""Tables written piece by piece, as Parquet or CSV: the one file of the room that knows pyarrow."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class TableWriter:
    """Takes columns in pieces; the first piece settles their names and types."""

    def __init__(self, path: Path, parquet: bool) -> None:
        self._path, self._parquet = path, parquet
        self._writer: Any = None
        self._schema: Any = None
        self.rows = 0

    def write(self, columns: Mapping[str, Any]) -> None:
        """Some rows: every column an Arrow or a NumPy array."""
        import pyarrow as pa

        piece = pa.table(dict(columns))
        if self._writer is None:
            self._schema = piece.schema
            self._writer = self._opened()
        self._writer.write_table(piece if piece.schema == self._schema else piece.cast(self._schema))
        self.rows += piece.num_rows

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()

    def _opened(self) -> Any:
        if self._parquet:
            from pyarrow.parquet import ParquetWriter

            return ParquetWriter(self._path, self._schema)
        from pyarrow.csv import CSVWriter

        return CSVWriter(self._path, self._schema)
