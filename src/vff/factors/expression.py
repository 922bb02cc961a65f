"""What the user writes: kernels on columns, `+` and `*`; ``terms`` has the normal form the rest of the house reads.

Kernels also speak scikit-learn's parameter protocol, ``get_params`` and ``set_params``, so that a search can reach
``kernel__lengthscale`` of an estimator, or ``kernel__month__lengthscale`` when its kernel is a sum.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from itertools import combinations
from numbers import Integral
from typing import Any, ClassVar, Self, Union

import numpy as np

from vff.basis import Domain
from vff.factors.numbers_given import CORRELATION, REAL, check_numbers
from vff.factors.product_variance import variance_of
from vff.factors.protocol import Factor, Values
from vff.parameters import bounds_of, kept, number_text
from vff.words import listed, shown

__all__ = ["CORRELATION", "REAL", "Column", "Kernel", "Leaf", "Product", "Sum", "factors_of", "summands"]

Column = str | int
Kernel = Union["Leaf", "Product", "Sum"]


class _Expression(ABC):
    """`+` and `*` for every kernel. `*` distributes over `+`, so an expression is always a sum of products.

    What ``(a + b) * c`` means is settled where it is written, so that nobody further down can expand it otherwise.
    """

    def __add__(self, other: Kernel) -> "Sum":
        return Sum((*summands(self), *summands(other)))

    def __radd__(self, other: object) -> Self:
        """``sum`` of kernels starts from zero."""
        if other == 0:
            return self
        raise TypeError(f"a kernel was expected, such as Matern32('column') or a sum of them; got {shown(other)}")

    def __mul__(self, other: Kernel) -> Kernel:
        products = [
            Product((*factors_of(left), *factors_of(right))) for left in summands(self) for right in summands(other)
        ]
        return products[0] if len(products) == 1 else Sum(tuple(products))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, and with ``deep`` those of the parts as ``<column>__<name>``."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # pyright: ignore[reportArgumentType]

    @abstractmethod
    def _replaced(self, params: dict[str, Any]) -> Self:
        """Another kernel of this type with other parameters, checked."""

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place, all or none; scikit-learn clones first."""
        new = self._replaced(params)
        for name in self.get_params(deep=False):
            object.__setattr__(self, name, getattr(new, name))  # frozen for everyone else
        return self

    def _check_names(self, params: dict[str, Any]) -> None:
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ValueError(
                    f"{shown(self)} has no parameter {shown(name)}; it has {', '.join(map(shown, known))}: set one of "
                    "these"
                )


