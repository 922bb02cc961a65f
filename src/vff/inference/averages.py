"""Averages of features over rows, which effects are centred on: sums of sites have other weights than the rows."""

from dataclasses import replace

import numpy as np

from vff.moments import MomentRequest, ReadingPlan, Source, TermRequest, Walk, plan_reading, read


def feature_averages(walk: Walk, request: MomentRequest, w: np.ndarray) -> tuple[np.ndarray, ...]:
    """Averages of every term's features over the rows, (P,) each."""
    return tuple(_average(walk, term, w) for term in request.terms)


def _average(walk: Walk, term: TermRequest, w: np.ndarray) -> np.ndarray:
    """Of one term by itself: no sums between terms are needed."""
    alone = MomentRequest((replace(term, columns=tuple(range(len(term.columns)))),))
    books = [walk.plan.books[c] for c in term.columns]
    source = Source(walk.n, lambda d, rows: walk.source.column(term.columns[d], rows), np.zeros(walk.n), w)
    plan: ReadingPlan = plan_reading(walk.n, alone, books)
    moments = read(plan, source)[0]
    return moments.features_sums[0] / moments.weight
