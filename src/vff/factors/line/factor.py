"""A straight line: what the user writes, and the prior of its slope, or of its intercept and slope together."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from vff.basis import Domain
from vff.factors.expression import CORRELATION, REAL, Leaf
from vff.factors.line.basis import Line, LineBasis
from vff.factors.line.white import LineWhite
from vff.factors.protocol import Block, Factor, FactorOptions, Parameter, Prior, Values, WhiteFactor
from vff.linalg import AbstractInvertible, Dense, Diagonal, namespace
from vff.priors import LKJ, AbstractPrior, LogNormal
from vff.words import shown

# a singular covariance, as a model with more effects than the data have has it, is left out: K is its inverse
_MOST_CORRELATED = 1e4


def _about_the_range(extent: float) -> AbstractPrior:
    """Over half the range of the column, the slope does as much as the intercept."""
    return LogNormal(2.0 / extent, 1.0)


SLOPE = Parameter("slope", "slope", (1e-4, 1e4), (1.0, 0.2, 5.0), 1.0, _about_the_range)
CORRELATED = Parameter(
    "correlation",
    "none",
    (1.0 / _MOST_CORRELATED, _MOST_CORRELATED),
    (1.0, 1.0, 1.0),
    1.0,
    lambda extent: LKJ(2.0),
    support="correlation",
)


class Spread(NamedTuple):
    """Of the coefficients of 1 and t, in NumPy or in JAX: one, s^2 and r s, with 1 - r^2 known to every digit."""

    s: Any
    """Standard deviation of the slope, that of the intercept being one."""
    r: Any
    rest: Any
    """1 - r^2."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Spread":
        ratio = values["correlation"]
        return cls(values["slope"], (ratio - 1.0) / (ratio + 1.0), 4.0 * ratio / (1.0 + ratio) ** 2)


