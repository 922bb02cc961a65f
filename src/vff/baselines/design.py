"""What the baselines learn from: a kernel resolved on the columns of a table, and its rows, standardised."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from vff.baselines.covariances import AbstractCovariance, Column, Radial, SumOfProducts, Values
from vff.basis import Domain
from vff.data.table import Table
from vff.factors import Factor, Kernel, Leaf, Term, normal_form
from vff.inference import REACH, TargetScale
from vff.kernels import Matern32
from vff.moments import ColumnSummary, Place, numbers, place_of
from vff.parameters import Unit, bounds_of
from vff.words import shown


@dataclass(frozen=True)
class SquaredExponential:
    """variance exp(-1/2 sum_c (x_c - x'_c)^2 / lengthscale_c^2) over all columns of X; ``"rbf"`` for short.

    Parameters
    ----------
    variance : float or None
        Where learning starts, or the value used when nothing is learnt; None starts from the data.
    lengthscales : float, sequence of floats or None
        The same, one for all columns or one each, in their units.

    Examples
    --------
    >>> vff.baselines.SquaredExponential(1.0, 2.0)([[0.0]], [[2.0]]).round(3)
    array([[0.607]])
    """

    variance: float | None = None
    lengthscales: float | Sequence[float] | None = None

    def __post_init__(self) -> None:
        given = [self.variance, *np.ravel(np.asarray(self.lengthscales, dtype=object)).tolist()]
        for value in given:
            if value is not None and not (np.isreal(value) and 0.0 < float(value) < np.inf):
                raise ValueError(
                    f"SquaredExponential: variance and lengthscales must be positive numbers, got {shown(value)}; "
                    "leave them out to start from the data"
                )

    def for_columns(self, C: int) -> np.ndarray:
        """A lengthscale per column, (C,), NaN where it starts from the data."""
        if self.lengthscales is None:
            return np.full(C, np.nan)
        lengthscales = np.asarray(self.lengthscales, float)
        if lengthscales.ndim > 0 and lengthscales.shape != (C,):
            raise ValueError(
                f"SquaredExponential has {lengthscales.size} lengthscales and X has {C} columns; give one for every "
                "column, or one for all"
            )
        return np.broadcast_to(lengthscales, C).copy()

    def __call__(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """k(X, Z) for two tables of rows, (N, N')."""
        if self.variance is None or self.lengthscales is None:
            raise ValueError(
                f"{shown(self)} has no values yet: give variance and lengthscales, or use the kernel_ of a fit"
            )
        X, Z = np.asarray(X, float), np.asarray(Z, float)
        lag = (X[:, None, :] - Z[None, :, :]) / self.for_columns(X.shape[1])
        return self.variance * np.exp(-0.5 * np.sum(lag**2, axis=-1))

    def __repr__(self) -> str:
        variance = [] if self.variance is None else [f"variance={self.variance:.6g}"]
        numbers = [] if self.lengthscales is None else np.ravel(self.lengthscales).tolist()
        listed = f"lengthscales=({', '.join(f'{value:.6g}' for value in numbers)})"
        return f"SquaredExponential({', '.join([*variance, *([listed] if numbers else [])])})"


def to_unit(domains: Sequence[Domain], x: np.ndarray) -> np.ndarray:
    """Rows (N, C) with the range of every column mapped to [-1, 1]; one column may come as (N,)."""
    x = x.reshape(len(x), -1)
    return np.column_stack([domain.to_unit(x[:, c]) for c, domain in enumerate(domains)])


@dataclass(frozen=True)
class Design:
    """A kernel of the user's resolved on the columns of a table."""

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
    def of(cls, kernel: Any, table: Table, likelihood_column: int | None) -> "Design":
        """``likelihood_column`` is one that no kernel means unless it names it."""
        if isinstance(kernel, str) and kernel == "rbf":
            kernel = SquaredExponential()
        if isinstance(kernel, str):
            raise ValueError(
                f"kernel must be an expression such as Matern32('x'), None or 'rbf'; got {shown(kernel)}: "
                "vff.parse_kernel(text, X) reads a formula"
            )
        everything = [index for index in range(table.n_columns) if index != likelihood_column]
        if isinstance(kernel, SquaredExponential):
            radial = Radial(tuple(table.label(index) for index in everything))
            C = len(everything)
            return cls(kernel, tuple(everything), (Matern32().factor,) * C, (None,) * C, radial)
        if kernel is None:
            kernel = _sum([Matern32(table.names[index] if table.names else index) for index in everything])
        terms, first = normal_form(kernel), dict[tuple[Any, ...], tuple[Leaf, Factor]]()
        for leaf in (leaf for term in terms for leaf in term.factors if leaf.factor.scattered):
            raise ValueError(
                f"the kernel has {shown(leaf)}, whose inputs are uncertain, and baselines know Gaussian processes of "
                "rows alone; leave the std out, or use GPRegressor"
            )

        def read(leaf: Leaf, factor: Factor) -> list[tuple[Any, ...]]:
            """A key for every column; those that are read together are told apart from all others."""
            indices = tuple(map(table.index, leaf.columns))
            own = indices if len(indices) > 1 else ()
            return [(index, factor.axis, own) for index in indices]

        for both in (both for term in terms for both in zip(term.factors, term.inner, strict=True)):
            first |= {key: both for key in read(*both) if key not in first}
        keys = list(first)

        def column(leaf: Leaf, factor: Factor) -> Column:
            place, names = place_of([*map(keys.index, read(leaf, factor))]), ", ".join(map(repr, leaf.columns))
            return Column(place, factor, f"{type(leaf).__name__}({names})")

        products = tuple(tuple(map(column, term.factors, term.inner)) for term in terms)
        levels = tuple(table.levels(key[0]) if leaf.reads == "levels" else None for key, (leaf, _) in first.items())
        factors = tuple(factor for _, factor in first.values())
        return cls(terms, tuple(key[0] for key in keys), factors, levels, SumOfProducts(products))

    def given(self, noise: float | None) -> Values:
        """The user's values, NaN where none was given: NumPy takes None for it."""
        if isinstance(self.kernel, SquaredExponential):
            variances, others = [self.kernel.variance], self.kernel.for_columns(len(self.columns))
        else:
            variances = [term.variance for term in self.kernel]
            others = [value for term in self.kernel for leaf in term.factors for value in leaf.given.values()]
        return Values(np.array(variances, float), np.array(others, float), np.nan if noise is None else noise)

    def check(self, x: np.ndarray, label: Callable[[int], str]) -> None:
        """Refuse rows (N, C) of columns that are read together and hold what means nothing there."""
        for place in self.covariance.places:
            own = numbers((place,))
            if len(own) > 1:
                extents = [(float(x[:, c].min()), float(x[:, c].max())) for c in own]
                found = [ColumnSummary(*ends) for ends in extents]
                domain = self.factors[own[0]].settled_together(found, [], growing=False)
                domain.refuse(extents, [label(self.columns[c]) for c in own])

    def with_values(self, values: Values, domain: Callable[[Place], Domain]) -> Kernel | SquaredExponential:
        """The kernel again, with learnt values, and what follows from the domains of its columns."""
        variances, lengthscales = values.variances.tolist(), values.lengthscales.tolist()
        if isinstance(self.kernel, SquaredExponential):
            return SquaredExponential(variances[0], tuple(lengthscales))
        rest, filled = iter(lengthscales), []
        for term, variance, columns in zip(self.kernel, variances, self.covariance.columns, strict=True):
            own = [next(rest) for leaf in term.factors for _ in leaf.given]
            filled.append(term.with_values(variance, own, [domain(place) for place in columns]))
        return _sum(filled)


@dataclass(frozen=True)
class Problem:
    """Rows in the units the models work in."""

    design: Design
    x: np.ndarray
    """The modelled columns, (N, C)."""
    target: TargetScale
    targets: np.ndarray
    """y in the user's units."""
    noise: float | None
    """The user's noise variance; None where it starts from the data."""
    centred: bool
    """Whether there is a constant beside the process."""

    @property
    def covariance(self) -> AbstractCovariance:
        return self.design.covariance

    def domain(self, place: Place) -> Domain:
        """The range of the data in a column, or of several together, which becomes [-1, 1], or codes, which stay."""
        own = numbers((place,))
        factor, x = self.design.factors[own[0]], self.x[:, own]
        if len(own) == 1:
            return factor.spanning(float(x.min()), float(x.max()))
        found = [ColumnSummary(float(column.min()), float(column.max())) for column in x.T]
        return factor.settled_together(found, [], growing=False)

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        """Of every column by itself."""
        parts: dict[int, Domain] = {}
        for place in self.covariance.places:
            parts |= zip(numbers((place,)), self.domain(place).parts, strict=True)
        return tuple(parts[c] for c in range(len(parts)))

    @property
    def intervals(self) -> tuple[Domain, ...]:
        """The ranges of the columns of numbers."""
        return tuple(domain for domain in self.domains if not domain.discrete)

    @cached_property
    def T(self) -> np.ndarray:
        return to_unit(self.domains, self.x)

    @cached_property
    def y(self) -> np.ndarray:
        return (self.targets - self.target.mean) / self.target.scale

    @property
    def intercept(self) -> float | None:
        """Prior variance of a constant beside the process; None where there is none."""
        return REACH**2 if self.centred else None

    @cached_property
    def units(self) -> list[Unit]:
        """What hyperparameters are measured in: squares of the target's scale, and such as half ranges."""
        square, own = self.target.scale**2, self.covariance
        variances = [Unit(square * unit) for unit in own.variance_units(self.domain)]
        return [*variances, *(one.unit(self.domain(one.column)) for one in own.lengthscales), Unit(square)]

    @property
    def given(self) -> Values:
        """The user's values, NaN where they start from the data."""
        given = self.design.given(self.noise)
        return given.replaced([unit.inner(value) for unit, value in zip(self.units, given.every, strict=True)])

    def in_user_units(self, values: Values) -> Values:
        """Hyperparameters of y and of the columns as they came."""
        return values.replaced([unit.outer(value) for unit, value in zip(self.units, values.every, strict=True)])

    def evidence_in_user_units(self, value: float) -> float:
        """Nats for y as it came: the density of N standardised targets is scale^N times theirs."""
        return value - self.y.size * float(np.log(self.target.scale))


def _sum(kernels: Sequence[Any]) -> Any:
    return reduce(add, kernels)


def check_numbers_only(kernel: Any) -> None:
    """Refuse the effects of levels, for baselines whose features live on intervals."""
    for term in () if kernel is None or isinstance(kernel, SquaredExponential | str) else normal_form(kernel):
        for factor in term.factors:
            if "domain" not in factor.factor.options or not factor.factor.constant_variance:
                what = "the effects of levels " if factor.reads == "levels" else ""
                raise ValueError(
                    f"the kernel has {what}{shown(factor)}, and this baseline knows Matérns of numbers "
                    "only; leave the column out, or use GPRegressor or ExactGP"
                )


def check_nothing_held(design: Design) -> None:
    """Refuse numbers that are held or bounded, where all are learnt."""
    for term in () if isinstance(design.kernel, SquaredExponential) else design.kernel:
        for leaf in term.factors:
            if any(bounds_of(value) is not None for value in (leaf.variance, *leaf.given.values())):
                raise ValueError(
                    f"{shown(leaf)} holds or bounds numbers, and baselines learn all or none; set optimizer=None to "
                    "keep all, or leave fixed(...) and between(...) to GPRegressor"
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
