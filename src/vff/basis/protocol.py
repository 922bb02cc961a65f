"""What a kind of basis is: where its inputs live, the functions that are summed over rows, and the features.

No kernel is known here, and no data. The pass over the rows (``vff.moments``) sees nothing of a kind but these classes,
so a new kind of features works with every engine as it is. Two lists of functions belong to a basis: its *single*
letters, which are the features phi, and its *double* letters psi, which span all products of two features. What the
rows sum to is a vector per list, and everything that inference needs of them is a linear map of these vectors:

    gram          sum w psi -> sum w phi phi'     as an operator that knows its structure
    project       its transpose, S -> c with phi(x)' S phi(x) = psi(x)' c
    features_sum  sum w psi -> sum w phi
    to            sums over the letters of a smaller basis of the same family, a ``Change``

Most kinds read one column. One that reads several takes rows (N, D), and has *parts*: a domain, a basis and letters for
every column, whose products its own letters are sums of (``several``). The pass sums products of parts.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.polynomial.legendre import leggauss

from vff.basis.products import Products
from vff.linalg import AbstractSymmetric, Dense, MatrixView

if TYPE_CHECKING:
    from vff.basis.trigonometric import TrigonometricLetters

_MORE_NODES = 24


class Domain(ABC):
    """Where the inputs of a factor live, in the column's own units, and how they become free of units."""

    discrete: ClassVar[bool] = False
    """Whether inputs are codes of known values. One that was never seen is like nothing known, not even another one."""

    held: ClassVar[float | None] = None
    """Where a column that is not drawn over is held; None for the middle of its data."""

    compass: ClassVar[str | None] = None
    """Of degrees on a globe, the letters for what lies below zero and above it, "SN" or "WE"; they are drawn so."""

    @property
    def parts(self) -> tuple["Domain", ...]:
        """Where the inputs of every column live: the domain itself, unless it is one of several columns."""
        return (self,)

    def refuse(self, extents: Sequence[tuple[float, float]], labels: Sequence[str]) -> None:  # noqa: B027
        """ValueError where inputs between these, column by column, mean nothing; most may mean something anywhere."""

    @property
    def numbers(self) -> "Domain":
        """Where inputs live that are there: itself, unless some may be missing beside it."""
        return self

    closed: ClassVar[bool] = False
    """Whether inputs mean the same after a period, so that one turn is all there is to draw."""

    @property
    def variable(self) -> Hashable:
        """What functions on it are functions of: those of one column and one variable may be added up."""
        return self

    @property
    def ends(self) -> tuple[float, float] | None:
        """Between which inputs must lie, in the column's own units; None where they need not."""
        return None

    @abstractmethod
    def to_unit(self, x: np.ndarray) -> np.ndarray:
        """Inputs (N,) in units of the domain; (N, D) of one of several columns, here and below."""

    def contains(self, t: np.ndarray) -> np.ndarray:
        """Which rows, mapped by ``to_unit``, lie inside, (N,); all where there is no outside."""
        return np.ones(t.shape, dtype=bool)

    def holds(self, low: float, high: float) -> bool:
        """Whether all rows between two inputs lie inside."""
        return True

    @property
    def half_length(self) -> float:
        """One length of the unit domain in the column's own units."""
        return 1.0

    def unit(self, kind: str = "length") -> float:
        """One ``kind`` of the unit domain in the column's own units; 1 for what has none.

        A "length", or a "variance": that of a function of the column, beside the square of a target.
        """
        return self.half_length if kind == "length" else 1.0

    @abstractmethod
    def describe(self) -> str:
        """How messages show it."""

    def outside_text(self, label: str) -> str:
        """What is said of rows outside: that they ..."""
        return f"lie outside {self.describe()} of column {label}"

    @abstractmethod
    def draw(self, rng: np.random.Generator, n: int, size: int) -> np.ndarray:
        """Inputs at random, (n,); ``size`` is the number of features."""

    @abstractmethod
    def drawn(self, low: float, high: float, count: int, size: int) -> np.ndarray:
        """Inputs at which a function is drawn, where the data lie between two of them; ``size`` features are there."""

    @abstractmethod
    def spread(self, share: np.ndarray, size: int) -> np.ndarray:
        """Inputs all over the domain, (n,), and one far outside where there is an outside.

        ``share`` says how far along each of them lies, from zero to one, and ``size`` is the number of features.
        """

    def check(self) -> None:  # noqa: B027  # most have nothing to check
        """ValueError unless its fields make sense, wherever they came from."""


