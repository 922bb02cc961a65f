"""Six yardsticks with the face of ``vff.GPRegressor``: four for Gaussian noise, two for any likelihood.

    ExactGP            the Gaussian process itself, O(N^3): any kernel expression, or a squared exponential
    InducingPointGP    collapsed variational bound with inducing points (Titsias, 2009): the same, without levels
    RandomFourierGP    frequencies drawn from the spectral density (Rahimi & Recht, 2007): one column
    SparseSpectrumGP   the same frequencies, learnt (Lázaro-Gredilla et al., 2010): one column
    VariationalGP      the best Gaussian q(f) for any likelihood, O(N^3): the kernels of ``ExactGP``
    InducingPointVGP   the same carried by inducing points (Hensman et al., 2015): the kernels of ``InducingPointGP``

All but the first are one model, f(x) = phi(x)'c + remainder with c ~ N(0, I), and two choices of phi
(``features``): inducing points whitened by their own covariance, phi(x) = L^-1 k(z, x) with L L' = k(z, z), or cosines
and sines. Bound, posterior and derivatives are those of ``DirectLinearGaussian``. Two points at unit distance under a
Matérn-1/2 with lengthscale one, k(z, z) = [[1, e^-1], [e^-1, 1]], give at the first of them phi = (1, 0) and no
remainder, and between them, at distance 1/2 from both, |phi|^2 = 2 / (e + 1) = 0.54 and a remainder of 0.46 variance.

The last two follow natural gradients, with a site for every row (``latent``). The exact one has its
inducing points at all distinct rows, where nothing remains. On Gaussian noise they are ``ExactGP`` and
``InducingPointGP`` again.

Departures from the literature: locations and frequencies are learnt only after the hyperparameters have been learnt
with them held, so releasing them cannot lower the bound; frequencies are learnt as logarithms (their sign is unseen).
Inducing points for any likelihood see all rows at every step, and none of the gradients is that of a minibatch.
"""

from vff.baselines.design import SquaredExponential
from vff.baselines.exact import ExactGP
from vff.baselines.inducing import InducingPointGP, regular_grid
from vff.baselines.spectral import RandomFourierGP, SparseSpectrumGP
from vff.baselines.variational import InducingPointVGP, VariationalGP

__all__ = [
    "ExactGP",
    "InducingPointGP",
    "InducingPointVGP",
    "RandomFourierGP",
    "SparseSpectrumGP",
    "SquaredExponential",
    "VariationalGP",
    "regular_grid",
]