@dataclass(frozen=True, repr=False)
class Leaf(_Expression):
    """A kernel on one column, or on several together, the base of all kinds of them.

    Fields beyond its columns are positive numbers, or None for "start from the data", unless their metadata say that
    they are a ``CORRELATION`` or ``REAL``, or they are ``choices``. Besides the variance, those that its factor learns
    are called after its parameters; others are given, and stay.

    Examples
    --------
    >>> isinstance(vff.Matern32("x"), vff.kernels.Factor)
    True
    """

    nickname: ClassVar[str | None] = None
    """What people may write for it in terms, as ``cat(name)``."""
    smoothness: ClassVar[str | None] = None
    """The part after the comma that stands for it in ``smooth(name, 3/2)``."""
    reads: ClassVar[str] = "numbers"
    """What the column is read as: "numbers" or "levels"."""
    default_for: ClassVar[frozenset[str]] = frozenset()
    """Kinds of columns whose bare name stands for it."""
    choices: ClassVar[frozenset[str]] = frozenset()
    """Fields that hold words, whole numbers, lists or lists by name: given, never learnt, and checked by the leaf."""
    from_file: ClassVar[str | None] = None
    """The one of them that terms of a command line may give by the name of a file of rows."""
    column_fields: ClassVar[tuple[str, ...]] = ("column",)
    """The fields that name its columns, in the order in which they are written."""
    value_columns: ClassVar[frozenset[str]] = frozenset()
    """Fields beside them that name columns, too: given, written and read by name, as in ``width='hours'``."""
    column: Column = 0
    _: KW_ONLY
    variance: float | None = None

    def __post_init__(self) -> None:
        for field, column in zip(self.named_columns, self.columns, strict=True):
            if isinstance(column, bool) or not isinstance(column, str | Integral):
                raise TypeError(
                    f"{type(self).__name__}: {field} must be a name or an index, got {shown(column)}; "
                    f"write {' and '.join(f'{name}=' for name in self._values())} by name"
                )
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(
                f"{type(self).__name__} takes {len(self.columns)} different columns, got "
                f"{' and '.join(map(shown, self.columns))}; name each of them once"
            )
        check_numbers(self)

    @property
    @abstractmethod
    def factor(self) -> Factor:
        """What it is without columns and values."""

    @property
    def named_columns(self) -> tuple[str, ...]:
        """The fields that name columns that this one reads: ``column_fields``, and choices where they name some."""
        return self.column_fields

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it reads."""
        return tuple(getattr(self, field) for field in self.named_columns)

    @property
    def one_by_one(self) -> bool:
        """Whether options speak of each of its columns by its own name; else of all by the name of the leaf."""
        return len(self.named_columns) == 1

    @property
    def name(self) -> str:
        """What it is called in tables and pictures: ``x``, or ``(lat, lon)``."""
        names = ", ".join(map(str, self.columns))
        return names if len(self.columns) == 1 else f"({names})"

    def factor_in(self, product: bool) -> Factor:
        """The same where it stands: by itself, or in a product."""
        return self.factor

    def unsettled(self, product: bool) -> bool:
        """Whether a fit settles something of it, beside its hyperparameters, that nobody gave: by itself, or in one."""
        return False

    def _correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """k(x, z) / variance."""
        factor = self.factor
        domain = factor.spanning(-1.0, 1.0)
        values = {own.name: factor.measure(domain, own).inner(getattr(self, own.name)) for own in factor.parameters}
        x, z = (domain.to_unit(np.asarray(own, float)) for own in (x, z))
        return factor.correlation(x, z, values)

    @property
    def given(self) -> dict[str, float | None]:
        """The hyperparameters beside the variance as they were written, in the column's own units."""
        return {own.name: getattr(self, own.name) for own in self.factor.parameters}

    @property
    def identity(self) -> tuple[Any, ...]:
        """What it is, whatever its hyperparameters are: its kind, and what was given to stay."""
        learnt = {"variance", *self.given}
        return type(self).__name__, *(value for name, value in self._values().items() if name not in learnt)

    def with_values(self, variance: float, values: Values) -> Self:
        """The same with learnt hyperparameters, in the column's own units; what was held or bounded stays so."""
        learnt = {name: kept(getattr(self, name), value) for name, value in values.items()}
        return self._replaced({"variance": variance, **learnt})

    def settled(self, domain: Domain) -> Self:
        """The same with what a fit settles beside hyperparameters, given its domain; itself where that is nothing."""
        return self

    def bare(self, *, but_known: bool = False) -> Self:
        """The same with no hyperparameters; ``but_known``: none but those, the variance aside, that are not free."""
        left = [name for name, value in self.given.items() if not but_known or bounds_of(value) is None]
        return self._replaced(dict.fromkeys(("variance", *left)))

    @property
    def in_order(self) -> bool:
        """Whether the levels that it names stand in an order."""
        return False

    @property
    def levels_named(self) -> tuple[Hashable, ...] | None:
        """All levels of its column in their order, where it names them; None for those that the rows have."""
        return None

    def unnamed(self, levels: Sequence[Any], label: str) -> str:
        """The sentence about levels of a column that it does not name."""
        return f"column {label} of X holds {listed(levels, 4)}, which {shown(self)} does not name; name all levels"

    def over(self, order: Sequence[Any] | None, label: str) -> Self:
        """The same over a column that says in which order its levels stand, or says nothing."""
        return self

    def clash(self, other: "Leaf") -> str | None:
        """Why the two cannot be multiplied where they share a column; None where they can."""
        return "its features are those of no product" if self.factor.axis == other.factor.axis else None

    def __call__(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """k(x, z) for two vectors of values of the column, (N, N'); for rows (N, D) of several columns."""
        values = {"variance": self.variance, **self.given}
        if None in values.values():
            raise ValueError(
                f"{shown(self)} has no values yet: give {' and '.join(values)}, or use the kernel_ of a fit"
            )
        return self.variance * self._correlation(x, z)

    def __repr__(self) -> str:
        return self.text(lambda value: f"{float(value):.6g}", whole=False)

    def text(self, number: Callable[[Any], str], *, whole: bool = True) -> str:
        """The kernel as it is written in Python, each value by ``number``; NumPy's names and indices as plain ones.

        Not ``whole``, long choices are only described.
        """
        named = [getattr(self, field) for field in self.column_fields]
        columns = [str.__repr__(one) if isinstance(one, str) else str(int(one)) for one in named]
        usual = {field.name: field.default for field in fields(self) if field.name in self.choices}
        written = {
            name: self._choice_text(name, value, whole=whole) if name in self.choices else number_text(value, number)
            for name, value in self._values().items()
            if value is not None and (name not in usual or value != usual[name])
        }
        values = [f"{name}={value}" for name, value in written.items()]
        return f"{type(self).__name__}({', '.join([*columns, *values])})"

    def _choice_text(self, name: str, value: Any, *, whole: bool) -> str:
        """As the grammar reads it, or not ``whole`` and short."""
        return str.__repr__(value) if isinstance(value, str) else repr(value)

    def _replaced(self, params: dict[str, Any]) -> Self:
        self._check_names(params)
        return replace(self, **params)

    def _values(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params().items() if name not in self.column_fields}


@dataclass(frozen=True, repr=False)
class _Compound(_Expression):
    """Kernels made of kernels: their parameters are those of their leaves, each called after its column."""

    sign: ClassVar[str]
    """Between its parts."""

    @property
    def _parts(self) -> "tuple[Leaf | Product, ...]":
        (parts,) = super().get_params().values()
        return parts

    def _with_leaves(self, leaves: Iterator[Leaf]) -> Self:
        """The same shape over other leaves."""
        parts = (part._with_leaves(leaves) if isinstance(part, Product) else next(leaves) for part in self._parts)
        return type(self)(tuple(parts))  # pyright: ignore[reportCallIssue]

    def __repr__(self) -> str:
        return f" {self.sign} ".join(map(repr, self._parts))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The tuple of parts, and with ``deep`` the parameters of all leaves as ``<column>__<name>``."""
        params = super().get_params()
        if deep:
            for part, leaf in self._named_leaves().items():
                params |= {f"{part}__{name}": value for name, value in leaf.get_params().items()}
        return params

    def _named_leaves(self) -> dict[str, Leaf]:
        """Leaves by column; the second on a column 'x' is 'x_2', or 'x_3' if there is a column 'x_2' of that name.

        One of several columns has all their names, with _ between them. Columns come first, so that a parameter called
        after a column is never that of another one.
        """
        leaves = [leaf for part in self._parts for leaf in factors_of(part)]
        names = ["_".join(map(str, leaf.columns)) for leaf in leaves]
        named: dict[str, Leaf] = {}
        for leaf, own in zip(leaves, names, strict=True):
            name, count = own, 1
            while name in named or (count > 1 and name in names):
                count += 1
                name = f"{own}_{count}"
            named[name] = leaf
        return named

    def _replaced(self, params: dict[str, Any]) -> Self:
        own = {name: value for name, value in params.items() if name in self.get_params(deep=False)}
        if own:
            rest = {name: value for name, value in params.items() if name not in own}
            return replace(self, **own).set_params(**rest)
        self._check_names(params)
        changes: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            part, _, parameter = name.rpartition("__")
            changes.setdefault(part, {})[parameter] = value
        leaves = self._named_leaves().items()
        return self._with_leaves(iter([replace(leaf, **changes.get(name, {})) for name, leaf in leaves]))


@dataclass(frozen=True, repr=False)
class Product(_Compound):
    """A product of one-column kernels; the product of their variances is its one variance.

    Parameters
    ----------
    factors : tuple of one-column kernels

    Examples
    --------
    >>> (vff.Matern32("x") * vff.Categorical("g")).factors
    (Matern32('x'), Categorical('g'))
    """

    sign: ClassVar[str] = "*"
    factors: tuple[Leaf, ...]

    def __post_init__(self) -> None:
        _check_parts(
            "Product: factors", self.factors, (Leaf,), "one-column kernels, as in Matern32('x') * Matern32('z')"
        )
        _check_columns_differ(self.factors)
        variance_of([factor.variance for factor in self.factors], " * ".join(factor.name for factor in self.factors))


@dataclass(frozen=True, repr=False)
class Sum(_Compound):
    """A sum of one-column kernels and products.

    Parameters
    ----------
    terms : tuple of one-column kernels and products

    Examples
    --------
    >>> (vff.Matern32("x") + vff.Categorical("g")).terms
    (Matern32('x'), Categorical('g'))
    """

    sign: ClassVar[str] = "+"
    terms: tuple[Leaf | Product, ...]

    def __post_init__(self) -> None:
        _check_parts("Sum: terms", self.terms, (Leaf, Product), "kernels, as in Matern32('x') + Matern32('z')")


def _check_parts(what: str, parts: Any, kinds: tuple[type, ...], expected: str) -> None:
    if not (isinstance(parts, tuple) and parts and all(isinstance(part, kinds) for part in parts)):
        raise TypeError(f"{what} must be a tuple of {expected}, got {shown(parts)}; write kernels with + and *")


def _check_columns_differ(factors: tuple[Leaf, ...]) -> None:
    """Two kernels of one column may be multiplied where neither minds."""
    for first, second in combinations(factors, 2):
        shared = [column for column in second.columns if column in first.columns]
        reason = (first.clash(second) or second.clash(first)) if shared else None
        if reason is not None:
            raise ValueError(
                f"Product: one factor per column was expected, found {shown(first)} and {shown(second)} on column "
                f"{shown(shared[0])} in {' * '.join(map(shown, factors))}: {reason}; keep one of them, or add "
                "them with +"
            )


def summands(kernel: object) -> tuple[Leaf | Product, ...]:
    if isinstance(kernel, Sum):
        return kernel.terms
    if isinstance(kernel, Leaf | Product):
        return (kernel,)
    more = "; vff.parse_kernel reads kernels from text" if isinstance(kernel, str) else ""
    raise TypeError(f"a kernel was expected, such as Matern32('column') or a sum of them; got {shown(kernel)}{more}")


def factors_of(term: Leaf | Product) -> tuple[Leaf, ...]:
    return term.factors if isinstance(term, Product) else (term,)
