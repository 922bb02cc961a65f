"""A kernel meets a table: every term gets its columns, their levels, and the names they go by."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from vff.data.conversion import in_order
from vff.data.meaning import are_written, refuse_to_guess, refuse_written
from vff.data.table import Table
from vff.estimators.named import column_of
from vff.factors import KINDS, Kernel, Leaf, Term, normal_form, or_missing, sum_of
from vff.inference import Exchangeable, exchangeable_factors
from vff.inference import Term as InnerTerm
from vff.moments import Place, numbers, place_of
from vff.parameters import bounds_of, start_of
from vff.words import listed, shown

_SOME_LEVELS, _MOST_LEVELS = 50, 1000


@dataclass(frozen=True)
class BoundColumn:
    """A column of the table, as numbers or as levels."""

    index: int
    label: str
    """What the column is called in messages."""
    aliases: frozenset[Hashable]
    """Names by which options may speak of the column."""
    kind: str
    """What the column holds: "number", "datetime", "duration", "boolean" or "text"."""
    levels: tuple[Any, ...] | None
    """The levels of a categorical column."""
    order: tuple[Any, ...] | None = None
    """Its levels in the order that its type says, those without rows too; None where it says none."""
    admits: bool = False
    """Whether a missing value has an effect of its own in it; else it is refused, or a level among others."""

    def read(self, table: Table, rows: slice = slice(None), word: str | None = None) -> np.ndarray:
        """Its numbers, or the codes of its levels, at some rows of a table; NaN where they are missing.

        ``word`` says what a missing value is here, where that is not as in the fit.
        """
        admits = self.admits if word is None else word == "effect"
        if self.levels is None:
            return table.numbers(self.index, rows, missing=admits)
        return table.codes(self.index, self.levels, rows, missing=admits)


@dataclass(frozen=True)
class BoundTerm:
    """One term of the kernel and its columns."""

    term: Term
    name: str
    """Unique among the terms."""
    columns: tuple[Place, ...]
    """Which of the bound columns its factors are over."""
    gaps: tuple[bool, ...] = ()
    """Whether every factor meets missing values, which have an effect of their own; none where no factor does."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """All of them, one after another."""
        return numbers(self.columns)

    @property
    def key(self) -> Hashable:
        """What options and results call it: its column, or the name of a product or of one of several on a column."""
        alone = len(self.numbers) == 1 and self.name == self.term.name
        return self.term.columns[0] if alone else self.name

    @property
    def inner(self) -> InnerTerm:
        factors = self.term.inner
        if any(self.gaps):
            factors = tuple(or_missing(own) if gap else own for own, gap in zip(factors, self.gaps, strict=True))
        return InnerTerm(factors, self.term.variance is not None)

    def with_gaps(self, missing: Sequence[bool]) -> "BoundTerm":
        """The same over columns, all that are bound, some of which have missing values."""
        found = [any(missing[c] for c in numbers((place,))) for place in self.columns]
        gaps = tuple(one or other for one, other in zip(found, self.gaps or found, strict=True))
        return replace(self, gaps=gaps) if any(gaps) else self

    @property
    def given(self) -> dict[str, float | None]:
        """Where the user's hyperparameters start, None where the data say."""
        return {name: start_of(value) for name, value in self._written.items()}

    @property
    def limits(self) -> dict[str, tuple[float, float]]:
        """Between which bounds the user lets hyperparameters be, of those that are held or bounded."""
        found = {name: bounds_of(value) for name, value in self._written.items()}
        return {name: bounds for name, bounds in found.items() if bounds is not None}

    @property
    def _written(self) -> dict[str, float | None]:
        """The hyperparameters as the user wrote them."""
        leaves = self.term.factors
        own = {name: leaves[d].given[parameter.name] for name, d, parameter in self.inner.parameters}
        return {"variance": self.term.variance, **own}


