"""Half-integer Matérns on an interval, in harmonics and edge functions (theory §4 to §6).

One formula serves every order. Everything is written on [-1, 1], to which ``Interval`` maps a column, with the rate
measured in half domains. With s = t + 1 and omega_m = pi m, the features of one column are, in this order,

    cos(omega_m s), m = 0 ... M        sin(omega_m s), m = 1 ... M        R_n(s), n = 1 ... q        theory (5.1)

q = 0 is the paper. Both lists of letters consist of *blocks*, a product of edge functions times the harmonics up to
some degree. With M = 1 and q = 1:

    single:  1 cos sin | R1                                       4 letters = 4 features
    double:  1 cos cos2 sin sin2 | R1 R1.cos R1.sin | R1.R1       9 letters for the 10 distinct products of features
"""

from vff.factors.interval.basis import ColumnBasis, Interval
from vff.factors.interval.factor import IntervalPrior, MaternFactor
from vff.factors.interval.leaf import Matern12, Matern32, Matern52, Matern72, Matern92
from vff.factors.interval.letters import EdgeLetters
from vff.factors.registry import Kind

_LEAVES = (Matern12, Matern32, Matern52, Matern72, Matern92)
KIND = Kind("interval", _LEAVES, MaternFactor, IntervalPrior, ColumnBasis, Interval, (EdgeLetters,))

__all__ = ["KIND"]
