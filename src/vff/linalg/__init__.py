"""Structured matrices of size P, and the one Cholesky factor everything rests on.

The prior of one column is the Gram matrix K of its features in the RKHS of the kernel. With harmonics first and edge
functions last it has the shape (here two cosines, one sine, one edge function)

    d0 + c    c     0  |  b             d   diagonal: 1 / spectral density                -> ``d``
      c    d1 + c   0  |  0             c   Z C Z', rank p + 1: the state at the edge     -> ``Z``, ``C``
      0       0   d2+c'|  0             b   border: the constant meets the edge functions -> ``border``
    -------------------+----            e   b d^-1 b plus a square known by its root      -> ``root``
      b       0     0  | e + c

Sizes: d (H,), border (H, Q), root (Q, S), Z (P, R), C (R, R), with P = H + Q, R = p + 1 and Q <= 8. Every verb of
``AbstractInvertible`` costs O(P) per right-hand side. ``to_dense`` exists for tests; nothing here calls it.

A sum of terms has one such block per term (``BlockDiagonal``), exchangeable effects a plain ``Diagonal``, and a product
of columns the ``Kronecker`` product of theirs. What a structure needs of an unstructured matrix to be contracted with
it is its ``StructuredCotangent``, taken from a view of that matrix.

The Gram matrix of the data is not invertible and has another structure (``BlockGram``): blocks by pairs of terms, each
with the structure that its features give it. Of harmonics, every entry is a sum or difference of trigonometric moments
(Toeplitz plus or minus Hankel). ``trigonometric_gram`` reads it off the moments and
``trigonometric_gram_adjoint`` is the transpose of that linear map.
"""

from vff.linalg.arrays import namespace
from vff.linalg.block_diagonal import BlockDiagonal
from vff.linalg.block_gram import BlockGram
from vff.linalg.cholesky import Factor, NotPositiveDefinite, factorise
from vff.linalg.conjugate_gradients import Solution, conjugate_gradients
from vff.linalg.dense import Dense
from vff.linalg.diagonal import Diagonal
from vff.linalg.diagonal_low_rank import BorderedLowRank, PositiveBorderedLowRank
from vff.linalg.kronecker import Kronecker, apply_along, product_rows
from vff.linalg.operators import AbstractInvertible, AbstractOperator
from vff.linalg.symmetric import AbstractSymmetric, contracted
from vff.linalg.threads import threads_for
from vff.linalg.toeplitz import trigonometric_entries, trigonometric_gram, trigonometric_gram_adjoint
from vff.linalg.views import BlockView, DenseView, EntryView, InverseView, MatrixView, OuterView, StructuredCotangent

__all__ = [
    "AbstractInvertible",
    "AbstractOperator",
    "AbstractSymmetric",
    "BlockDiagonal",
    "BlockGram",
    "BlockView",
    "BorderedLowRank",
    "Dense",
    "DenseView",
    "Diagonal",
    "EntryView",
    "Factor",
    "InverseView",
    "Kronecker",
    "MatrixView",
    "NotPositiveDefinite",
    "OuterView",
    "PositiveBorderedLowRank",
    "Solution",
    "StructuredCotangent",
    "apply_along",
    "conjugate_gradients",
    "contracted",
    "factorise",
    "namespace",
    "product_rows",
    "threads_for",
    "trigonometric_entries",
    "trigonometric_gram",
    "trigonometric_gram_adjoint",
]
