"""The four operations inference asks of the rows, made of an engine's two maps (design Fact C).

project  Phi' v            read_rows: sum of the single alphabet with strengths w (y - offset)
gram     Phi' W Phi        read_rows: sum of the double alphabet with strengths w, then ``gram_matrix``
evaluate Phi c             evaluate_letters on the single alphabet
quad     diag(Phi S Phi')  evaluate_letters on the double alphabet, coefficients ``gram_adjoint(S)``
"""

import numpy as np

from vff.basis import ColumnBasis
from vff.moments.engines.base import Engine
from vff.moments.statistics import MomentRequest, Moments


def read_rows(
    engine: Engine, request: MomentRequest, t: np.ndarray, y: np.ndarray, w: np.ndarray, offset: float = 0.0
) -> Moments:
    """The moments of rows at t = ``request.interval.to_unit(x)``, which must lie in [-1, 1]."""
    if t.size == 0:
        return Moments.zero(request, offset)
    basis, residual = request.basis, y - offset
    weighted = w * residual
    gram, project = engine.sum_letters(t, [(basis.double, w), (basis.single, weighted)])
    return Moments(
        request, t.size, float(w.sum()), offset, float(weighted.sum()), float(weighted @ residual), gram, project
    )


def evaluate_and_quad(
    engine: Engine, basis: ColumnBasis, t: np.ndarray, c: np.ndarray, S_letters: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Phi c and diag(Phi S Phi') at t in [-1, 1], (N,) each, in one go; ``S_letters`` is ``gram_adjoint(basis, S)``."""
    values, squares = engine.evaluate_letters(t, [(basis.single, c), (basis.double, S_letters)])
    return values, squares
