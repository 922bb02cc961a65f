"""What the baselines learn from: a kernel settled on the columns of a table, and its rows, standardised."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from vff.baselines.covariances import AbstractCovariance, Radial, Values
from vff.baselines.evidence import Given
from vff.baselines.products import Column, SumOfProducts
from vff.baselines.squared_exponential import SquaredExponential
from vff.basis import Domain
from vff.data.table import Table
from vff.factors import Factor, Kernel, Leaf, Term, normal_form
from vff.inference import REACH, TargetScale
from vff.kernels import Matern32
from vff.words import shown


def to_unit(domains: Sequence[Domain], x: np.ndarray) -> np.ndarray:
    """Rows (N, C) with the range of every column mapped to [-1, 1]; one column may come as (N,)."""
    x = x.reshape(len(x), -1)
    return np.column_stack([domain.to_unit(x[:, c]) for c, domain in enumerate(domains)])


@dataclass(frozen=True)
class Design:
    """A kernel of the user's settled on the columns of a table."""

    kernel: SquaredExponential | tuple[Term, ...]
    columns: tuple[int, ...]
    """Where the modelled columns stand in X, in the order the kernel names them.

    Each once, or twice when it is read both as numbers and as levels.
    """
    factors: tuple[Factor, ...]
    """Of every column, one of those over it, which says what its domain is."""
    levels: tuple[tuple[Any, ...] | None, ...]
    """The levels of every column; None where it holds numbers."""
    covariance: AbstractCovariance

    @classmethod
    def of(cls, kernel: Any, table: Table, beside: int | None = None) -> "Design":
        """``beside`` is a column that no kernel means unless it names it: the likelihood's own."""
        if isinstance(kernel, str) and kernel == "rbf":
            kernel = SquaredExponential()
        if isinstance(kernel, str):
            raise ValueError(f"kernel must be an expression such as Matern32('x'), None or 'rbf'; got {shown(kernel)}")
        everything = [index for index in range(table.n_columns) if index != beside]
        if isinstance(kernel, SquaredExponential):
            radial = Radial(tuple(table.label(index) for index in everything))
            C = len(everything)
            return cls(kernel, tuple(everything), (Matern32().factor,) * C, (None,) * C, radial)
        if kernel is None:
            kernel = _sum([Matern32(table.names[index] if table.names else index) for index in everything])
        return cls._of_terms(normal_form(kernel), table)

    @classmethod
    def _of_terms(cls, terms: tuple[Term, ...], table: Table) -> "Design":
        def read(leaf: Leaf) -> tuple[int, Any]:
            return table.index(leaf.column), leaf.factor.axis

        first: dict[tuple[int, Any], Leaf] = {}
        for leaf in (leaf for term in terms for leaf in term.factors):
            first.setdefault(read(leaf), leaf)
        keys = list(first)
        products = tuple(tuple(_column(leaf, keys.index(read(leaf))) for leaf in term.factors) for term in terms)
        levels = tuple(table.levels(key[0]) if leaf.reads == "levels" else None for key, leaf in first.items())
        factors = tuple(leaf.factor for leaf in first.values())
        return cls(terms, tuple(index for index, _ in keys), factors, levels, SumOfProducts(products))

    @property
    def given(self) -> tuple[np.ndarray, np.ndarray]:
        """Variances and lengthscales of the user's, NaN where none was given."""
        if isinstance(self.kernel, SquaredExponential):
            return _numbers([self.kernel.variance]), self.kernel.for_columns(len(self.columns))
        others = [value for term in self.kernel for leaf in term.factors for value in leaf.given.values()]
        return _numbers([term.variance for term in self.kernel]), _numbers(others)

    def with_values(self, values: Values) -> Kernel | SquaredExponential:
        """The kernel again, with learnt values."""
        variances, lengthscales = values.variances.tolist(), values.lengthscales.tolist()
        if isinstance(self.kernel, SquaredExponential):
            return SquaredExponential(variances[0], tuple(lengthscales))
        rest, filled = iter(lengthscales), []
        for term, variance in zip(self.kernel, variances, strict=True):
            own = [next(rest) for leaf in term.factors for _ in leaf.given]
            filled.append(term.with_values(variance, own))
        return _sum(filled)