@dataclass(frozen=True)
class Axis:
    """What the pass reads for one factor. Two axes may read one column; equal axes share their letters."""

    columns: tuple[int, ...]
    domain: Domain
    family: str


class Letters(ABC):
    """Real functions of one axis that are summed over rows. Frozen and hashable."""

    @property
    @abstractmethod
    def size(self) -> int: ...

    @property
    def parts(self) -> tuple["Letters", ...]:
        """Letters of every column: the letters themselves, unless they are of several columns."""
        return (self,)

    @property
    def numbers(self) -> "Letters":
        """Those of inputs that are there: themselves, unless the last says that one is missing."""
        return self

    def merged(self, sums: np.ndarray) -> np.ndarray:
        """Sums over these letters, (size, ...), from those over products of the parts, (product of sizes, ...)."""
        return sums

    def split(self, coefficients: np.ndarray) -> np.ndarray:
        """The transpose: coefficients of products of the parts, of the same function."""
        return coefficients

    @property
    def trigonometric(self) -> "TrigonometricLetters | None":
        """The letters themselves if they are harmonics and multiples of them; None for others."""
        return None

    @property
    def one(self) -> np.ndarray | None:
        """Coefficients of the function one, (size,), of which harmonics have the first; None where it is not known."""
        return None if self.trigonometric is None else np.eye(1, self.size)[0]

    @property
    def band(self) -> int | None:
        """The highest harmonic, multipliers included; None for letters that are not trigonometric."""
        return None

    @property
    def local(self) -> int | None:
        """How many are not zero at one t; None when all may be."""
        return None

    @property
    def keys(self) -> Sequence[Hashable]:
        """What tells every letter from others; equal ones are the same function."""
        return [(self, k) for k in range(self.size)]

    @abstractmethod
    def evaluate(self, t: np.ndarray) -> np.ndarray:
        """All letters at t, (N, size)."""

    def evaluate_by_products(self, t: np.ndarray) -> np.ndarray:
        """The same where speed counts more than the last digits of identities between letters."""
        return self.evaluate(t)

    def evaluate_transposed(self, t: np.ndarray) -> np.ndarray:
        """The same, letter after letter, (size, N)."""
        return self.evaluate_by_products(t).T


class Change(ABC):
    """From sums over the letters of one basis to those over the letters of another, and the transposes."""

    @abstractmethod
    def single(self, values: np.ndarray) -> np.ndarray:
        """Sums over features, (P, ...) to (P', ...)."""

    @abstractmethod
    def single_transpose(self, values: np.ndarray) -> np.ndarray:
        """Coefficients of features, (P', ...) to (P, ...): of the same function."""

    @abstractmethod
    def double(self, values: np.ndarray) -> np.ndarray:
        """Sums over double letters, (Q, ...) to (Q', ...)."""


class Same(Change):
    """No change."""

    def single(self, values: np.ndarray) -> np.ndarray:
        return values

    single_transpose = double = single


