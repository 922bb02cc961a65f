"""What the user writes: one-column kernels, `+` and `*`, and the normal form the rest of the house reads."""

from dataclasses import KW_ONLY, dataclass
from math import prod
from numbers import Integral, Real
from typing import ClassVar, Union

import numpy as np

from vff.kernels.matern import HalfInteger

Column = str | int
Kernel = Union["_Matern", "Product", "Sum"]


class _Expression:
    """`+` and `*` for every kernel. `*` distributes over `+`, so an expression is always a sum of products."""

    def __add__(self, other: Kernel) -> "Sum":
        return Sum((*_summands(self), *_summands(other)))

    def __mul__(self, other: Kernel) -> Kernel:
        products = [
            Product((*_factors(left), *_factors(right))) for left in _summands(self) for right in _summands(other)
        ]
        return products[0] if len(products) == 1 else Sum(tuple(products))


@dataclass(frozen=True, repr=False)
class _Matern(_Expression):
    """A half-integer Matérn kernel on one column; the leaves below fix its order.

    ``column`` is a name or an index. ``variance`` and ``lengthscale`` (in the column's own units) are where learning
    starts, or the values used when nothing is learnt; None means "start from the data".
    """

    order: ClassVar[int]
    column: Column = 0
    _: KW_ONLY
    variance: float | None = None
    lengthscale: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.column, bool) or not isinstance(self.column, str | Integral):
            raise TypeError(
                f"{type(self).__name__}: column must be a name or an index, got {self.column!r}; "
                "write variance= and lengthscale= by name"
            )
        for name in ("variance", "lengthscale"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and 0.0 < float(value) < np.inf):
                raise ValueError(
                    f"{type(self).__name__}({self.column!r}): {name} must be a positive number, got {value!r}; "
                    "leave it out to start from the data"
                )

    def __call__(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """k(x, z) for two vectors of values of the column, (N, N')."""
        if self.variance is None or self.lengthscale is None:
            raise ValueError(f"{self!r} has no values yet: give variance and lengthscale, or use the kernel_ of a fit")
        unit = HalfInteger.from_lengthscale(self.order, self.lengthscale)
        return self.variance * unit.covariance(np.subtract.outer(np.asarray(x, float), np.asarray(z, float)))

    def __repr__(self) -> str:
        given = [(name, getattr(self, name)) for name in ("variance", "lengthscale")]
        values = [f"{name}={value:.6g}" for name, value in given if value is not None]
        return f"{type(self).__name__}({', '.join([repr(self.column), *values])})"


class Matern12(_Matern):
    """Matérn-1/2, the exponential kernel: continuous, nowhere smooth."""

    order = 0


class Matern32(_Matern):
    """Matérn-3/2: once differentiable."""

    order = 1


class Matern52(_Matern):
    """Matérn-5/2: twice differentiable."""

    order = 2


class Matern72(_Matern):
    """Matérn-7/2: three times differentiable."""

    order = 3


class Matern92(_Matern):
    """Matérn-9/2: four times differentiable."""

    order = 4


@dataclass(frozen=True, repr=False)
class Product(_Expression):
    """A product of one-column kernels; the product of their variances is its one variance."""

    factors: tuple[_Matern, ...]

    def __repr__(self) -> str:
        return " * ".join(map(repr, self.factors))


@dataclass(frozen=True, repr=False)
class Sum(_Expression):
    """A sum of one-column kernels and products."""

    terms: tuple[_Matern | Product, ...]

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.terms))


def _summands(kernel: object) -> tuple[_Matern | Product, ...]:
    if isinstance(kernel, Sum):
        return kernel.terms
    if isinstance(kernel, _Matern | Product):
        return (kernel,)
    raise TypeError(f"a kernel was expected, such as Matern32('column') or a sum of them; got {kernel!r}")


def _factors(term: _Matern | Product) -> tuple[_Matern, ...]:
    return term.factors if isinstance(term, Product) else (term,)


@dataclass(frozen=True)
class Term:
    """One summand in normal form: a variance and one factor per column."""

    factors: tuple[_Matern, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(factor.column for factor in self.factors)

    @property
    def variance(self) -> float | None:
        """The product of the variances that were given; None when none was."""
        given = [factor.variance for factor in self.factors if factor.variance is not None]
        return prod(given) if given else None

    def with_values(self, variance: float, lengthscales: tuple[float, ...]) -> _Matern | Product:
        """The expression again, with learnt values; a product carries its variance on the first factor."""
        variances = (variance, *[1.0] * (len(self.factors) - 1))
        factors = tuple(
            type(factor)(factor.column, variance=v, lengthscale=ell)
            for factor, v, ell in zip(self.factors, variances, lengthscales, strict=True)
        )
        return factors[0] if len(factors) == 1 else Product(factors)


def normal_form(kernel: Kernel) -> tuple[Term, ...]:
    """The kernel as a sum of products."""
    return tuple(Term(_factors(summand)) for summand in _summands(kernel))
