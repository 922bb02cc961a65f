"""Half-integer Matérns on an interval, in harmonics and edge functions.

For the Matérn of order p with rate lambda and diffusion s = 2 pi variance lambda^(2p+1) / B(1/2, p+1/2),

    <g, h> = z_g(a)' P^-1 z_h(a)  +  (1/s) int_a^b (L g)(L h) dx,      L = (D + lambda)^(p+1)

with z_g(a) the value and p derivatives of g at a, and P the stationary covariance of the state. It has the
reproducing property <g, k(x, .)> = g(x) on [a, b]. The inducing variables are u_m = <phi_m, f>, hence
cov(u_m, f(x)) = phi_m(x) inside and K_uu = [<phi_m, phi_n>]. Harmonics are orthogonal under the integral, which leaves
a diagonal, L/2 over the spectral density; the state at a adds rank p + 1; the edge functions add a border.

Departures from the paper: one formula serves every order (design Fact D), everything is written on [-1, 1] with the
rate measured in half domains (the inner product does not depend on the units of x), and the polynomials of degree
1 ... q join the harmonics (Fact F); q = 0 is the paper. Their span is given coordinates in which K_uu is known without
cancellation and stays well conditioned (below 100 when scaled) for every lengthscale: ``edges``.

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
"""

from vff.factors.interval.basis import ColumnBasis, Interval
from vff.factors.interval.factor import MaternFactor
from vff.factors.interval.leaf import Matern12, Matern32, Matern52, Matern72, Matern92
from vff.factors.interval.letters import EdgeLetters
from vff.factors.interval.prior import IntervalPrior
from vff.factors.registry import Kind

KIND = Kind(
    "interval",
    (Matern12, Matern32, Matern52, Matern72, Matern92),
    MaternFactor,
    IntervalPrior,
    ColumnBasis,
    Interval,
    (EdgeLetters,),
)

__all__ = ["KIND"]
