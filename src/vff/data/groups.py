"""Sums over the rows of a table of a database, taken where the rows are: totals, and sums by combination of values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vff.data.checks import LARGEST_TARGET, LARGEST_WEIGHT
from vff.data.memory import MemorySource
from vff.data.roles import Roles
from vff.data.schema import Kind
from vff.words import shown

if TYPE_CHECKING:
    from vff.data.database import DatabaseTable

MOST_CELLS = 2**24
"""Combinations of values of some columns that are fetched: with what is made of them, about 2 GiB."""
_LARGEST = float(np.finfo(float).max)


class Totals(NamedTuple):
    """Sums over all rows that count."""

    rows: int
    """All of them."""
    n: int
    """Rows of positive weight, with nothing missing."""
    weightless: int
    """Rows of weight zero."""
    dropped: int
    """Rows that were left out, as asked, because something in them is missing."""
    weight: float
    target: float
    """sum w y."""


class Groups(NamedTuple):
    """The different combinations of values of some columns, in order, with sums over their rows."""

    values: Any
    """An Arrow table of these columns."""
    w: np.ndarray
    """sum w."""
    target: np.ndarray = np.empty(0)
    """sum w (y - offset), where that was asked for."""
    squares: np.ndarray = np.empty(0)
    """sum w (y - offset)^2."""


class TooManyGroupsError(ValueError):
    """Columns have more combinations of values than a database is asked for."""


@dataclass(frozen=True)
class DatabaseRows:
    """The rows of a table with their targets and weights, to be summed where they are."""

    table: "DatabaseTable"
    roles: Roles
    """With a target; a missing value of a column of levels is a level of its own."""

    def __post_init__(self) -> None:
        kinds, roles = self.table.kinds, self.roles
        beside = (
            ("targets", None if roles.labelled else roles.target),
            ("weights", roles.weight),
            ("offsets", roles.offset),
        )
        for what, name in beside:
            if name is not None and not kinds[name].counts:
                raise ValueError(
                    f"{what} must be numbers, and column {shown(name)} holds {kinds[name]}: name a column of numbers"
                )
        for name in self.features:
            if kinds[name] == Kind.TEXT and name not in roles.levels:
                raise ValueError(
                    f"column {shown(name)} holds text, and numbers were expected: use Categorical({shown(name)}) for "
                    "the effects of its levels, or leave it out of the kernel"
                )
            if kinds[name] == Kind.DURATION:
                raise ValueError(
                    f"column {shown(name)} holds intervals, which databases do not hand out as numbers; make it a "
                    "number of days or seconds in the query"
                )

    @property
    def features(self) -> tuple[str, ...]:
        """Those that are modelled."""
        return tuple(name for name in self.roles.features or () if name not in self.roles.unmodelled)

    def _target_in(self, rows: Any) -> Any:
        """y, less the offset where there is one: of Gaussian noise that is all that has to be known of it."""
        y = rows[self.roles.target].cast("float64")
        return y if self.roles.offset is None else y - rows[self.roles.offset].cast("float64")

    def _weight_in(self, rows: Any, where: Any = None) -> Any:
        """sum w."""
        if self.roles.weight is None:
            return rows.count(where=where).cast("float64")
        return rows[self.roles.weight].cast("float64").sum(where=where)

    def _sum_in(self, rows: Any, values: Any, where: Any = None) -> Any:
        """sum w values."""
        weighted = values if self.roles.weight is None else rows[self.roles.weight].cast("float64") * values
        return weighted.sum(where=where)

    @cached_property
    def _prefix(self) -> str:
        """What the names of answers begin with, and no name of the table does; to many engines a is A."""
        prefix = "vff_"
        while any(name.lower().startswith(prefix) for name in self.table.names or ()):
            prefix += "_"
        return prefix

    @property
    def _checked(self) -> tuple[str, ...]:
        """Columns in which something must be there, or at least be finite."""
        return tuple(name for name in self.roles.all if name not in self.roles.levels)

    def _is_missing(self, name: str) -> Any:
        """Whether there is nothing, or what is there is not finite."""
        column = self.table.expression[name]
        if not column.type().is_floating():
            return column.isnull()
        # every engine can compare, and for none is NaN or an infinity less than the largest number
        return column.isnull() | ~(column.cast("float64").abs() <= self.table.number(_LARGEST))

    def _is_refused(self, name: str) -> Any:
        """The same, unless what is missing has an effect of its own."""
        column = self.table.expression[name]
        if self.table.options.missing != "effect" or name not in self.features:
            return self._is_missing(name)
        if not column.type().is_floating():
            return column.isnull() & ~column.isnull()
        # the inverse of an infinity is zero, and that of NaN is not
        inverse = self.table.number(1.0) / column.cast("float64").nullif(self.table.number(0.0))
        return (self._is_missing(name) & (inverse.abs() <= self.table.number(1.0))).fill_null(False)

    def missing(self, name: str) -> int:
        """How many rows that count have nothing in a column."""
        rows = self._rows
        return int(self._answer(rows, {"missing": self._is_missing(name).sum()})["missing"])

    @property
    def _counted(self) -> Any:
        """Whether a row counts: it has a positive weight, and nothing that is missing where that is left out."""
        counted = [] if self.roles.weight is None else [self.table.expression[self.roles.weight] > 0]
        if self.table.options.missing == "drop":
            counted += [~self._is_missing(name) for name in self._checked]
        return reduce(and_, counted) if counted else None

    @property
    def _rows(self) -> Any:
        counted = self._counted
        return self.table.expression if counted is None else self.table.expression.filter(counted)

    @cached_property
    def totals(self) -> Totals:
        """One question for all that is to be known before others make sense; refuses what no sum can be taken of."""
        table, counted = self.table.expression, self._counted
        sums = {"rows": table.count(), "n": table.count(where=counted), "weight": self._weight_in(table, counted)}
        if self.roles.weight is not None:
            sums |= {"least_weight": table[self.roles.weight].min(), "most_weight": table[self.roles.weight].max()}
        if not self.roles.labelled:
            y = self._target_in(table)
            sums |= {"target": self._sum_in(table, y, counted), "largest": y.abs().max(where=counted)}
        sums |= {f"missing_{i}": self._is_refused(name).sum() for i, name in enumerate(self._checked)}
        found = self._answer(table, sums)
        rows, missing = found["rows"], [found[f"missing_{i}"] or 0 for i in range(len(self._checked))]
        dropped = 0
        if self.table.options.missing == "drop" and any(missing):
            incomplete = reduce(or_, map(self._is_missing, self._checked))
            dropped = int(self._answer(table, {"dropped": incomplete.sum()})["dropped"])
        if not dropped:
            self._refuse_missing(missing, rows)
        self._check_range(found)
        n = found["n"]
        weight, target = (float(found.get(name) or 0.0) for name in ("weight", "target"))
        return Totals(rows, n, rows - dropped - n, dropped, weight, target)

    def _answer(self, rows: Any, sums: Mapping[str, Any]) -> dict[str, Any]:
        """One row of sums, by the names that they have here."""
        question = rows.aggregate(**{self._prefix + name: value for name, value in sums.items()})
        (found,) = self.table.ask(question).to_pylist()
        return {name: found[self._prefix + name] for name in sums}

    def _refuse_missing(self, missing: Sequence[int], rows: int) -> None:
        for name, count in zip(self._checked, missing, strict=True):
            if count:
                raise ValueError(
                    f"column {shown(name)} contains NULL, NaN or an infinite value ({count:,} of {rows:,} rows); "
                    "finite numbers were expected: filter these rows out, or leave them out with "
                    "vff.scan(table, missing='drop')"
                )

    def _check_range(self, found: Mapping[str, Any]) -> None:
        low, high, largest = (float(found.get(name) or 0.0) for name in ("least_weight", "most_weight", "largest"))
        if low < 0.0 or high > LARGEST_WEIGHT:
            raise ValueError(
                f"weights count rows, and from 0 to {LARGEST_WEIGHT:g} was expected; column {shown(self.roles.weight)} "
                f"reaches {low if low < 0.0 else high:g}: mend it in the query"
            )
        if largest > LARGEST_TARGET:
            raise ValueError(
                f"column {shown(self.roles.target)} reaches {largest:g}, and its square leaves float64; measure it in "
                "larger units"
            )

    @cached_property
    def _known(self) -> dict[tuple[Any, ...], Groups]:
        return {}

    def grouped(self, columns: Sequence[str], offset: float, most: int) -> Groups:
        """Sums for every combination of values of some columns; ``TooManyGroupsError`` beyond ``most`` of them.

        They are in order, so that nothing depends on how an engine happens to keep its groups. Nothing is asked twice.
        """
        key = tuple(columns), offset
        if key not in self._known:
            rows = self._rows
            residual = self._target_in(rows) - self.table.number(offset)
            sums = {"target": self._sum_in(rows, residual), "squares": self._sum_in(rows, residual * residual)}
            self._known[key] = self._groups(rows, columns, most, sums)
        return self._known[key]

    def counted(self, columns: Sequence[str], most: int) -> Groups:
        """Weights alone, as ``grouped``; targets may be anything."""
        return self._groups(self._rows, columns, most, {})

    def different(self) -> MemorySource:
        """The different rows with their weights, in memory, for what asks rows again and again."""
        dropped = self.totals.dropped  # also refuses what no sum can be taken of
        names = list(self.roles.features or ())
        found = self.counted((*names, str(self.roles.target)), MOST_CELLS)
        target, features = found.values.column(self.roles.target), found.values.select(names)
        source = MemorySource(features, target, found.w, options=self.table.options)
        source.target_name, source.dropped = self.roles.target, dropped
        return source

    def _groups(self, rows: Any, columns: Sequence[str], most: int, targets: Mapping[str, Any]) -> Groups:
        names = list(dict.fromkeys(columns))
        sums = {"weight": self._weight_in(rows), **targets}
        sums = {self._prefix + name: value for name, value in sums.items()}
        answer = self.table.ask(rows.group_by(names).aggregate(**sums).order_by(names).limit(most + 1))
        if answer.num_rows > most:
            found = f"columns {', '.join(map(shown, names))} have more than {most:,} combinations of values"
            by = "combination"
            if len(names) == 1:
                found, by = f"column {shown(names[0])} has more than {most:,} different values", "value"
            raise TooManyGroupsError(
                f"{found}, and a database is asked for sums by {by}; round in the query, or fetch the rows in chunks "
                f"with vff.scan(table.{self.table.batches})"
            )
        found = [np.array(answer.column(name).to_numpy(), float) for name in sums]
        return Groups(answer.select(names), *found)

    def combinations(self, columns: Sequence[str]) -> int:
        """How many different combinations of values some columns have."""
        different = self._rows.select(list(dict.fromkeys(columns))).distinct()
        return int(self._answer(different, {"n": different.count()})["n"])
