"""Which levels are next to each other: a graph with names, in one form whatever form users have it in."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from vff.words import listed, shown

LONGEST = 12  # levels that a short text names
_FORMS = (
    "pairs [('a', 'b'), ...], lists {'a': ['b', 'c'], ...}, a square matrix of zeros and ones with levels=[...], a "
    "frame of one whose index and columns name the levels, a frame of two columns, or a GeoDataFrame"
)


@dataclass(frozen=True, repr=False, eq=False)
class Neighbours:
    """Levels in an order of theirs, and which of them are next to each other.

    Made once and never changed, so that it is its own copy, and its hash is worked out once.
    """

    levels: tuple[Hashable, ...]
    pairs: tuple[tuple[int, int], ...]
    """Positions of two neighbours, the first before the second, in order and each pair once."""

    def __post_init__(self) -> None:
        n, pairs = len(self.levels), self.pairs
        if not 0 < len(set(self.levels)) == n:
            raise ValueError(f"different levels were expected, found {listed(self.levels, 5)}; name each once")
        ordered = all(0 <= first < second < n for first, second in pairs)
        if not ordered or any(one >= other for one, other in pairwise(pairs)):
            raise ValueError(f"pairs of positions among {n} levels, in order, were expected, found {shown(pairs)}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Neighbours):
            return NotImplemented
        return self is other or (self.levels == other.levels and self.pairs == other.pairs)

    @cached_property
    def _hash(self) -> int:
        return hash((self.levels, self.pairs))

    def __hash__(self) -> int:
        return self._hash

    def __deepcopy__(self, memo: Any) -> "Neighbours":
        return self

    def __getstate__(self) -> tuple[Any, Any]:
        return self.levels, self.pairs  # hashes of text differ from program to program

    def __setstate__(self, state: tuple[Any, Any]) -> None:
        for name, value in zip(("levels", "pairs"), state, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, names: Iterable[Hashable], pairs: Iterable[tuple[Hashable, Hashable]]) -> "Neighbours":
        """From names, those of pairs among them or not; sorted, so that the same neighbours are equal."""
        pairs = [(plain_level(one), plain_level(other)) for one, other in pairs]
        for one, other in pairs:
            if one == other:
                raise ValueError(f"neighbours: {shown(one)} is next to itself; leave the pair out")
        every = dict.fromkeys((*map(plain_level, names), *(level for pair in pairs for level in pair)))
        levels = tuple(sorted(every, key=lambda level: (isinstance(level, str), level)))
        place = {level: position for position, level in enumerate(levels)}
        both = {(min(place[a], place[b]), max(place[a], place[b])) for a, b in pairs}
        return cls(levels, tuple(sorted(both)))

    @classmethod
    def path(cls, levels: Sequence[Hashable]) -> "Neighbours":
        """Every level is next to the one before and the one behind."""
        return cls(tuple(levels), tuple((n, n + 1) for n in range(len(levels) - 1)))

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """Ones where two levels are neighbours."""
        n = len(self.levels)
        rows, columns = np.array(self.pairs, int).reshape(-1, 2).T
        half = sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=(n, n))
        return sparse.csr_array(half + half.T)

    @cached_property
    def components(self) -> tuple[np.ndarray, ...]:
        """Positions of levels that are connected, the first level's first; an island is alone."""
        count, label = connected_components(self.adjacency, directed=False)
        order = np.argsort(label, kind="stable")
        return tuple(np.split(order, np.flatnonzero(np.diff(label[order])) + 1)) if count > 1 else (order,)

    def __repr__(self) -> str:
        return self.text()

    def text(self, *, whole: bool = True) -> str:
        """As lists by level, each pair once, as users may write it; not ``whole``, only how large it is if large."""
        if not whole and len(self.levels) > LONGEST:
            return f"<{len(self.levels)} levels, {len(self.pairs)} pairs>"
        after: dict[Hashable, list[Hashable]] = {}
        for first, second in self.pairs:
            after.setdefault(self.levels[first], []).append(self.levels[second])
        met = {level for levels in after.values() for level in levels}
        return repr(after | {level: [] for level in self.levels if level not in after and level not in met})


