"""What every engine is: a way to sum products of letters over rows, and its transpose.

What is asked for is a list of ``Job``: letters for every axis of a set, and whether the weights or the weighted targets
are summed against their products. One column by itself is a set of one. An engine says what the work would cost, or why
it cannot do it; takes rows chunk by chunk and answers at the end (``Accumulator``); and evaluates functions that are
given by the coefficients of their letters. It knows letters by what they say of themselves (``band``, ``local``), never
by their kind.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np

from vff.basis.protocol import Letters
from vff.moments.rows import ColumnRows

# Seconds, measured on two cores; only their ratios matter.
PER_LETTER = 12e-9  # one cosine and one multiplication
PER_FLOP, PER_PRODUCT = 4e-11, 2e-9
START = 1e-3  # of a transform
CHUNK = 2**18  # rows
LARGEST_CONTINGENCY = 2**24  # cells, 128 MiB


@dataclass(frozen=True)
class Job:
    """Letters of every axis, and what is summed against their products."""

    letters: tuple[Letters, ...]
    targets: bool = False
    """Whether the weighted targets are summed, or the weights."""

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(letters.size for letters in self.letters)

    def without(self, d: int) -> "Job":
        """The same of all axes but one."""
        return Job((*self.letters[:d], *self.letters[d + 1 :]), self.targets)


Columns = Sequence[ColumnRows]
Jobs = Sequence[Job]
Arrays = Sequence[np.ndarray]
Kept = dict[Any, Any] | None


@dataclass(frozen=True)
class Work:
    """What an engine is asked to do: jobs over the rows of a set of axes."""

    n: int
    jobs: Jobs
    columns: Columns
    """The axes of the set; before the pass their rows are not there yet."""
    most_cells: int = LARGEST_CONTINGENCY
    """Of a contingency table."""

    @property
    def values(self) -> list[int | None]:
        """How many distinct values every axis has, where they are few."""
        return [None if column.distinct is None else column.distinct.size for column in self.columns]

    @property
    def bands(self) -> list[int] | None:
        """The highest harmonic of every axis over all jobs; None unless all letters are trigonometric."""
        by_axis = [[letters.band for letters in own] for own in zip(*(job.letters for job in self.jobs), strict=True)]
        if any(band is None for own in by_axis for band in own):
            return None
        return [max(band for band in own if band is not None) for own in by_axis]

    @property
    def alone(self) -> ColumnRows | None:
        """The axis of a set of one."""
        return self.columns[0] if len(self.columns) == 1 else None


@dataclass(frozen=True)
class Cost:
    """Estimated seconds and why; without seconds, why it cannot be done."""

    seconds: float | None
    reason: str
    only: bool = False
    """Whether there is no other way worth looking at."""


@dataclass(frozen=True)
class Choice:
    """An engine's name and why it was taken."""

    name: str
    reason: str


Strengths = tuple[np.ndarray, np.ndarray]
"""Weights and weighted targets of rows, (N,) each."""


class Accumulator(ABC):
    """Sums for the jobs of one set of axes."""

    def __init__(self, jobs: Jobs):
        self.jobs = tuple(jobs)

    @property
    def both(self) -> bool:
        """Whether weighted targets are summed, too."""
        return any(job.targets for job in self.jobs)

    @abstractmethod
    def add(self, columns: Columns, w: np.ndarray, weighted: np.ndarray) -> None:
        """Take in a chunk of rows, with their weights and weighted targets."""

    def add_each(self, others: "Sequence[Accumulator]", columns: Columns, strengths: Sequence[Strengths]) -> None:
        """The same chunk of rows for this and others of its kind, each with weights and weighted targets of its own."""
        for own, (w, weighted) in zip((self, *others), strengths, strict=True):
            own.add(columns, w, weighted)

    @abstractmethod
    def read(self) -> list[np.ndarray]:
        """The sums, one tensor per job."""