@dataclass(frozen=True)
class Problem:
    """Rows in the units the models work in."""

    design: Design
    domains: tuple[Domain, ...]
    """The range of the data in every column, which becomes [-1, 1], or its codes, which stay."""
    target: TargetScale
    T: np.ndarray
    y: np.ndarray
    given: Given
    constant: float | None
    """Prior variance of a constant beside the process; None where there is none."""

    @classmethod
    def of(
        cls,
        design: Design,
        x: np.ndarray,
        y: np.ndarray,
        noise: float | None,
        target: TargetScale,
        *,
        centred: bool,
    ) -> "Problem":
        """Standardise checked rows; ``given`` is taken from the kernel and ``noise``, in the user's units."""
        domains = tuple(
            factor.spanning(float(column.min()), float(column.max()))
            for column, factor in zip(x.T, design.factors, strict=True)
        )
        variances, lengthscales = design.given
        noise_share = np.nan if noise is None else noise / target.scale**2
        given = Given(variances / target.scale**2, lengthscales / _scales(design, domains), noise_share)
        constant = REACH**2 if centred else None
        return cls(design, domains, target, to_unit(domains, x), (y - target.mean) / target.scale, given, constant)

    @property
    def intervals(self) -> tuple[Domain, ...]:
        """The ranges of the columns of numbers."""
        return tuple(domain for domain in self.domains if not domain.discrete)

    def in_user_units(self, values: Values) -> Values:
        """Hyperparameters of y and of the columns as they came."""
        square = self.target.scale**2
        lengthscales = values.lengthscales * _scales(self.design, self.domains)
        return Values(values.variances * square, lengthscales, values.noise * square)

    def evidence_in_user_units(self, value: float) -> float:
        """Nats for y as it came: the density of N standardised targets is scale^N times theirs."""
        return value - self.y.size * float(np.log(self.target.scale))


def _scales(design: Design, domains: Sequence[Domain]) -> np.ndarray:
    """What every lengthscale is measured in, such as the half range of its column."""
    return np.array([domains[c].unit(kind) for c, kind in design.covariance.lengthscale_units])


def _column(leaf: Leaf, index: int) -> Column:
    return Column(index, leaf.factor, f"{type(leaf).__name__}({leaf.column!r})")


def _sum(kernels: Sequence[Any]) -> Any:
    return reduce(add, kernels)


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], float)


def check_numbers_only(kernel: Any) -> None:
    """Refuse the effects of levels, for baselines whose features live on intervals."""
    for term in () if kernel is None or isinstance(kernel, SquaredExponential | str) else normal_form(kernel):
        for factor in term.factors:
            if "domain" not in factor.factor.options:
                what = "the effects of levels " if factor.reads == "levels" else ""
                raise ValueError(
                    f"the kernel has {what}{shown(factor)}, and this baseline knows Matérns of numbers "
                    "only; leave the column out, or use GPRegressor or ExactGP"
                )


def check_one_column(kernel: Any) -> None:
    """Refuse all but one Matérn of one column."""
    check_numbers_only(kernel)
    first, *others = normal_form(Matern32(0) if kernel is None else kernel)
    if others or len(first.factors) > 1:
        raise ValueError(
            f"kernel has {1 + len(others)} term(s), the first over the columns {first.columns}, and this baseline "
            "models one column; give one kernel, as in kernel=Matern32('x'), or use GPRegressor or ExactGP"
        )


def check_default(kernel: Any, n_columns: int) -> None:
    """Refuse to guess a kernel for several columns, for baselines that cannot afford them all."""
    if kernel is None and n_columns > 1:
        raise ValueError(
            f"X has {n_columns} columns and kernel=None is a Matern32 over the only one; write the kernel, as in "
            "kernel=Matern32('x'), or pass that column alone"
        )
