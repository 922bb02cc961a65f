"""Averages of features over rows, which effects are centred on: sums of sites have other weights than the rows."""

from dataclasses import replace

import numpy as np

from vff.moments import MomentRequest, ReadingPlan, Source, TermRequest, Walk, plan_reading, read


def feature_averages(walk: Walk, request: MomentRequest, w: np.ndarray) -> tuple[np.ndarray, ...]:
    """Averages of every term's features over the rows, (P,) each."""
    weight = float(w.sum())
    return tuple(sums / weight for sums in feature_sums(walk, request, w))


def feature_sums(walk: Walk, request: MomentRequest, w: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sums of every term's features over the rows, (P,) each."""
    return tuple(_sums_of(walk, term, w) for term in request.terms)


def _sums_of(walk: Walk, term: TermRequest, w: np.ndarray) -> np.ndarray:
    """Of one term by itself: no sums between terms are needed."""
    alone = MomentRequest((replace(term, columns=tuple(range(len(term.columns)))),))
    books = [walk.plan.books[c] for c in term.columns]
    source = Source(walk.n, lambda d, rows: walk.source.column(term.columns[d], rows), np.zeros(walk.n), w)
    plan: ReadingPlan = plan_reading(walk.n, alone, books)
    return read(plan, source)[0].features_sums[0]
