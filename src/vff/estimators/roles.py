"""What the columns of a source are for: features, target, weights, labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from vff.estimators.labels import as_labels
from vff.estimators.overview import weights_of
from vff.estimators.tables import Table
from vff.factors import Kernel, normal_form
from vff.likelihoods import AbstractLikelihood
from vff.sources import AbstractSource, Chunk, selected
from vff.words import listed, shown

ASKED_AGAIN = "another likelihood than the Gaussian asks the rows again and again"


class Positive(NamedTuple):
    """A column of labels, one of which is told from the others; None where chunks bring the labels along."""

    column: str | None
    label: Any


@dataclass(frozen=True)
class Roles:
    """What the columns of a source are for."""

    features: tuple[str, ...] | None
    """Those of the model; None where columns have no names."""
    target: str | None
    weight: str | None
    positive: tuple[Any, ...] = ()
    """The label that counts as one, all others as zero; empty where targets are numbers."""

    @classmethod
    def of(
        cls, source: AbstractSource, kernel: Kernel | None, y: Any, sample_weight: Any, likelihood: AbstractLikelihood
    ) -> "Roles":
        """By the names that the kernel, ``y`` and ``sample_weight`` give; without a kernel all others are features."""
        if isinstance(y, Positive):
            return replace(cls.of(source, kernel, y.column, sample_weight, likelihood), positive=(y.label,))
        if source.names is None:
            _refuse_names(y, sample_weight)
            return cls(None, None, None)
        target, weight = (_name(value, what, source) for value, what in ((y, "y"), (sample_weight, "sample_weight")))
        if kernel is None:
            return cls(tuple(name for name in source.names if name not in (target, weight)), target, weight)
        used = [factor.column for term in normal_form(kernel) for factor in term.factors]
        used += [] if likelihood.column is None else [likelihood.column]
        for column in used:
            _check_column(column, source.names, target)
        return cls(tuple(name for name in source.names if name in used), target, weight)

    @property
    def all(self) -> tuple[str, ...]:
        named = (*(self.features or ()), self.target, self.weight)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def ordered(self, known: Sequence[str] | None) -> "Roles":
        """With the features in the order in which an earlier fit has them."""
        if known is None or self.features is None or sorted(known) != sorted(self.features):
            return self
        return replace(self, features=tuple(known))

    def levels(self, kernel: Kernel | None, kinds: Mapping[str, str]) -> tuple[str | int, ...]:
        """The columns of levels, where a missing value is a level of its own."""
        if kernel is None:
            return tuple(name for name in self.features or () if kinds.get(name) == "text")
        factors = [factor for term in normal_form(kernel) for factor in term.factors]
        return tuple(factor.column for factor in factors if factor.reads == "levels")

    def split(self, chunk: Chunk) -> tuple[Table, Any, Any]:
        """X, y and the weights of a chunk."""
        table, y, w = self._split(chunk)
        return table, (as_labels(y) == self.positive[0]).astype(float) if self.positive else y, w

    def _split(self, chunk: Chunk) -> tuple[Table, Any, Any]:
        if self.features is None:
            if chunk.y is None:
                raise ValueError("targets were expected beside the columns: give chunks as pairs (X, y)")
            return Table.of(chunk.data), chunk.y, chunk.w
        whole = Table.of(chunk.data)
        y = chunk.y if self.target is None else whole.raw(whole.index(self.target))
        w = chunk.w if self.weight is None else whole.raw(whole.index(self.weight))
        return Table.of(selected(chunk.data, self.features)) if self.features else whole, y, w


def _refuse_names(y: Any, sample_weight: Any) -> None:
    for value, what in ((y, "y"), (sample_weight, "sample_weight")):
        if value is not None:
            raise ValueError(
                f"chunks without column names bring their targets and weights along as (X, y) or (X, y, w); got {what}="
                f"{shown(value)}: leave it out"
            )


def _name(value: Any, what: str, source: AbstractSource) -> str | None:
    """The column that holds targets or weights; None when chunks bring them along."""
    if value is None:
        return None
    names = source.names or ()
    if not isinstance(value, str):
        raise TypeError(
            f"{what} must be the name of a column when rows come in chunks, got {type(value).__name__}; name one of "
            f"{listed(names)}"
        )
    if value not in names:
        raise ValueError(f"{what} names column {shown(value)}, and there are {listed(names)}; name one of them")
    return value


def _check_column(column: Any, names: Sequence[str], target: str | None) -> None:
    if not isinstance(column, str) or column not in names:
        raise ValueError(
            f"the kernel asks for column {shown(column)}, and the source has {listed(names)}; use these names"
        )
    if column == target:
        raise ValueError(f"the kernel has a term of {shown(column)}, which is the target; leave it out of the kernel")


def check_asked_again(source: AbstractSource) -> None:
    """Refuse rows that cannot be asked at every step, as another likelihood than the Gaussian does."""
    if source.handling.checkpoint is not None:
        raise ValueError(
            "a checkpoint keeps sums over the rows, which say all with Gaussian noise alone; another likelihood asks "
            "the rows again at every step: leave checkpoint out"
        )
    if not source.repeatable:
        raise ValueError(f"{ASKED_AGAIN}, and an iterator gives them once; pass a function that returns a new iterator")


class Labels(NamedTuple):
    found: tuple[Any, ...]


@dataclass(frozen=True)
class FindLabels:
    """The different labels of rows of positive weight."""

    roles: Roles
    phase: ClassVar[str] = "looking at the labels"
    kind: ClassVar[Any] = Labels

    def __call__(self, chunk: Chunk) -> Labels:
        _, y, w = self.roles.split(chunk)
        labels = as_labels(y)
        counted = labels if w is None else labels[weights_of(w, labels.size) > 0.0]
        return Labels(tuple(np.unique(counted).tolist()))

    def merge(self, one: Labels, other: Labels) -> Labels:
        return Labels(tuple(sorted({*one.found, *other.found})))
