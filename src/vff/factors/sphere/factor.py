"""A function on the globe: what the user writes, and its independent harmonics (theory §20)."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from vff.factors.expression import Column, Leaf
from vff.factors.protocol import (
    Block,
    ColumnRange,
    Factor,
    FactorOptions,
    Parameter,
    Prior,
    StartingPoint,
    Values,
    by_differences,
)
from vff.factors.sphere.basis import Globe, SphereBasis
from vff.factors.sphere.matern import SphereMatern
from vff.linalg import Diagonal
from vff.priors import LogNormal
from vff.words import shown

_LENGTHSCALES = (1.5, 0.5, 0.2, 0.08)  # radians
_MOST_DEGREES = 24  # of a first look
_COARSE_DEGREES = 3
_ORDERS = (1, 2, 3, 4)
# half of a radian, whatever part of the globe has data; longer than a few radians a lengthscale says no more
LENGTHSCALE = Parameter(
    "lengthscale",
    "length",
    (5e-3, 1e1),
    _LENGTHSCALES[:3],
    typical=0.5,
    prior=lambda length: LogNormal(0.5 * Globe().unit(), 1.0),
)


@dataclass(frozen=True)
class SphereFactor(Factor[Globe, SphereBasis]):
    """A Matérn on the sphere."""

    order: int
    family: ClassVar[str] = "sphere"
    options: ClassVar[frozenset[str]] = frozenset({"frequencies"})
    parameters: ClassVar[tuple[Parameter, ...]] = (LENGTHSCALE,)

    @property
    def title(self) -> str:
        return "a function on the globe"

    def check(self) -> None:
        if self.order not in _ORDERS:
            raise ValueError(f"the order of a Matérn on the sphere was expected, found {self.order}")

    @property
    def axis(self) -> tuple[Hashable, ...]:
        return (self.family,)

    @property
    def decay(self) -> float:
        """The tail of (2k + 1) s_k."""
        return 2.0 * self.order + 1.0

    def least(self, options: FactorOptions) -> SphereBasis:
        return SphereBasis(1)

    def spanning(self, low: Any, high: Any) -> Globe:
        return Globe()

    def settled_together(
        self,
        found: Sequence[ColumnRange],
        bases: Sequence[SphereBasis],
        *,
        growing: bool,
        given: Sequence[tuple[float, float] | None] = (),
    ) -> Globe:
        return Globe()

    def coarse(self, basis: SphereBasis, distinct: int) -> SphereBasis:
        return SphereBasis(max(1, min(basis.L, _COARSE_DEGREES)))

    def prior(self, domain: Globe, basis: SphereBasis, values: Values) -> "SpherePrior":
        return SpherePrior(domain, basis, self.order, values["lengthscale"])

    def variances(self, basis: SphereBasis, values: Mapping[str, Any]) -> Any:
        return SphereMatern(self.order, values["lengthscale"]).power(basis.degrees)

    def ladder(self, detail: int) -> Sequence[StartingPoint]:
        return [StartingPoint({"lengthscale": length}, _MOST_DEGREES) for length in _LENGTHSCALES]

    def needed(self, values: Values) -> int:
        # (2k + 1) s_k is largest at about half of sqrt(a), and falls like k^-(2 order + 2) beyond
        return int(np.clip(np.ceil(3.0 * np.sqrt(2 * self.order + 1) / values["lengthscale"]), 6, 10_000))

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        value = SphereMatern(self.order, values["lengthscale"]).correlation(angles(x, z))
        return Block(value, None, lambda: by_differences(self, x, z, values), lambda: None)


def angles(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Angles between points in units of the globe, (N, N'), from chords, which tell near points apart."""

    def points(t: np.ndarray) -> np.ndarray:
        theta, phi = np.pi * (t[:, 0] + 1.0), np.pi * (t[:, 1] + 1.0)
        return np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=1)

    left, right = points(x), points(z)
    squares = np.sum((left[:, None] - right[None]) ** 2, axis=2)
    return 2.0 * np.arcsin(np.minimum(0.5 * np.sqrt(squares), 1.0))


@dataclass(frozen=True)
class SpherePrior(Prior[Globe, SphereBasis]):
    """Independent spherical harmonics of a function of unit variance."""

    domain: Globe  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    basis: SphereBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    order: int
    lengthscale: float
    """In radians."""

    @property
    def factor(self) -> SphereFactor:
        return SphereFactor(self.order)

    @cached_property
    def kernel(self) -> SphereMatern:
        return SphereMatern(self.order, self.lengthscale)

    def derivative(self, name: str) -> Diagonal:
        k = self.basis.degrees
        return Diagonal(-self.kernel.log_power_slope(k) / self.kernel.power(k))

    def power(self, detail: int) -> float:
        return float(self.kernel.power(np.array([detail]))[0])


@dataclass(frozen=True, repr=False)
class Sphere(Leaf):
    """A smooth function on the globe, over a column of latitudes and one of longitudes, both in degrees.

    A Matérn on the sphere itself: there is no seam at 180 degrees, and a pole is a place like any other. Distances are
    angles of great circles, so the function is as smooth in Norway as in Kenya.

    Parameters
    ----------
    column : str or int
        Name or index of the column of latitudes, from -90 to 90.
    longitude : str or int
        That of longitudes; whole turns do not matter, so that -170 and 190 are one place.
    variance : float or None
        Where learning starts, or the value used when nothing is learnt; None means "start from the data".
    lengthscale : float or None
        The same, in degrees of arc (of which one is 111 km on the earth).
    order : int
        From 1 (the default) to 4: the function has so many derivatives, as Matern32 ("order" 1) has one.

    Examples
    --------
    >>> kernel = vff.Sphere("lat", "lon", variance=1.0, lengthscale=20.0)
    >>> kernel([[90.0, 0.0], [10.0, 180.0]], [[90.0, 77.0], [10.0, -180.0]]).round(3)
    array([[1.  , 0.01],
           [0.01, 1.  ]])
    """

    nickname: ClassVar[str] = "sphere"
    choices: ClassVar[frozenset[str]] = frozenset({"order"})
    column_fields: ClassVar[tuple[str, ...]] = ("column", "longitude")
    longitude: Column | None = None
    _: KW_ONLY
    lengthscale: float | None = None
    order: int = 1

    def __post_init__(self) -> None:
        if self.longitude is None:
            raise TypeError(
                f"Sphere({shown(self.column)}) needs two columns, latitude and longitude; write Sphere('lat', 'lon')"
            )
        super().__post_init__()
        if not isinstance(self.order, Integral) or self.order not in _ORDERS:
            raise ValueError(
                f"Sphere({', '.join(map(shown, self.columns))}): order must be one of {', '.join(map(str, _ORDERS))}, "
                f"got {shown(self.order)}; leave it out for the usual 1"
            )

    @property
    def factor(self) -> SphereFactor:
        return SphereFactor(int(self.order))