class Totals(Accumulator):
    """By a function that sums a chunk: columns, jobs, and pairs of weights and weighted targets -> a tensor per job.

    It is asked for several pairs at once where rows count in several ways: what rows are is worked out once then.
    """

    def __init__(self, jobs: Jobs, summed: Callable[[Columns, Jobs, Sequence[Strengths]], list[list[np.ndarray]]]):
        super().__init__(jobs)
        self.summed, self.totals = summed, [np.zeros(job.shape) for job in self.jobs]

    def add(self, columns: Columns, w: np.ndarray, weighted: np.ndarray) -> None:
        self.add_each((), columns, [(w, weighted)])

    def add_each(self, others: Sequence[Accumulator], columns: Columns, strengths: Sequence[Strengths]) -> None:
        found = self.summed(columns, self.jobs, strengths)
        for own, some in zip((self, *others), found, strict=True):
            for total, part in zip(own.read(), some, strict=True):
                total += part

    def read(self) -> list[np.ndarray]:
        return self.totals


class Engine(ABC):
    """A named pair of adjoint maps between rows and letters."""

    name: ClassVar[str]
    by_value: ClassVar[bool] = False
    """Whether it works on distinct values: its sums wait for the last row, so it is not chosen chunk by chunk."""
    offered: ClassVar[bool] = True
    """Whether users may ask for it by name."""
    parallel: ClassVar[bool] = False
    """Whether it uses all cores by itself."""

    @abstractmethod
    def cost(self, work: Work) -> Cost:
        """What the work would take, or why it cannot be done."""

    def requested(self, work: Work) -> Choice:
        """The choice of a user who asked for this engine by name; ValueError where it cannot be had."""
        return Choice(self.name, f"{self.name}: as asked")

    def requested_of_all(self, work: Work) -> Choice | None:
        """The same for all columns together; None where every set is chosen for by itself."""
        return None

    def cells(self, work: Work) -> int:
        """Cells that are held until the last row."""
        return 0

    def prepare(self, columns: Columns) -> None:
        """Work out what several sets over these rows would work out each."""
        return

    @abstractmethod
    def accumulator(self, jobs: Jobs, columns: Columns) -> Accumulator:
        """Sums to be taken chunk by chunk; the columns say what is known of the axes, and have no rows."""

    @abstractmethod
    def evaluate(self, columns: Columns, jobs: Jobs, coefficients: Arrays, kept: Kept = None) -> list[np.ndarray]:
        """Products of letters times coefficients at the rows, (N,) by job.

        ``kept`` belongs to these functions, whatever the rows: what is worked out for them once may stay there.
        """

    def sum(self, columns: Columns, jobs: Jobs, w: np.ndarray, weighted: np.ndarray) -> list[np.ndarray]:
        """The sums of some rows."""
        return self.sum_each(columns, jobs, [(w, weighted)])[0]

    def sum_each(self, columns: Columns, jobs: Jobs, strengths: Sequence[Strengths]) -> list[list[np.ndarray]]:
        """The same for every pair of weights and weighted targets of some rows."""
        first, *others = [self.accumulator(jobs, columns) for _ in strengths]
        first.add_each(others, columns, strengths)
        return [first.read(), *(other.read() for other in others)]


def contract(tensor: np.ndarray, matrices: Sequence[np.ndarray | None]) -> np.ndarray:
    """Apply a matrix (to, from) along every axis, those that shrink it most first; None leaves an axis as it is."""
    every = [(matrix.shape[0] / matrix.shape[1], d, matrix) for d, matrix in enumerate(matrices) if matrix is not None]
    for _, d, matrix in sorted(every, key=lambda one: one[0]):
        tensor = np.moveaxis(np.tensordot(matrix, tensor, axes=(1, d)), 0, d)
    return tensor


def contraction(jobs: Jobs, nodes: Sequence[int]) -> float:
    """Seconds to meet the letters at all nodes or values."""
    return sum(prod(nodes) * min(job.shape) * PER_FLOP + sum(job.shape) * max(nodes) * PER_LETTER for job in jobs)
