"""Half-integer Matérns of which rows see averages: over an interval, or over an input that is uncertain."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial.legendre import leggauss

from vff.factors.blurred import averages, variance
from vff.factors.blurred.averages import KINDS, STD, WIDTH
from vff.factors.blurred.basis import MARGINS, BlurredBasis, BlurredInterval
from vff.factors.blurred.nodes import NodeLetters, nodes
from vff.factors.interval.factor import LENGTHSCALE, MaternFactor, column_prior
from vff.factors.interval.matern import HalfInteger
from vff.factors.interval.rkhs import ColumnPrior, tail_features
from vff.factors.protocol import (
    Block,
    ColumnRange,
    Factor,
    FactorOptions,
    Parameter,
    Prior,
    StartingPoint,
    Values,
    WhiteFactor,
    by_differences,
)
from vff.factors.transform import EdgeTransform
from vff.linalg import AbstractInvertible, AbstractOperator, DenseView

_MORE = 2.0  # how much wider later rows may be, when more are to come
_TAIL_NODES, _TAIL_REACH = 40, 60.0  # Gauss-Legendre nodes beyond an edge, and where a tail is nothing, in 1 / rate


@dataclass(frozen=True)
class BlurredFactor(Factor[BlurredInterval, BlurredBasis]):
    """A Matérn of order p; rows are averages of one ``kind``."""

    p: int
    kind: str
    across: NodeLetters | None = None
    """Functions of widths that k(x, x) is made of, where a basis has said which."""
    family: ClassVar[str] = "averages"
    options: ClassVar[frozenset[str]] = frozenset({"domain", "edges", "frequencies"})
    parameters: ClassVar[tuple[Parameter, ...]] = (LENGTHSCALE,)

    @property
    def plain(self) -> MaternFactor:
        """The same at points."""
        return MaternFactor(self.p)

    @property
    def title(self) -> str:
        return f"{self.plain.title} with a {self.kind}"

    def check(self) -> None:
        self.plain.check()
        if self.kind not in KINDS:
            raise ValueError(f"a width or a std was expected, found {self.kind!r:.60}")

    @property
    def axis(self) -> tuple[Hashable, ...]:
        return self.family, self.kind

    @property
    def scattered(self) -> bool:
        return self.kind == STD

    @property
    def constant_variance(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]  # by its field
        """f at an uncertain input has the variance of f; an average has less, by its width."""
        return self.kind == STD

    @property
    def decay(self) -> float:
        return self.plain.decay

    def least(self, options: FactorOptions) -> BlurredBasis:
        least = self.plain.least(options)
        return BlurredBasis(least.M, least.q, self.kind, 0.0)

    def spanning(self, low: float, high: float) -> BlurredInterval:
        return BlurredInterval(low, high, 0.0, self.kind)

    def settled_together(
        self,
        found: Sequence[ColumnRange],
        bases: Sequence[BlurredBasis],
        *,
        growing: bool,
        given: Sequence[tuple[float, float] | None] = (),
    ) -> BlurredInterval:
        """All that rows look at: the range of the middles, and as far as the widest may reach to either side."""
        middles, breadths = found
        ends, widths = given or (None, None)
        top = max(0.0, breadths.high) * (_MORE if growing else 1.0)
        if widths is not None:
            top = max(widths)
        elif ends is not None:  # as wide as there is room for
            room = min(middles.low - ends[0], ends[1] - middles.high) / MARGINS[self.kind]
            top = max(0.0, breadths.high, min(top, room))
        if ends is not None:
            return BlurredInterval(*ends, top, self.kind)
        plain = [basis.plain for basis in bases] or [self.plain.least(FactorOptions("auto", None, ()))]
        inner, margin = self.plain.settled(middles, plain, growing=growing), MARGINS[self.kind] * top
        return BlurredInterval(inner.a - margin, inner.b + margin, top, self.kind)

    def largest(self, bases: Sequence[BlurredBasis]) -> int:
        return self.plain.largest([basis.plain for basis in bases])

    def edges(self, basis: BlurredBasis) -> int:
        return basis.q

    def coarse(self, basis: BlurredBasis, distinct: int) -> BlurredBasis:
        few = self.plain.coarse(basis.plain, distinct)
        return BlurredBasis(few.M, few.q, self.kind, basis.reach)

    def prior(self, domain: BlurredInterval, basis: BlurredBasis, values: Values) -> "BlurredPrior":
        rate = HalfInteger.from_lengthscale(self.p, values["lengthscale"]).rate
        return BlurredPrior(domain, basis.reach, column_prior(basis.plain, self.p, rate))

    def on(self, basis: BlurredBasis) -> "BlurredFactor":
        return replace(self, across=basis.own.across)

    @property
    def _nodes(self) -> np.ndarray:
        assert self.across is not None
        return nodes(self.across.count, self.across.reach)

    def _rate(self, values: Mapping[str, Any]) -> Any:
        return np.sqrt(2 * self.p + 1) / values["lengthscale"]

    def variance_functions(self, t: np.ndarray) -> np.ndarray:
        assert self.across is not None
        return self.across.evaluate(t[:, 1])

    def variance_letters(self, basis: BlurredBasis) -> np.ndarray:
        """Those of the constant, the first letter of x."""
        return np.eye(basis.double.size, basis.own.across.size)

    def variance_weights(self, values: Mapping[str, Any]) -> Any:
        return variance.mean_square(self.p, self._rate(values) * self._nodes)

    def variance_slopes(self, values: Values) -> Mapping[str, np.ndarray]:
        return {"lengthscale": variance.mean_square_slope(self.p, self._rate(values) * self._nodes)}

    def variance_at(self, t: np.ndarray, values: Values) -> np.ndarray | float:
        return variance.mean_square(self.p, self._rate(values) * t[:, 1]) if self.kind == WIDTH else 1.0

    def ladder(self, detail: int) -> Sequence[StartingPoint]:
        return self.plain.ladder(detail)

    def needed(self, values: Values) -> int:
        return self.plain.needed(values)

    def white(self, basis: BlurredBasis) -> WhiteFactor[BlurredBasis]:
        from vff.factors.blurred.white import BlurredWhite

        return BlurredWhite(self, basis)

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        rate = float(self._rate(values))
        apart = rate * np.subtract.outer(x[:, 0], z[:, 0])
        one, other = rate * x[:, 1][:, None], rate * z[:, 1]
        if self.kind == WIDTH:
            value = variance.between_widths(self.p, apart, one, other)
        else:
            value = variance.between_uncertain(self.p, apart, np.hypot(one, other))
        return Block(value, None, lambda: by_differences(self, x, z, values), lambda: None)


@dataclass(frozen=True)
class BlurredPrior(Prior[BlurredInterval, BlurredBasis]):
    """A Matérn over an interval, of which rows see averages. The prior of the function knows nothing of rows."""

    domain: BlurredInterval  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    reach: float
    """Of the widest row, in half domains."""
    prior: ColumnPrior
    """In half domains."""

    @property
    def factor(self) -> BlurredFactor:
        return BlurredFactor(self.prior.p, self.domain.kind)

    @property
    def basis(self) -> BlurredBasis:
        return BlurredBasis(self.prior.basis.M, self.prior.basis.q, self.domain.kind, self.reach)

    @property
    def values(self) -> Values:
        return self.prior.kernel.values

    @property
    def K(self) -> AbstractInvertible:
        return self.prior.matrix()

    @property
    def transform(self) -> EdgeTransform:
        return self.prior.transform

    def derivative(self, name: str) -> AbstractOperator:
        return self.prior.derivative(name)

    def second_derivative(self, name: str, other: str) -> AbstractOperator:
        known = self.prior.second_derivative(name, other)
        return super().second_derivative(name, other) if known is None else known

    def power(self, detail: int) -> float:
        return float(self.prior.kernel.spectral_density(np.array([np.pi * detail]))[0])

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        if derivative:
            raise ValueError("the slope of an average is that of no function here; predict at rows next to each other")
        t, h = self.domain.interval.to_unit(x[:, 0]), x[:, 1] / self.domain.half_length
        found = np.empty((len(x), self.basis.size))
        inside = self._holds(t, h)
        raw = averages.features(self.domain.kind, self.prior.basis, t[inside], h[inside])
        found[inside] = self.transform.forward(raw.T).T
        for n in np.flatnonzero(~inside):
            found[n] = self._across_an_edge(float(t[n]), float(h[n]))
        return found

    def _holds(self, t: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Rows that look at the domain alone; what little a Gaussian sees beyond it is as harmonics continue."""
        return np.abs(t) + MARGINS[self.domain.kind] * h <= 1.0 + 2e-9

    def _across_an_edge(self, t: float, h: float) -> np.ndarray:
        """One row that looks beyond the domain: its part inside, and tails on either side, (P,)."""
        if h == 0.0:
            return tail_features(self.prior, np.array([t]))[0]
        if self.domain.kind == STD:
            raise ValueError(
                f"an uncertain input reaches beyond the domain {self.domain.describe()}; widen the domain of the fit, "
                "or set its std to zero"
            )
        low, high = t - 0.5 * h, t + 0.5 * h
        left, right = max(low, -1.0), min(high, 1.0)
        total = np.zeros(self.basis.size)
        if left < right:
            middle, width = np.array([0.5 * (left + right)]), np.array([right - left])
            raw = averages.features(WIDTH, self.prior.basis, middle, width)
            total += (right - left) / h * self.transform.forward(raw.T)[:, 0]
        for side, near, far in ((-1, max(-1.0 - high, 0.0), -1.0 - low), (1, max(low - 1.0, 0.0), high - 1.0)):
            far = min(far, near + _TAIL_REACH / self.prior.rate)
            if far > near:
                at, weights = leggauss(_TAIL_NODES)
                r = near + 0.5 * (far - near) * (at + 1.0)
                total += 0.5 * (far - near) / h * (weights @ tail_features(self.prior, side * (1.0 + r)))
        return total

    def carried(self, x: np.ndarray) -> np.ndarray:
        """Of uncertain inputs, the average of phi'K^-1 phi."""
        t = self.domain.to_unit(x)
        uncertain = self.factor.scattered & (t[:, 1] > 0.0)
        found = np.empty(len(x))
        found[~uncertain] = super().carried(x[~uncertain])
        if uncertain.any():
            inverse = self.K.solve(np.eye(self.basis.size))
            raw = self.transform.transpose(self.transform.transpose(inverse).T)
            found[uncertain] = self.basis.double.evaluate(t[uncertain]) @ self.basis.project(DenseView(raw))
        return found

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows look beyond the domain by more than a tenth of a lengthscale."""
        t, h = self.domain.interval.to_unit(x[:, 0]), x[:, 1] / self.domain.half_length
        reach = 0.5 * h if self.domain.kind == WIDTH else 0.0
        return np.abs(t) + reach > 1.0 + 2e-9 + 0.1 * self.prior.kernel.reach
