"""Which rows and which features learning under a likelihood begins with, and how many features all rows are asked for.

A visit costs what its rows and features do, so that most steps are taken on a sample with few harmonics.
"""

from collections.abc import Sequence

from vff.inference.learning.column_scan import sample_pieces
from vff.inference.learning.growth import Stage
from vff.inference.learning.harmonics import fewer
from vff.inference.methods.natural.oracle import MemoryRows, RowOracle
from vff.inference.methods.task import FitTask
from vff.moments import MomentRequest, TermRequest

_MANY_ROWS, _SAMPLE = 2**16, 2**15  # more are first learnt from so many of them
SEVERAL_ROWS, _COARSER = 2**12, 0.75  # more are first learnt with fewer features, if so many are fewer
_FEATURES_OF_SAMPLE, _LEAST_SHARE, _LEAST_M = 300, 0.05, 8
_ROOM, _MORE_M, _WIDER = 1.0, 2, 1.6  # of the harmonics that all rows should ask for, and what is tried beyond


def with_room(oracle: RowOracle, stage: Stage, weight: float) -> MomentRequest:
    """As many harmonics of terms of one column as all rows should ask for, by what a sample of this weight misses."""
    share = stage.tolerance / len(stage.model.terms)
    missed = stage.bound_gap_by_term * oracle.weight / weight
    wanted = []
    for s, own in enumerate(oracle.request.harmonics):
        decay = stage.model.terms[s].factors[0].decay
        most, M = own[0], stage.harmonics[s][0]
        if len(own) > 1 or most is None or M is None or decay is None:
            wanted.append(own)
            continue
        more = max(1.0, _ROOM * max(0.0, float(missed[s]) / share) ** (1.0 / decay))
        wanted.append((int(min(most, M * min(more, float(most)) + _MORE_M)),))
    return _resized(oracle.request, wanted)


def wider(whole: MomentRequest, request: MomentRequest, stage: Stage) -> MomentRequest:
    """More harmonics, where these are not enough; the same where they are, or there are no more."""
    if stage.enough:
        return request
    wanted = []
    for most, own, now in zip(whole.harmonics, request.harmonics, stage.harmonics, strict=True):
        full = own == now and own != most
        more = (None if a is None or b is None else min(b, int(_WIDER * a)) for a, b in zip(own, most, strict=True))
        wanted.append(tuple(more) if full else own)
    return _resized(whole, wanted)


def _resized(whole: MomentRequest, harmonics: Sequence[tuple[int | None, ...]]) -> MomentRequest:
    terms = []
    for term, own in zip(whole.terms, harmonics, strict=True):
        for d, (M, most) in enumerate(zip(own, term.bases, strict=True)):
            if M is not None and most.detail != M:
                term = term.with_basis(d, most.resized(M))
        terms.append(term)
    return MomentRequest(tuple(terms))


def sampled(task: FitTask) -> MemoryRows | None:
    """Some of the rows, when they are many, or all with fewer features, when these are many."""
    prepared, observed = task.visited.prepared, task.visited.observed
    if not (task.optimise or task.batch):
        return None
    if task.batch is not None and task.visited.everywhere is None:
        pieces = sample_pieces(prepared.n, task.batch)
        if prepared.n <= task.batch:
            return None
    elif task.visited.everywhere is None and prepared.n <= _MANY_ROWS:
        pieces = [slice(0, prepared.n)]
    else:
        pieces = sample_pieces(prepared.n, _SAMPLE)
    coarser = _coarser(task)
    many = task.visited.everywhere is not None or prepared.n > (task.batch or _MANY_ROWS)
    if not many and (prepared.n < SEVERAL_ROWS or coarser.size > _COARSER * task.visited.request.size):
        return None
    return MemoryRows(prepared.taken(pieces, coarser), observed.taken(pieces), counted=False)


def _coarser(task: FitTask) -> MomentRequest:
    """Fewer harmonics where they are to be found: a sample shows hyperparameters, and not the last detail."""
    whole, share = task.visited.request, 1.0
    request, others = whole, sum(term.size for term in whole.terms if all(M is None for M in _details(term)))
    while request.size - others > _FEATURES_OF_SAMPLE and share > _LEAST_SHARE:
        share *= 0.8
        request = fewer(whole, share, _LEAST_M, [[M is None for M in plan.M] for plan in task.plans])
    return request


def _details(term: TermRequest) -> list[int | None]:
    return [basis.detail for basis in term.bases]
