"""Which files are meant: paths, patterns and folders, and what the folders' names say about the rows in them."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from vff.words import shown_path

SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".arrows", ".ipc", ".feather"), "ipc"),
}
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
    """A pattern may match folders too, and these count with what is in them."""
    is_folder, is_pattern = os.path.isdir(item), not os.path.exists(item) and glob.has_magic(item)
    if not is_pattern and not os.path.exists(item):
        raise FileNotFoundError(
            f"expected a file, a folder or a pattern, found nothing at {shown_path(item)}; check the path"
        )
    found = []
    for match in glob.glob(item, recursive=True) if is_pattern else [item]:
        found += _files_below(match) if os.path.isdir(match) else [match]
    for path in found:
        file_format(path)
    if not found and is_folder:
        raise FileNotFoundError(
            f"expected files in the folder {shown_path(item)} whose names end in {', '.join(SUFFIXES)}, found none; "
            "check the path, or name the files"
        )
    if not found:
        raise FileNotFoundError(f"expected files that match {shown_path(item)}, found none; check the pattern")
    return found


def _files_below(folder: str) -> list[str]:
    """Files of known formats in a folder and below; those that writers hide (".tmp", "_SUCCESS") are not data."""
    found = []
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "._"]
        seen = [name for name in files if name[0] not in "._" and name.lower().endswith(tuple(SUFFIXES))]
        found += [os.path.join(where, name) for name in seen]
    return found
