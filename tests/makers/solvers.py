"""Problems that every solver must solve, and the ways in which each of them does."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from unittest.mock import patch

import numpy as np

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.factors.interval.factor import MaternFactor
from vff.factors.levels.factor import LevelFactor
from vff.inference import SumModel, Term
from vff.inference.learning.solver import Solver
from vff.inference.posterior import Posterior
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.moments import ColumnRequest, MomentRequest, TermRequest, moments_of_arrays

UNIT, LEVELS = Interval(-1.0, 1.0), ("a", "b", "c", "d", "e")
PAIR, TRIPLE, WITH_LEVELS = (((0, 1), (1, 2)),), (((0, 1), (1, 1), (2, 1)),), (((3, None), (0, 1)),)
BESIDE = (((0, 1),), ((3, None),), ((0, 1), (1, 1)))
SLOPES = (((3, None), (4, None)), ((0, 1),), ((1, 1), (2, 1)), ((4, None),))
BY_LEVEL = (((0, 1),), ((0, 1), (3, None)), ((3, None),), ((1, 1), (2, 1)))
BY_TWO = (((1, 1),), ((3, None), (0, 1), (4, None), (2, 1)), ((3, None), (1, 1)))
CROSSED = (((3, None),), ((0, 1), (1, 1)), ((4, None),))
MAINS = (((0, 1),), ((1, 1),), ((0, 1), (1, 1)))
CASES = {
    "independent": (PAIR, ((10, 9),), 200),
    "correlated": (PAIR, ((10, 9),), 500),
    "clustered": (PAIR, ((10, 9),), 300),
    "three columns": (TRIPLE, ((3, 2, 3),), 300),
    "levels": (WITH_LEVELS, ((None, 50),), 200),
    "mains and product": (MAINS, ((6,), (6,), (9, 9)), 300),
    "levels beside": (BESIDE, ((40,), (None,), (9, 9)), 300),
    "levels crossed": (CROSSED, ((None,), (9, 9), (None,)), 300),
    "levels and products of levels": (SLOPES, ((None, None), (60,), (8, 8), (None,)), 300),
    "levels with functions of their own": (BY_LEVEL, ((9,), (20, None), (None,), (7, 7)), 300),
    "levels of two with functions of two": (BY_TWO, ((12,), (None, 1, None, 2), (None, 6)), 500),
}
"""Factors of every term, harmonics, and how many functions the preconditioner takes together."""


def rows(name: str, N: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(-1, 1, (3, N))
    if name == "correlated":
        b = np.clip(a + 0.2 * rng.normal(size=N), -1, 1)
    if name == "clustered":
        centres, which = rng.uniform(-0.8, 0.8, (2, 6)), rng.integers(0, 6, N)
        a, b = np.clip(centres[:, which] + 0.05 * rng.normal(size=(2, N)), -1, 1)
    g, h = rng.integers(0, len(LEVELS), (2, N)).astype(float)
    y = np.sin(4 * a) * np.cos(3 * b) + c**2 + 0.5 * (g == 1) * a + 0.3 * rng.normal(size=N)
    return [a, b, c, g, h], y, rng.uniform(0.5, 1.5, N)


def request(shape, harmonics, used) -> MomentRequest:
    terms = []
    for term, own in zip(shape, harmonics, strict=True):
        factors = [
            ColumnRequest(Codes(), LevelBasis(LEVELS)) if M is None else ColumnRequest(UNIT, ColumnBasis(M, p + 2))
            for (_, p), M in zip(term, own, strict=True)
        ]
        terms.append(TermRequest(tuple(used.index(c) for c, _ in term), tuple(factors)))
    return MomentRequest(tuple(terms))


def problem(name: str, N: int = 1200, harmonics=None, *, weighted=True) -> tuple[SumModel, np.ndarray, np.ndarray]:
    """Model, hyperparameters and rows."""
    shape, own, _ = CASES[name]
    columns, y, w = rows(name, N)
    w = w if weighted else np.ones(N)
    used = sorted({c for term in shape for c, _ in term})
    columns = [columns[c] for c in used]
    terms = tuple(Term(tuple(LevelFactor() if p is None else MaternFactor(p) for _, p in term)) for term in shape)
    model = SumModel(terms, moments_of_arrays(request(shape, harmonics or own, used), columns, y, w))
    values = [[0.7, *(0.5 + 0.1 * d for d, (_, p) in enumerate(term) if p is not None)] for term in shape]
    return model, np.log(np.concatenate([*values, [0.1]])), np.stack(columns, axis=1)


def corners(name: str) -> list[AbstractContextManager[object]]:
    """How many functions are taken together: as many as make it hard, and all."""
    return [patch("vff.inference.solvers.whitening.CORNER", corner) for corner in (CASES[name][2], 1600)]


def crossed(name: str) -> list[AbstractContextManager[object]]:
    """With a factor of the second column, and by iterations."""
    if name != "levels crossed":
        return []
    few = patch("vff.moments.gram.SPARSE_FROM", 1)
    return [few, _both(few, patch("vff.inference.solvers.links.LARGEST_FACTORED", 0))]


@contextmanager
def _both(one: AbstractContextManager[object], other: AbstractContextManager[object]) -> Iterator[None]:
    with one, other:
        yield


MAKERS: dict[str, Callable[[str], Sequence[AbstractContextManager[object]]]] = {
    "direct": lambda name: [nullcontext()],
    "iterative": corners,
    "eliminating": lambda name: [nullcontext()] if name.startswith("levels ") else [],
    "crossed": crossed,
    # rounding leaves no root of a Gram matrix that is all but singular: not offered there
    "low-rank": lambda name: [] if name in ("correlated", "clustered") else [nullcontext()],
}
"""By name of the solver: the circumstances under which a problem is solved by it."""


def solved(solver: Solver, model: SumModel, theta: np.ndarray) -> LinearGaussian:
    """The model at log hyperparameters, by this solver whatever the size."""
    return solver.at(model, model.unpack(theta))


def posterior(solver: Solver, model: SumModel, theta: np.ndarray) -> Posterior:
    """The posterior there."""
    return solver.posterior(solved(solver, model, theta), model, model.unpack(theta))
