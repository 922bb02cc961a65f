"""Which files are meant: paths, patterns and folders, and what the folders' names say about the rows in them."""

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from vff.data.schema import Kind
from vff.words import shown_path

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".csv.gz": "csv",
    ".tsv.gz": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".arrows": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
}
KEY = "key"
"""Kind of a column that the name of a folder makes; what it is, the names of all folders say together."""
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def is_path(data: Any) -> bool:
    """Whether this is a path, or a list of paths."""
    if isinstance(data, list | tuple):
        return len(data) > 0 and all(isinstance(item, str | os.PathLike) for item in data)
    return isinstance(data, str | os.PathLike)


def find_files(data: Any) -> tuple[str, ...]:
    """All files that a path, a pattern, a folder or a list of these means, sorted, each once."""
    items = data if isinstance(data, list | tuple) else [data]
    return tuple(sorted({path for item in items for path in _files_of(os.fspath(item))}))


def file_format(path: str) -> str:
    """ "csv", "parquet" or "ipc", from the end of the name."""
    for suffix, name in SUFFIXES.items():
        if path.lower().endswith(suffix):
            return name
    raise ValueError(
        f"expected a file whose name ends in {', '.join(SUFFIXES)}, found {shown_path(path)}; "
        "rename it, or pass a pyarrow.dataset.Dataset that knows its format"
    )


def folder_keys(path: str) -> dict[str, str | None]:
    """What folders called ``key=value`` on the way to a file say: columns that are constant in it."""
    pairs = [part.split("=", 1) for part in Path(path).parts[:-1] if not part.startswith("=") and "=" in part]
    return {unquote(key): None if value == _NO_VALUE else unquote(value) for key, value in pairs}


def key_kinds(keys: Sequence[Mapping[str, str | None]], types: Mapping[str, str]) -> dict[str, str]:
    """Kind of the columns that folders' names make: numbers if all their values are."""
    names = dict.fromkeys(name for each in keys for name in each)
    numeric = {name: are_numbers(each.get(name) for each in keys) for name in names}
    return {name: types.get(name, Kind.NUMBER if numeric[name] else Kind.TEXT) for name in names}


def are_numbers(values: Iterable[str | None]) -> bool:
    """Whether texts can all be read as numbers, and one is there."""
    found = [value for value in values if value is not None]
    return bool(found) and all(map(is_number, found))


def is_number(text: str) -> bool:
    """Whether a text can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_integer(text: str) -> bool:
    """Whether a text is an integer of 64 bits."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and -(2**63) <= int(text) < 2**63


def _files_of(item: str) -> Sequence[str]:
    if os.path.isdir(item):
        return _files_in(item)
    if os.path.exists(item):
        file_format(item)
        return [item]
    if not glob.has_magic(item):
        raise FileNotFoundError(
            f"expected a file, a folder or a pattern, found nothing at {shown_path(item)}; check the path"
        )
    # a pattern may match folders too, and these count with what is in them
    found = [path for match in glob.glob(item, recursive=True) for path in _matched(match)]
    if not found:
        raise FileNotFoundError(f"expected files that match {shown_path(item)}, found none; check the pattern")
    return found


def _matched(match: str) -> Sequence[str]:
    if not os.path.isdir(match):
        file_format(match)
        return [match]
    return _walk(match)


def _files_in(folder: str) -> Sequence[str]:
    found = _walk(folder)
    if not found:
        raise FileNotFoundError(
            f"expected files in the folder {shown_path(folder)} whose names end in {', '.join(SUFFIXES)}, found none; "
            "check the path, or name the files"
        )
    return found


def _walk(folder: str) -> list[str]:
    """Files of known formats in a folder and below; those that writers hide (".tmp", "_SUCCESS") are not data."""
    found = []
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "._"]
        found += [
            os.path.join(where, name)
            for name in files
            if name[0] not in "._" and name.lower().endswith(tuple(SUFFIXES))
        ]
    return found
