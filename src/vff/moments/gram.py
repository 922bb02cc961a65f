"""From sums of double letters to the Gram matrix of the features, and back: a linear map and its transpose."""

from itertools import combinations_with_replacement

import numpy as np

from vff.basis import ColumnBasis
from vff.linalg import trigonometric_gram, trigonometric_gram_adjoint


def gram_matrix(basis: ColumnBasis, moments: np.ndarray) -> np.ndarray:
    """sum w phi phi' (P, P) from sum w psi (Q,)."""
    M, q, H = basis.M, basis.q, basis.harmonics
    places = [place for _, place in basis.double.slices()]
    gram = np.empty((basis.size, basis.size))
    gram[:H, :H] = trigonometric_gram(moments[places[0]], M)
    for j in range(q):
        gram[:H, H + j] = gram[H + j, :H] = moments[places[1 + j]]
    for (i, j), place in zip(combinations_with_replacement(range(q), 2), places[1 + q :], strict=True):
        gram[H + i, H + j] = gram[H + j, H + i] = moments[place][0]
    return gram


def gram_adjoint(basis: ColumnBasis, S: np.ndarray) -> np.ndarray:
    """Coefficients c (Q,) with phi(x)' S phi(x) = psi(x)' c: the transpose of ``gram_matrix``."""
    q, H = basis.q, basis.harmonics
    places = [place for _, place in basis.double.slices()]
    letters = np.empty(basis.double.size)
    letters[places[0]] = trigonometric_gram_adjoint(S[:H, :H])
    for j in range(q):
        letters[places[1 + j]] = S[:H, H + j] + S[H + j, :H]
    for (i, j), place in zip(combinations_with_replacement(range(q), 2), places[1 + q :], strict=True):
        letters[place] = S[H + i, H + j] + (S[H + j, H + i] if i != j else 0.0)
    return letters
