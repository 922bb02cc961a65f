"""Which library a number belongs to, and where the parts of a vector stand."""

from collections.abc import Iterable
from typing import Any

import numpy as np


def namespace(x: Any) -> Any:
    """The array library of x: jax.numpy for what JAX traces, NumPy for everything else. JAX is not imported here."""
    return x.__array_namespace__() if hasattr(x, "__array_namespace__") else np


def slices_of(sizes: Iterable[int]) -> tuple[slice, ...]:
    """Where parts of these sizes stand, one after another."""
    sizes = list(sizes)
    ends = np.cumsum(sizes).tolist()
    return tuple(slice(end - size, end) for size, end in zip(sizes, ends, strict=True))
