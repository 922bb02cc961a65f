"""Delimited text: its first line, bytes in it that are no text, and what Arrow complains of, in a sentence each."""

import codecs
import csv
import gzip
import os
import re
import zlib
from io import BufferedReader, StringIO
from itertools import islice
from typing import Any, NamedTuple, NoReturn

import numpy as np

from vff.data.paths import is_number
from vff.data.schema import Kind
from vff.data.source import SourceError
from vff.words import shown, shown_path

_DELIMITERS = ",;\t|"
_ROW = re.compile(r"Row #(\d+)")
_COLUMN = re.compile(r"CSV column #(\d+)")
_VALUE = re.compile(r"conversion error to ([\w\[\], ]+): invalid value '(.*?)'?$", re.DOTALL)
_WORDS = {"double": "a number", "int64": "an integer", "bool": "true or false"}
_LOOKED_AT, _PIECE = 1 << 20, 1 << 16  # bytes; as many as tell the types of columns
_TEXT = "expected UTF-8 text in"
_GZIP = b"\x1f\x8b"
_UTF16 = ("UTF-16", "write it as UTF-8, as in iconv -f UTF-16 -t UTF-8")
_UTF32 = ("UTF-32", "write it as UTF-8, as in iconv -f UTF-32 -t UTF-8")
_ALIEN = {
    re.compile(start): found
    for start, found in {
        codecs.BOM_UTF32_LE: _UTF32,
        codecs.BOM_UTF32_BE: _UTF32,
        codecs.BOM_UTF16_LE: _UTF16,
        codecs.BOM_UTF16_BE: _UTF16,
        _GZIP: ("what gzip has packed", "let its name end in .gz, or unpack it"),
        b"PK\x03\x04": ("a zip archive, as spreadsheets are, too", "unpack it, or write the table as CSV"),
        b"BZh[1-9]1AY&SY": ("what bzip2 has packed", "unpack it"),
        b"\xfd7zXZ\x00": ("what xz has packed", "unpack it"),
        b"[(]\xb5/\xfd": ("what zstd has packed", "unpack it"),
        b"PAR1[^\x00-\x08\x0e-\x1f]{0,64}[\x00-\x08\x0e-\x1f]": ("a Parquet file", "let its name end in .parquet"),
        b"ARROW1\x00\x00": ("an Arrow file", "let its name end in .arrow"),
        b"\xd0\xcf\x11\xe0": ("an old spreadsheet", "write the table as CSV"),
    }.items()
}
"""How files begin that are often taken for CSV; names of columns may begin with PAR1 or BZh, but go on as text."""
TO_UTF8 = "write the file as UTF-8, as in iconv -f WINDOWS-1252 -t UTF-8"
_WITHOUT_NUL = r"write the file again without it, as in tr -d '\000'"


class Head(NamedTuple):
    """What the first line says."""

    names: tuple[str, ...]
    delimiter: str


def read_head(path: str, delimiter: str | None = None) -> Head:
    """The names of the columns; the delimiter is the one that stands in the first line most often."""
    try:
        text = StringIO(_first_text(path), newline="")
        line = text.readline()
        delimiter = delimiter or max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", line).count)
        rest = islice(text, 20) if line.count('"') % 2 else ()  # lines that a quoted name goes on in
        names = next(csv.reader([line, *rest], delimiter=delimiter), [])
    except (OSError, EOFError, csv.Error, zlib.error) as error:
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
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 64))
            is_open = b"\n" in content and not file.read().rstrip(b"\r\n").endswith(b'"')
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


def is_packed(path: str) -> bool:
    """Whether a file is to be unpacked with gzip."""
    return path.lower().endswith(".gz")


def _first_text(path: str) -> str:
    """The first megabyte; refused if that is no UTF-8 text."""
    with open(path, "rb") as raw:
        if is_packed(path) and raw.peek(2)[:2] != _GZIP:
            raise SourceError(
                f"expected what gzip has packed in {shown_path(path)}, found something else; take .gz off its name, "
                "or pack it"
            )
        content, ended = _beginning(gzip.GzipFile(fileobj=raw) if is_packed(path) else raw)
    for start, (what, advice) in _ALIEN.items():
        if start.match(content):
            raise SourceError(f"{_TEXT} {shown_path(path)}, found {what}; {advice}")
    _check_nul(content, path)
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(content, final=ended).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        _refuse_byte(content, error.start, path)


def check_letters(name: str, letters: Any, path: str) -> None:
    """Refuse a NUL byte among the letters of a column, beyond the first megabyte."""
    if letters is not None and not np.frombuffer(letters, np.uint8).all():
        raise SourceError(nul_in(name, shown_path(path)))


def nul_in(name: str, where: str) -> str:
    """The sentence for a NUL byte in a column."""
    return f"expected text without NUL bytes in column {shown(name)}, found one in {where}; {_WITHOUT_NUL}"


def _beginning(file: BufferedReader | gzip.GzipFile) -> tuple[bytes, bool]:
    """The first megabyte, and whether there is no more. Where packing is damaged, whoever reads on will say so."""
    content = bytearray()
    try:
        while len(content) <= _LOOKED_AT:
            piece = file.read1(_PIECE)
            if not piece:
                return bytes(content), True
            content += piece
    except (EOFError, OSError, zlib.error):
        if not content:
            raise
    return bytes(content), False


def _check_nul(content: bytes, path: str) -> None:
    position = content.find(0)
    if position < 0:
        return
    zero = np.frombuffer(content[: len(content) // 2 * 2], np.uint8).reshape(-1, 2) == 0
    share = zero.mean(axis=0) if len(zero) else np.zeros(2)
    if share.max() > 0.5 > 10 * share.min():  # every other byte: letters of Latin in two bytes
        what, advice = _UTF16
        advice = advice.replace("UTF-16 ", f"UTF-16{'LE' if share[1] > share[0] else 'BE'} ")
        raise SourceError(f"{_TEXT} {shown_path(path)}, found {what}; {advice}")
    raise SourceError(
        f"{_TEXT} {shown_path(path)}, found a NUL byte in line {_line(content, position):,}; {_WITHOUT_NUL}"
    )


def _refuse_byte(content: bytes, position: int, path: str) -> NoReturn:
    byte = content[position : position + 1]
    letter = byte.decode("cp1252", errors="ignore")
    meaning = f", which is {shown(letter)} in Windows-1252 and Latin-1" if letter.isalpha() else ""
    raise SourceError(
        f"{_TEXT} {shown_path(path)}, found the byte 0x{byte[0]:02X} in line {_line(content, position):,}{meaning}; "
        f"{TO_UTF8}"
    )


def _line(content: bytes, position: int) -> int:
    return content.count(b"\n", 0, position) + 1
