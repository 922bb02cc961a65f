"""The closed-form model of one column: moments, rows beyond the edges, and a half-integer Matérn."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from vff.basis import ColumnBasis
from vff.features import ColumnPrior, TailRows, outward_state
from vff.inference.collapsed import ClosedForm, Cotangents, MissedCotangents, NormalEquations
from vff.kernels import HalfInteger
from vff.moments import Moments, gram_matrix
from vff.parameters import PositiveVector

# Relative to half the domain, and to the variance of the targets (which are standardised before they get here).
_BOUNDS = {"variance": (1e-8, 1e6), "lengthscale": (2e-4, 1e2), "noise": (1e-8, 1e4)}
PARAMETERS = PositiveVector(
    tuple(_BOUNDS), tuple(low for low, _ in _BOUNDS.values()), tuple(high for _, high in _BOUNDS.values())
)


@lru_cache(maxsize=4)
def _prior(basis: ColumnBasis, p: int, rate: float) -> ColumnPrior:
    """Remembered, because a value and its gradient ask for the same one."""
    return ColumnPrior(basis, p, rate)


@dataclass(frozen=True)
class ColumnModel:
    """One column, one Matérn of order p; lengthscales in half domains, targets as they are in ``moments``."""

    p: int
    moments: Moments
    tails: tuple[TailRows, ...] = ()

    @property
    def basis(self) -> ColumnBasis:
        return self.moments.request.basis

    @property
    def parameters(self) -> PositiveVector:
        return PARAMETERS

    def restricted(self, M: int) -> "ColumnModel":
        """The same rows with fewer harmonics."""
        return replace(self, moments=self.moments.restricted(M))

    @property
    def weight(self) -> float:
        """Sum of the weights of all rows, inside and outside."""
        return self.moments.weight + sum(float(tail.w.sum()) for tail in self.tails)

    def kernel(self, lengthscale: float) -> HalfInteger:
        return HalfInteger.from_lengthscale(self.p, lengthscale)

    @cached_property
    def _inside(self) -> NormalEquations:
        # rows outside carry their own targets; y'Wy is the only sum that does not depend on the rate
        yy = self.moments.target_squared + sum(tail.yy for tail in self.tails)
        return NormalEquations(self.weight, yy, self.moments.project, gram_matrix(self.basis, self.moments.gram))

    def _equations(self, prior: ColumnPrior, kernel: HalfInteger) -> NormalEquations:
        """What the rows say, in the coordinates of the prior at this rate."""
        inside = self._inside
        b, G = prior.transform.forward(inside.b), prior.transform.gram(inside.G)
        for tail in self.tails:
            Z, (T, v) = outward_state(prior, tail.side), tail.normal_equations(kernel)
            b, G = b + Z @ v, G + Z @ T @ Z.T
        return replace(inside, b=b, G=G)

    def centre(self, prior: ColumnPrior) -> np.ndarray:
        """Average of the features over all rows, in the coordinates of the prior, (P,)."""
        total = prior.transform.forward(self.moments.features_sum)
        for tail in self.tails:
            weights = HalfInteger(prior.p, prior.rate).tail(tail.r).T @ tail.w
            total = total + outward_state(prior, tail.side) @ weights
        return total / self.weight

    def prior(self, theta: np.ndarray) -> ColumnPrior:
        """K_uu's author at these hyperparameters, for unit variance."""
        return _prior(self.basis, self.p, self.kernel(self.parameters.unpack(theta)["lengthscale"]).rate)

    def at(self, theta: np.ndarray) -> ClosedForm:
        values, prior = self.parameters.unpack(theta), self.prior(theta)
        variance, noise = values["variance"], values["noise"]
        equations = self._equations(prior, self.kernel(values["lengthscale"]))
        return ClosedForm(prior.matrix().scaled(1.0 / variance), equations, variance * self.weight, noise)

    def pull_back(self, theta: np.ndarray, cotangents: Cotangents | MissedCotangents) -> np.ndarray:
        values, prior = self.parameters.unpack(theta), self.prior(theta)
        kernel, variance = self.kernel(values["lengthscale"]), values["variance"]
        closed = cotangents.model
        # K is proportional to 1 / variance, sum w k(x, x) to the variance
        d_variance = cotangents.prior_trace * closed.prior_trace - closed.prior.inner(cotangents.prior)
        # The bound does not depend on coordinates, so those of the prior may be held at this rate.
        d_rate = prior.rate_derivative().inner(cotangents.prior) / variance
        for tail in self.tails:
            Z, (dT, dv) = outward_state(prior, tail.side), tail.rate_derivatives(kernel)
            d_rate += float(np.sum(dT * cotangents.gram(Z)) + dv @ (Z.T @ cotangents.projection))
        gradient = {"variance": d_variance, "lengthscale": -d_rate, "noise": cotangents.log_noise}
        return np.array([gradient[name] for name in self.parameters.names])
