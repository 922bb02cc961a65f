"""The form that factors A: one Cholesky factor, and its inverse for the derivatives.

Inducing points, random features and sparse spectrum reuse this with their own (K, b, G, sum w k(x,x)).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from vff.factors import StackedTransform
from vff.inference.form import AbstractForm, Constant
from vff.linalg import (
    AbstractInvertible,
    AbstractSymmetric,
    BlockDiagonal,
    Dense,
    Factor,
    InverseView,
    StructuredCotangent,
    factorise,
)


@dataclass(frozen=True)
class NormalEquations:
    """What the rows contribute: sum w, sum w y^2, Phi' W y (P,) and Phi' W Phi (P, P)."""

    weight: float
    yy: float
    b: np.ndarray
    G: AbstractSymmetric


@dataclass(frozen=True)
class MovedGram(AbstractSymmetric):
    """T G T' + sum Z C Z': the Gram matrix in other coordinates, with rows that have few states."""

    G: AbstractSymmetric
    transform: StackedTransform
    states: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    """Z (P, R) and C (R, R) of every group of such rows."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.G.shape

    def mv(self, v: np.ndarray) -> np.ndarray:
        image = self.transform.forward(self.G @ self.transform.transpose(v))
        return image + sum(Z @ (C @ (Z.T @ v)) for Z, C in self.states)

    def diagonal(self) -> np.ndarray:
        return np.diagonal(self.dense())

    def part(self, place: slice) -> Dense:
        return Dense(self.dense()[place, place])

    def dense(self) -> np.ndarray:
        return self._dense

    @cached_property
    def _dense(self) -> np.ndarray:
        G = self.transform.gram(self.G.dense())
        for Z, C in self.states:
            G = G + Z @ C @ Z.T
        return G


@dataclass(frozen=True)
class ClosedForm(AbstractForm):
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
        constant: Constant | None = None,
    ) -> "ClosedForm":
        """The model of these rows; ``trace`` is sum w k(x, x)."""
        own = equations.b, equations.yy, equations.weight
        return cls(prior, *own, trace, noise, Dense(equations.G.dense()), sites=sites, constant=constant)

    def with_noise(self, noise: float) -> "ClosedForm":
        return replace(self, noise=noise)

    @cached_property
    def factor(self) -> Factor:
        """Cholesky factor of the posterior precision A."""
        return factorise(self.prior.lower_plus(self.tau * self.G.dense()))

    @cached_property
    def inverse(self) -> InverseView:
        """A^-1, written out when it is first asked for all of it."""
        return InverseView(self.factor)

    @property
    def solutions(self) -> np.ndarray:
        return self._solutions

    @cached_property
    def _solutions(self) -> np.ndarray:
        return self.factor.solve(self.right_sides)

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self.factor.solve(v)

    def covariance(self) -> np.ndarray:
        return self.inverse.matrix

    @property
    def explained(self) -> float:
        return self.prior.trace_solve(self.G)

    def energy_of(self, c: np.ndarray) -> float:
        return float(c @ self.G.dense() @ c)

    def spread_over(self, other: AbstractForm) -> float:
        if not isinstance(other, ClosedForm):
            return super().spread_over(other)
        return other.G.contract(self.inverse)

    @property
    def log_gain(self) -> float:
        return self.factor.logdet() - self.prior.logdet()

    @property
    def error(self) -> float:
        return 0.0

    @property
    def jitter(self) -> float:
        return self.factor.jitter

    @property
    def projected_alone(self) -> StructuredCotangent:
        return self._projected_alone

    @cached_property
    def _projected_alone(self) -> StructuredCotangent:
        return self.prior.project(self.inverse)

    @property
    def projected_sandwich(self) -> StructuredCotangent:
        return self.prior.project_sandwich(self.G)

    def _blocks(self) -> Iterator[tuple[AbstractInvertible, slice]]:
        assert isinstance(self.prior, BlockDiagonal)
        return zip(self.prior.blocks, self.prior.slices, strict=True)

    @property
    def explained_by_term(self) -> list[float]:
        return [block.trace_solve(self.G.part(place)) for block, place in self._blocks()]

    def energies(self) -> list[float]:
        m, G = self.mean, self.G.dense()
        return [float(m[place] @ G[place, place] @ m[place]) for _, place in self._blocks()]
