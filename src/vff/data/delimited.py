"""The first line of a delimited file: which character stands between the columns, and what these are called."""

import csv
import gzip
import os
import re
import zlib
from itertools import islice
from typing import IO, Any, NamedTuple

from vff.data.encodings import TO_UTF8, check_text, is_packed, nul_in
from vff.data.paths import is_number
from vff.data.schema import Kind
from vff.data.source import SourceError
from vff.words import shown, shown_path

_DELIMITERS = ",;\t|"
_LONGEST_LINE = 1 << 20
_ROW = re.compile(r"Row #(\d+)")
_COLUMN = re.compile(r"CSV column #(\d+)")
_VALUE = re.compile(r"conversion error to ([\w\[\], ]+): invalid value '(.*?)'?$", re.DOTALL)
_WORDS = {"double": "a number", "int64": "an integer", "bool": "true or false"}


class Head(NamedTuple):
    """What the first line says."""

    names: tuple[str, ...]
    delimiter: str


def read_head(path: str, delimiter: str | None = None) -> Head:
    """The names of the columns; the delimiter is the one that stands in the first line most often."""
    try:
        check_text(path)
        with _opened(path) as file:
            line = file.readline(_LONGEST_LINE)
            delimiter = delimiter or max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", line).count)
            rest = islice(file, 20) if line.count('"') % 2 else ()  # lines that a quoted name goes on in
            names = next(csv.reader([line, *rest], delimiter=delimiter), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
        raise SourceError(
            f"expected text with a header line in {shown_path(path)}, found "
            f"{f'{type(error).__name__}: {error}':.120}; repair it"
        ) from error
    _check_names(names, path)
    return Head(tuple(names), delimiter)


def check_last_value(value: Any, path: str) -> None:
    """Refuse a last value that goes on to the end of the file because its quote is not closed."""
    if not isinstance(value, str | bytes):
        return
    content = value if isinstance(value, bytes) else value.encode()
    if is_packed(path):
        is_open = content.endswith((b"\n", b"\r"))
    else:
        is_open = b"\n" in content and not _tail(path).rstrip(b"\r\n").endswith(b'"')
    if is_open:
        start = content[:40].decode(errors="replace")
        raise SourceError(
            f"expected every quote to be closed, found one that is not before {shown(start)} in {shown_path(path)}; "
            "close it"
        )


def check_all_read(read: int, size: int | None, path: str) -> None:
    """Refuse a file of which not all was read, or more than there was."""
    if size is not None and read != size:
        raise SourceError(
            f"expected to read all {size:,} bytes of {shown_path(path)}, found {read:,}; was it written to in the "
            "meantime?"
        )


def _tail(path: str) -> bytes:
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 64))
        return file.read()


def explained(message: str, path: str, head: Head) -> str:
    """A reader's complaint in one sentence that names file, row and column, with advice."""
    row, column, value = _ROW.search(message), _COLUMN.search(message), _VALUE.search(message)
    where = f"{shown_path(path)}, row {row[1]} (the header is row 1)" if row else f"{shown_path(path)}"
    if column and value:
        name, wanted = head.names[int(column[1])], _WORDS.get(value[1], value[1])
        if "\0" in value[2]:
            return nul_in(name, where)
        wanted = "a date or time like 2024-02-29 12:00" if wanted.startswith("timestamp") else wanted
        other = Kind.NUMBER if value[1] == "int64" and is_number(value[2]) else Kind.TEXT
        return (
            f"expected {wanted} in column {shown(name)}, found {shown(value[2][:40])} in {where}; "
            f'correct it, or read the column as {other} with types={{{shown(name)}: "{other}"}}'
        )
    if column and "UTF8" in message:
        name = head.names[int(column[1])]
        return f"expected UTF-8 text in column {shown(name)}, found bytes that are none in {where}; {TO_UTF8}"
    if "Expected" in message:
        found = message[message.index("Expected") + 9 :].split(":")[0]
        return f"expected as many columns as the header has, {found} in {where}; correct it, or give the delimiter="
    if "straddling" in message:
        return f"expected rows of less than 1 MB, found a longer one in {where}; look for a quote that is not closed"
    return f"expected a file that can be read to its end, found {shown_path(message)} in {where}; write it again"


def _opened(path: str) -> IO[str]:
    if is_packed(path):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _check_names(names: list[str], path: str) -> None:
    if not names or names == [""]:
        raise SourceError(
            f"expected a header line with the columns' names in {shown_path(path)}, found none; write one"
        )
    if all(map(is_number, names)):
        raise SourceError(
            f"expected a header line with the columns' names in {shown_path(path)}, found the numbers "
            f"{', '.join(names[:4])}; write one above them"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SourceError(
            f"expected every column to have a name of its own, found {', '.join(map(shown, twice[:4]))} more than once "
            f"in the header of {shown_path(path)}; rename them"
        )
