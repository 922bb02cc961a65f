"""Structured matrices of size P, and the one Cholesky factor everything rests on.

The prior of one column, K of theory (4.2) with a border of theory §5, is ``PositiveBorderedLowRank``: every verb of
``AbstractInvertible`` costs O(P) per right-hand side. A sum of terms has one such block per term (``BlockDiagonal``),
exchangeable effects a ``ScaledIdentity``, and a product of columns the ``Kronecker`` product of theirs. What a
structure needs of an unstructured matrix to be contracted with it is a ``StructuredCotangent``, taken from a view of
that matrix. The Gram matrix of the data (``BlockGram``) has blocks by pairs of terms, each with the structure that its
features give it, and between two columns of many levels only the pairs that rows have (``SparseBlock``). ``to_dense``
exists for tests; nothing here calls it.
"""

from vff.linalg.arrays import along, apply_along, contracted, namespace, product_rows, slices_of
from vff.linalg.blocks import BlockDiagonal, BlockGram, BlockOperator
from vff.linalg.by_level import BlocksByLevel, BlockView, LevelAxes, Repeated, SummedView
from vff.linalg.cholesky import Factor, NotPositiveDefinite, factorise
from vff.linalg.conjugate_gradients import Solution, conjugate_gradients
from vff.linalg.dense import Dense, Diagonal
from vff.linalg.diagonal_low_rank import BorderedLowRank, PositiveBorderedLowRank
from vff.linalg.eigen import Eigen
from vff.linalg.identity import ScaledIdentity
from vff.linalg.kronecker import AbstractProduct, Kronecker
from vff.linalg.operators import AbstractInvertible, AbstractOperator, AbstractSymmetric
from vff.linalg.singular_low_rank import SingularLowRank
from vff.linalg.sparse import SparseBlock, entries_of
from vff.linalg.threads import threads_for
from vff.linalg.toeplitz import trigonometric_entries, trigonometric_gram, trigonometric_gram_adjoint
from vff.linalg.views import DenseView, InverseView, MatrixView, OuterView, StructuredCotangent

__all__ = [
    "AbstractInvertible",
    "AbstractOperator",
    "AbstractProduct",
    "AbstractSymmetric",
    "BlockDiagonal",
    "BlockGram",
    "BlockOperator",
    "BlockView",
    "BlocksByLevel",
    "BorderedLowRank",
    "Dense",
    "DenseView",
    "Diagonal",
    "Eigen",
    "Factor",
    "InverseView",
    "Kronecker",
    "LevelAxes",
    "MatrixView",
    "NotPositiveDefinite",
    "OuterView",
    "PositiveBorderedLowRank",
    "Repeated",
    "ScaledIdentity",
    "SingularLowRank",
    "Solution",
    "SparseBlock",
    "StructuredCotangent",
    "SummedView",
    "along",
    "apply_along",
    "conjugate_gradients",
    "contracted",
    "entries_of",
    "factorise",
    "namespace",
    "product_rows",
    "slices_of",
    "threads_for",
    "trigonometric_entries",
    "trigonometric_gram",
    "trigonometric_gram_adjoint",
]
