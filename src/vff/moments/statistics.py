"""Sufficient statistics: a commutative monoid with subtraction. What is summed, apart from how."""

from dataclasses import dataclass, replace

import numpy as np

from vff.basis import ColumnBasis, Interval
from vff.moments.nesting import restrict_gram, restrict_project


@dataclass(frozen=True)
class MomentRequest:
    """What to sum for one column. Two sets of moments may be combined when their requests are equal."""

    interval: Interval
    basis: ColumnBasis


@dataclass(frozen=True)
class Moments:
    """The sums of one pass, described in ``vff.moments``."""

    request: MomentRequest
    n: int
    weight: float
    offset: float
    target: float
    target_squared: float
    gram: np.ndarray
    project: np.ndarray

    @classmethod
    def zero(cls, request: MomentRequest, offset: float = 0.0) -> "Moments":
        basis = request.basis
        return cls(request, 0, 0.0, offset, 0.0, 0.0, np.zeros(basis.double.size), np.zeros(basis.size))

    def _combine(self, other: "Moments", sign: int) -> "Moments":
        if other.request != self.request:
            raise ValueError(
                "these moments sum different functions and cannot be combined: "
                f"{self.request} against {other.request}; read both with the same domain, frequencies and edges"
            )
        other = other.recentred(self.offset)
        return Moments(
            self.request,
            self.n + sign * other.n,
            self.weight + sign * other.weight,
            self.offset,
            self.target + sign * other.target,
            self.target_squared + sign * other.target_squared,
            self.gram + sign * other.gram,
            self.project + sign * other.project,
        )

    def __add__(self, other: "Moments") -> "Moments":
        """The moments of both sets of rows together."""
        return self._combine(other, 1)

    def __sub__(self, other: "Moments") -> "Moments":
        """The moments with the other's rows taken back out."""
        return self._combine(other, -1)

    def scaled(self, factor: float) -> "Moments":
        """Every row's weight multiplied by ``factor`` (decay, minibatches)."""
        return replace(
            self,
            weight=factor * self.weight,
            target=factor * self.target,
            target_squared=factor * self.target_squared,
            gram=factor * self.gram,
            project=factor * self.project,
        )

    @property
    def features_sum(self) -> np.ndarray:
        """sum w phi(x), (P,): the features are among the double letters."""
        M, places = self.request.basis.M, [place for _, place in self.request.basis.double.slices()]
        harmonics = self.gram[places[0]]
        edges = [self.gram[place][0] for place in places[1 : 1 + self.request.basis.q]]
        return np.concatenate([harmonics[: M + 1], harmonics[2 * M + 1 : 3 * M + 1], edges])

    def recentred(self, offset: float) -> "Moments":
        """The same rows with y measured from another offset."""
        shift = self.offset - offset
        if shift == 0.0:
            return self
        return replace(
            self,
            offset=offset,
            target=self.target + shift * self.weight,
            target_squared=self.target_squared + 2.0 * shift * self.target + shift**2 * self.weight,
            project=self.project + shift * self.features_sum,
        )

    def restricted(self, M: int) -> "Moments":
        """The moments for fewer harmonics, read off these without another pass."""
        large = self.request.basis
        if large.M < M:
            raise ValueError(f"harmonics up to {M} were asked for; these sums stop at {large.M}")
        if large.M == M:
            return self
        small = ColumnBasis(M, large.q)
        return replace(
            self,
            request=replace(self.request, basis=small),
            gram=restrict_gram(small, large, self.gram),
            project=restrict_project(small, large, self.project),
        )
