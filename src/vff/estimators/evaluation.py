"""Rows to be answered about: whatever ``fit`` takes, chunk by chunk, with the columns of the fit in their places."""

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vff.data import Chunk, MemorySource, Roles, Source, Table, UsedColumns, open_rows, run_task
from vff.data.checks import check_weights
from vff.data.memory import column_or_values
from vff.data.table import check_columns
from vff.estimators.named import (
    errors_missing,
    extra_of,
    named,
    offset_missing,
    offset_of,
    recognised,
    refuse_negative,
    refuse_without_widths,
)

About = Literal["y", "function", "terms"]
"""What is asked of rows: a new y needs all columns of the model, the function no column of the likelihood, and terms
not the offset either."""
Check = Callable[[Any, int], np.ndarray]
"""What makes a vector of targets, or of labels, of what was given for so many rows."""


class ExtrapolationWarning(UserWarning):
    """Rows to predict at lie outside the domain, or hold levels that the fit has not seen.

    Examples
    --------
    >>> import warnings
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> model = vff.GPRegressor(frequencies=5).fit(X, X[:, 0])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", vff.ExtrapolationWarning)
    ...     _ = model.predict([[2.0]])
    """


@dataclass(frozen=True)
class Block:
    """Some rows as a model sees them."""

    model: Any
    table: Table
    """Its columns where the fit had them."""
    x: np.ndarray
    """The modelled columns, levels as codes, (N, C)."""
    y: Any = None
    w: Any = None

    @classmethod
    def of(cls, model: Any, table: Table, y: Any, w: Any, word: str | None = None, about: About = "y") -> "Block":
        """The rows of a table with the columns of the fit; ``word`` says what missing values are in it."""
        _require_beside(model, table.names, about)
        own = recognised(model, table, model.column_indices_, model._beside(about))
        return cls(model, own, model._block(own, word), y, w)

    @property
    def outside(self) -> np.ndarray:
        """How many rows lie outside, and how many are missing where the fit saw none, (2, C)."""
        outside = self.model.posterior_.outside(self.x).reshape(len(self), -1)
        missing = np.isnan(self.x).reshape(outside.shape)
        return np.stack([(outside & ~missing).sum(axis=0), (outside & missing).sum(axis=0)])

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def extra(self) -> np.ndarray:
        """What the likelihood takes from every row beside y: exposure or trials; ones when nothing."""
        likelihood = self.model.likelihood_
        return refuse_negative(extra_of(likelihood, self.table), likelihood, self.table.first)

    def lifted(self, f: np.ndarray) -> np.ndarray:
        """The function with its offset, if it has one; (N,) or, of draws, (N, S)."""
        offset = self.offset
        return f if offset is None else f + (offset if f.ndim == 1 else offset[:, None])

    @cached_property
    def offset(self) -> np.ndarray | None:
        """What is added to the function at every row, (N,); None where nothing is."""
        return offset_of(self.model._offset, self.table)

    def at(self, rows: slice) -> "Block":
        """Some of the rows."""
        return self.joined(self.x[rows], self.extra[rows], None if self.offset is None else self.offset[rows])

    def joined(self, x: np.ndarray, extra: np.ndarray, offset: np.ndarray | None) -> "Block":
        """Other rows of the same model."""
        own = replace(self, x=x)
        vars(own).update(extra=extra, offset=offset)
        return own


