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
"""

from vff.basis import ColumnBasis, EdgeLetters, Interval
from vff.factors.interval.factor import MaternFactor
from vff.factors.interval.leaf import Matern12, Matern32, Matern52, Matern72, Matern92
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
