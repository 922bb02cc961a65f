"""What a kind of factor is: the functions of one column that it expands in, and the prior of their coefficients.

A *leaf* (``expression``) is what the user writes, a kernel on one column. Its ``Factor`` is the same without column and
values: it chooses domain and basis, names its hyperparameters, and gives a ``Prior`` at any values of them. A term is a
product of factors with one variance, so everything here is for unit variance: k(x, x) = 1, unless a kind says that it
varies, and then how, by few functions of x with weights that depend on the hyperparameters. Hyperparameters are
positive, and are measured in units of the domain (``Factor.unit``), so nothing below depends on the units of a column;
what users call a correlation r is (1 + r) / (1 - r) here (``vff.parameters.Unit``).

Inference, estimators, reports and files ask these classes, and know no kind by its name. A new kind is a folder with
its own of them and a line in ``registry``.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from vff.basis import Basis, Domain
from vff.factors.outside import TailRows
from vff.factors.parameter import Parameter
from vff.factors.records import Beyond, Block, ColumnRange, FactorOptions, StartingPoint, TailSums, Values
from vff.factors.transform import EdgeTransform
from vff.linalg import AbstractInvertible, AbstractOperator, Diagonal
from vff.parameters import Unit

D = TypeVar("D", bound=Domain)
B = TypeVar("B", bound=Basis)

_STEP = 1e-5  # of a logarithm, where a derivative is taken by differences
_SHORT_STEP = 3e-5  # the same of a closed form, whose second derivative it is


class Prior(ABC, Generic[D, B]):
    """A factor at some values. Stored with posteriors: what defines it are its fields.

    ``domain`` and ``basis`` may be fields or follow from them.
    """

    if TYPE_CHECKING:

        @property
        def domain(self) -> D: ...

        @property
        def basis(self) -> B: ...

    @property
    @abstractmethod
    def factor(self) -> "Factor": ...

    @property
    def values(self) -> Values:
        """Hyperparameters, in units of the domain; fields of their names, unless a leaf says otherwise."""
        return {own.name: getattr(self, own.name) for own in self.factor.parameters}

    @property
    def K(self) -> AbstractInvertible:
        """The precision of the coefficients, [<phi_i, phi_j>]; where these are dependent, a leaf has its own."""
        return Diagonal(1.0 / self.factor.variances(self.basis, self.values))

    @property
    def transform(self) -> EdgeTransform:
        """From the functions of the basis to those that K is about."""
        return EdgeTransform.identity(self.basis.size)

    def derivative(self, name: str) -> AbstractOperator:
        """dK / d log value of a hyperparameter, the functions held."""
        raise KeyError(name)

    def second_derivative(self, name: str, other: str) -> AbstractOperator:
        """d2K / d log values of two hyperparameters, the functions held; by differences, unless a kind knows better."""
        ends = []
        for sign in (1.0, -1.0):
            values = {**self.values, other: self.values[other] * float(np.exp(sign * _SHORT_STEP))}
            moved = self.factor.prior(self.domain, self.basis, values)
            ends.append(self.held(moved.derivative(name), moved))
        return ends[0].blended(0.5 / _SHORT_STEP, ends[1], -0.5 / _SHORT_STEP)

    def held(self, change: AbstractOperator, moved: "Prior") -> AbstractOperator:
        """A matrix about the functions of ``moved``, the same factor at other values, written in the functions of K."""
        X = self.transform.X - moved.transform.X
        return change.sheared(X) if X.any() else change

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        """The functions of K, or a derivative of them in the column's units, at any rows, (N, P)."""
        return self.basis.evaluate(self.domain.to_unit(x), derivative) / self.domain.unit() ** derivative

    def carried(self, x: np.ndarray) -> np.ndarray:
        """phi'K^-1 phi at every row: the share of the prior variance that the features carry."""
        features = self.features(x)
        return np.einsum("np,pn->n", features, self.K.solve(features.T))

    def beyond(self, x: np.ndarray) -> Sequence[Beyond] | None:
        """Rows outside the domain through few states; rows in none of the parts have no features. None: written out."""
        return None

    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Prior correlation, (N, N')."""
        return self.factor.correlation(self.domain.to_unit(x), self.domain.to_unit(z), self.values)

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows lie where the data have no say."""
        return ~self.domain.contains(self.domain.to_unit(x))

    def prior_variance(self, x: np.ndarray) -> np.ndarray | float:
        """k(x, x) at any rows, (N,); one number where it is the same everywhere."""
        return self.factor.variance_at(self.domain.to_unit(x), self.values)

    def variance_functions(self, x: np.ndarray) -> np.ndarray:
        """The functions of which k(x, x) is made where it varies, at any rows, (N, J)."""
        return self.factor.on(self.basis).variance_functions(self.domain.to_unit(x))

    def slope_variance(self, x: np.ndarray) -> np.ndarray | float:
        """Prior variance of the derivative, in the column's own units, at any rows; one number if the same at all."""
        raise ValueError(f"{self.factor.title} has no derivative; ask for one along another column")

    def readable(self) -> Sequence[tuple[str, float]] | None:
        """Of coefficients that mean something by themselves, in their order: what follows the column in the name of
        every one, and what one of it is in units of the column; None for others.
        """
        return None

    def power(self, detail: int) -> float:
        """Prior variance per harmonic at a detail, as ``Basis.resized`` counts it; zero where that means nothing."""
        return 0.0

    def tail_states(self, side: int) -> np.ndarray:
        """Z of the rows beyond one edge, (P, k)."""
        raise TypeError(f"{type(self).__name__} has no edges")

    def tail_sums(self, tail: TailRows) -> TailSums:
        """What rows beyond an edge add to the sums."""
        raise TypeError(f"{type(self).__name__} has no edges")

    def tail_derivatives(self, tail: TailRows) -> dict[str, TailSums]:
        """The derivatives of ``tail_sums`` in the logarithm of every hyperparameter."""
        raise TypeError(f"{type(self).__name__} has no edges")


class Factor(ABC, Generic[D, B]):
    """A kind of function of one column, its hyperparameters free. Frozen and hashable."""

    family: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset()
    """The options of estimators that say something of it, of "domain", "edges" and "frequencies"."""
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    """Hyperparameters beside the variance; a property where they depend on its fields."""
    exchangeable: ClassVar[bool] = False
    """Whether coefficients are independent a priori, all of variance one."""
    constant_variance: ClassVar[bool] = True
    """Whether k(x, x) is one everywhere; else the four ``variance_...`` below say what it is."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is, as in "a Matérn of order 1"."""

    def check(self) -> None:  # most have nothing to check
        """ValueError unless its fields make sense, wherever they came from."""

    def on(self, basis: B) -> "Factor":
        """The same where the functions that k(x, x) is made of depend on the basis: with what they need of it."""
        return self

    @property
    def scattered(self) -> bool:
        """Whether a row stands for many inputs: its double letters are averages of products of two features."""
        return False

    @property
    def numbers(self) -> "Factor":
        """That of inputs that are there: itself, unless missing ones have an effect beside it."""
        return self

    @property
    def lone(self) -> bool:
        """Whether it has one feature whatever the data are, so that nothing can be learnt of its variance."""
        return False

    @property
    def axis(self) -> tuple[Hashable, ...]:
        """Factors over one column with equal axes share its domain and its sums."""
        return (self.family,)

    def unit(self, domain: D, kind: str) -> float:
        """One ``kind`` of what it is measured in, in the user's units: a "variance", or what a parameter names."""
        return domain.unit(kind)

    def measure(self, domain: D, own: Parameter) -> Unit:
        """How a hyperparameter of the user becomes the positive number that is learnt."""
        return Unit(self.unit(domain, own.unit), own.support)

    @property
    def decay(self) -> float | None:
        """What a detail misses falls like detail**-decay; None where there is nothing to grow."""
        return None

    @abstractmethod
    def least(self, options: FactorOptions) -> B:
        """The basis that the options ask for, with the least detail."""

    @abstractmethod
    def spanning(self, low: float, high: float) -> D:
        """The smallest domain that holds all inputs between two."""

    def settled(self, found: ColumnRange, bases: Sequence[B], *, growing: bool) -> D:
        """The domain of a column that none was given for; ``bases`` are those of all factors over it."""
        return self.spanning(found.low, found.high)

    def settled_together(
        self,
        found: Sequence[ColumnRange],
        bases: Sequence[B],
        *,
        growing: bool,
        given: Sequence[tuple[float, float] | None] = (),
    ) -> D:
        """The same of a factor over several columns, of each of which something is known, or was ``given``."""
        raise TypeError(f"{self.title} is over one column")

    def largest(self, bases: Sequence[B]) -> int:
        """The largest detail that float64 resolves, beside the bases of all factors over the column."""
        return 10**9

    def edges(self, basis: B) -> int | None:
        """How many edge functions a basis has; None where there is no such thing."""
        return None

    def waves(self, detail: int) -> Basis | None:
        """Cosines 0 ... detail, then sines 1 ... detail, with which its features begin; None if they do not."""
        return None

    def coarse(self, basis: B, distinct: int) -> B:
        """A few of the features, for a first look at a product."""
        return basis

    def one(self, basis: B) -> np.ndarray | None:
        """Coefficients of the function that is one everywhere, (P,); None where the features cannot make it.

        One whose k(x, x) is one everywhere must have it: that is how rows are counted.
        """
        return np.eye(1, basis.size)[0]

    @abstractmethod
    def prior(self, domain: D, basis: B, values: Values) -> Prior[D, B]:
        """The prior at these values."""

    def variances(self, basis: B, values: Mapping[str, Any]) -> Any:
        """Of coefficients that are independent a priori, (P,), in NumPy or in JAX as the values; None for others."""
        return None

    def variance_functions(self, t: np.ndarray) -> np.ndarray:
        """h(t), (N, J), with k(x, x) = h'g: functions without hyperparameters, at rows in units of the domain."""
        raise TypeError(f"the prior variance of {self.title} is one everywhere")

    def variance_letters(self, basis: B) -> np.ndarray:
        """H, (Q, J): h = H'psi in the double letters of a basis, so that sums over rows of k(x, x) are known."""
        raise TypeError(f"the prior variance of {self.title} is one everywhere")

    def variance_weights(self, values: Mapping[str, Any]) -> Any:
        """g, (J,), in NumPy or in JAX as the values."""
        raise TypeError(f"the prior variance of {self.title} is one everywhere")

    def variance_slopes(self, values: Values) -> Mapping[str, np.ndarray]:
        """dg / d log value, (J,) by hyperparameter; one that does not move g may be left out."""
        return {}

    def variance_at(self, t: np.ndarray, values: Values) -> np.ndarray | float:
        """k(x, x) at rows in units of the domain, without features."""
        return 1.0 if self.constant_variance else self.variance_functions(t) @ self.variance_weights(values)

    def ladder(self, detail: int) -> Sequence[StartingPoint]:
        """Values to begin learning from; ``detail`` is the highest at which the targets have something to say."""
        starts = zip(*(own.starts for own in self.parameters), strict=True)
        names = [own.name for own in self.parameters]
        return [StartingPoint(dict(zip(names, some, strict=True)), None) for some in starts] or [
            StartingPoint({}, None)
        ]

    def needed(self, values: Values) -> int | None:
        """The detail that carries most of the prior variance at these values; None where there is none to choose."""
        return None

    def tails(self, domain: D, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[TailRows, ...]:
        """Rows outside the domain, as they are kept; a kind without edges has none."""
        return ()

    @abstractmethod
    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        """The correlation between rows in units of the domain, for methods without features."""

    def correlation(self, x: np.ndarray, z: np.ndarray, values: Values) -> np.ndarray:
        """Between rows in units of the domain, (N, N')."""
        own = self.block(x, z, values)
        return own.value if own.exponent is None else own.value * np.exp(-own.exponent)

    def frequencies(self, count: int, rng: np.random.RandomState) -> np.ndarray | None:
        """log |u| for draws u from its spectral density at unit lengthscale, (count,); None where it has none."""
        return None

    def white(self, basis: B) -> "WhiteFactor[B]":
        """White variables to coefficients, in JAX."""
        from vff.factors.white import DenseWhite, DiagonalWhite

        independent = self.variances(basis, {own.name: own.typical for own in self.parameters}) is not None
        return (DiagonalWhite if independent else DenseWhite)(self, basis)


@dataclass(frozen=True)
class WhiteFactor(ABC, Generic[B]):
    """White variables v ~ N(0, I) to coefficients of the functions of a basis, in JAX. Hashable.

    What compiled code depends on is in its fields; values of hyperparameters are traced.
    """

    factor: Factor
    basis: B

    @property
    def size(self) -> int:
        """P."""
        return self.basis.size

    @property
    def white_size(self) -> int:
        """How many white variables there are, at least P."""
        return self.size

    @property
    def n_values(self) -> int:
        """How many hyperparameters it has."""
        return len(self.factor.parameters)

    def variance_weights(self, values: tuple[Any, ...]) -> Any:
        """Of the functions of which k(x, x) is made, (J,); one of the function that is one, where it is constant."""
        if self.factor.constant_variance:
            return np.ones(1)
        names = (own.name for own in self.factor.parameters)
        return self.factor.on(self.basis).variance_weights(dict(zip(names, values, strict=True)))

    @abstractmethod
    def at(self, values: tuple[Any, ...]) -> Any:
        """What the maps need at values of the hyperparameters, in the order of the factor's ``parameters``."""

    @abstractmethod
    def coefficients(self, root: Any, v: Any) -> Any:
        """White variables (S, n) to coefficients of the functions at rows, (P, n)."""

    @abstractmethod
    def explained(self, root: Any, features: Any) -> Any:
        """phi' K^-1 phi at rows with these features (n, P), (n,)."""


def with_room(detail: int) -> int:
    """The detail that holds this one, with room to take its shape."""
    return int(1.3 * detail) + 8


def by_differences(factor: Factor, x: np.ndarray, z: np.ndarray, values: Values) -> list[np.ndarray]:
    """Derivatives of a correlation in the logarithms of its hyperparameters, for kinds that know no formula."""

    def at(name: str, step: float) -> np.ndarray:
        return factor.correlation(x, z, {**values, name: values[name] * np.exp(step)})

    names = [own.name for own in factor.parameters]
    return [(at(name, _STEP) - at(name, -_STEP)) / (2.0 * _STEP) for name in names]