def evaluate(
    models: Sequence[Any],
    X: Any,
    compute: Callable[[Sequence[Block]], Sequence[np.ndarray]],
    y: Any = None,
    sample_weight: Any = None,
    check: Check | None = None,
    about: About = "y",
) -> list[np.ndarray]:
    """What models of the same columns answer about the rows of X, one below the other.

    ``y`` and the weights are vectors, or names of columns of X. ``check`` says what y is to be like; without it there
    is none.
    """
    for model in models:
        check_is_fitted(model, "posterior_")
    source = _readable(models[0], open_rows(X), y, sample_weight, check, about)
    roles, n, blocks = source.roles or Roles(None), 0, []
    beyond = [np.zeros((2, len(model.column_indices_)), int) for model in models]

    def answer(chunk: Chunk) -> Sequence[np.ndarray]:
        nonlocal n, blocks
        target = chunk.y if roles.target is None else chunk.table.raw(chunk.table.index(roles.target))
        w = chunk.w if roles.weight is None else chunk.table.raw(chunk.table.index(roles.weight))
        if check is not None and source.whole is None:
            target = check(target, chunk.n_rows)
        blocks = [Block.of(model, chunk.table, target, w, source.options.missing, about) for model in models]
        n += len(blocks[0])
        for block, count in zip(blocks, beyond, strict=True):
            count += block.outside
        return compute(blocks)

    with closing(source.chunks()) as chunks:  # a refusal must not leave a file or a query open
        parts = [run_task(answer, chunk) for chunk in chunks if chunk.n_rows]
    if not parts:
        raise ValueError("X has 0 sample(s), while a minimum of 1 is required: give it a row to predict at")
    for block, count in zip(blocks, beyond, strict=True):
        for missing, number in np.argwhere(count):
            label = block.table.label(block.model.column_indices_[number])
            where = f"are missing column {label}, which the fit never saw missing"
            where = where if missing else block.model._outside_text(int(number), label)
            warnings.warn(
                f"{count[missing, number]} of {n} rows {where}; predictions go back to the prior there",
                ExtrapolationWarning,
                stacklevel=_level_of_caller(),
            )
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


def _require_beside(model: Any, names: Sequence[str] | None, about: About) -> None:
    """An offset is known where the function is predicted, and error bars where y is, or nothing can be said there."""
    if names is None:
        return
    if about != "terms" and isinstance(model._offset, str) and model._offset not in names:
        raise ValueError(offset_missing(model._offset, names))
    errors = model.likelihood_.column if about == "y" and model.likelihood_.known_errors else None
    if isinstance(errors, str) and errors not in names:
        raise ValueError(errors_missing(errors, names))


def _level_of_caller() -> int:
    """How far above ``evaluate`` the first caller outside this package is, as ``warnings.warn`` counts."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("vff."):
        frame, level = frame.f_back, level + 1
    return level


def _readable(model: Any, source: Source, y: Any, sample_weight: Any, check: Check | None, about: About) -> Source:
    """The rows with the columns that a model needs and no others, in the kinds that it knows."""
    table = source.whole
    if table is not None:
        target = None if check is None else check(column_or_values(table, y, "y"), table.n_rows)
        weights = column_or_values(table, sample_weight, "sample_weight")
        weights = None if weights is None else check_weights(weights, table.n_rows)
        return MemorySource(table, target, weights, options=source.options)
    fitted, indices = getattr(model, "feature_names_in_", None), model.column_indices_
    known = [both for both in zip(indices, model.column_levels_, strict=False) if both[1] is not None]
    if source.names is None or fitted is None:  # columns stand where they stood
        levels = tuple(index for index, _ in known)
        roles = Roles.of(source, UsedColumns((), ()), y if check else None, sample_weight)
        return source.select(replace(roles, features=source.names, levels=() if source.names else levels))
    names = [str(name) for name in fitted]
    _require_beside(model, source.names, about)
    needed = list(dict.fromkeys([*(names[index] for index in indices), *named(model._beside(about), names)]))
    refuse_without_widths(model, source.names)
    check_columns(names, source.names, needed)
    levels = {names[index]: values for index, values in known}
    texts = [name for name, values in levels.items() if any(isinstance(value, str) for value in values or ())]
    source = source.expecting_text(texts)
    roles = Roles.of(source, UsedColumns(tuple(needed), tuple(levels)), y if check else None, sample_weight)
    return source.select(roles)
