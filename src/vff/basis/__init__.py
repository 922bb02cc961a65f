"""The functions a column is expanded in: harmonics and edge functions on an interval, or levels. Kernels are unknown.

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

Two lists of real functions ("letters") are built from the features. The single letters are the features. The double
letters span all products of two features (Fact B): harmonics up to 2M, each R_n times harmonics up to M, and the
R_i R_j. Both consist of *blocks*: a product of edge functions times the harmonics up to some degree. With M = 1 and
q = 1:

    single:  1 cos sin | R1                                       4 letters = 4 features
    double:  1 cos cos2 sin sin2 | R1 R1.cos R1.sin | R1.R1       9 letters for the 10 distinct products of features

A column of levels (categories) has one indicator per level instead, and both its lists of letters are the indicators.

``protocol`` says what any kind of basis is; the pass over the rows knows nothing else of one.
"""

from vff.basis.bernoulli import CONSTANT, bernoulli_rows, bernoulli_state, harmonic_part, largest_resolved
from vff.basis.column import ColumnBasis, Interval
from vff.basis.letters import EdgeLetters, Indicators, double_letters, single_letters
from vff.basis.levels import Codes, LevelBasis
from vff.basis.protocol import Axis, Basis, Change, Domain, HarmonicBlock, Letters, Products, TrigonometricLetters

__all__ = [
    "CONSTANT",
    "Axis",
    "Basis",
    "Change",
    "Codes",
    "ColumnBasis",
    "Domain",
    "EdgeLetters",
    "HarmonicBlock",
    "Indicators",
    "Interval",
    "Letters",
    "LevelBasis",
    "Products",
    "TrigonometricLetters",
    "bernoulli_rows",
    "bernoulli_state",
    "double_letters",
    "harmonic_part",
    "largest_resolved",
    "single_letters",
]
