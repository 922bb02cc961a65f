"""From sums of double letters to the Gram matrix of a term's features, and back: a linear map and its transpose.

One implementation per kind of basis; a new kind registers its own. A product term has one axis of letters per column,
and the same map along each.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache, singledispatch
from itertools import combinations_with_replacement
from math import prod

import numpy as np
from scipy import sparse

from vff.basis import ColumnBasis, LevelBasis
from vff.linalg import trigonometric_entries, trigonometric_gram, trigonometric_gram_adjoint
from vff.moments.axes import along
from vff.moments.rows import Basis


@singledispatch
def gram_matrix(basis: Basis, moments: np.ndarray) -> np.ndarray:
    """sum w phi phi' (P, P, ...) from sum w psi (Q, ...)."""
    raise TypeError(f"no Gram matrix is known for {basis!r}")


@singledispatch
def gram_adjoint(basis: Basis, S: np.ndarray) -> np.ndarray:
    """Coefficients c (Q,) with phi(x)' S phi(x) = psi(x)' c: the transpose of ``gram_matrix``."""
    raise TypeError(f"no Gram matrix is known for {basis!r}")


@singledispatch
def _features_sum(basis: Basis, moments: np.ndarray) -> np.ndarray:
    """sum w phi (P, ...): the features are among the double letters."""
    raise TypeError(f"no Gram matrix is known for {basis!r}")


@gram_matrix.register
def _(basis: ColumnBasis, moments: np.ndarray) -> np.ndarray:
    M, q, H = basis.M, basis.q, basis.harmonics
    places = [place for _, place in basis.double.slices()]
    gram = np.empty((basis.size, basis.size, *moments.shape[1:]))
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


@_features_sum.register
def _(basis: ColumnBasis, moments: np.ndarray) -> np.ndarray:
    M, places = basis.M, [place for _, place in basis.double.slices()]
    harmonics = moments[places[0]]
    edges = [moments[place][:1] for place in places[1 : 1 + basis.q]]
    return np.concatenate([harmonics[: M + 1], harmonics[2 * M + 1 : 3 * M + 1], *edges])


@gram_matrix.register
def _(basis: LevelBasis, moments: np.ndarray) -> np.ndarray:
    gram = np.zeros((basis.size, *moments.shape))
    gram[np.arange(basis.size), np.arange(basis.size)] = moments
    return gram


@gram_adjoint.register
def _(basis: LevelBasis, S: np.ndarray) -> np.ndarray:
    return np.diagonal(S).copy()


@_features_sum.register
def _(basis: LevelBasis, moments: np.ndarray) -> np.ndarray:
    return moments


@lru_cache(maxsize=64)
def transposed_map(basis: Basis) -> sparse.csr_array:
    """``gram_adjoint`` as a sparse matrix, (Q, P P): for many right-hand sides at once."""
    letters, rows, columns, values = (np.concatenate(part) for part in zip(*_entries(basis), strict=True))
    P = basis.size
    return sparse.csr_array((values, (letters, rows * P + columns)), shape=(basis.double.size, P * P))


Entries = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Letter, row and column of the Gram matrix, and how much of the letter stands there."""


def _entries(basis: Basis) -> Iterator[Entries]:
    """What every letter contributes to the Gram matrix."""
    if isinstance(basis, LevelBasis):
        every = np.arange(basis.size)
        yield every, every, every, np.ones(basis.size)
        return
    H, q, places = basis.harmonics, basis.q, [place for _, place in basis.double.slices()]
    yield from trigonometric_entries(basis.M)
    harmonics = np.arange(H)
    for j in range(q):
        letters, edge, ones = places[1 + j].start + harmonics, np.full(H, H + j), np.ones(H)
        yield letters, harmonics, edge, ones
        yield letters, edge, harmonics, ones
    for (i, j), place in zip(combinations_with_replacement(range(q), 2), places[1 + q :], strict=True):
        for row, column in {(i, j), (j, i)}:
            yield np.array([place.start]), np.array([H + row]), np.array([H + column]), np.ones(1)


def gram_tensor(bases: Sequence[Basis], letters: np.ndarray) -> np.ndarray:
    """sum w phi phi' (P, P) of the products of several factors' features, from sums of products of double letters."""
    if len(bases) == 1:
        return gram_matrix(bases[0], letters)
    D = len(bases)
    # one axis of letters after another becomes two axes of features: (Q1, Q2) -> (P1, P1, Q2) -> (P1, P1, P2, P2)
    tensor = letters
    for d, basis in enumerate(bases):
        flat = tensor.reshape(-1, letters.shape[d], prod(letters.shape[d + 1 :]))
        expanded = gram_matrix(basis, np.ascontiguousarray(np.moveaxis(flat, 1, 0)))
        tensor = np.moveaxis(expanded, 2, 0)
    sizes = [basis.size for basis in bases]
    paired = tensor.reshape([size for size in sizes for _ in range(2)])
    order = [2 * d for d in range(D)] + [2 * d + 1 for d in range(D)]
    return np.ascontiguousarray(paired.transpose(order)).reshape(prod(sizes), prod(sizes))


def gram_tensor_adjoint(bases: Sequence[Basis], S: np.ndarray) -> np.ndarray:
    """Coefficients of products of double letters, (Q1, Q2, ...), with sum phi'S phi: transpose of ``gram_tensor``."""
    if len(bases) == 1:
        return gram_adjoint(bases[0], S)
    D, sizes = len(bases), [basis.size for basis in bases]
    paired = S.reshape(*sizes, *sizes).transpose([axis for d in range(D) for axis in (d, D + d)])
    tensor = paired.reshape([size**2 for size in sizes])
    for d, basis in enumerate(bases):
        tensor = along(tensor, d, lambda rows, basis=basis: transposed_map(basis) @ rows)
    return tensor


def gram_columns_adjoint(basis: Basis, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Coefficients of (phi'u_r)(phi'v_r) in the double letters of one column, (Q, R), for columns of U and V (P, R)."""
    adjoint, step = transposed_map(basis), max(1, 2**22 // basis.size**2)
    parts = []
    for start in range(0, U.shape[1], step):
        some = slice(start, start + step)
        parts.append(adjoint @ (U[:, None, some] * V[None, :, some]).reshape(basis.size**2, -1))
    return np.concatenate(parts, axis=1)


def features_sum(bases: Sequence[Basis], letters: np.ndarray) -> np.ndarray:
    """sum w phi (P,) of a term."""
    for d, basis in enumerate(bases):
        letters = along(letters, d, lambda rows, basis=basis: _features_sum(basis, rows))
    return letters.reshape(-1)
