"""Small chunks put together: every one that is worked on costs something, however few its rows are."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vff.data.frames import joined, made_of
from vff.data.source import Chunk, SourceError


@dataclass(frozen=True)
class NumberedChunk:
    """A chunk, or several that were put together, with its place among all; or why it is not like the others."""

    first: int
    last: int
    chunk: Chunk | SourceError

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"chunk {self.first}" if self.first == self.last else f"chunks {self.first} to {self.last}"


def gathered(items: Iterable[NumberedChunk], most: int, *, lent: bool) -> Iterator[NumberedChunk]:
    """Neighbours that are made alike, as long as they have at most ``most`` rows together.

    Where chunks are ``lent``, somebody may fill the same arrays anew for the next, so that they are copied before it is
    asked for.
    """
    group: list[tuple[int, Chunk]] = []
    made, rows = None, 0
    for item in items:
        chunk = item.chunk
        n = most if isinstance(chunk, SourceError) else len(chunk.data)
        kind = None if isinstance(chunk, SourceError) or n >= most else _made(chunk)
        if group and (kind is None or kind != made or rows + n > most):
            yield _joined(group)
            group, rows = [], 0
        if isinstance(chunk, SourceError) or kind is None:
            yield item
        else:
            group.append((item.first, _copied(chunk) if lent else chunk))
            made, rows = kind, rows + n
    if group:
        yield _joined(group)


def _parts(chunk: Chunk) -> tuple[Any, Any, Any]:
    return chunk.data, chunk.y, chunk.w


def _made(chunk: Chunk) -> tuple[Any, ...] | None:
    """What chunks must share to be put together; None for those that nobody knows how to."""
    kinds = tuple(made_of(part) for part in _parts(chunk))
    return None if any(kind == () for kind in kinds) else kinds


def _copied(chunk: Chunk) -> Chunk:
    """With copies of what can be changed in place, which values of polars and Arrow cannot."""
    lent = [isinstance(part, list | np.ndarray) or hasattr(part, "iloc") for part in _parts(chunk)]
    parts = zip(_parts(chunk), lent, strict=True)
    return Chunk(chunk.where, *(part.copy() if changes else part for part, changes in parts))


def _joined(group: list[tuple[int, Chunk]]) -> NumberedChunk:
    (first, chunk), last = group[0], group[-1][0]
    if len(group) > 1:
        columns = zip(*(_parts(each) for _, each in group), strict=True)
        chunk = Chunk(f"chunks {first} to {last}", *(joined(parts) for parts in columns))
    return NumberedChunk(first, last, chunk)