class Basis(ABC):
    """The features of one axis. Frozen, hashable, and stored in files."""

    family: ClassVar[str]
    """Bases of one family on the same axis have a joint basis."""
    scattered: bool = False
    """Whether a row stands for many inputs, so that double letters are averages of products of two features."""

    @property
    @abstractmethod
    def size(self) -> int:
        """P."""

    @property
    def detail(self) -> int | None:
        """How fine it is, as ``resized`` takes it; None where there is nothing to choose."""
        return None

    @property
    @abstractmethod
    def single(self) -> Letters:
        """The features."""

    @property
    @abstractmethod
    def double(self) -> Letters:
        """Functions that span all products of two features."""

    @property
    def numbers(self) -> "Basis":
        """That of inputs that are there: itself, unless its last function is for missing ones."""
        return self

    @property
    def parts(self) -> tuple["Basis", ...]:
        """Bases of every column, whose letters are the parts of these letters: itself, unless it is of several."""
        return (self,)

    @abstractmethod
    def evaluate(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        """The given derivative (in t) of every feature at t, (N, P)."""

    @abstractmethod
    def products(self) -> Products:
        """Every product of two features in double letters; remembered by the author."""

    @property
    def everywhere(self) -> bool:
        """Whether no product of two features vanishes identically."""
        return self.products().rows.size == self.size**2

    @property
    def orthogonal(self) -> bool:
        """Whether the product of two different features vanishes, so that Gram matrices are diagonal."""
        return False

    def pairs(self, sums: np.ndarray) -> np.ndarray:
        """sum w phi phi' written out, (P, P, ...), from sum w psi, (Q, ...)."""
        found, flat = self.products(), sums.reshape(sums.shape[0], -1)
        written = np.zeros((self.size, self.size, flat.shape[1]))
        written[found.rows, found.columns] = found.map @ flat
        return written.reshape(self.size, self.size, *sums.shape[1:])

    def gram(self, sums: np.ndarray) -> AbstractSymmetric:
        """sum w phi phi' from sum w psi, (Q,), with the structure that the features give it."""
        return Dense(self.pairs(sums))

    def project(self, S: MatrixView) -> np.ndarray:
        """Coefficients c (Q,) with phi(x)' S phi(x) = psi(x)' c. S is asked only where products of features live."""
        found = self.products()
        return found.transposed @ S.at(found.rows, found.columns)

    def contracted(self, cells: np.ndarray) -> np.ndarray:
        """The transpose of ``pairs``, (nnz, R) to (Q, R), of entries where products of features live."""
        return self.products().transposed @ cells

    @abstractmethod
    def features_sum(self, sums: np.ndarray) -> np.ndarray:
        """sum w phi, (P, ...), from sum w psi, (Q, ...): the features are among the double letters."""

    def joint(self, other: "Basis") -> "Basis | None":
        """The smallest basis that holds both; None when there is none, and the two are different axes."""
        return self if other == self else None

    def to(self, smaller: "Basis") -> Change:
        """From sums over the letters of this basis to those of a smaller one of its family."""
        if smaller != self:
            raise ValueError(f"sums over {self!r:.120} do not hold those over {smaller!r:.120}")
        return Same()

    def resized(self, detail: int) -> Self:
        """The same family with another detail; itself where there is nothing to choose."""
        return self

    def within(self, domain: Domain) -> "Basis":
        """The same where it is to stand; itself unless it depends on that."""
        return self

    def extended(self, values: Sequence[Any]) -> tuple["Basis", Change]:
        """A basis that knows all these values of a discrete domain, old ones among them, and the way to its sums."""
        raise TypeError(f"{type(self).__name__} has no values that could come later")

    def nodes(self) -> np.ndarray:
        """Points t, (n,) or (n, D): rows there, suitably weighted, have any sums of double letters that rows can."""
        return _gauss_legendre(self.node_count)

    @property
    def node_count(self) -> int:
        """How many ``nodes`` there are: a little closer than the highest harmonic of the double letters asks for."""
        band = self.double.band
        return (int(np.pi * band) if band is not None else 2 * self.double.size) + _MORE_NODES

    def suits(self, domain: Domain) -> bool:
        """Whether inputs from this domain are what its features take."""
        return not domain.discrete

    def check(self) -> None:  # noqa: B027  # most have nothing to check
        """ValueError unless its fields make sense, wherever they came from."""


@lru_cache(maxsize=32)
def _gauss_legendre(count: int) -> np.ndarray:
    return leggauss(count)[0]
