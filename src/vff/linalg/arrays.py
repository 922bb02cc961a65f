"""Formulas that serve NumPy and JAX alike ask a number which library it belongs to."""

from typing import Any

import numpy as np


def namespace(x: Any) -> Any:
    """The array library of x: jax.numpy for what JAX traces, NumPy for everything else. JAX is not imported here."""
    return x.__array_namespace__() if hasattr(x, "__array_namespace__") else np
