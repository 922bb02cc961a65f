"""Rows with something missing, found and left out of arrays, frames and Arrow tables alike."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vff.data.frames import column, column_at, column_names, filtered, present
from vff.data.source import Chunk, Handling


def handled(chunk: Chunk, handling: Handling) -> Chunk:
    """The chunk as it is asked for: with or without its incomplete rows, and with its count."""
    if handling.missing == "refuse":
        return replace(chunk, n_rows=len(chunk.data))
    whole = np.ones(len(chunk.data), dtype=bool)
    for found in _columns(chunk, handling.keep_missing):
        there = present(found)
        whole = whole if there is None else whole & there
    if whole.all():
        return replace(chunk, n_rows=len(whole))
    left = int(whole.sum())
    y, w = (None if part is None else filtered(part, whole) for part in (chunk.y, chunk.w))
    return replace(chunk, data=filtered(chunk.data, whole), y=y, w=w, n_rows=left, dropped=len(whole) - left)


def _columns(chunk: Chunk, keep: Sequence[str | int]) -> Iterator[Any]:
    names = column_names(chunk.data)
    if names is None:
        array = np.asarray(chunk.data)
        yield from (array[:, i] for i in range(array.shape[1]) if i not in keep)
    else:
        yield from (column_at(chunk.data, i, 0, None) for i, name in enumerate(names) if name not in keep)
    yield from (column(part) for part in (chunk.y, chunk.w) if part is not None)
