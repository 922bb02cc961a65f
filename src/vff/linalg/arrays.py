"""Which library a number belongs to, where the parts of a vector stand, and vectors read as tensors."""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np


def namespace(x: Any) -> Any:
    """The array library of x: jax.numpy for what JAX traces, NumPy for everything else. JAX is not imported here."""
    return x.__array_namespace__() if hasattr(x, "__array_namespace__") else np


def slices_of(sizes: Iterable[int]) -> tuple[slice, ...]:
    """Where parts of these sizes stand, one after another."""
    sizes = list(sizes)
    return tuple(slice(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True))


def along(array: np.ndarray, axis: int, map_of_rows: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply a map of (rows, ...) to (other rows, ...) to the given axis of an array, whose other axes stay."""
    if array.ndim == 1:
        return map_of_rows(array)
    before, rows, after = prod(array.shape[:axis]), array.shape[axis], array.shape[axis + 1 :]
    if axis == 0:
        image = map_of_rows(array.reshape(rows, -1))
        return image.reshape(image.shape[0], *after)
    image = map_of_rows(array.reshape(before, rows, -1).transpose(1, 0, 2).reshape(rows, -1))
    moved = image.reshape(image.shape[0], before, -1).transpose(1, 0, 2)
    return moved.reshape(*array.shape[:axis], image.shape[0], *after)


def multiplied(array: np.ndarray, axis: int, matrix: np.ndarray) -> np.ndarray:
    """``along`` of a matrix that is written out: stretches of the array are multiplied where they stand."""
    before, rows, after = prod(array.shape[:axis]), array.shape[axis], array.shape[axis + 1 :]
    image = matrix @ array.reshape(before, rows, -1)
    return image.reshape(*array.shape[:axis], matrix.shape[0], *after)


def apply_along(
    v: np.ndarray, shape: Sequence[int], maps: Sequence[Callable[[np.ndarray], np.ndarray] | np.ndarray | None]
) -> np.ndarray:
    """Apply maps of (P_d, S) to (P'_d, S), or matrices, along the axes of v (P,) or (P, S), read as a tensor.

    None leaves an axis as it is.
    """
    tensor = v.reshape(*shape, *v.shape[1:])
    for d, one in enumerate(maps):
        if one is not None:
            tensor = multiplied(tensor, d, one) if isinstance(one, np.ndarray) else along(tensor, d, one)
    return np.ascontiguousarray(tensor).reshape(prod(tensor.shape[: len(shape)]), *v.shape[1:])


def product_rows(columns: Sequence[np.ndarray]) -> np.ndarray:
    """All products of entries, one of every matrix (N, P_d), row by row, (N, P); the last matrix runs fastest."""
    total = columns[0]
    for column in columns[1:]:
        total = (total[:, :, None] * column[:, None, :]).reshape(total.shape[0], -1)
    return total


def contracted(matrix: np.ndarray, factors: Sequence[np.ndarray]) -> list[np.ndarray]:
    """For every d, (P, P) contracted with all symmetric factors (P_e, P_e) but the d-th: (P_d, P_d)."""
    D, shape = len(factors), [factor.shape[0] for factor in factors]
    if D == 1:
        return [matrix]
    results: list[np.ndarray] = [matrix] * D
    # halves: contract the last factor away, and recurse; then the first ones away, for the last
    first_size = matrix.shape[0] // shape[-1]
    tensor = matrix.reshape(first_size, shape[-1], first_size, shape[-1])
    inner = np.tensordot(tensor, factors[-1], axes=([1, 3], [0, 1]))
    results[:-1] = contracted(inner, factors[:-1])
    first = factors[0]
    for factor in factors[1:-1]:
        first = np.kron(first, factor)
    results[-1] = np.tensordot(tensor, first, axes=([0, 2], [0, 1]))
    return results
