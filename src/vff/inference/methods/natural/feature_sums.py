"""Averages of features over rows, which effects are centred on: sums of sites have other weights than the rows."""

from collections.abc import Sequence

import numpy as np

from vff.linalg import along
from vff.moments import ENGINES, ColumnRows, Job, MomentRequest, PreparedRows, Work, choose

FeatureSums = tuple[np.ndarray, ...]
"""sum w phi of every term, (P,) each."""


def feature_sums(request: MomentRequest, columns: Sequence[ColumnRows], w: np.ndarray) -> FeatureSums:
    """Over rows that are ready for the engines: single letters alone, and nothing between terms."""
    found = []
    for term in request.terms:
        rows = [columns[c].for_request(factor) for c, factor in zip(term.columns, term.factors, strict=True)]
        jobs = (Job(tuple(basis.single for basis in term.bases)),)
        (sums,) = ENGINES[choose(Work(w.size, jobs, rows)).name].sum(rows, jobs, w, w)
        found.append(sums.reshape(-1))
    return tuple(found)


def feature_averages(walk: PreparedRows, request: MomentRequest, w: np.ndarray) -> FeatureSums:
    """Averages over rows in memory, for any features of their columns: one walk."""
    total: FeatureSums | None = tuple(np.zeros(size) for size in request.sizes)
    for rows, columns in walk.chunks():
        total = added(total, feature_sums(request, columns, w[rows]))
    assert total is not None
    return tuple(sums / float(w.sum()) for sums in total)


def added(one: FeatureSums | None, other: FeatureSums | None) -> FeatureSums | None:
    """Those of all rows, where both are known."""
    if one is None or other is None:
        return None
    return tuple(mine + theirs for mine, theirs in zip(one, other, strict=True))


def restricted(request: MomentRequest, sums: FeatureSums, smaller: MomentRequest) -> FeatureSums:
    """The sums for fewer features of the same terms, read off these."""
    found = []
    for term, own, total in zip(request.terms, smaller.terms, sums, strict=True):
        tensor = total.reshape(term.shape)
        for d, (large, small) in enumerate(zip(term.bases, own.bases, strict=True)):
            if large != small:
                tensor = along(tensor, d, large.to(small).single)
        found.append(np.ascontiguousarray(tensor).reshape(-1))
    return tuple(found)
