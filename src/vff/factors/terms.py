"""The normal form of what the user writes, which the rest of the house reads: a sum of products of factors."""

from collections.abc import Sequence
from dataclasses import dataclass

from vff.basis import Domain
from vff.factors.expression import Column, Kernel, Leaf, Product, Sum, factors_of, summands
from vff.factors.product_variance import variance_of
from vff.factors.protocol import Factor
from vff.parameters import kept


@dataclass(frozen=True)
class Term:
    """One summand in normal form: a variance and one factor per column.

    Parameters
    ----------
    factors : tuple of one-column kernels

    Examples
    --------
    >>> vff.kernels.Term((vff.Matern32("day", variance=2.0), vff.Matern32("time", variance=3.0))).variance
    6.0
    """

    factors: tuple[Leaf, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """All that its factors read, from left to right."""
        return tuple(column for factor in self.factors for column in factor.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """What its factors are called."""
        return tuple(factor.name for factor in self.factors)

    @property
    def expression(self) -> Leaf | Product:
        """One factor as it is, several as a product."""
        return self.factors[0] if len(self.factors) == 1 else Product(self.factors)

    @property
    def inner(self) -> tuple[Factor, ...]:
        """Its factors without columns and values."""
        return tuple(leaf.factor_in(len(self.factors) > 1) for leaf in self.factors)

    @property
    def name(self) -> str:
        """What the term is called in tables and pictures: ``x``, or ``day * time``."""
        return " * ".join(self.names)

    @property
    def key(self) -> tuple[tuple[Column | tuple[Column, ...], str], ...]:
        """Columns and kinds in an order of their own: the same for a * b and b * a, whatever their values.

        Indices come before names, since the two cannot be compared.
        """
        pairs = sorted(((factor.columns, type(factor).__name__) for factor in self.factors), key=_comparable)
        return tuple((columns if len(columns) > 1 else next(iter(columns)), kind) for columns, kind in pairs)

    @property
    def variance(self) -> float | None:
        """The product of the variances that were given; None when none was."""
        return variance_of([factor.variance for factor in self.factors], self.name)

    def with_values(
        self, variance: float, values: Sequence[float], domains: Sequence[Domain] | None = None
    ) -> Leaf | Product:
        """The expression again, with learnt values; a product carries its variance on the first factor.

        ``values`` are the hyperparameters of the factors beside the variance, from left to right; ``domains`` are those
        of a fit, by factor.
        """
        names = [list(factor.given) for factor in self.factors]
        expected = sum(map(len, names))
        if len(values) != expected:
            raise ValueError(f"term {self.name} takes {expected} lengthscale(s), got {len(values)}; give one each")
        rest = iter(values)
        variances = (kept(self.variance, variance), *[1.0] * (len(self.factors) - 1))
        factors = tuple(
            factor.with_values(v, {name: next(rest) for name in own})
            for factor, v, own in zip(self.factors, variances, names, strict=True)
        )
        if domains is not None:
            factors = tuple(factor.settled(domain) for factor, domain in zip(factors, domains, strict=True))
        return Term(factors).expression


def sum_of(terms: Sequence[Leaf | Product]) -> Kernel:
    """One term as it is, several as a sum."""
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def normal_form(kernel: Kernel) -> tuple[Term, ...]:
    """The kernel as a sum of products, in the order written; a term that was written twice stays twice.

    Parameters
    ----------
    kernel : kernel expression

    Returns
    -------
    tuple of Term

    Examples
    --------
    >>> kernel = (vff.Matern32("x") + vff.Matern32("z")) * vff.Categorical("g")
    >>> [term.name for term in vff.kernels.normal_form(kernel)]
    ['x * g', 'z * g']
    """
    return tuple(Term(factors_of(summand)) for summand in summands(kernel))


def _comparable(pair: tuple[tuple[Column, ...], str]) -> tuple[list[tuple[bool, Column]], str]:
    return [(isinstance(column, str), column) for column in pair[0]], pair[1]
