"""An interval whose rows are averages, and the features there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from vff.basis import Basis, Change, Domain, Letters, Products, Same, SeveralColumns
from vff.factors.blurred.averages import KINDS, STD, WIDTH
from vff.factors.blurred.letters import AveragedFeatures, Blurring, ScatteredLetters, WidthLetters
from vff.factors.blurred.nodes import Breadth, BreadthBasis, lagrange, nodes
from vff.factors.interval.basis import ColumnBasis, Interval
from vff.linalg import AbstractSymmetric, DenseView, MatrixView

MARGINS = {WIDTH: 0.5, STD: 5.0}
"""How many of the widest a row may reach to either side: half of a width; five standard deviations, all but 6e-7."""
_MOST = 2.0  # half domains, that a file may ask for
_FEW = 0.5  # sums for every letter, up to which they change one by one
_ROUNDING = 1e-9  # of the half domain, so that bins that fill a domain are inside


@dataclass(frozen=True)
class Centres(Interval):
    """Middles of rows in [a, b] that reach up to a margin to either side."""

    margin: float

    def contains(self, t: np.ndarray) -> np.ndarray:
        return np.abs(t) <= 1.0 + _ROUNDING - self.margin / self.half_length

    def holds(self, low: float, high: float) -> bool:
        slack = _ROUNDING * self.half_length
        return self.a + self.margin - slack <= low and high <= self.b - self.margin + slack

    def describe(self) -> str:
        if not self.margin:
            return super().describe()
        inner = f"[{self.a + self.margin:g}, {self.b - self.margin:g}]"
        return (
            f"{inner} (which is {super().describe()} less {self.margin:g} at each end, half the largest width or five "
            "times the largest std)"
        )

    def draw(self, rng: np.random.Generator, n: int, size: int) -> np.ndarray:
        return rng.uniform(self.a + self.margin, self.b - self.margin, n)

    def spread(self, share: np.ndarray, size: int) -> np.ndarray:
        margin = self.margin / (self.b - self.a)
        return super().spread(margin + (1.0 - 2.0 * margin) * share, size)


@dataclass(frozen=True)
class BlurredInterval(SeveralColumns):
    """[a, b] in the column's own units, and how wide rows may be."""

    a: float
    b: float
    top: float
    """The largest width, or standard deviation."""
    kind: str

    @property
    def interval(self) -> Interval:
        """Where the function lives."""
        return Interval(self.a, self.b)

    @property
    def parts(self) -> tuple[Domain, ...]:
        half = self.interval.half_length
        return Centres(self.a, self.b, MARGINS[self.kind] * self.top), Breadth(half, self.top)

    @property
    def half_length(self) -> float:
        return self.interval.half_length

    @property
    def ends(self) -> tuple[float, float]:
        return self.a, self.b

    def describe(self) -> str:
        return f"{self.interval.describe()} with a {self.kind} of up to {self.top:g}"

    def holds(self, low: float, high: float) -> bool:
        return self.parts[0].holds(low, high)

    def refuse(self, extents: Sequence[tuple[float, float]], labels: Sequence[str]) -> None:
        (low, high), (least, most) = extents
        if least < 0.0:
            raise ValueError(
                f"column {labels[1]} is the {self.kind} of the rows in column {labels[0]} and holds {least:g}; give "
                "numbers from zero on, of which zero means the function itself"
            )
        if self.kind == STD and most > self.top:
            raise ValueError(
                f"column {labels[1]} reaches a std of {most:g} of the inputs in column {labels[0]}, and the features "
                f"were made for up to {self.top:g}; fit with domain={{{labels[1]}: (0, {most:g})}}, or more"
            )
        if self.kind == STD and most > 0.0 and not Centres(self.a, self.b, MARGINS[STD] * most).holds(low, high):
            raise ValueError(
                f"column {labels[0]} reaches [{low:g}, {high:g}] with a std of up to {most:g} in column {labels[1]}, "
                f"and uncertain inputs must lie {MARGINS[STD]:g} of it inside the domain {self.interval.describe()}; "
                "widen the domain of the fit, or set the std of these rows to zero"
            )

    def check(self) -> None:
        self.interval.check()
        if self.kind not in KINDS or not 0.0 <= self.top <= _MOST * self.half_length:
            raise ValueError(f"an interval and widths within it were expected, found {self!r:.120}")


