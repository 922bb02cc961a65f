"""Bytes that are no UTF-8 text: what they are instead, and what to do about it."""

import codecs
import gzip
import re
import zlib
from contextlib import suppress
from io import BufferedReader
from typing import Any, NoReturn

import numpy as np

from vff.data.source import SourceError
from vff.words import shown, shown_path

_LOOKED_AT, _PIECE = 1 << 20, 1 << 16  # bytes; as many as tell the types of columns
_TEXT = "expected UTF-8 text in"
_GZIP = b"\x1f\x8b"
_UTF16 = ("UTF-16", "write it as UTF-8, as in iconv -f UTF-16 -t UTF-8")
_UTF32 = ("UTF-32", "write it as UTF-8, as in iconv -f UTF-32 -t UTF-8")
_ALIEN = {
    re.compile(start): told
    for start, told in {
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


def is_packed(path: str) -> bool:
    """Whether a file is to be unpacked with gzip."""
    return path.lower().endswith(".gz")


def check_text(path: str) -> None:
    """Refuse a file that is no UTF-8 text, as far as its first megabyte tells."""
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
        codecs.getincrementaldecoder("utf-8")().decode(content, final=ended)
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
    with suppress(EOFError, OSError, zlib.error):
        while len(content) <= _LOOKED_AT:
            piece = file.read1(_PIECE)
            if not piece:
                return bytes(content), True
            content += piece
    return bytes(content), False


def _check_nul(content: bytes, path: str) -> None:
    place = content.find(0)
    if place < 0:
        return
    zero = np.frombuffer(content[: len(content) // 2 * 2], np.uint8).reshape(-1, 2) == 0
    share = zero.mean(axis=0) if len(zero) else np.zeros(2)
    if share.max() > 0.5 > 10 * share.min():  # every other byte: letters of Latin in two bytes
        what, advice = _UTF16
        advice = advice.replace("UTF-16 ", f"UTF-16{'LE' if share[1] > share[0] else 'BE'} ")
        raise SourceError(f"{_TEXT} {shown_path(path)}, found {what}; {advice}")
    raise SourceError(f"{_TEXT} {shown_path(path)}, found a NUL byte in line {_line(content, place):,}; {_WITHOUT_NUL}")


def _refuse_byte(content: bytes, place: int, path: str) -> NoReturn:
    byte = content[place : place + 1]
    letter = byte.decode("cp1252", errors="ignore")
    meaning = f", which is {shown(letter)} in Windows-1252 and Latin-1" if letter.isalpha() else ""
    raise SourceError(
        f"{_TEXT} {shown_path(path)}, found the byte 0x{byte[0]:02X} in line {_line(content, place):,}{meaning}; "
        f"{TO_UTF8}"
    )


def _line(content: bytes, place: int) -> int:
    return content.count(b"\n", 0, place) + 1
