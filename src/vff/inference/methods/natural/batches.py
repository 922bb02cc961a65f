"""Minibatches: the same natural-gradient step (theory §9) on some rows at a time, with a rate that falls.

    sums <- (1 - r_t) sums + r_t (n / n_batch) sums of the batch's sites,        r_t = (2 + t / t_0)^-0.7

The likelihood's parameters follow at the same rate. Hyperparameters are held, since sums of a few rows, scaled up,
would take the scatter of these rows for detail: they are learnt before, from a sample, and after, on all rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from vff.inference.methods.natural.ascent import arrive, ascend, newton, positive
from vff.inference.methods.natural.oracle import MemoryRows
from vff.inference.methods.natural.sites import SiteAscent, SiteProblem, SiteStep

_STRETCHES = 64  # of rows, in a batch
_EPOCHS, _LAST_STEPS, _MOST_HALVINGS = 1, 10, 8
_STEADY, _FALL = 10.0, 0.7


def by_batches(
    problem: SiteProblem,
    first: SiteStep,
    size: int,
    progress: Callable[[str], None],
    epochs: int = _EPOCHS,
) -> SiteAscent:
    """Some epochs of steps on ``size`` rows each from a first q, and a few steps on all rows at the end."""
    held, rows = replace(problem, optimise=False, grows=False), problem.oracle.in_memory
    assert rows is not None  # batches are dealt from rows in memory
    iterate, psi, sums = first.iterate, first.psi, first.sums
    rng, t = np.random.default_rng(0), 0
    for epoch in range(epochs):
        for some in deal(rows, size, rng):
            rate = (2.0 + t / _STEADY) ** -_FALL
            batch = replace(held, oracle=some)
            visit = batch.visit(iterate, psi)
            wanted = visit.sums.scaled(float(rows.weight / some.weight))
            for halving in range(_MOST_HALVINGS):  # negative sites of few rows may make no q at a high rate
                shorter = rate * 0.5**halving
                trial = replace(sums.blended(wanted, shorter), n=rows.n)
                moved = held.update(trial, iterate, shorter)
                if moved is not None:
                    sums, iterate, t = trial, moved, t + 1
                    psi = psi + shorter * newton(visit.gradient, positive(-visit.hessian))
                    break
        progress(f"epoch {epoch + 1} of {epochs}: {t} steps of {size:,} rows")
    last = arrive(problem, iterate, psi, sums)
    return ascend(problem, last, tolerance=problem.tolerance, most_steps=_LAST_STEPS, progress=progress)


def deal(rows: MemoryRows, size: int, rng: np.random.Generator) -> Iterator[MemoryRows]:
    """All rows once, in batches of about ``size`` made of stretches from all over the table."""
    length = max(1, size // _STRETCHES)
    starts = rng.permutation(np.arange(0, rows.n, length))
    count = max(1, round(rows.n / size))
    for some in np.array_split(starts, count):
        pieces = [slice(int(start), min(int(start) + length, rows.n)) for start in some]
        yield MemoryRows(rows.walk.taken(pieces), rows.observed.taken(pieces), counted=False)
