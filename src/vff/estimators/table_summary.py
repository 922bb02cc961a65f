"""A look at the rows before any is summed: what domains, edges and harmonics are settled on.

Looks at different rows merge, and neither order nor partition leaves a trace, so that a table in memory, the same table
in files, and the same table on a cluster are summed for the same functions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from vff.data.checks import as_finite, check_target, check_weights
from vff.data.table import Table
from vff.estimators.binding import Binding, united
from vff.estimators.named import extra_of, offset_of
from vff.inference import MemoryRows, Observed
from vff.likelihoods import AbstractLikelihood
from vff.moments import (
    ColumnSummary,
    DistinctValues,
    PassPlan,
    PreparedRows,
    Profile,
    RowBlock,
    Sample,
    merge_equal_rows,
    sample_of,
    summarise_column,
    summarise_columns,
)
from vff.words import shown

_LARGEST_EXPONENT = 50.0  # of an offset: exp(50) is 5e21
NOWHERE = ColumnSummary(np.inf, -np.inf)
"""Of no rows."""


class Batch(NamedTuple):
    """Checked rows, in memory."""

    binding: Binding
    source: RowBlock
    """The columns of the binding, levels as codes."""
    extra: np.ndarray
    """What the likelihood takes from every row beside y: exposure or trials; ones when nothing."""
    offset: np.ndarray | None = None
    """What is added to the function at every row, where y does not have it taken off already."""

    def prepared(self, plan: Callable[[int], PassPlan], distinct_values: Sequence[DistinctValues | None]) -> MemoryRows:
        """The different rows, equal ones taken together, to be visited many times; ``plan`` is for so many."""
        source, extra, *offset = merge_equal_rows(self.source, self.extra, distinct_values, self.offset)
        return MemoryRows(PreparedRows(plan(source.n), source), Observed(source.y, extra, source.w, *offset))


def observations(
    table: Table,
    y: Any,
    sample_weight: Any,
    likelihood: AbstractLikelihood,
    offset: str | int | None = None,
    errors: Any = None,
) -> Observed:
    """Targets, weights and what is read beside them, checked, those of weight zero included.

    Where f is in the units of y, the offset is taken off y, which is all that has to be known of it.
    """
    w, target = weights_of(sample_weight, table.n_rows), check_target(y, table.n_rows)
    extra = extra_of(likelihood, table) if errors is None else check_errors(errors, table.n_rows)
    counted = w > 0.0 if w.size and w.min() == 0.0 else slice(None)
    likelihood.check(target[counted], extra[counted])
    added = offset_of(offset, table)
    if added is not None and likelihood.scale_name == "log":
        _refuse_unlogged(added, offset, table.first)
    if added is not None and likelihood.standardised:
        target, added = target - added, None
    return Observed(target, extra, w, added)


def _refuse_unlogged(added: np.ndarray, offset: str | int | None, first: int) -> None:
    """An offset of log(mean) that no mean has: the logarithm was forgotten, most likely."""
    if np.abs(added).max(initial=0.0) > _LARGEST_EXPONENT:
        row = int(np.argmax(np.abs(added)))
        raise ValueError(
            f"the offset is added to the logarithm of the mean of y, and column {shown(offset)} is {added[row]:g} in "
            f"row {first + row}, a factor of exp({added[row]:g}); was the logarithm forgotten? Give a column of "
            f"logarithms, such as numpy.log(X[{shown(offset)}])"
        )


def take_batch(table: Table, binding: Binding, observed: Observed) -> Batch:
    """The rows the user gave; those of weight zero are left out, as if they were not there."""
    w, extra, offset = observed.w, observed.extra, observed.offset
    source = RowBlock(table.n_rows, lambda c, rows: binding.columns[c].read(table, rows), observed.y, w)
    if w.size and w.min() == 0.0:
        counted = w > 0.0
        source, extra = source.taken(len(binding.columns), [counted]), extra[counted]
        offset = None if offset is None else offset[counted]
    return Batch(binding, source, extra, offset)


def weights_of(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Checked weights. All rows of a chunk may be of weight zero: ``check_enough`` judges the whole."""
    if hasattr(sample_weight, "__len__") and len(sample_weight) == n_rows:
        weights = as_finite(sample_weight, "sample_weight")
        if weights.shape == (n_rows,) and not weights.any():
            return weights
    return check_weights(sample_weight, n_rows)


def check_errors(noise_std: Any, n_rows: int) -> np.ndarray:
    """Standard deviations of y that were given row by row; whether they can be is the likelihood's business."""
    values = as_finite(noise_std, "noise_std")
    if values.shape != (n_rows,):
        raise ValueError(
            f"noise_std has shape {values.shape} and X has {n_rows} rows; give one standard deviation per row"
        )
    return values


