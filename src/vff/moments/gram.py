"""From sums of products of double letters, one per factor, to the Gram matrix of a term's features, and back."""

from collections.abc import Sequence
from math import prod

import numpy as np

from vff.basis.protocol import Basis
from vff.linalg import AbstractSymmetric, Dense, Diagonal, MatrixView
from vff.moments.axes import along


def gram_tensor(bases: Sequence[Basis], letters: np.ndarray) -> np.ndarray:
    """sum w phi phi' (P, P) of the products of several factors' features, from sums of products of double letters."""
    if len(bases) == 1:
        return bases[0].pairs(letters)
    D = len(bases)
    # one axis of letters after another becomes two axes of features: (Q1, Q2) -> (P1, P1, Q2) -> (P1, P1, P2, P2)
    tensor = letters
    for d, basis in enumerate(bases):
        flat = tensor.reshape(-1, letters.shape[d], prod(letters.shape[d + 1 :]))
        expanded = basis.pairs(np.ascontiguousarray(np.moveaxis(flat, 1, 0)))
        tensor = np.moveaxis(expanded, 2, 0)
    sizes = [basis.size for basis in bases]
    paired = tensor.reshape([size for size in sizes for _ in range(2)])
    order = [2 * d for d in range(D)] + [2 * d + 1 for d in range(D)]
    return np.ascontiguousarray(paired.transpose(order)).reshape(prod(sizes), prod(sizes))


def term_gram(bases: Sequence[Basis], letters: np.ndarray) -> AbstractSymmetric:
    """The same with its structure: diagonal where products of different features vanish."""
    if len(bases) == 1:
        return bases[0].gram(letters)
    if all(basis.orthogonal for basis in bases):  # the features are the double letters
        return Diagonal(features_sum(bases, letters))
    return Dense(gram_tensor(bases, letters))


def project_term(bases: Sequence[Basis], S: MatrixView) -> np.ndarray:
    """Coefficients of products of double letters, (Q1, Q2, ...), with sum phi'S phi: transpose of ``gram_tensor``.

    S is asked only where products of features live.
    """
    if len(bases) == 1:
        return bases[0].project(S)
    tensor = _at_products(bases, S)
    for d, basis in enumerate(bases):
        tensor = along(tensor, d, lambda rows, basis=basis: basis.products().transposed @ rows)
    return tensor


def _at_products(bases: Sequence[Basis], S: MatrixView) -> np.ndarray:
    """The entries of S where products of features live, an axis per factor."""
    D, sizes = len(bases), [basis.size for basis in bases]
    if all(basis.everywhere for basis in bases):
        paired = S.written().reshape(*sizes, *sizes).transpose([axis for d in range(D) for axis in (d, D + d)])
        return paired.reshape([size**2 for size in sizes])
    rows = columns = np.zeros([1] * D, int)
    for d, basis in enumerate(bases):
        found, shape = basis.products(), [1] * D
        shape[d] = found.rows.size
        rows = rows * basis.size + found.rows.reshape(shape)
        columns = columns * basis.size + found.columns.reshape(shape)
    return S.at(rows, columns)


def gram_columns_adjoint(basis: Basis, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Coefficients of (phi'u_r)(phi'v_r) in the double letters of one column, (Q, R), for columns of U and V (P, R)."""
    found = basis.products()
    step = max(1, 2**22 // found.rows.size)
    parts = []
    for start in range(0, U.shape[1], step):
        left, right = U[:, start : start + step], V[:, start : start + step]
        if basis.everywhere:
            products = (left[:, None] * right[None]).reshape(basis.size**2, -1)
        else:
            products = left[found.rows] * right[found.columns]
        parts.append(found.transposed @ products)
    return np.concatenate(parts, axis=1)


def features_sum(bases: Sequence[Basis], letters: np.ndarray) -> np.ndarray:
    """sum w phi (P,) of a term."""
    for d, basis in enumerate(bases):
        letters = along(letters, d, basis.features_sum)
    return letters.reshape(-1)
