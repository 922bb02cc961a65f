"""What users write of levels that know their neighbours: areas of a map, and levels in an order."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from vff.factors.expression import Leaf
from vff.factors.graph.factor import GraphFactor
from vff.factors.graph.neighbours import LONGEST, Neighbours, neighbours_of, plain_level
from vff.words import listed, shown

_KINDS = ("bym2", "proper")


@lru_cache(maxsize=64)
def _path(levels: tuple[Hashable, ...]) -> Neighbours:
    """One for all who ask, since it knows its hash."""
    return Neighbours.path(levels)


@dataclass(frozen=True, repr=False)
class _GraphLeaf(Leaf):
    """A kernel over the levels of a graph."""

    reads: ClassVar[str] = "levels"

    @property
    def graph(self) -> Neighbours | None:
        raise NotImplementedError

    @property
    def levels_named(self) -> tuple[Hashable, ...] | None:
        return None if self.graph is None else self.graph.levels

    def clash(self, other: Leaf) -> str | None:
        return "levels are told apart once" if other.reads == "levels" else None

    def unnamed(self, levels: Sequence[Any], label: str) -> str:
        known = self.levels_named or ()
        alike = next((level for level in levels if str(level) in set(map(str, known))), None)
        found = f"column {label} of X holds {listed(levels, 4)}"
        if alike is not None:
            other = next(level for level in known if str(level) == str(alike))
            return (
                f"{found}, and {self.what} {listed(known, 4)}, where {shown(other)} is not {shown(alike)}; name levels "
                "as the column does, text as text and numbers as numbers"
            )
        if None in levels:
            return f"{found}, and a missing value has no place among {listed(known, 4)}; drop or fill these rows"
        return f"{found}, and {self.what} {listed(known, 4)}; {self.advice}, or drop these rows"

    what: ClassVar[str]
    """What names the levels."""
    advice: ClassVar[str]

    def _correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        factor = self.factor
        known, values = factor.known.levels, {own.name: getattr(self, own.name) for own in factor.parameters}
        place = {level: float(code) for code, level in enumerate(known)}

        def codes(own: Any) -> np.ndarray:
            levels = [level.item() if isinstance(level, np.generic) else level for level in np.asarray(own, object)]
            unknown = [level for level in levels if level not in place]
            if unknown:
                raise ValueError(
                    f"levels among {listed(known, 4)} were expected, found {listed(unknown, 4)}; drop them"
                )
            return np.array([place[level] for level in levels])

        return factor.covariance(codes(x), codes(z), values)

    @property
    def factor(self) -> GraphFactor:
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Areas(_GraphLeaf):
    """Effects of areas that know their neighbours, as in maps of diseases: BYM2, or a proper field.

    ``kind="bym2"`` is an intrinsic conditional autoregression with independent effects beside it, both of typical
    variance one, mixed: covariance = variance * (ratio Q + I) / (1 + ratio), with Q the generalised inverse of D - W
    over the geometric mean of its diagonal. The mixing weight of Riebler et al. (2016) is phi = ratio / (1 + ratio).
    ``kind="proper"`` has the precision I / lengthscale^2 + D - W, over a number that makes its typical variance one:
    Leroux's field with rho = lengthscale^2 / (1 + lengthscale^2). Components of the map are scaled each by itself, and
    an area without neighbours is independent of all others. Areas without rows are predicted from their neighbours.

    Parameters
    ----------
    column : str or int
        Name or index of the column.
    neighbours : pairs, dict of lists, adjacency matrix, frame or GeoDataFrame
        Pairs of names, or a frame of two columns; ``{"a": ["b", "c"], "island": []}``; a square matrix of zeros and
        ones (a pandas frame that names its rows and columns, or an array or SciPy matrix with ``levels``); or a
        GeoDataFrame whose index names its areas, of which those that touch are neighbours. All levels of the column
        must be there.
    variance : float or None
        Where learning starts, or the value used when nothing is learnt; None starts from the data.
    levels : sequence of str or numbers
        Names of the rows of a matrix; or areas, those without neighbours among them.
    kind : "bym2" or "proper"
    ratio : float or None
        As ``variance``: of the variance that neighbours share to that of every area's own. For "bym2".
    lengthscale : float or None
        As ``variance``: over how many steps from neighbour to neighbour effects are alike. For "proper".

    Examples
    --------
    >>> kernel = vff.Areas("region", [("a", "b"), ("b", "c")], variance=1.0, ratio=9.0)
    >>> kernel(["a"], ["a", "b", "c"]).round(2)
    array([[ 1.32, -0.24, -0.98]])
    """

    nickname: ClassVar[str] = "areas"
    choices: ClassVar[frozenset[str]] = frozenset({"neighbours", "kind"})
    from_file: ClassVar[str] = "neighbours"
    what: ClassVar[str] = "its neighbours name"
    advice: ClassVar[str] = "give these areas neighbours, or a place of their own as in {'island': []}"
    neighbours: Neighbours | Any = None  # as users have them, until they are made what they are
    _: KW_ONLY
    levels: InitVar[Sequence[Hashable] | None] = None
    kind: str = "bym2"
    ratio: float | None = None
    lengthscale: float | None = None

    def __post_init__(self, levels: Sequence[Hashable] | None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().__post_init__()
        if self.neighbours is None:
            raise TypeError(
                f"Areas({shown(self.column)}) needs neighbours; write Areas({shown(self.column)}, [('a', 'b'), "
                "('b', 'c')]) with the names of areas that touch"
            )
        if self.kind not in _KINDS:
            raise ValueError(
                f"Areas({shown(self.column)}): kind must be one of {', '.join(map(shown, _KINDS))}, got "
                f"{shown(self.kind)}; leave it out for {_KINDS[0]!r}"
            )
        other = "lengthscale" if self.kind == "bym2" else "ratio"
        if getattr(self, other) is not None:
            raise ValueError(
                f"Areas({shown(self.column)}): kind={self.kind!r} has no {other}, got {shown(getattr(self, other))}; "
                "leave it out, or choose the other kind"
            )
        if levels is not None or not isinstance(self.neighbours, Neighbours):
            object.__setattr__(self, "neighbours", neighbours_of(self.neighbours, levels))

    @property
    def graph(self) -> Neighbours | None:
        return self.neighbours

    @property
    def factor(self) -> GraphFactor:
        return GraphFactor(self.neighbours, self.kind)

    def _choice_text(self, name: str, value: Any, *, whole: bool) -> str:
        return value.text(whole=whole) if name == "neighbours" else repr(value)

    def _values(self) -> dict[str, Any]:
        """Without what is as ever."""
        values = super()._values()
        return {name: None if (name, value) == ("kind", "bym2") else value for name, value in values.items()}


@dataclass(frozen=True, repr=False)
class Ordered(_GraphLeaf):
    """Effects of levels in an order, where each is near the one before: grades, age groups, steps of a scale.

    A random walk over the levels, of which the mean over all levels has the prior variance ``variance``, as its typical
    distance from that mean. What is not smooth is ``Ordered("g") + Categorical("g")``.

    Parameters
    ----------
    column : str or int
        Name or index of the column.
    levels : sequence of str or numbers, or None
        All levels, in their order; None takes those of an ordered pandas or polars column.
    variance : float or None
        Where learning starts, or the value used when nothing is learnt; None starts from the data.

    Examples
    --------
    >>> kernel = vff.Ordered("grade", ["poor", "fair", "good"], variance=1.0)
    >>> kernel(["poor"], ["poor", "fair", "good"]).round(2)
    array([[ 2.36,  0.73, -0.09]])
    """

    nickname: ClassVar[str] = "ordered"
    choices: ClassVar[frozenset[str]] = frozenset({"levels"})
    what: ClassVar[str] = "levels="
    advice: ClassVar[str] = "give these levels a place in the order"
    levels: tuple[Hashable, ...] | Any = None  # any sequence, until it is made a tuple

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.levels is None:
            return
        if isinstance(self.levels, str) or not isinstance(self.levels, Iterable):
            raise TypeError(
                f"Ordered({shown(self.column)}): levels must be a list of all levels in their order, got "
                f"{shown(self.levels)}; write levels=['low', 'middle', 'high']"
            )
        given = tuple(self.levels)
        levels = tuple(map(plain_level, given))
        if len(set(levels)) < len(levels) or len(levels) < 2:
            raise ValueError(
                f"Ordered({shown(self.column)}): two or more different levels were expected, found "
                f"{listed(levels, 6)}; name each once"
            )
        if type(self.levels) is not tuple or any(own is not one for own, one in zip(given, levels, strict=True)):
            object.__setattr__(self, "levels", levels)

    @property
    def graph(self) -> Neighbours | None:
        return None if self.levels is None else _path(self.levels)

    @property
    def factor(self) -> GraphFactor:
        return GraphFactor(self.graph, "walk")

    @property
    def in_order(self) -> bool:
        return True

    def over(self, order: Sequence[Any] | None, label: str) -> Self:
        if self.levels is not None:
            return self
        if order is None:
            raise ValueError(
                f"Ordered({shown(self.column)}) needs the order of its levels, and column {label} of X has none; write "
                "levels=['low', 'middle', 'high'], or make the column an ordered categorical"
            )
        return replace(self, levels=tuple(order))

    def _choice_text(self, name: str, value: Any, *, whole: bool) -> str:
        return repr(list(value)) if whole or len(value) <= LONGEST else f"<{len(value)} levels>"
