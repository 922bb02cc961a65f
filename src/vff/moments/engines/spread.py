"""Continuous columns. One by itself by non-uniform FFTs; several by spreading rows on a lattice, once for all letters.

The transforms of one column are asked for the digits that its highest edge functions need; a lattice of several columns
serves every letter, and its width is paid for in every dimension.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import ClassVar

import numpy as np

from vff.basis.trigonometric import TrigonometricLetters
from vff.moments.engines.base import (
    CHUNK,
    LARGEST_CONTINGENCY,
    START,
    Accumulator,
    Arrays,
    Choice,
    Columns,
    Cost,
    Job,
    Jobs,
    Kept,
    Work,
    contract,
    contraction,
)
from vff.moments.engines.nufft import interpolate, spread, type1, type2
from vff.moments.engines.ruler import Ruler
from vff.moments.engines.transforms import TransformEngine
from vff.moments.rows import ColumnRows

EPSILON = 1e-12  # of the spreading
_MOST_NODES = 2**27  # of one lattice, two gibibytes
_PER_ROW = 250e-9
_PER_ROW_SPREAD, _PER_NODE = {2: 150e-9, 3: 2e-6}, 10e-9


class NufftEngine(TransformEngine):
    """Trigonometric letters of up to three axes."""

    name: ClassVar[str] = "nufft"
    type1, type2, chunk = staticmethod(type1), staticmethod(type2), 2**21

    def cost(self, work: Work) -> Cost:
        bands, n = work.bands, work.n
        if bands is None:
            return Cost(None, "some letters are not trigonometric")
        if work.alone is not None:
            return Cost(START + n * _PER_ROW, _reason_alone(n, work.alone))
        if len(bands) not in _PER_ROW_SPREAD:
            return Cost(None, "a lattice of more than three columns is too large")
        nodes = [nodes_for(band) for band in bands]
        if prod(nodes) > LARGEST_CONTINGENCY:
            return Cost(None, f"a lattice of {' x '.join(map(str, nodes))} nodes is too large")
        lattice = START + prod(nodes) * _PER_NODE * max(1.0, n / CHUNK) + contraction(work.jobs, nodes)
        reason = f"{n} rows spread on {' x '.join(map(str, nodes))} nodes"
        return Cost(n * _PER_ROW_SPREAD[len(nodes)] + lattice, reason)

    def requested(self, work: Work) -> Choice:
        bands = work.bands or []
        if work.alone is not None:
            return super().requested(work)
        if len(bands) > 3:
            return Choice("dense", "dense: engine='nufft' ends at three columns")
        nodes = [nodes_for(band) for band in bands]
        if prod(nodes) > _MOST_NODES:
            raise ValueError(
                f"engine='nufft' would spread rows on {' x '.join(map(str, nodes))} nodes for {len(nodes)} columns at "
                f"once, where at most {_MOST_NODES} fit; use engine='auto', or fewer frequencies"
            )
        return super().requested(work)

    def accumulator(self, jobs: Jobs, columns: Columns) -> Accumulator:
        return super().accumulator(jobs, columns) if len(columns) == 1 else _Spread(jobs, columns)

    def evaluate(self, columns: Columns, jobs: Jobs, coefficients: Arrays, kept: Kept = None) -> list[np.ndarray]:
        if len(columns) == 1:
            return super().evaluate(columns, jobs, coefficients, kept)
        return [_interpolated(columns, job, own) for job, own in zip(jobs, coefficients, strict=True)]


def _reason_alone(n: int, column: ColumnRows) -> str:
    if column.distinct is None:
        return f"{n} rows of a continuous column"
    letters = column.basis.double.size
    return f"{n} rows, quicker than {letters} letters at each of {column.distinct.size} distinct values"


@lru_cache(maxsize=64)
def _ruler(K: int) -> Ruler:
    return Ruler(K, EPSILON)


@lru_cache(maxsize=64)
def _node_values(K: int, letters: TrigonometricLetters) -> np.ndarray:
    """Letters at the nodes of the ruler for harmonics up to K, (n, size)."""
    return _ruler(K).letters(letters)


def nodes_for(K: int) -> int:
    """Nodes of the lattice along an axis with harmonics up to K."""
    return _ruler(K).n


def _matrices(job: Job, bands: Sequence[int]) -> list[np.ndarray]:
    """Node values of the letters of every axis, (n, size) each."""
    both = zip(bands, job.letters, strict=True)
    return [_node_values(band, own) for band, letters in both if (own := letters.trigonometric) is not None]


class _Spread(Accumulator):
    """Weights and weighted targets on a lattice; two real numbers travel in one complex one."""

    def __init__(self, jobs: Jobs, columns: Columns):
        super().__init__(jobs)
        self.bands = Work(0, jobs, columns).bands or []
        self.rulers = [_ruler(band) for band in self.bands]
        self.lattice = np.zeros(tuple(ruler.n for ruler in self.rulers), complex)

    def add(self, columns: Columns, w: np.ndarray, weighted: np.ndarray) -> None:
        strengths = np.empty(w.size, complex)
        strengths.real, strengths.imag = w, weighted if self.both else 0.0
        points = [ruler.reach * column.t for ruler, column in zip(self.rulers, columns, strict=True)]
        self.lattice += spread(points, strengths[None], self.lattice.shape, EPSILON)[0]

    def read(self) -> list[np.ndarray]:
        parts = [np.ascontiguousarray(np.real(self.lattice)), np.ascontiguousarray(np.imag(self.lattice))]
        return [contract(parts[int(job.targets)], [M.T for M in _matrices(job, self.bands)]) for job in self.jobs]


def _interpolated(columns: Columns, job: Job, coefficients: np.ndarray) -> np.ndarray:
    bands = Work(0, [job], columns).bands or []
    points = [_ruler(band).reach * column.t for band, column in zip(bands, columns, strict=True)]
    values = contract(coefficients, _matrices(job, bands)).astype(complex)
    return interpolate(points, values[None], EPSILON)[0].real
