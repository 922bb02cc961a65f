"""What changes when rows do: checksums of tables in memory, and of the files behind a dataset of pyarrow's.

Sums that a checkpoint has are of use for the very same rows alone, so all bytes count, those of y and w too.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from vff.data.frames import is_arrow

_DIGEST = 12  # bytes


def content_mark(*values: Any) -> str:
    """A checksum of tables, columns and None."""
    digest = blake2b(digest_size=_DIGEST)
    for value in values:
        for piece in _pieces(value):
            digest.update(len(piece).to_bytes(8, "little"))
            digest.update(piece)
        digest.update(b"|")
    return digest.hexdigest()


def dataset_mark(dataset: Any, fragment: Any) -> str:
    """Of the files of a dataset and of what it leaves out, or of its rows where these are in no files."""
    if fragment is not None:
        return content_mark(*fragment.to_batches())
    infos = _file_infos(dataset)
    if infos is None:
        return content_mark(*dataset.to_batches())
    files = sorted((info.path, info.size, info.mtime_ns) for info in infos)
    return content_mark(str(dataset._scan_options.get("filter")), repr(files))


def _file_infos(dataset: Any) -> list[Any] | None:
    """The files, also those that are joined in a union; None if some rows are in none."""
    if hasattr(dataset, "files"):
        return dataset.filesystem.get_file_info(dataset.files)
    found: list[Any] = []
    children = getattr(dataset, "children", None)
    for child in children or ():
        infos = _file_infos(child)
        if infos is None or child._scan_options:
            return None
        found += infos
    return found if children else None


def _pieces(value: Any) -> Iterator[Any]:
    """The bytes of a value, a column at a time."""
    if value is None or isinstance(value, str):
        yield repr(value).encode()
    elif is_arrow(value):
        yield repr(value.schema.to_string(show_schema_metadata=False)).encode()
        for batch in value.to_batches() if hasattr(value, "to_batches") else [value]:
            yield memoryview(batch.serialize())  # without what lies beyond a slice
            yield from (
                repr(one.dictionary.to_pylist()).encode() for one in batch.columns if hasattr(one, "dictionary")
            )
    elif hasattr(value, "columns"):
        yield repr(list(value.columns)).encode()
        for position in range(value.shape[1]):
            yield from _pieces(value.iloc[:, position] if hasattr(value, "iloc") else value.to_series(position))
    elif hasattr(value, "iloc") and hasattr(value, "cat"):  # categories of pandas: their codes are faster than texts
        yield repr(list(value.cat.categories)).encode()
        yield from _pieces(value.cat.codes.to_numpy())
    else:
        if hasattr(value, "null_count") and hasattr(value, "type") and not hasattr(value, "chunks"):
            value = value.to_numpy(zero_copy_only=False)  # of Arrow
        values = value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)
        yield f"{values.dtype} {values.shape}".encode()
        if values.dtype.hasobject:
            yield repr(values.tolist()).encode()  # all digits, other than the repr of an array
        else:
            yield np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
