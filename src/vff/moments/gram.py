"""From sums of double letters to the Gram matrix of one column's features, and back: a linear map and its transpose.

One implementation per kind of basis; a new kind registers its own.
"""

from functools import singledispatch
from itertools import combinations_with_replacement

import numpy as np

from vff.basis import ColumnBasis, LevelBasis
from vff.linalg import trigonometric_gram, trigonometric_gram_adjoint
from vff.moments.rows import Basis


@singledispatch
def gram_matrix(basis: Basis, moments: np.ndarray) -> np.ndarray:
    """sum w phi phi' (P, P) from sum w psi (Q,)."""
    raise TypeError(f"no Gram matrix is known for {basis!r}")


@singledispatch
def gram_adjoint(basis: Basis, S: np.ndarray) -> np.ndarray:
    """Coefficients c (Q,) with phi(x)' S phi(x) = psi(x)' c: the transpose of ``gram_matrix``."""
    raise TypeError(f"no Gram matrix is known for {basis!r}")


@singledispatch
def features_sum(basis: Basis, moments: np.ndarray) -> np.ndarray:
    """sum w phi (P,): the features are among the double letters."""
    raise TypeError(f"no Gram matrix is known for {basis!r}")


@gram_matrix.register
def _(basis: ColumnBasis, moments: np.ndarray) -> np.ndarray:
    M, q, H = basis.M, basis.q, basis.harmonics
    places = [place for _, place in basis.double.slices()]
    gram = np.empty((basis.size, basis.size))
    gram[:H, :H] = trigonometric_gram(moments[places[0]], M)
    for j in range(q):
        gram[:H, H + j] = gram[H + j, :H] = moments[places[1 + j]]
    for (i, j), place in zip(combinations_with_replacement(range(q), 2), places[1 + q :], strict=True):
        gram[H + i, H + j] = gram[H + j, H + i] = moments[place][0]
    return gram


@gram_adjoint.register
def _(basis: ColumnBasis, S: np.ndarray) -> np.ndarray:
    q, H = basis.q, basis.harmonics
    places = [place for _, place in basis.double.slices()]
    letters = np.empty(basis.double.size)
    letters[places[0]] = trigonometric_gram_adjoint(S[:H, :H])
    for j in range(q):
        letters[places[1 + j]] = S[:H, H + j] + S[H + j, :H]
    for (i, j), place in zip(combinations_with_replacement(range(q), 2), places[1 + q :], strict=True):
        letters[place] = S[H + i, H + j] + (S[H + j, H + i] if i != j else 0.0)
    return letters


@features_sum.register
def _(basis: ColumnBasis, moments: np.ndarray) -> np.ndarray:
    M, places = basis.M, [place for _, place in basis.double.slices()]
    harmonics = moments[places[0]]
    edges = [moments[place][0] for place in places[1 : 1 + basis.q]]
    return np.concatenate([harmonics[: M + 1], harmonics[2 * M + 1 : 3 * M + 1], edges])


@gram_matrix.register
def _(basis: LevelBasis, moments: np.ndarray) -> np.ndarray:
    return np.diag(moments)


@gram_adjoint.register
def _(basis: LevelBasis, S: np.ndarray) -> np.ndarray:
    return np.diagonal(S).copy()


@features_sum.register
def _(basis: LevelBasis, moments: np.ndarray) -> np.ndarray:
    return moments
