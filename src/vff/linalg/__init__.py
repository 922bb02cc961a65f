"""Structured matrices of size P, and the one Cholesky factor everything rests on.

The prior of one column is the Gram matrix K of its features in the RKHS of the kernel. With harmonics first and
edge polynomials last it has the shape (here two cosines, one sine, one polynomial)

    d0 + c    c     0  |  b0            d   diagonal: 1 / spectral density           -> ``d``
      c    d1 + c   0  |  b1            c   Z C Z', rank p + 1: the state at the edge -> ``Z``, ``C``
      0       0    d2+s|  b2            b   inner products harmonics x polynomials    -> ``border``
    -------------------+----            e   polynomials x polynomials                 -> ``corner``
      b0     b1     b2 |  e

Sizes: d (H,), Z (H, R), C (R, R), border (H, Q), corner (Q, Q), with P = H + Q, R = p + 1 and Q <= 8. Every verb of
``AbstractInvertible`` costs O(P) per right-hand side. ``to_dense`` exists for tests; nothing here calls it.

The Gram matrix of the data is not invertible and has another structure: every entry is a sum or difference of
trigonometric moments (Toeplitz plus or minus Hankel). ``trigonometric_gram`` reads it off the moments and
``trigonometric_gram_adjoint`` is the transpose of that linear map.
"""

from vff.linalg.cholesky import Factor, factorise
from vff.linalg.dense import Dense
from vff.linalg.diagonal_low_rank import BorderedLowRank, PositiveBorderedLowRank
from vff.linalg.operators import AbstractInvertible, AbstractOperator, Summary
from vff.linalg.threads import threads_for
from vff.linalg.toeplitz import trigonometric_gram, trigonometric_gram_adjoint

__all__ = [
    "AbstractInvertible",
    "AbstractOperator",
    "BorderedLowRank",
    "Dense",
    "Factor",
    "PositiveBorderedLowRank",
    "Summary",
    "factorise",
    "threads_for",
    "trigonometric_gram",
    "trigonometric_gram_adjoint",
]
