"""A kernel meets a table: every term gets its column, its levels, and the names it goes by."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from vff.estimators.tables import Table
from vff.inference import LevelTerm, MaternTerm
from vff.inference import Term as InnerTerm
from vff.kernels import Categorical, Kernel, Matern32, Sum, Term, normal_form

_SOME_LEVELS, _MOST_LEVELS = 50, 1000


@dataclass(frozen=True)
class BoundTerm:
    """One term of the kernel and its column in the table."""

    term: Term
    name: str
    """Unique among the terms."""
    index: int
    label: str
    """What the column is called in messages."""
    aliases: frozenset[Hashable]
    """Names by which options may speak of the column."""
    kind: str
    """What the column holds: "number", "datetime", "duration", "boolean" or "text"."""
    levels: tuple[Any, ...] | None
    """The levels of a categorical column."""

    @property
    def inner(self) -> InnerTerm:
        factor = self.term.factors[0]
        return LevelTerm() if isinstance(factor, Categorical) else MaternTerm(factor.order)

    @property
    def given(self) -> dict[str, float | None]:
        """The hyperparameters the user wrote, None where there are none."""
        factor = self.term.factors[0]
        values: dict[str, float | None] = {"variance": factor.variance}
        return values if isinstance(factor, Categorical) else {**values, "lengthscale": factor.lengthscale}

    @property
    def identity(self) -> tuple[Any, int, type]:
        """What the sums over rows and the model depend on."""
        return self.term.columns, self.index, type(self.term.factors[0])

    def with_levels(self, levels: tuple[Any, ...]) -> "BoundTerm":
        return replace(self, levels=levels)


def default_kernel(table: Table) -> Kernel:
    """A Matern32 per column of numbers, a Categorical per column of text."""
    leaves = [
        Categorical(table.names[index]) if table.names and table.kind(index) == "text" else Matern32(column)
        for index, column in enumerate(table.names or range(table.n_columns))
    ]
    return leaves[0] if len(leaves) == 1 else Sum(tuple(leaves))


def _check_levels(table: Table, index: int, levels: int) -> None:
    """Refuse to take a column of text with very many values for a category unless it is named."""
    if levels > _MOST_LEVELS or (levels > _SOME_LEVELS and 2 * levels > table.n_rows):
        raise ValueError(
            f"column {table.label(index)} of X holds text with {levels} different values in {table.n_rows} rows, "
            "too many for kernel=None to take it for a category: parse it if it holds dates or numbers, drop it if it "
            f"names rows, or write the kernel with Categorical({table.label(index)})"
        )


def bind(kernel: Kernel | None, table: Table, *, first: bool = True) -> tuple[BoundTerm, ...]:
    """The terms of the kernel with their columns; ``first`` says that no rows were seen before."""
    bound: list[BoundTerm] = []
    for term in normal_form(default_kernel(table) if kernel is None else kernel):
        if len(term.factors) > 1:
            raise ValueError(
                f"the kernel multiplies columns ({term.name}), and this version fits sums of one-column terms; "
                "write a sum, as in Matern32('x') + Matern32('z')"
            )
        (column,) = term.columns
        index = table.index(column)
        name = _unique(term.name, {other.name for other in bound})
        aliases = {column, index, *([table.names[index]] if table.names else [])}
        levels = table.levels(index) if any(isinstance(factor, Categorical) for factor in term.factors) else None
        if kernel is None and first and levels is not None:
            _check_levels(table, index, len(levels))
        bound.append(BoundTerm(term, name, index, table.label(index), frozenset(aliases), table.kind(index), levels))
    return tuple(bound)


def _unique(name: str, taken: set[str]) -> str:
    """The name, or with the first number that makes it new."""
    numbered = (f"{name}_{number}" for number in count(2))
    return name if name not in taken else next(trial for trial in numbered if trial not in taken)


def joined(seen: tuple[BoundTerm, ...], new: tuple[BoundTerm, ...]) -> tuple[BoundTerm, ...]:
    """The terms over the levels of both; they must be the same terms."""
    if [term.identity for term in seen] != [term.identity for term in new]:
        raise ValueError(
            f"rows were summed for {_text(seen)} and cannot be added to those for {_text(new)}; keep the kernel, or "
            "fit all rows again"
        )
    return tuple(
        new_term if old.levels is None or new_term.levels is None else new_term.with_levels(_union(old, new_term))
        for old, new_term in zip(seen, new, strict=True)
    )


def _text(terms: tuple[BoundTerm, ...]) -> str:
    return " + ".join(f"{type(term.term.factors[0]).__name__}({term.term.columns[0]!r})" for term in terms)


def _union(old: BoundTerm, new: BoundTerm) -> tuple[Any, ...]:
    """All levels of both, those seen first in their old places."""
    seen = old.levels or ()
    known = set(seen)
    return (*seen, *(level for level in new.levels or () if level not in known))