@dataclass(frozen=True)
class Binding:
    """A kernel's terms over a table's columns."""

    columns: tuple[BoundColumn, ...]
    terms: tuple[BoundTerm, ...]

    @property
    def exchangeable(self) -> Exchangeable:
        """Of terms with levels, the factors whose coefficients are independent a priori, with one variance for all."""
        return exchangeable_factors([term.inner for term in self.terms])

    def with_gaps(self, missing: Sequence[bool]) -> "Binding":
        """The same where some columns have missing values, beside those that are known to."""
        if not any(missing):
            return self
        return replace(self, terms=tuple(term.with_gaps(missing) for term in self.terms))

    @property
    def gaps(self) -> tuple[bool, ...]:
        """Whether every column, or one that is read together with it, is known to have missing values."""
        found = {c for term in self.terms for c, gap in zip(term.columns, term.gaps, strict=False) if gap}
        every = numbers(found)
        return tuple(c in every for c in range(len(self.columns)))

    @property
    def identity(self) -> tuple[Any, ...]:
        """What the sums over rows and the model depend on; a column with a name may stand anywhere."""

        def where(place: Place, factor: Leaf) -> tuple[Hashable, ...]:
            own = zip(numbers((place,)), factor.columns, strict=True)
            return tuple(column if isinstance(column, str) else self.columns[c].index for c, column in own)

        return tuple(
            tuple(
                (*where(place, factor), *factor.identity)
                for place, factor in zip(term.columns, term.term.factors, strict=True)
            )
            for term in self.terms
        )

    @property
    def places(self) -> tuple[Place, ...]:
        """What factors read, each once: columns, or several of them together."""
        return tuple(dict.fromkeys(place for term in self.terms for place in term.columns))

    def label(self, place: Place) -> str:
        """What a column, or several that are read together, are called in messages."""
        labels = [self.columns[c].label for c in numbers((place,))]
        return labels[0] if len(labels) == 1 else f"({', '.join(labels)})"

    @property
    def sources(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The columns of the table behind every factor of every term."""
        return tuple(
            tuple(tuple(self.columns[c].index for c in numbers((place,))) for place in term.columns)
            for term in self.terms
        )

    def labels(self, term: BoundTerm) -> tuple[str, ...]:
        """What the columns of a term are called in messages, factor by factor."""
        return tuple(map(self.label, term.columns))

    @property
    def kernel(self) -> Kernel:
        """The sum of its terms."""
        return sum_of([own.term.expression for own in self.terms])

    @property
    def text(self) -> str:
        return " + ".join(
            " * ".join(
                f"{type(factor).__name__}({', '.join(map(repr, factor.columns))})" for factor in term.term.factors
            )
            for term in self.terms
        )


def default_kernel(table: Table, beside: Iterable[Hashable] = ()) -> Kernel:
    """What every column stands for by itself, without names numbers; nothing where it is read for something else."""
    left_out = {column_of(column, table) for column in beside}
    for index in range(table.n_columns) if table.names else ():
        if index not in left_out and table.kind(index) == "text":
            refuse_to_guess(table.raw(index), table.origin(index))
    leaves = [
        # numbers and text always stand for something
        KINDS.default_leaf("text" if table.names and table.kind(index) == "text" else "number")(column)  # pyright: ignore[reportOptionalCall]
        for index, column in enumerate(table.names or range(table.n_columns))
        if index not in left_out
    ]
    if not leaves:
        raise ValueError(
            f"X has no column beside {listed(tuple(map(str, beside)))}, which the likelihood or the offset takes; "
            "give it one to model"
        )
    return sum_of(leaves)


def check_levels(binding: Binding, n_rows: int, declared: Callable[[BoundColumn], bool]) -> None:
    """Refuse to take a column of text for a category, unless it is named, that hardly is one.

    It has very many values, or these are numbers or dates, unless the type of the column was ``declared`` to be one.
    """
    for column in binding.columns:
        if column.kind == "text" and are_written(column.levels or ()) and not declared(column):
            refuse_written(column.levels or (), column.label)
        levels = len(column.levels or ())
        if levels > _MOST_LEVELS or (levels > _SOME_LEVELS and 2 * levels > n_rows):
            raise ValueError(
                f"column {column.label} of X holds text with {levels} different values in {n_rows} rows, too many for "
                "kernel=None to take it for a category: parse it if it holds dates or numbers, drop it if it names "
                f"rows, or write the kernel with Categorical({column.label})"
            )


def notes_on(kernel: Kernel | str | None, binding: Binding, n_rows: int) -> tuple[str, ...]:
    """What kernel=None decided, where one might wish that it had not."""
    many = [
        (column.label, len(column.levels or ()))
        for column in binding.columns
        if kernel is None and len(column.levels or ()) > max(2, n_rows // 2)
    ]
    return tuple(
        f"kernel=None took the text in column {label} for a category, of {levels} levels in {n_rows} rows, few of "
        "which share one; drop the column if it names rows, parse it if it holds something else"
        for label, levels in many
    )


def resolve_columns(
    kernel: Kernel | None, table: Table, beside: Sequence[Hashable] = (), *, admits: bool = False
) -> Binding:
    """The terms of the kernel with their columns; without one, of all columns but those that are read ``beside``.

    ``admits`` says whether missing values have an effect of their own; whether there are any, a look at the rows tells.
    """
    columns: dict[Hashable, BoundColumn] = {}
    terms: list[BoundTerm] = []
    known = [
        Term(tuple(_over(leaf, table) for leaf in term.factors))
        for term in normal_form(default_kernel(table, beside) if kernel is None else kernel)
    ]
    named: dict[int, Leaf] = {}
    for leaf in (leaf for term in known for leaf in term.factors if leaf.levels_named is not None):
        named.setdefault(table.index(leaf.column), leaf)
    for term in known:
        indices = [tuple(map(table.index, leaf.columns)) for leaf in term.factors]
        _check_different(term, indices, table)
        places: list[Place] = []
        for own, leaf in zip(indices, term.factors, strict=True):
            # where one leaf on a column names its levels, all that are read as levels there follow it
            follows = leaf.reads == "levels" and leaf.levels_named is None
            speaker = named.get(own[0], leaf) if follows else leaf
            # the columns of a factor are its own: two that share some of several do not share them with others
            axis = speaker.factor_in(len(indices) > 1).axis
            keys = [(own if len(own) > 1 else index, axis, index) for index in own]
            for key, index in zip(keys, own, strict=True):
                if key not in columns:
                    columns[key] = _bound(index, leaf, speaker, table, admits=admits)
            places.append(place_of([list(columns).index(key) for key in keys]))
        name = _unique(term.name, {other.name for other in terms})
        terms.append(BoundTerm(term, name, tuple(places)))
    return Binding(tuple(columns.values()), tuple(terms))


def _over(leaf: Leaf, table: Table) -> Leaf:
    """The leaf with what its column says of itself."""
    index = table.index(leaf.columns[0])
    return leaf.over(table.order(index) if leaf.reads == "levels" else None, table.label(index))


def _levels(speaker: Leaf, table: Table, index: int, *, admits: bool) -> tuple[Any, ...]:
    """The levels of a column: those that a leaf on it names, which must be all, or those that the rows have.

    Where levels are named, a missing value is none of them, and may have an effect of its own.
    """
    found, named = table.levels(index), speaker.levels_named
    if named is None:
        return found
    places = {*named, None} if admits else set(named)
    unnamed = [level for level in found if level not in places]
    if unnamed:
        raise ValueError(speaker.unnamed(unnamed, table.label(index)))
    return named


def _bound(index: int, leaf: Leaf, speaker: Leaf, table: Table, *, admits: bool) -> BoundColumn:
    """A column as a leaf reads it; options speak of several that are read together by its name."""
    own = next(column for column in leaf.columns if table.index(column) == index)
    alone = {own, index, *([table.names[index]] if table.names else [])}
    aliases = alone if leaf.one_by_one else {leaf.name}
    levels = _levels(speaker, table, index, admits=admits) if leaf.reads == "levels" else None
    order = None if levels is None else levels if speaker.in_order else table.order(index)
    # among levels that nobody has named, missing is one
    admits = admits and (levels is None or speaker.levels_named is not None)
    return BoundColumn(index, table.label(index), frozenset(aliases), table.kind(index).value, levels, order, admits)


def _check_different(term: Term, indices: list[tuple[int, ...]], table: Table) -> None:
    """A product is over different columns, whatever they are called, unless its factors say that one will do."""
    leaves = term.factors
    for leaf, own in zip(leaves, indices, strict=True):
        if len(set(own)) < len(own):
            raise ValueError(
                f"{shown(leaf)} takes {len(own)} different columns, and its names all stand for column "
                f"{table.label(own[0])} of X; name each of them once"
            )
    for d, own in enumerate(indices):
        same = [leaves[other] for other in range(d) if set(indices[other]) & set(own)]
        if any(leaves[d].clash(other) or other.clash(leaves[d]) for other in same):
            raise ValueError(
                f"the product {term.name} uses column {table.label(own[0])} of X twice, and its factors must be over "
                "different columns; leave one of them out"
            )


def _unique(name: str, taken: set[str]) -> str:
    """The name, or with the first number that makes it new."""
    numbered = (f"{name}_{number}" for number in count(2))
    return name if name not in taken else next(trial for trial in numbered if trial not in taken)


def united(one: Binding, other: Binding) -> Binding:
    """The terms over the levels of both in the order that one look at all rows would have given them."""
    both = joined(one, other)
    columns = tuple(
        column
        if column.levels is None or column.levels == old.levels
        else replace(column, levels=in_order(column.levels))
        for old, column in zip(one.columns, both.columns, strict=True)
    )
    return replace(both, columns=columns)


def joined(seen: Binding, new: Binding) -> Binding:
    """The terms over the levels of both; they must be the same terms."""
    if seen.identity != new.identity:
        raise ValueError(
            f"rows were summed for {seen.text} and cannot be added to those for {new.text}; keep the kernel, or fit "
            "all rows again"
        )
    columns = tuple(  # those seen first in their old places
        column
        if old.levels is None or column.levels is None
        else replace(column, levels=tuple(dict.fromkeys((*old.levels, *column.levels))))
        for old, column in zip(seen.columns, new.columns, strict=True)
    )
    return replace(new, columns=columns).with_gaps(seen.gaps)