@dataclass(frozen=True)
class BlurredBasis(Basis):
    """M harmonics and q edge functions, averaged over a width, or over an uncertain input."""

    M: int
    q: int
    kind: str
    reach: float
    """Of the widest row, in half domains."""
    family: ClassVar[str] = "averages"

    @property
    def plain(self) -> ColumnBasis:
        """The features at points."""
        return ColumnBasis(self.M, self.q)

    @property
    def own(self) -> Blurring:
        return Blurring(self.kind, self.M, self.q, self.reach)

    @property
    def size(self) -> int:
        return self.plain.size

    @property
    def detail(self) -> int:
        return self.M

    @property
    def single(self) -> AveragedFeatures:
        return AveragedFeatures(self.own)

    @property
    def double(self) -> Letters:
        return WidthLetters(self.own) if self.kind == WIDTH else ScatteredLetters(self.own)

    @property
    def parts(self) -> tuple[ColumnBasis, BreadthBasis]:
        return self.plain, BreadthBasis(self.own.across.count, self.reach)

    def evaluate(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        if derivative:
            raise ValueError("the slope of an average is that of no function here; predict at rows next to each other")
        return self.single.evaluate(t)

    def products(self) -> Products:
        """Written out; nothing but tests asks."""
        P, Q = self.size, self.double.size
        letter, row, column = (index.reshape(-1) for index in np.indices((Q, P, P)))
        written = self.pairs(np.eye(Q)).transpose(2, 0, 1).reshape(-1)
        some = written != 0.0
        return Products.of(P, Q, (letter[some], row[some], column[some], written[some]), everywhere=True)

    @property
    def everywhere(self) -> bool:
        return True

    @property
    def scattered(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]  # by its field
        return self.kind == STD

    def _by_node(self, sums: np.ndarray) -> np.ndarray:
        """Sums over double letters (Q, ...) as (node, letter of x, ...)."""
        return np.moveaxis(sums.reshape(self.plain.double.size, -1, *sums.shape[1:]), 1, 0)

    def pairs(self, sums: np.ndarray) -> np.ndarray:
        if self.kind == STD:
            return self.plain.pairs(sums)
        total = np.zeros((self.size, self.size, *sums.shape[1:]))
        for D, own in zip(self.own.dampings, self._by_node(sums), strict=True):
            if own.any():
                half = D.forward(self.plain.pairs(own))
                total += D.forward(half.swapaxes(0, 1)).swapaxes(0, 1)
        return total

    def gram(self, sums: np.ndarray) -> AbstractSymmetric:
        return self.plain.gram(sums) if self.kind == STD else super().gram(sums)

    def project(self, S: MatrixView) -> np.ndarray:
        if self.kind == STD:
            return self.plain.project(S)
        matrix, found = S.written(), []
        for D in self.own.dampings:
            found.append(self.plain.project(DenseView(D.transpose(D.transpose(matrix).T).T)))
        return np.stack(found, axis=1).reshape(-1)

    def contracted(self, cells: np.ndarray) -> np.ndarray:
        if self.kind == STD:
            return self.plain.contracted(cells)
        square, found = cells.reshape(self.size, self.size, -1), []
        for D in self.own.dampings:
            own = D.transpose(D.transpose(square).swapaxes(0, 1)).swapaxes(0, 1)
            found.append(self.plain.contracted(np.ascontiguousarray(own).reshape(self.size**2, -1)))
        return np.stack(found, axis=1).reshape(-1, cells.shape[1])

    def features_sum(self, sums: np.ndarray) -> np.ndarray:
        if self.kind == STD:
            return self.plain.features_sum(sums)
        both = zip(self.own.dampings, self._by_node(sums), strict=True)
        return np.sum([D.forward(self.plain.features_sum(own)) for D, own in both], axis=0)

    def joint(self, other: Basis) -> "BlurredBasis | None":
        if not isinstance(other, BlurredBasis) or (other.kind, other.reach) != (self.kind, self.reach):
            return None
        return replace(self, M=max(self.M, other.M), q=max(self.q, other.q))

    def to(self, smaller: Basis) -> Change:
        if smaller == self:
            return Same()
        if isinstance(smaller, BlurredBasis) and self.joint(smaller) == self:
            return FewerFeatures(self, smaller)
        return super().to(smaller)

    def resized(self, detail: int) -> Self:
        return replace(self, M=detail)

    def within(self, domain: Domain) -> "BlurredBasis":
        return replace(self, reach=domain.top / domain.half_length) if isinstance(domain, BlurredInterval) else self

    def suits(self, domain: Domain) -> bool:
        return isinstance(domain, BlurredInterval) and domain.kind == self.kind

    def nodes(self) -> np.ndarray:
        """Of x by those of widths; without any, where inputs are uncertain, since sums are those of some points."""
        t, h = self.plain.nodes(), np.zeros(1)
        if self.kind == WIDTH:
            h = nodes(self.own.across.count, self.reach)
        t, h = np.meshgrid(t, h, indexing="ij")
        return np.stack([t.ravel(), h.ravel()], axis=1)

    @property
    def node_count(self) -> int:
        return self.plain.node_count * (self.own.across.count if self.kind == WIDTH else 1)

    def check(self) -> None:
        self.plain.check()
        if self.kind not in KINDS or not 0.0 <= self.reach <= _MOST:
            raise ValueError(f"averages over widths within a domain were expected, found {self!r:.120}")


@dataclass(frozen=True)
class FewerFeatures(Change):
    """An average follows its function: features change as those at points do."""

    large: BlurredBasis
    small: BlurredBasis

    @property
    def _plain(self) -> Change:
        return self.large.plain.to(self.small.plain)

    def single(self, values: np.ndarray) -> np.ndarray:
        return self._plain.single(values)

    def single_transpose(self, values: np.ndarray) -> np.ndarray:
        return self._plain.single_transpose(values)

    def double(self, values: np.ndarray) -> np.ndarray:
        if self.large.kind == STD:
            return self._plain.double(values)
        across = lagrange(self.small.own.across, self.large.own.across)
        by_letter = values.reshape(self.large.plain.double.size, len(across), -1)
        fewer = np.einsum("vu,qvr->qur", across, by_letter)
        flat, change = fewer.reshape(len(fewer), -1), self._plain
        if flat.shape[1] > _FEW * len(flat):  # one matrix for all of them costs as much as one for every letter
            return change.double(flat).reshape(-1, *values.shape[1:])
        return np.stack([change.double(own) for own in flat.T], axis=1).reshape(-1, *values.shape[1:])
