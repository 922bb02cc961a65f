"""The form that factors A: one Cholesky factor, and its inverse for the derivatives.

Inducing points, random features and sparse spectrum reuse this with their own (K, b, G, sum w k(x,x)).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from vff.factors import StackedTransform
from vff.inference.solvers.expansion import DirectExpansion
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.inference.solvers.records import Intercept, RowNoise
from vff.linalg import (
    AbstractInvertible,
    AbstractSymmetric,
    Dense,
    Factor,
    InverseView,
    StructuredCotangent,
    factorise,
)

MOST_EXPANDED = 2000
"""Features: an expansion holds a handful of matrices of their size."""


@dataclass(frozen=True)
class NormalEquations:
    """What the rows contribute: sum w, sum w y^2, Phi' W y (P,) and Phi' W Phi (P, P)."""

    weight: float
    yy: float
    b: np.ndarray
    G: AbstractSymmetric


def moved_gram(
    G: AbstractSymmetric, transform: StackedTransform, states: Iterable[tuple[np.ndarray, np.ndarray]]
) -> Dense:
    """T G T' + sum Z C Z': the Gram matrix in other coordinates, with rows that have few states, Z (P, R), C (R, R)."""
    moved = transform.gram(G.dense())
    for Z, C in states:
        moved = moved + Z @ C @ Z.T
    return Dense(moved)


@dataclass(frozen=True)
class DirectLinearGaussian(LinearGaussian):
    """A linear-Gaussian model at one setting, with a factor of A."""

    G: Dense
    """Phi' W Phi, (P, P), which the factor of A needs all of."""

    @classmethod
    def of(
        cls,
        prior: AbstractInvertible,
        equations: NormalEquations,
        trace: float,
        noise: float,
        *,
        sites: bool = False,
        intercept: Intercept | None = None,
        row_noise: RowNoise | None = None,
    ) -> "DirectLinearGaussian":
        """The model of these rows; ``trace`` is sum w k(x, x)."""
        own = equations.b, equations.yy, equations.weight
        more = {"sites": sites, "intercept": intercept, "row_noise": row_noise}
        return cls(prior, *own, trace, noise, Dense(equations.G.dense()), **more)

    def with_noise(self, noise: float) -> "DirectLinearGaussian":
        return replace(self, noise=noise)

    @cached_property
    def factor(self) -> Factor:
        """Cholesky factor of the posterior precision A."""
        return factorise(self.prior.lower_plus(self.tau * self.G.dense()))

    @cached_property
    def inverse(self) -> InverseView:
        """A^-1, written out when it is first asked for all of it."""
        return InverseView(self.factor)

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self.factor.solve(v)

    def covariance(self) -> np.ndarray:
        return self.inverse.matrix

    @property
    def explained(self) -> float:
        return self.prior.trace_solve(self.G)

    def energy_of(self, c: np.ndarray) -> float:
        return float(c @ self.G.dense() @ c)

    def written_gram(self) -> np.ndarray:
        return self.G.dense()

    @property
    def seen_gram(self) -> np.ndarray:
        """That by which features are told from what they miss, (P, P)."""
        return self.G.dense()

    def spread_over(self, other: LinearGaussian) -> float:
        if not isinstance(other, DirectLinearGaussian):
            return super().spread_over(other)
        return float(np.sum(other.G.dense() * self.inverse.matrix))

    @property
    def log_gain(self) -> float:
        return self.factor.logdet() - self.prior.logdet()

    @property
    def expansion(self) -> DirectExpansion | None:
        return DirectExpansion(self) if self.b.size <= MOST_EXPANDED else None

    @property
    def error(self) -> float:
        return 0.0

    @property
    def jitter(self) -> float:
        return self.factor.jitter

    @cached_property
    def projected_alone(self) -> StructuredCotangent:
        return self.prior.project(self.inverse)

    @property
    def projected_sandwich(self) -> StructuredCotangent:
        return self.prior.project_sandwich(self.G)

    @property
    def explained_by_term(self) -> list[float]:
        return self.block_prior.trace_solve_by_block(self.G)

    def energies(self) -> list[float]:
        m, G = self.mean, self.G.dense()
        return [float(m[place] @ G[place, place] @ m[place]) for place in self.block_prior.slices]
