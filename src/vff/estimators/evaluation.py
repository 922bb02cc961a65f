"""Rows to be answered about: whatever ``fit`` takes, chunk by chunk, with the columns of the fit in their places."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vff.data import Chunk, MemorySource, Roles, Source, Table, UsedColumns, open_rows, run_task
from vff.data.memory import column_or_values
from vff.data.table import check_columns
from vff.estimators.named import recognised
from vff.estimators.observed import extra_of, refuse_negative

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

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def extra(self) -> np.ndarray:
        """What the likelihood takes from every row beside y: exposure or trials; ones when nothing."""
        likelihood = self.model.likelihood_
        return refuse_negative(extra_of(likelihood, self.table), likelihood, self.table.first)


class _Evaluator:
    """A model that looks at rows, and remembers how many lay outside."""

    def __init__(self, model: Any) -> None:
        self.model, self.n = model, 0
        self.beyond = np.zeros(len(model.column_indices_), int)
        self.labels: list[str] = []

    def block(self, chunk: Chunk, y: Any, w: Any) -> Block:
        """The rows of a chunk."""
        model = self.model
        table = recognised(model, chunk.table, model.column_indices_, model.likelihood_.column)
        x = model._block(table, slice(None))
        self.beyond += model.posterior_.outside(x).reshape(len(x), -1).sum(axis=0)
        self.n += len(x)
        self.labels = [table.label(index) for index in model.column_indices_]
        return Block(model, table, x, y, w)

    def warn(self) -> None:
        """About all rows that were seen."""
        for number in np.flatnonzero(self.beyond):
            where = self.model._outside_text(int(number), self.labels[number])
            warnings.warn(
                f"{self.beyond[number]} of {self.n} rows {where}; predictions go back to the prior there",
                ExtrapolationWarning,
                stacklevel=5,
            )


def evaluate(
    models: Sequence[Any],
    X: Any,
    compute: Callable[[Sequence[Block]], Sequence[np.ndarray]],
    y: Any = None,
    sample_weight: Any = None,
    check: Check | None = None,
) -> list[np.ndarray]:
    """What models of the same columns answer about the rows of X, one below the other.

    ``y`` and the weights are vectors, or names of columns of X. ``check`` says what y is to be like; without it there
    is none.
    """
    parts = list(_evaluate(models, X, compute, y, sample_weight, check))
    if not parts:
        raise ValueError("X has 0 sample(s), while a minimum of 1 is required: give it a row to predict at")
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


def _evaluate(
    models: Sequence[Any], X: Any, compute: Callable[..., Any], y: Any, sample_weight: Any, check: Check | None
) -> Iterator[Sequence[np.ndarray]]:
    for model in models:
        check_is_fitted(model, "posterior_")
    evaluators = [_Evaluator(model) for model in models]
    source = readable(models[0], open_rows(X), y, sample_weight, check)
    roles = source.roles

    def answer(chunk: Chunk) -> Sequence[np.ndarray]:
        target, w = chunk.y, chunk.w
        if roles is not None and roles.target is not None:
            target = chunk.table.raw(chunk.table.index(roles.target))
        if roles is not None and roles.weight is not None:
            w = chunk.table.raw(chunk.table.index(roles.weight))
        if check is not None and source.whole is None:
            target = check(target, chunk.n_rows)
        return compute([evaluator.block(chunk, target, w) for evaluator in evaluators])

    for chunk in source.chunks():
        if chunk.n_rows:
            yield run_task(answer, chunk)  # pyright: ignore[reportArgumentType]
    for evaluator in evaluators:
        evaluator.warn()


def readable(
    model: Any, source: Source, y: Any = None, sample_weight: Any = None, check: Check | None = None
) -> Source:
    """The rows with the columns that a model needs and no others, in the kinds that it knows."""
    table = source.whole
    if table is not None:
        target = None if check is None else check(column_or_values(table, y, "y"), table.n_rows)
        return MemorySource(table, target, column_or_values(table, sample_weight, "sample_weight"))
    fitted = getattr(model, "feature_names_in_", None)
    if source.names is None or fitted is None:  # columns stand where they stood
        levels = tuple(index for index, known in _levels(model) if known is not None)
        roles = Roles.of(source, UsedColumns((), ()), y if check else None, sample_weight)
        return source.select(replace(roles, features=source.names, levels=() if source.names else levels))
    names = [str(name) for name in fitted]
    needed = needed_columns(model, names)
    check_columns(names, source.names, needed)
    levels = {names[index]: known for index, known in _levels(model) if known is not None}
    texts = [name for name, known in levels.items() if any(isinstance(one, str) for one in known)]
    source = source.expecting_text(texts)
    roles = Roles.of(source, UsedColumns(tuple(needed), tuple(levels)), y if check else None, sample_weight)
    return source.select(roles)


def needed_columns(model: Any, names: Sequence[str]) -> list[Any]:
    """The columns that predictions are made of, by name: the modelled ones, and the likelihood's own."""
    own = model.likelihood_.column
    beside_them = [] if own is None else [own if isinstance(own, str) else names[own]]
    return list(dict.fromkeys([*(names[index] for index in model.column_indices_), *beside_them]))


def _levels(model: Any) -> list[tuple[int, tuple[Any, ...] | None]]:
    """The modelled columns by number, each with its levels, if it has any."""
    return list(zip(model.column_indices_, model.column_levels_ or (None,) * len(model.column_indices_), strict=True))
