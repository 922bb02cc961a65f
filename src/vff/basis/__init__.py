"""The functions a column is expanded in: harmonics and edge functions on an interval. No kernel is known here.

Everything lives on the unit interval t in [-1, 1], to which ``Interval`` maps a column; lengths become relative to
half the domain, so nothing below depends on the user's units. With s = t + 1 and omega_m = pi m, the features of one
column are, in this order,

    cos(omega_m s), m = 0 ... M        sin(omega_m s), m = 1 ... M        R_n(s), n = 1 ... q
    R_n = B_n - Re sum_(m=1..M) (i omega_m)^-n exp(i omega_m s) = Re sum_(m>M) (i omega_m)^-n exp(i omega_m s)

B_n is the polynomial of degree n with B_1 = (1 - s)/2, B_n' = B_(n-1) and mean zero (a scaled Bernoulli polynomial).
So harmonics and R_1 ... R_q span the same space as harmonics and polynomials up to degree q (design Fact F): R_n is
what the harmonics cannot say of B_n. In these coordinates nothing cancels: sums over rows, inner products and
predictions keep their digits for every M, where the polynomials themselves drown in the harmonics that almost span
them.

Two *alphabets* of real functions ("letters") are built from the features. The single alphabet is the features. The
double alphabet spans all products of two features (Fact B): harmonics up to 2M, each R_n times harmonics up to M, and
the R_i R_j. Both are lists of *sheets*: a product of edge functions times the harmonics up to some degree. With M = 1
and q = 1:

    single:  1 cos sin | R1                                       4 letters = 4 features
    double:  1 cos cos2 sin sin2 | R1 R1.cos R1.sin | R1.R1       9 letters for the 10 distinct products of features

A column of levels (categories) has one indicator per level instead, and both its alphabets are the indicators.
"""

from vff.basis.alphabet import Alphabet, Sheet, double_alphabet, single_alphabet
from vff.basis.bernoulli import CONSTANT, bernoulli_rows, bernoulli_state, harmonic_part, largest_resolved
from vff.basis.column import ColumnBasis, Interval
from vff.basis.levels import Codes, Indicators, LevelBasis

__all__ = [
    "CONSTANT",
    "Alphabet",
    "Codes",
    "ColumnBasis",
    "Indicators",
    "Interval",
    "LevelBasis",
    "Sheet",
    "bernoulli_rows",
    "bernoulli_state",
    "double_alphabet",
    "harmonic_part",
    "largest_resolved",
    "single_alphabet",
]