@dataclass(frozen=True)
class LineFactor(Factor[Line, LineBasis]):
    """A slope, or an intercept and a slope that are correlated."""

    intercept: bool
    origin: float | None = 0.0
    """Where it is zero; None for about the middle of the rows."""
    family: ClassVar[str] = "line"
    options: ClassVar[frozenset[str]] = frozenset({"domain"})
    constant_variance: ClassVar[bool] = False

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (SLOPE, CORRELATED) if self.intercept else ()

    @property
    def title(self) -> str:
        return "a straight line"

    @property
    def exchangeable(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return not self.intercept

    @property
    def lone(self) -> bool:
        return not self.intercept

    @property
    def axis(self) -> tuple[Hashable, ...]:
        return self.family, self.origin

    def unit(self, domain: Line, kind: str) -> float:
        """The variance is that of the intercept where there is one, else of the slope."""
        return 1.0 if kind == "variance" and self.intercept else domain.unit(kind)

    def least(self, options: FactorOptions) -> LineBasis:
        return LineBasis(self.intercept)

    def spanning(self, low: float, high: float) -> Line:
        return Line.reaching(low, high, self.origin)

    def one(self, basis: LineBasis) -> np.ndarray | None:
        return np.array([1.0, 0.0]) if self.intercept else None

    def prior(self, domain: Line, basis: LineBasis, values: Values) -> "LinePrior":
        return LinePrior(domain, basis, values.get("slope", 1.0), values.get("correlation", 1.0))

    def variances(self, basis: LineBasis, values: Mapping[str, Any]) -> np.ndarray | None:
        return None if self.intercept else np.ones(1)

    def white(self, basis: LineBasis) -> WhiteFactor[LineBasis]:
        return LineWhite(self, basis) if self.intercept else super().white(basis)

    def variance_functions(self, t: np.ndarray) -> np.ndarray:
        return t[:, None] ** (np.arange(3) if self.intercept else [2])

    def variance_letters(self, basis: LineBasis) -> np.ndarray:
        return np.eye(3) if self.intercept else np.array([[0.0], [1.0]])

    def variance_weights(self, values: Mapping[str, Any]) -> Any:
        if not self.intercept:
            return np.ones(1)
        s, r, _ = Spread.of(values)
        return namespace(s).stack([s / s, 2.0 * r * s, s * s])

    def variance_slopes(self, values: Values) -> Mapping[str, np.ndarray]:
        if not self.intercept:
            return {}
        s, r, rest = Spread.of(values)
        # dr / d log ratio = (1 - r^2) / 2
        return {"slope": np.array([0.0, 2.0 * r * s, 2.0 * s**2]), "correlation": np.array([0.0, s * rest, 0.0])}

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        both, total = np.multiply.outer(x, z), np.add.outer(x, z)
        if not self.intercept:
            return Block(both, None, list, lambda: np.broadcast_to(z, both.shape))
        s, r, rest = Spread.of(values)
        return Block(
            1.0 + r * s * total + s**2 * both,
            None,
            lambda: [r * s * total + 2.0 * s**2 * both, 0.5 * s * rest * total],
            lambda: np.broadcast_to(r * s + s**2 * z, both.shape),
        )


@dataclass(frozen=True)
class LinePrior(Prior[Line, LineBasis]):
    """Coefficients of t, or of 1 and t, in units of the domain; where there is one, the intercept has unit variance."""

    domain: Line  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    basis: LineBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    slope: float = 1.0
    ratio: float = 1.0
    """(1 + r) / (1 - r) of the correlation r."""

    @property
    def values(self) -> Values:
        return {"slope": self.slope, "correlation": self.ratio} if self.basis.intercept else {}

    @property
    def factor(self) -> LineFactor:
        return LineFactor(self.basis.intercept, self.domain.origin)

    @cached_property
    def _spread(self) -> Spread:
        return Spread.of({"slope": self.slope, "correlation": self.ratio})

    @property
    def K(self) -> AbstractInvertible:
        if not self.basis.intercept:
            return Diagonal(np.ones(1))
        s, r, rest = self._spread
        return Dense(np.array([[1.0, -r / s], [-r / s, s**-2.0]]) / rest)

    def derivative(self, name: str) -> Dense:
        s, r, rest = self._spread
        if name == "slope":
            return Dense(np.array([[0.0, r / s], [r / s, -2.0 / s**2]]) / rest)
        if name == "correlation":
            across = -0.5 * (1.0 + r * r) / s
            return Dense(np.array([[r, across], [across, r / s**2]]) / rest)
        raise KeyError(name)

    def readable(self) -> Sequence[tuple[str, float]]:
        slope = ("", 1.0 / self.domain.scale)
        return [("[intercept]", 1.0), slope] if self.basis.intercept else [slope]

    def slope_variance(self, x: np.ndarray) -> float:
        return (self.slope if self.basis.intercept else 1.0) ** 2 / self.domain.scale**2


@dataclass(frozen=True, repr=False)
class Linear(Leaf):
    """A straight line: k(x, z) = variance * (x - origin) * (z - origin), a slope that is normal with mean zero.

    ``Linear("x") * Matern32("t")`` is a slope that varies with t, ``Linear("x") * Categorical("g")`` a slope for every
    group. In a product the origin is zero: at x = 0 a slope has no effect, whatever the others say, so give the origin
    of a column whose zero means nothing (a year, a temperature in kelvin). By itself that does not matter, since the
    constant beside the terms takes up any shift of x; then it is the middle of the rows.

    Of one slope, data show one value, and so nothing about the variance of its prior, which is let be wide: as that of
    the constant, it says next to nothing. Slopes of groups have a variance that is learnt.

    With ``intercept=True`` every line has its own value at x = 0, correlated with its slope, as random effects
    ``(1 + x | g)`` of mixed models are: ``Linear("x", intercept=True) * Categorical("g")``. Then ``variance`` is that
    of the intercept, and k(x, z) = variance * (1 + correlation * slope * (x + z) + slope^2 * x * z).

    Parameters
    ----------
    column : str or int
        Name or index of the column.
    variance : float or None
        Where learning starts, or the value used when nothing is learnt; None starts from the data. Of the slope, in
        squares of y per square of x; of the intercept where there is one, in squares of y.
    intercept : bool
        Whether the line has a value of its own at x = 0.
    slope : float or None
        As ``variance``, of the standard deviation of the slope over that of the intercept, per unit of x.
    correlation : float or None
        The same, of the correlation of intercept and slope, between -1 and 1. It depends on where x = 0 is.
    origin : float or None
        Where the line is zero, in the column's own units: given, and not learnt. None is the middle of the rows for a
        line by itself, and zero elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from vff import GPRegressor, Linear
    >>> x = np.linspace(0.0, 4.0, 50)[:, None]
    >>> model = GPRegressor(Linear(0)).fit(x, 3.0 - 2.0 * x[:, 0] + 0.1 * np.sin(50.0 * x[:, 0]))
    >>> bool(abs(model.coefficients()["0"].mean + 2.0) < 0.05)
    True
    """

    nickname: ClassVar[str] = "linear"
    choices: ClassVar[frozenset[str]] = frozenset({"intercept"})
    _: KW_ONLY
    intercept: bool = False
    slope: float | None = None
    correlation: float | None = field(default=None, metadata=CORRELATION)
    origin: float | None = field(default=None, metadata=REAL)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.intercept, bool):
            raise ValueError(
                f"Linear({shown(self.column)}): intercept must be True or False, got {shown(self.intercept)}; write "
                "one of the two, or leave it out"
            )
        for name in ("slope", "correlation"):
            if not self.intercept and getattr(self, name) is not None:
                raise ValueError(
                    f"Linear({shown(self.column)}): {name} is that of a slope beside an intercept, got "
                    f"{shown(getattr(self, name))} without one; write intercept=True, or give the variance of the slope"
                )

    @property
    def factor(self) -> LineFactor:
        return LineFactor(self.intercept, 0.0 if self.origin is None else float(self.origin))

    def unsettled(self, product: bool) -> bool:
        return self.origin is None and not product and not self.intercept

    def factor_in(self, product: bool) -> LineFactor:
        return replace(self.factor, origin=None) if self.unsettled(product) else self.factor

    def settled(self, domain: Domain) -> Self:
        origin = domain.origin if isinstance(domain, Line) else 0.0
        return replace(self, origin=origin) if origin else self

    def _correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        u, v = (np.asarray(own, float) - (self.origin or 0.0) for own in (x, z))
        both, total = np.multiply.outer(u, v), np.add.outer(u, v)
        if not self.intercept:
            return both
        assert self.slope is not None
        assert self.correlation is not None
        return 1.0 + self.correlation * self.slope * total + self.slope**2 * both