def check_enough(n: int, first: bool, weighed: bool) -> None:
    """Refuse fewer rows than show a trend."""
    if n >= (2 if first else 1):
        return
    if weighed and not n:
        raise ValueError("sample_weight is zero for every row; at least two rows need a positive weight")
    if weighed:
        raise ValueError("sample_weight is positive in 1 row and a minimum of 2 is required: one row shows no trend")
    raise ValueError(f"X has {n} sample(s) and a minimum of 2 is required: one row shows no trend")


@dataclass(frozen=True)
class TableSummary:
    """What a look at rows found."""

    binding: Binding
    summaries: tuple[ColumnSummary, ...]
    """Of every column; of one of levels, that of their codes."""
    n: int
    weight: float
    target: float
    """sum w y."""
    sample: Sample | None
    """Some of the rows; None where there is nothing to settle by them."""
    targets: ColumnSummary
    """What y is, where that was asked for."""
    profiles: tuple[Profile, ...] = ()
    """Every column by itself, where there is no sample of rows but sums by value."""
    combinations: Mapping[tuple[int, ...], int] = field(default_factory=dict)
    """How many different rows sets of columns have, where that was counted."""

    def profile(self, c: int) -> Profile | None:
        """One column beside y; None where there is nothing to settle by it."""
        if self.profiles:
            return self.profiles[c].numbers
        return None if self.sample is None else self.sample.profile(c).numbers

    def merged(self, other: "TableSummary") -> "TableSummary":
        """What a look at the rows of both would have found."""
        binding = united(self.binding, other.binding)
        parts = [part.over(binding) for part in (self, other)]
        n = self.n + other.n
        summaries = tuple(
            one.merged(two)
            if column.levels is None
            else summary_of_levels(len(column.levels), n, one.missing + two.missing)
            for column, one, two in zip(binding.columns, *(part.summaries for part in parts), strict=True)
        )
        some = [part.sample for part in parts if part.n]
        known = [sample for sample in some if sample is not None]
        sample = reduce(Sample.merged, known) if known and len(known) == len(some) else None
        sums = self.weight + other.weight, self.target + other.target
        return TableSummary(binding, summaries, n, *sums, sample, self.targets.merged(other.targets))

    def over(self, binding: Binding) -> "TableSummary":
        """The same over more levels, in another order: codes are renumbered."""
        summaries = tuple(
            found if column.levels is None else summary_of_levels(len(column.levels), self.n, found.missing)
            for column, found in zip(binding.columns, self.summaries, strict=True)
        )
        moved = replace(self, binding=binding, summaries=summaries)
        if self.sample is None:
            return moved
        columns = tuple(
            renumbered(codes, old.levels, new.levels)
            for codes, old, new in zip(self.sample.columns, self.binding.columns, binding.columns, strict=True)
        )
        return replace(moved, sample=replace(self.sample, columns=columns))


def look_at(batch: Batch, *, always_sampled: bool = False, sampled: bool = True) -> TableSummary:
    """A look at rows in memory, with a sample of them where something is settled by it, or as asked.

    Where earlier rows have settled everything, no sample is taken.
    """
    binding, source = batch.binding, batch.source
    smooth = [column.levels is None for column in binding.columns]
    found = iter(summarise_columns(source, [c for c, use in enumerate(smooth) if use]))
    summaries = tuple(
        next(found)
        if column.levels is None
        else summary_of_levels(len(column.levels), source.n, _missing_levels(source, c) if column.admits else 0)
        for c, column in enumerate(binding.columns)
    )
    binding = binding.with_gaps([own.missing > 0 for own in summaries])
    several = len(binding.terms) > 1 or any(len(term.columns) > 1 for term in binding.terms)
    shared = always_sampled or (several and sampled)
    levels = [column.levels for column in binding.columns]
    sample = sample_of(source, batch.extra, levels, batch.offset) if shared and source.n else None
    targets = summarise_column(source.n, lambda rows: source.y[rows]) if always_sampled else NOWHERE
    sums = float(source.w.sum()), float(source.w @ source.y)
    return TableSummary(binding, summaries, source.n, *sums, sample, targets)


def summary_of_levels(levels: int, n: int, missing: int = 0) -> ColumnSummary:
    """Of a column of levels: that of their codes."""
    return ColumnSummary(0.0, levels - 1.0, np.arange(float(levels)), n, missing)


def _missing_levels(source: RowBlock, c: int) -> int:
    """In how many rows a column is missing where that is no level."""
    return int(np.count_nonzero(np.isnan(source.column(c, slice(0, source.n)))))


def renumbered(codes: np.ndarray, old: tuple[Any, ...] | None, new: tuple[Any, ...] | None) -> np.ndarray:
    """Codes of levels among others, in another order; numbers stay what they are."""
    if old is None or new is None or old == new:
        return codes
    codes_of = {level: code for code, level in enumerate(new)}
    there = ~np.isnan(codes)  # where missing is no level, the levels are named, and stay
    found = np.full(codes.size, np.nan)
    found[there] = np.array([codes_of[level] for level in old], float)[codes[there].astype(int)]
    return found
