"""The globe by latitude and longitude, and the spherical harmonics on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from vff.basis import Basis, Change, Domain, Products, Same, SeveralColumns, SeveralLetters, TrigonometricLetters
from vff.factors.circle.basis import Circle, CircleBasis
from vff.factors.sphere import harmonics
from vff.linalg import MatrixView

_TURN, _POLE = 360.0, 90.0
_HIGHEST = 512  # degree that a file may ask for


@dataclass(frozen=True)
class Latitude(Domain):
    """Degrees north of the equator: t + 1 is the colatitude over pi, so that its waves are those of a circle."""

    compass: ClassVar[str | None] = "SN"

    @property
    def ends(self) -> None:
        return None

    def to_unit(self, x: np.ndarray) -> np.ndarray:
        return (_POLE - x) / (2.0 * _POLE) - 1.0

    def contains(self, t: np.ndarray) -> np.ndarray:
        return (t >= -1.0) & (t <= 0.0)

    def holds(self, low: float, high: float) -> bool:
        return low >= -_POLE and high <= _POLE

    @property
    def half_length(self) -> float:
        return 2.0 * _POLE

    def describe(self) -> str:
        return "[-90, 90] degrees of latitude"

    def draw(self, rng: np.random.Generator, n: int, size: int) -> np.ndarray:
        return np.degrees(np.arcsin(rng.uniform(-1.0, 1.0, n)))

    def drawn(self, low: float, high: float, count: int, size: int) -> np.ndarray:
        """From pole to pole, wherever the data lie."""
        return np.linspace(-_POLE, _POLE, count)

    def spread(self, share: np.ndarray, size: int) -> np.ndarray:
        return _POLE * (2.0 * share - 1.0)


@dataclass(frozen=True)
class Longitude(Circle):
    """Degrees east of a meridian, with any number of turns."""

    compass: ClassVar[str | None] = "WE"
    period: float = _TURN

    def draw(self, rng: np.random.Generator, n: int, size: int) -> np.ndarray:
        return rng.uniform(-180.0, 180.0, n)

    def drawn(self, low: float, high: float, count: int, size: int) -> np.ndarray:
        """One whole turn: from 0 where the data count from there, else from -180."""
        return np.linspace(0.0, _TURN, count) if high > 180.0 and low >= 0.0 else np.linspace(-180.0, 180.0, count)


@dataclass(frozen=True)
class Globe(SeveralColumns):
    """Latitude and longitude in degrees. Lengths are those of arcs: of its unit, a radian, in degrees."""

    @property
    def parts(self) -> tuple[Domain, ...]:
        return Latitude(), Longitude()

    @property
    def half_length(self) -> float:
        return float(np.degrees(1.0))

    def describe(self) -> str:
        return "a globe"

    def refuse(self, extents: Sequence[tuple[float, float]], labels: Sequence[str]) -> None:
        (low, high), (west, east) = extents
        if Latitude().holds(low, high):
            return
        found = f"column {labels[0]} reaches [{low:g}, {high:g}]"
        swapped = west >= -_POLE and east <= _POLE
        advice = f"write Sphere({labels[1]}, {labels[0]})" if swapped else "give degrees north of the equator"
        more = f", while column {labels[1]}, its longitude, would do for one" if swapped else ""
        raise ValueError(
            f"Sphere({labels[0]}, {labels[1]}) expects its latitude first, in degrees from -90 to 90, and {found}"
            f"{more}; {advice}"
        )


@dataclass(frozen=True)
class SphericalLetters(SeveralLetters):
    """Spherical harmonics up to a degree."""

    L: int

    @property
    def size(self) -> int:
        return (self.L + 1) ** 2

    @property
    def parts(self) -> tuple[TrigonometricLetters, TrigonometricLetters]:
        """Waves in colatitude, and in longitude."""
        waves = CircleBasis(max(self.L, 1)).single
        return waves, waves

    @property
    def map(self) -> sparse.csr_array:
        return harmonics.series(self.L)

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        return harmonics.at_angles(self.L, np.pi * (t[:, 0] + 1.0), np.pi * (t[:, 1] + 1.0))


@dataclass(frozen=True)
class SphereBasis(Basis):
    """Spherical harmonics up to degree L, degree after degree."""

    L: int
    family: ClassVar[str] = "sphere"

    @property
    def size(self) -> int:
        """P = (L + 1)^2."""
        return (self.L + 1) ** 2

    @property
    def detail(self) -> int:
        return self.L

    @property
    def degrees(self) -> np.ndarray:
        """Of every harmonic, (P,)."""
        return harmonics.places(self.L)[0]

    @property
    def single(self) -> SphericalLetters:
        return SphericalLetters(self.L)

    @property
    def double(self) -> SphericalLetters:
        """A product of two harmonics has degrees up to the sum of theirs."""
        return SphericalLetters(2 * self.L)

    @property
    def parts(self) -> tuple[CircleBasis, CircleBasis]:
        return CircleBasis(self.L), CircleBasis(self.L)

    def evaluate(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        if derivative:
            raise ValueError(
                "slopes of a function on a globe depend on the direction; predict at rows next to each other"
            )
        return self.single.evaluate(t)

    def products(self) -> Products:
        return _products(self.L)

    @property
    def everywhere(self) -> bool:
        return True

    def pairs(self, sums: np.ndarray) -> np.ndarray:
        found = harmonics.pairs(self.L, sums.reshape(sums.shape[0], -1))
        return found.reshape(self.size, self.size, *sums.shape[1:])

    def project(self, S: MatrixView) -> np.ndarray:
        return self.contracted(S.written().reshape(-1, 1))[:, 0]

    def contracted(self, cells: np.ndarray) -> np.ndarray:
        return harmonics.contracted(self.L, cells.reshape(self.size, self.size, -1))

    def features_sum(self, sums: np.ndarray) -> np.ndarray:
        return sums[: self.size]

    def joint(self, other: Basis) -> "SphereBasis | None":
        return SphereBasis(max(self.L, other.L)) if isinstance(other, SphereBasis) else None

    def to(self, smaller: Basis) -> Change:
        if smaller == self:
            return Same()
        if not isinstance(smaller, SphereBasis) or smaller.L > self.L:
            return super().to(smaller)
        return FewerDegrees(self, smaller)

    def resized(self, detail: int) -> Self:
        return type(self)(detail)

    def nodes(self) -> np.ndarray:
        """Gauss-Legendre colatitudes by equal steps of longitude: sums over them tell all double letters apart."""
        theta, _ = harmonics.rule(self.L)
        theta, phi = np.meshgrid(theta / np.pi - 1.0, np.linspace(-1.0, 1.0, 4 * self.L + 1, endpoint=False))
        return np.stack([theta.ravel(), phi.ravel()], axis=1)

    @property
    def node_count(self) -> int:
        return (2 * self.L + 1) * (4 * self.L + 1)

    def check(self) -> None:
        if not 1 <= self.L <= _HIGHEST:
            raise ValueError(f"a degree of spherical harmonics was expected, found {self!r:.120}")


@dataclass(frozen=True)
class FewerDegrees(Change):
    """Harmonics of low degree come first, so that some of the sums are those of a smaller basis."""

    large: SphereBasis
    small: SphereBasis

    def single(self, values: np.ndarray) -> np.ndarray:
        return values[: self.small.size]

    def single_transpose(self, values: np.ndarray) -> np.ndarray:
        unused = np.zeros((self.large.size - self.small.size, *values.shape[1:]))
        return np.concatenate([values, unused])

    def double(self, values: np.ndarray) -> np.ndarray:
        return values[: self.small.double.size]


@lru_cache(maxsize=4)
def _products(L: int) -> Products:
    """Written out from the quadrature; what is zero by its symmetry is rounding there."""
    P, Q = (L + 1) ** 2, (2 * L + 1) ** 2
    written = harmonics.pairs(L, np.eye(Q)).reshape(P * P, Q)
    where, letter = np.nonzero(np.abs(written) > 1e-13 * np.abs(written).max())
    entries = letter, *np.divmod(where, P), written[where, letter]
    return Products.of(P, Q, entries, everywhere=True)
