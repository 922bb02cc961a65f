"""The functions a column is expanded in: harmonics and edge polynomials on an interval. No kernel is known here.

Everything lives on the unit interval t in [-1, 1], to which ``Interval`` maps a column; lengths become relative to
half the domain, so nothing below depends on the user's units. The features of one column are, in this order,

    cos(pi m (t+1)), m = 0 ... M     sin(pi m (t+1)), m = 1 ... M     P_j(t), j = 1 ... q  (Legendre)

Two *alphabets* of real functions ("letters") are built from them. The single alphabet is the features. The double
alphabet spans all products of two features (design Fact B): harmonics up to 2M, each P_j times harmonics up to M, and
the P_i P_j. Both are lists of *sheets*: a product of Legendre polynomials times the harmonics up to some degree.
With M = 1, q = 1:

    single:  1 cos sin | P1                                       4 letters = 4 features
    double:  1 cos cos2 sin sin2 | P1 P1.cos P1.sin | P1.P1       9 letters for the 10 distinct products of features
"""

from vff.basis.alphabet import Alphabet, Sheet, double_alphabet, single_alphabet
from vff.basis.column import ColumnBasis, Interval
from vff.basis.integrals import polynomial_integrals

__all__ = [
    "Alphabet",
    "ColumnBasis",
    "Interval",
    "Sheet",
    "double_alphabet",
    "polynomial_integrals",
    "single_alphabet",
]
