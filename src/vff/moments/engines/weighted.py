"""Several columns, one of few letters: each of these is a weight, and the others go where they are best without it.

sum w psi_a(x) psi_b(t) is sum (w psi_a(x)) psi_b(t): a straight line times a function of t costs as many sums over t as
the line has letters, and no letters of t are written out because of it.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from vff.basis.protocol import Letters
from vff.moments.engines.base import (
    Accumulator,
    Arrays,
    Columns,
    Cost,
    Engine,
    Job,
    Jobs,
    Kept,
    Strengths,
    Totals,
    Work,
)

MOST = 256
"""Letters that are taken for weights."""
_WRITTEN = 2**23  # letters at rows at a time, 64 MiB
_PER_ROW = 5e-9  # a multiplication, and what the least engine does with it

Cheapest = Callable[[Work], tuple[Engine, Cost]]


class WeightedEngine(Engine):
    """Letters of one axis as weights; ``cheapest`` says who sums the rest."""

    name: ClassVar[str] = "weighted"
    offered: ClassVar[bool] = False

    def __init__(self, cheapest: Cheapest) -> None:
        self.cheapest = cheapest

    def cost(self, work: Work) -> Cost:
        if work.alone is not None:
            return Cost(None, "one column has no others to weigh")
        d = weighing(work.jobs, work.columns)
        if d is None:
            return Cost(None, f"no column has so few letters, at most {MOST}, that they are weights")
        others, seconds, reasons = _without(work.columns, d), 0.0, []
        alike = Counter(tuple(jobs) for jobs in _rest(work.jobs, d).values())
        for jobs, count in alike.items():
            engine, cost = self.cheapest(replace(work, jobs=jobs, columns=others))
            each = (cost.seconds or 0.0) + work.n * _PER_ROW * (1 + any(job.targets for job in jobs))
            seconds += count * each
            reasons.append(f"{engine.name}: {cost.reason}")
        return Cost(seconds, f"{alike.total()} weight(s) beside {reasons[0]}")

    def accumulator(self, jobs: Jobs, columns: Columns) -> Accumulator:
        return _Weighted(jobs, columns, self.cheapest)

    def evaluate(self, columns: Columns, jobs: Jobs, coefficients: Arrays, kept: Kept = None) -> list[np.ndarray]:
        d = _axis(jobs, columns)
        blocks = list(_blocks(columns, jobs, d))
        if len(blocks) > 1:
            found = [self.evaluate([own.taken(rows) for own in columns], jobs, coefficients) for rows in blocks]
            return [np.concatenate(part) for part in zip(*found, strict=True)]
        others, column = _without(columns, d), columns[d]
        parts = [  # a function and a letter; of squares, many letters have no part
            (number, k, own)
            for number, coefficient in enumerate(coefficients)
            for k, own in enumerate(np.moveaxis(coefficient, d, 0))
            if np.any(own)
        ]
        values = [np.zeros(column.x.size) for _ in jobs]
        if not parts:
            return values
        rest = [Job(jobs[number].without(d).letters) for number, _, _ in parts]
        engine, _ = self.cheapest(Work(column.x.size, rest, others))
        engine.prepare(others)
        own = None if kept is None else kept.setdefault(engine.name, {})
        found = engine.evaluate(others, rest, [coefficient for _, _, coefficient in parts], own)
        written = {letters: column.written(letters) for letters in dict.fromkeys(job.letters[d] for job in jobs)}
        for (number, k, _), value in zip(parts, found, strict=True):
            values[number] += written[jobs[number].letters[d]][:, k] * value
        return values


def _blocks(columns: Columns, jobs: Jobs, d: int) -> Iterator[slice]:
    """Rows so many at a time that their weights fit in memory."""
    n, step = columns[d].x.size, max(1, _WRITTEN // max(job.letters[d].size for job in jobs))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _qualifies(letters: Letters) -> bool:
    return letters.size <= MOST and letters.band is None and letters.local is None


def weighing(jobs: Jobs, columns: Columns) -> int | None:
    """The first axis whose letters are few in every job and neither harmonics nor indicators; None where none is so."""
    every = range(len(columns))
    return next((d for d in every if all(_qualifies(job.letters[d]) for job in jobs)), None)


def _axis(jobs: Jobs, columns: Columns) -> int:
    d = weighing(jobs, columns)
    assert d is not None  # it was chosen
    return d


def _without(columns: Columns, d: int) -> Columns:
    return [*columns[:d], *columns[d + 1 :]]


def _rest(jobs: Jobs, d: int) -> dict[Hashable, list[Job]]:
    """What is to be summed over the other axes, each once, for every letter of the axis."""
    found: dict[Hashable, dict[Job, None]] = {}
    for job in jobs:
        for key in job.letters[d].keys:
            found.setdefault(key, {})[job.without(d)] = None
    return {key: list(own) for key, own in found.items()}


class _Weighted(Accumulator):
    """An accumulator over the other axes for every letter."""

    def __init__(self, jobs: Jobs, columns: Columns, cheapest: Cheapest):
        super().__init__(jobs)
        self.axis, self.cheapest = _axis(jobs, columns), cheapest
        self.empty = _without(columns, self.axis)
        self.inner: dict[Hashable, Accumulator] = {}

    @cached_property
    def rest(self) -> dict[Hashable, list[Job]]:
        """Jobs over the other axes by letter."""
        return _rest(self.jobs, self.axis)

    @cached_property
    def _places(self) -> dict[Hashable, tuple[Letters, int]]:
        """Where the values of every letter are found."""
        every = dict.fromkeys(job.letters[self.axis] for job in self.jobs)
        return {key: (letters, k) for letters in every for k, key in enumerate(letters.keys)}

    def add(self, columns: Columns, w: np.ndarray, weighted: np.ndarray) -> None:
        blocks = list(_blocks(columns, self.jobs, self.axis))
        for rows in blocks:
            some = columns if len(blocks) == 1 else [own.taken(rows) for own in columns]
            self._add(some, w[rows], weighted[rows])

    def _add(self, columns: Columns, w: np.ndarray, weighted: np.ndarray) -> None:
        others, column = _without(columns, self.axis), columns[self.axis]
        written = {
            letters: column.written(letters) for letters in dict.fromkeys(own for own, _ in self._places.values())
        }
        for key, jobs in self.rest.items():
            letters, k = self._places[key]
            values = written[letters][:, k]
            if not values.any():  # rows that are all alike, as of one width, have few letters
                continue
            if key not in self.inner:
                self.inner[key] = self._chosen(jobs, Work(w.size, jobs, others))
            targets = weighted * values if any(job.targets for job in jobs) else weighted
            self.inner[key].add(others, w * values, targets)

    def _chosen(self, jobs: list[Job], work: Work) -> Accumulator:
        """The best for the first rows; of one axis, for every chunk, unless sums wait for the last row."""
        engine, _ = self.cheapest(work)
        if work.alone is None or engine.by_value:
            return engine.accumulator(jobs, self.empty)
        return Totals(jobs, self._best)

    def _best(self, columns: Columns, jobs: Jobs, strengths: Sequence[Strengths]) -> list[list[np.ndarray]]:
        work = Work(strengths[0][0].size, jobs, columns)
        return self.cheapest(work)[0].sum_each(columns, jobs, strengths)

    def read(self) -> list[np.ndarray]:
        found = {key: dict(zip(self.rest[key], own.read(), strict=True)) for key, own in self.inner.items()}
        results = []
        for job in self.jobs:
            rest = job.without(self.axis)
            parts = [found[key][rest] if key in found else np.zeros(rest.shape) for key in job.letters[self.axis].keys]
            results.append(np.stack(parts, axis=self.axis))
        return results
