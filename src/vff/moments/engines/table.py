"""Columns with few distinct values: sum the strengths per value, then work on the values alone. Exact."""

from collections.abc import Sequence

import numpy as np

from vff.moments.engines import dense
from vff.moments.engines.base import Engine, Job
from vff.moments.engines.lattice import distinct


def _sum_letters(t: np.ndarray, jobs: Sequence[Job]) -> list[np.ndarray]:
    values, codes = distinct(t)
    collapsed = [(alphabet, np.bincount(codes, strengths, values.size)) for alphabet, strengths in jobs]
    return dense.sum_letters(values, collapsed)


def _evaluate_letters(t: np.ndarray, jobs: Sequence[Job]) -> list[np.ndarray]:
    values, codes = distinct(t)
    return [at_values[codes] for at_values in dense.evaluate_letters(values, jobs)]


TABLE = Engine("table", _sum_letters, _evaluate_letters)
