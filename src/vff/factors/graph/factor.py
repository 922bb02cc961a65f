"""Levels that know their neighbours: an indicator each, and a prior that is diagonal in the graph's eigenvectors."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from vff.factors.graph.neighbours import Neighbours
from vff.factors.graph.spectrum import MODELS, Spectrum, spectrum_of
from vff.factors.levels.basis import Codes, LevelBasis
from vff.factors.protocol import Beyond, Block, Factor, FactorOptions, Parameter, Prior, Values, WhiteFactor
from vff.linalg import Eigen, namespace
from vff.words import listed


@dataclass(frozen=True)
class GraphFactor(Factor[Codes, LevelBasis]):
    """A field over the levels of a graph, by one of the models of ``spectrum``."""

    graph: Neighbours | None
    """None as long as the levels are not known."""
    model: str
    family: ClassVar[str] = "levels"
    constant_variance: ClassVar[bool] = False

    @property
    def title(self) -> str:
        return MODELS[self.model].title

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return MODELS[self.model].parameters

    def check(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"one of the models {', '.join(MODELS)} was expected, found {self.model!r:.40}")

    @property
    def axis(self) -> tuple[Hashable, ...]:
        """Codes are positions in the graph, so that graphs with other levels number a column anew."""
        return self.family, None if self.graph is None else self.graph.levels

    @property
    def known(self) -> Neighbours:
        """The graph, which must be there."""
        if self.graph is None:
            raise ValueError(f"{self.title} does not know its levels yet; give levels=[...] in their order")
        return self.graph

    @property
    def spectrum(self) -> Spectrum:
        return spectrum_of(self.known)

    def least(self, options: FactorOptions) -> LevelBasis:
        return LevelBasis(options.levels if self.graph is None else self.graph.levels)

    def spanning(self, low: float, high: float) -> Codes:
        return Codes()

    def one(self, basis: LevelBasis) -> np.ndarray:
        """The sum of all indicators."""
        return np.ones(basis.size)

    def prior(self, domain: Codes, basis: LevelBasis, values: Values) -> "GraphPrior":
        return GraphPrior(basis, self.graph, self.model, next(iter(values.values()), None))

    def variances_along(self, values: Any) -> Any:
        """Prior variances along the eigenvectors, (P,), in NumPy or in JAX as the values."""
        return MODELS[self.model].variances(self.spectrum, values)

    def variance_functions(self, t: np.ndarray) -> np.ndarray:
        """Indicators of all levels, and of being none of them."""
        codes = np.concatenate([np.arange(len(self.spectrum.waves)), [-1.0]])
        return (t[:, None] == codes).astype(float)

    def variance_letters(self, basis: LevelBasis) -> np.ndarray:
        return np.eye(basis.size, basis.size + 1)

    def variance_weights(self, values: Mapping[str, Any]) -> Any:
        """The variance of every level; of an unknown one, one."""
        own = self.spectrum.squares @ self.variances_along(values)
        return namespace(own).concatenate([own, np.ones(1)])

    def variance_slopes(self, values: Values) -> dict[str, np.ndarray]:
        slopes = MODELS[self.model].slopes(self.spectrum, values)
        return {name: np.append(self.spectrum.squares @ slope, 0.0) for name, slope in slopes.items()}

    def covariance(self, x: np.ndarray, z: np.ndarray, values: Values) -> np.ndarray:
        """Between codes, (N, N'); an unknown level, -1, has nothing in common with any."""
        return self._between(x, z, self.variances_along(values))

    def _between(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        V, (i, j) = self.spectrum.V, (codes.astype(int) for codes in (x, z))
        known = np.multiply.outer(i >= 0, j >= 0)
        return np.where(known, (V[i] * c) @ V[j].T, 0.0)

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        def slopes() -> list[np.ndarray]:
            found = MODELS[self.model].slopes(self.spectrum, values)
            return [self._between(x, z, found[own.name]) for own in self.parameters]

        return Block(self.covariance(x, z, values), None, slopes, lambda: None)

    def white(self, basis: LevelBasis) -> "GraphWhite":
        return GraphWhite(self, basis)


@dataclass(frozen=True)
class GraphPrior(Prior[Codes, LevelBasis]):
    """A field at some values; a level that the graph does not know has nothing in common with the others."""

    basis: LevelBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    graph: Neighbours | None
    model: str
    value: float | None = None
    """Its one hyperparameter, where the model has one."""

    def __post_init__(self) -> None:
        self.factor.check()
        if self.graph is None or self.graph.levels != self.basis.levels:
            known = () if self.graph is None else self.graph.levels
            raise ValueError(
                f"a field over the levels {listed(known, 4)} was expected, found one over "
                f"{listed(self.basis.levels, 4)}; give the kernel all levels of its column"
            )
        if (self.value is None) != (not self.factor.parameters):
            raise ValueError(f"{self.factor.title} takes {len(self.factor.parameters)} values, found {self.value}")

    @property
    def factor(self) -> GraphFactor:
        return GraphFactor(self.graph, self.model)

    @property
    def domain(self) -> Codes:
        return Codes()

    @property
    def values(self) -> dict[str, float]:
        return {} if self.value is None else {own.name: self.value for own in self.factor.parameters}

    @property
    def spectrum(self) -> Spectrum:
        return self.factor.spectrum

    @cached_property
    def variances(self) -> np.ndarray:
        """Along the eigenvectors, (P,)."""
        return self.factor.variances_along(self.values)

    @cached_property
    def K(self) -> Eigen:  # pyright: ignore[reportIncompatibleMethodOverride]  # remembered
        return Eigen(self.spectrum.V, 1.0 / self.variances)

    def derivative(self, name: str) -> Eigen:
        slope = MODELS[self.model].slopes(self.spectrum, self.values)[name]
        return Eigen(self.spectrum.V, -slope / self.variances**2)

    @cached_property
    def _variances_of_levels(self) -> np.ndarray:
        return self.factor.variance_weights(self.values)

    def prior_variance(self, x: np.ndarray) -> np.ndarray:
        return self._variances_of_levels[x.astype(int)]  # -1 is the last

    def beyond(self, x: np.ndarray) -> Sequence[Beyond]:
        """An unknown level has no features."""
        return ()

    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Two rows of unknown levels are taken to be of different levels, unless they are the same row."""
        found = self.factor.covariance(x, z, self.values)
        if x is z:
            found += np.diag((x < 0.0).astype(float))
        return found


@dataclass(frozen=True)
class GraphWhite(WhiteFactor[LevelBasis]):
    """c = V diag(variances)^1/2 v."""

    factor: GraphFactor  # pyright: ignore[reportIncompatibleVariableOverride]

    def at(self, values: tuple[Any, ...]) -> Any:
        """Standard deviations along the eigenvectors, (P,)."""
        names = [own.name for own in self.factor.parameters]
        c = self.factor.variances_along(dict(zip(names, values, strict=True)))
        return c**0.5

    def coefficients(self, root: Any, v: Any) -> Any:
        return self.factor.spectrum.V @ (root[:, None] * v)

    def explained(self, root: Any, features: Any) -> Any:
        return (((features @ self.factor.spectrum.V) * root) ** 2).sum(axis=1)
