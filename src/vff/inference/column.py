"""The closed-form model of one column: moments, rows beyond the edges, and a half-integer Matérn."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from vff.basis import ColumnBasis
from vff.features import ColumnPrior, TailRows, edge_basis
from vff.inference.collapsed import ClosedForm, Cotangents, NormalEquations
from vff.kernels import HalfInteger
from vff.moments import Moments, gram_matrix
from vff.parameters import PositiveVector

# Relative to half the domain, and to the variance of the targets (which are standardised before they get here).
_BOUNDS = {"variance": (1e-8, 1e6), "lengthscale": (2e-4, 2e4), "noise": (1e-9, 1e4)}
PARAMETERS = PositiveVector(
    tuple(_BOUNDS), tuple(low for low, _ in _BOUNDS.values()), tuple(high for _, high in _BOUNDS.values())
)


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
    def _prior(self) -> ColumnPrior:
        return ColumnPrior(self.basis, self.p)

    @cached_property
    def _inside(self) -> NormalEquations:
        # rows outside carry their own targets; y'Wy is the only sum that does not depend on the rate
        yy = self.moments.target_squared + sum(tail.yy for tail in self.tails)
        return NormalEquations(self.weight, yy, self.moments.project, gram_matrix(self.basis, self.moments.gram))

    @cached_property
    def _edges(self) -> dict[int, np.ndarray]:
        return {side: edge_basis(self.basis, self.p, side) for side in (-1, 1)}

    def _equations(self, kernel: HalfInteger) -> NormalEquations:
        equations = self._inside
        for tail in self.tails:
            Z, (T, v) = self._edges[tail.side], tail.normal_equations(kernel)
            equations = replace(equations, b=equations.b + Z @ v, G=equations.G + Z @ T @ Z.T)
        return equations

    def centre(self, kernel: HalfInteger) -> np.ndarray:
        """Average of the features over all rows, (P,)."""
        total = self.moments.features_sum
        for tail in self.tails:
            total = total + self._edges[tail.side] @ (kernel.tail(tail.r).T @ tail.w)
        return total / self.weight

    def at(self, theta: np.ndarray) -> ClosedForm:
        values = self.parameters.unpack(theta)
        kernel, variance = self.kernel(values["lengthscale"]), values["variance"]
        prior = self._prior.at(kernel.rate).scaled(1.0 / variance)
        return ClosedForm(prior, self._equations(kernel), variance * self.weight, values["noise"])

    def pull_back(self, theta: np.ndarray, cotangents: Cotangents) -> np.ndarray:
        values = self.parameters.unpack(theta)
        kernel, variance = self.kernel(values["lengthscale"]), values["variance"]
        closed = cotangents.model
        # K is proportional to 1 / variance, sum w k(x, x) to the variance
        d_variance = cotangents.prior_trace * closed.prior_trace - closed.prior.inner(cotangents.prior)
        d_rate = self._prior.rate_derivative(kernel.rate).inner(cotangents.prior) / variance
        for tail in self.tails:
            Z, (dT, dv) = self._edges[tail.side], tail.rate_derivatives(kernel)
            d_rate += float(np.sum(dT * cotangents.gram(Z)) + dv @ (Z.T @ cotangents.projection))
        gradient = {"variance": d_variance, "lengthscale": -d_rate, "noise": cotangents.log_noise}
        return np.array([gradient[name] for name in self.parameters.names])
