"""Features of a product at rows, factor by factor: they are never written out together."""

from typing import Any

import numpy as np

from vff.linalg import product_rows

_WRITTEN = 2**23  # products of features written out at a time


def evaluated(z: Any, h: Any, xp: Any = np) -> Any:
    """z'h of every row, z the products of the features (N, P_g) of the groups, which are not written out, (N,)."""
    value = z[0] @ h.reshape(z[0].shape[1], -1)
    for factor in z[1:]:
        value = xp.einsum("np,npr->nr", factor, value.reshape(len(value), factor.shape[1], -1))
    return value[:, 0]


def projected(z: tuple[np.ndarray, ...], v: np.ndarray) -> np.ndarray:
    """sum_n v_n z_n, the transpose of ``evaluated``, (P,)."""
    if len(z) == 1:
        return v @ z[0]
    P, rest = z[0].shape[1], int(np.prod([factor.shape[1] for factor in z[1:]]))
    total, step = np.zeros((P, rest)), max(1, _WRITTEN // rest)
    for start in range(0, len(v), step):
        some = slice(start, start + step)
        total += (z[0][some].T * v[some]) @ product_rows([factor[some] for factor in z[1:]])
    return total.ravel()
