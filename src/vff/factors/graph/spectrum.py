"""Variances along the eigenvectors of a graph: what a prior of levels that know their neighbours is (theory §17).

Every model here has a covariance C = V diag(c) V' with the eigenvectors V of the graph's Laplacian D - W, whatever its
hyperparameters. A component of the graph is scaled by itself, and an island is independent of all others (A.
Freni-Sterrantino, M. Ventrucci, H. Rue, 2018).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from vff.factors.graph.neighbours import Neighbours
from vff.factors.protocol import Parameter
from vff.linalg import namespace
from vff.priors import AbstractPrior, LogNormal


@dataclass(frozen=True)
class Spectrum:
    """The Laplacian of a graph in its eigenvectors, component after component."""

    V: np.ndarray
    """(P, P), orthogonal; of every component the constant comes first."""
    waves: np.ndarray
    """Eigenvalues (P,), zero for constants."""
    component: np.ndarray
    """Of which component an eigenvector is, (P,)."""
    place: np.ndarray
    """Of which component a level is, (P,)."""
    sizes: np.ndarray
    """Levels of every component."""

    @classmethod
    def of(cls, graph: Neighbours) -> "Spectrum":
        P, W = len(graph.levels), graph.adjacency
        V, waves = np.zeros((P, P)), np.zeros(P)
        component, place, start = np.zeros(P, int), np.zeros(P, int), 0
        for number, levels in enumerate(graph.components):
            own, n = slice(start, start + levels.size), levels.size
            near = W[levels][:, levels].toarray()
            values, vectors = np.linalg.eigh(np.diag(near.sum(axis=1)) - near)
            values[0], vectors[:, 0] = 0.0, n**-0.5  # as they are known to be
            V[levels, own], waves[own] = vectors, values
            component[own], place[levels] = number, number
            start += n
        return cls(V, waves, component, place, np.array([own.size for own in graph.components]))

    @cached_property
    def squares(self) -> np.ndarray:
        """V^2, entry by entry: marginal variances are V^2 c."""
        return self.V**2

    @cached_property
    def constants(self) -> np.ndarray:
        """Which eigenvectors are constant on a component."""
        return np.flatnonzero(np.diff(self.component, prepend=-1))

    @property
    def own_size(self) -> np.ndarray:
        """For every eigenvector, how many levels its component has."""
        return self.sizes[self.component]

    def scaled(self, c: Any) -> Any:
        """c over the geometric mean of the marginal variances of every component, (P,)."""
        xp = namespace(c)
        return c * xp.exp(-self.mean_over(xp.log(self.squares @ c)))

    def mean_over(self, values: Any) -> Any:
        """Of numbers per level, the mean over the component that an eigenvector belongs to."""
        return self._averaging @ values

    @cached_property
    def _averaging(self) -> np.ndarray:
        return (self.component[:, None] == self.place) / self.own_size[:, None]

    @cached_property
    def walk(self) -> np.ndarray:
        """Variances of the intrinsic field, scaled; zero along the constant of a component, one on an island."""
        alone = self.own_size == 1
        inverse = np.where(self.waves > 0.0, 1.0, 0.0) / np.where(self.waves > 0.0, self.waves, 1.0)
        return np.where(alone, 1.0, self.scaled(inverse + alone))


@lru_cache(maxsize=8)
def spectrum_of(graph: Neighbours) -> Spectrum:
    """Remembered: a fit asks for it at every setting."""
    return Spectrum.of(graph)


class Model(ABC):
    """Variances along the eigenvectors, for a field whose typical variance is one."""

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    title: ClassVar[str]

    @abstractmethod
    def variances(self, own: Spectrum, values: Mapping[str, Any]) -> Any:
        """c (P,), positive, in NumPy or in JAX as the values."""

    def slopes(self, own: Spectrum, values: Mapping[str, float]) -> dict[str, np.ndarray]:
        """dc / d log of every hyperparameter."""
        return {}


def _even(_: float) -> AbstractPrior:
    """Of a ratio: its share of the sum is spread over (0, 1) nearly evenly."""
    return LogNormal(1.0, 1.6)


def _steps(_: float) -> AbstractPrior:
    return LogNormal(2.0, 1.0)


class Besag(Model):
    """The intrinsic field with an independent one beside it, in the parametrisation BYM2 (A. Riebler et al., 2016)."""

    title = "a field of areas"
    parameters = (Parameter("ratio", "none", (1e-4, 1e4), (4.0, 0.25), typical=1.0, prior=_even),)

    def variances(self, own: Spectrum, values: Mapping[str, Any]) -> Any:
        ratio = values["ratio"]
        return (1.0 + ratio * own.walk) / (1.0 + ratio)

    def slopes(self, own: Spectrum, values: Mapping[str, float]) -> dict[str, np.ndarray]:
        ratio = values["ratio"]
        return {"ratio": ratio / (1.0 + ratio) ** 2 * (own.walk - 1.0)}


class Proper(Model):
    """The proper field of precision 1 / lengthscale^2 + D - W, that of B. G. Leroux et al. (2000), scaled."""

    title = "a proper field of areas"
    parameters = (Parameter("lengthscale", "none", (5e-2, 1e2), (4.0, 1.0), typical=2.0, prior=_steps),)

    def variances(self, own: Spectrum, values: Mapping[str, Any]) -> Any:
        return own.scaled(1.0 / (1.0 + values["lengthscale"] ** 2 * own.waves))

    def slopes(self, own: Spectrum, values: Mapping[str, float]) -> dict[str, np.ndarray]:
        square = values["lengthscale"] ** 2
        c = 1.0 / (1.0 + square * own.waves)
        slope = -2.0 * square * own.waves * c**2
        scale = own.mean_over((own.squares @ slope) / (own.squares @ c))
        return {"lengthscale": own.scaled(c) * (slope / c - scale)}


class Walk(Model):
    """A random walk over neighbours of typical variance one, and a constant of variance one beside it."""

    title = "a walk over ordered levels"

    def variances(self, own: Spectrum, values: Mapping[str, Any]) -> np.ndarray:
        c = own.walk.copy()
        c[own.constants] = own.sizes
        return c


MODELS: dict[str, Model] = {"bym2": Besag(), "proper": Proper(), "walk": Walk()}
"""By what leaves and files call them."""
