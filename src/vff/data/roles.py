"""What the columns of a source are for: features, target, weights, labels."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from vff.data.checks import as_labels
from vff.data.schema import Kind
from vff.data.table import Table
from vff.words import listed, perhaps, shown

if TYPE_CHECKING:
    from vff.data.source import Chunk, Source


class Positive(NamedTuple):
    """A column of labels, one of which is told from the others; None where chunks bring the labels along."""

    column: str | None
    label: Any


class UsedColumns(NamedTuple):
    """The columns that a model names."""

    columns: tuple[Hashable, ...] | None
    """None without a kernel: all that have no other role are features."""
    levels: tuple[str | int, ...]
    """Those among them that are levels."""
    offset: Hashable | None = None
    """One of numbers that are added to the function."""


@dataclass(frozen=True)
class Roles:
    """What the columns of a source are for."""

    features: tuple[str, ...] | None
    """Those of the model; None where columns have no names, or all are taken as they come."""
    target: str | None = None
    weight: str | None = None
    levels: tuple[str | int, ...] = ()
    """The columns of levels, where a missing value is a level of its own."""
    positive: tuple[Any, ...] = ()
    """The label that counts as one, all others as zero; empty where targets are numbers."""
    labelled: bool = False
    """Whether targets are labels, which are told apart and not summed."""
    offset: str | None = None
    """The one among the features that is added to the function; None where there is none, or it goes by number."""
    unmodelled: tuple[str, ...] = ()
    """Those among the features that are read for something else alone."""

    @classmethod
    def of(cls, source: "Source", used: UsedColumns | None, y: Any, sample_weight: Any) -> "Roles":
        """By the names that the model, ``y`` and ``sample_weight`` give."""
        if isinstance(y, Positive):
            return replace(cls.of(source, used, y.column, sample_weight), positive=(y.label,), labelled=True)
        levels = () if used is None else used.levels
        if source.names is None:
            for value, what in ((y, "y"), (sample_weight, "sample_weight")):
                if value is not None:
                    raise ValueError(
                        "chunks without column names bring their targets and weights along as (X, y) or (X, y, w); got "
                        f"{what}={shown(value)}: leave it out"
                    )
            return cls(None, levels=levels)
        target, weight = (
            _name(value, what, source.names) for value, what in ((y, "y"), (sample_weight, "sample_weight"))
        )
        offset = None if used is None else _offset(used.offset, source.names, target)
        if used is None or used.columns is None:
            features = tuple(name for name in source.names if name not in (target, weight))
            texts = tuple(n for n in features if source.kinds.get(n) == Kind.TEXT)
            return cls(features, target, weight, texts, offset=offset, unmodelled=_some(offset))
        for column in used.columns:
            _check_column(column, source.names, target)
        named = {*used.columns, offset}
        others = _some(None if offset in used.columns else offset)
        features = tuple(name for name in source.names if name in named)
        return cls(features, target, weight, levels, offset=offset, unmodelled=others)

    @property
    def all(self) -> tuple[str, ...]:
        named = (*(self.features or ()), self.target, self.weight)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def labels(self) -> tuple[str, ...]:
        """The column of labels, if there is one."""
        return (self.target,) if self.labelled and self.target is not None else ()

    def ordered(self, known: Sequence[str] | None) -> "Roles":
        """With the features in the order in which an earlier fit has them."""
        if known is None or self.features is None or sorted(known) != sorted(self.features):
            return self
        return replace(self, features=tuple(known))

    def split(self, chunk: "Chunk") -> tuple[Table, Any, Any]:
        """X, y and the weights of a chunk."""
        table, y, w = chunk.table, chunk.y, chunk.w
        if self.features is None and y is None:
            raise ValueError("targets were expected beside the columns: give chunks as pairs (X, y)")
        if self.features is not None:
            y = y if self.target is None else table.raw(table.index(self.target))
            w = w if self.weight is None else table.raw(table.index(self.weight))
            table = table.arranged(self.features) if self.features else table
        return table, (as_labels(y) == self.positive[0]).astype(float) if self.positive else y, w


def _name(value: Any, what: str, names: Sequence[str]) -> str | None:
    """The column that holds targets or weights; None when chunks bring them along."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(
            f"{what} must be the name of a column when rows come in chunks, got {type(value).__name__}; name one of "
            f"{listed(names)}"
        )
    if value not in names:
        raise ValueError(
            f"{what} names column {shown(value)}, and there are {listed(names)}; name one of "
            f"them{perhaps(value, names)}"
        )
    return value


def _some(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)


def _offset(column: Any, names: Sequence[str], target: str | None) -> str | None:
    """The column that is added to the function."""
    if column is None:
        return None
    if not isinstance(column, str) or column not in names:
        raise ValueError(
            f"offset names column {shown(column)}, and there are {listed(names)}; name one of "
            f"them{perhaps(column, names)}"
        )
    if column == target:
        raise ValueError(f"offset names column {shown(column)}, which is the target; name another column")
    return column


def _check_column(column: Any, names: Sequence[str], target: str | None) -> None:
    if not isinstance(column, str) or column not in names:
        raise ValueError(
            f"the kernel asks for column {shown(column)}, and the source has {listed(names)}; use these "
            f"names{perhaps(column, names)}"
        )
    if column == target:
        raise ValueError(f"the kernel has a term of {shown(column)}, which is the target; leave it out of the kernel")