def plain_level(value: Any) -> Hashable:
    """A name of a level as tables know it: text, or a number."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int) or (isinstance(value, float) and np.isfinite(value)):
        return value
    raise TypeError(f"levels are named by text or numbers, found {shown(value)}; convert the names first")


def neighbours_of(given: Any, levels: Sequence[Hashable] | None = None) -> Neighbours:
    """Neighbours from any form that users have; ``levels`` name the rows of a matrix, or areas that are in no pair."""
    names = [] if levels is None else list(levels)
    if isinstance(given, Neighbours):
        return given if set(names) <= set(given.levels) else Neighbours.of((*given.levels, *names), _named(given))
    if hasattr(given, "geometry") and hasattr(given, "sindex"):
        return _touching(given)
    if isinstance(given, Mapping):
        return Neighbours.of((*names, *given), _listed_pairs(given))
    if hasattr(given, "columns"):
        return _from_frame(given, names)
    if sparse.issparse(given):
        return _from_matrix(given, names)
    if (
        isinstance(given, np.ndarray)
        and given.ndim == 2
        and given.shape[0] == given.shape[1]
        and not (levels is None and given.shape == (2, 2))
    ):
        return _from_matrix(given, names)
    return Neighbours.of(names, _pairs(given))


def _named(given: Neighbours) -> Iterator[tuple[Hashable, Hashable]]:
    return ((given.levels[one], given.levels[other]) for one, other in given.pairs)


def _listed_pairs(given: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for level, others in given.items():
        if isinstance(others, str) or not isinstance(others, Iterable):
            raise TypeError(
                f"neighbours: a list of the neighbours of {shown(level)} was expected, found {shown(others)}; write "
                "{'a': ['b', 'c']}"
            )
        yield from ((level, other) for other in others)


def _pairs(given: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"neighbours: {_FORMS} were expected, found {shown(given)}; give one of these")
    for pair in given:
        both = () if isinstance(pair, str) or not isinstance(pair, Iterable) else tuple(pair)
        if len(both) != 2:
            raise ValueError(f"neighbours: pairs of levels were expected, found {shown(pair)}; give {_FORMS}")
        yield both


def _from_frame(frame: Any, names: list[Hashable]) -> Neighbours:
    """A matrix that names its rows and columns, or two columns of names."""
    index, columns = getattr(frame, "index", None), list(frame.columns)
    if index is not None and list(index) == columns:
        return _from_matrix(frame.to_numpy(), columns)
    if len(columns) == 2:
        return Neighbours.of(names, frame.to_numpy().tolist())
    raise ValueError(
        f"neighbours: a frame with equal index and columns, or of two columns, was expected, found {len(frame)} rows "
        f"and the columns {listed(columns, 4)}; give {_FORMS}"
    )


def _from_matrix(matrix: Any, names: list[Hashable]) -> Neighbours:
    n = matrix.shape[0]
    if matrix.shape != (n, n) or len(names) != n:
        raise ValueError(
            f"neighbours: a square matrix with a level for every row was expected, found {matrix.shape[0]} by "
            f"{matrix.shape[1]} with {len(names)} levels; give levels=[...] in the order of the rows"
        )
    found = sparse.coo_array(matrix)
    found.eliminate_zeros()
    if np.any(found.data != 1) or (sparse.csr_array(found) != sparse.csr_array(found).T).nnz:
        odd = found.data[found.data != 1]
        what = f"the entry {odd[0]:g}" if odd.size else "entries that differ from their mirror images"
        raise ValueError(
            f"neighbours: a symmetric matrix of zeros and ones was expected, found {what}; give (W > 0) * 1"
        )
    on = found.row != found.col  # a diagonal of ones is a habit of some, and says nothing
    return Neighbours.of(names, [(names[i], names[j]) for i, j in zip(found.row[on], found.col[on], strict=True)])


def _touching(frame: Any) -> Neighbours:
    """Areas of a GeoDataFrame, named by its index, whose polygons have a point in common."""
    names = list(frame.index)
    if len(set(names)) < len(names):
        raise ValueError("neighbours: a GeoDataFrame with an area per row was expected, found names twice; dissolve it")
    first, second = frame.sindex.query(frame.geometry, predicate="intersects")
    return Neighbours.of(names, [(names[i], names[j]) for i, j in zip(first, second, strict=True) if i != j])
