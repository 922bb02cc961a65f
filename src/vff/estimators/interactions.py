"""Which products of columns are worth adding to a fitted sum: one more look at the rows, no fit per pair."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sklearn.utils.validation import check_is_fitted

from vff.data.checks import check_target, check_weights
from vff.data.memory import column_or_values
from vff.data.table import Table
from vff.estimators.binding import BoundTerm
from vff.estimators.named import recognised
from vff.estimators.regressor import GPRegressor
from vff.factors import Product, Term
from vff.inference import Term as InnerTerm
from vff.inference import gain_of, variance_unit
from vff.moments import (
    ColumnRequest,
    ColumnSummary,
    MomentRequest,
    RowBlock,
    TermRequest,
    distinct_values_for,
    place_of,
    plan_pass,
    run_pass,
    summarise_columns,
)


@dataclass(frozen=True)
class Interaction:
    """A product of two columns that a sum might do better with."""

    columns: tuple[Any, Any]
    gain: float
    """Nats by which the bound rises, about, when the product is added to the model."""
    kernel: Product
    """The product with hyperparameters to start from: ``model.kernel_ + interaction.kernel``."""

    @property
    def name(self) -> str:
        return " * ".join(map(str, self.columns))


class Interactions(tuple[Interaction, ...]):
    """Interactions, best first; printed as a table."""

    __slots__ = ()

    def __getitem__(self, which: Any) -> Any:
        found = super().__getitem__(which)
        return Interactions(found) if isinstance(which, slice) else found

    def __repr__(self) -> str:
        if not self:
            return "no pairs of columns to look at"
        names = [interaction.name for interaction in self]
        width = max(map(len, [*names, "interaction"]))
        lines = [f"{'interaction':<{width}}  {'gain (nats)':>12}"]
        lines += [f"{name:<{width}}  {one.gain:>12,.1f}" for name, one in zip(names, self, strict=True)]
        return "\n".join(lines)


def suggest_interactions(model: GPRegressor, X: Any, y: Any, sample_weight: Any = None) -> Interactions:
    """Rank pairs of columns by what adding their product would gain in the bound of a fitted sum.

    Looks at the rows once more: the residuals of the fit are summed against products of coarse features of every pair
    of columns that the model has terms of, and each product's hyperparameters are found on these sums. The terms of the
    fit are kept as they are, so the gain is about what a joint fit gains, and the order of the pairs is what it is for.

    Parameters
    ----------
    model : GPRegressor
        Fitted, with Gaussian noise.
    X, y, sample_weight
        The rows of the fit, a table in memory.

    Returns
    -------
    Interactions
        A tuple, best first, printed as a table; each has ``columns``, ``gain`` in nats, and the ``kernel`` to add.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(200, 3))
    >>> y = X[:, 0] * X[:, 1]
    >>> model = vff.GPRegressor(frequencies=6).fit(X, y)
    >>> best = vff.suggest_interactions(model, X, y)[:1]
    >>> best[0].columns
    (0, 1)
    >>> kernel = sum((one.kernel for one in best), start=model.kernel_)
    """
    if not isinstance(model, GPRegressor):
        raise TypeError(
            f"suggest_interactions looks at a fitted GPRegressor, got {type(model).__name__}; fit one first"
        )
    check_is_fitted(model, "posterior_")
    if not model.fit_.from_sums:
        raise ValueError(
            "suggest_interactions looks at the residuals of a fit with Gaussian noise, and this one has another "
            "likelihood; fit the sum with likelihood='gaussian' to rank pairs"
        )
    whole = Table.of(X)
    w = check_weights(column_or_values(whole, sample_weight, "sample_weight"), whole.n_rows)
    target = check_target(column_or_values(whole, y, "y"), whole.n_rows)
    table = recognised(model, whole, model.column_indices_)
    residual = (target - model.predict(X)) / model.target_.scale
    columns = [column.read(table) for column in model.statistics_.binding.columns]
    source = RowBlock(table.n_rows, lambda c, rows: columns[c][rows], residual, w)
    summaries = summarise_columns(source, range(len(columns)))
    noise = model.noise_variance_ / model.target_.scale**2
    found = [_look(model, left, right, source, summaries, noise) for left, right in _candidates(model)]
    return Interactions(sorted(found, key=lambda one: -one.gain))


def _candidates(model: GPRegressor) -> Iterator[tuple[BoundTerm, BoundTerm]]:
    """Pairs of terms of one factor over different columns whose product is not in the model."""
    terms, columns = model.statistics_.terms, model.statistics_.binding.columns
    taken = {frozenset(term.columns) for term in terms if len(term.columns) > 1}
    own: dict[tuple[int, ...], BoundTerm] = {}
    for term in terms:
        if len(term.columns) == 1:
            own.setdefault(tuple(columns[c].index for c in term.numbers), term)
    for (read, left), (also, right) in combinations(own.items(), 2):
        if not set(read) & set(also) and frozenset((*left.columns, *right.columns)) not in taken:
            yield left, right


def _look(
    model: GPRegressor,
    left: BoundTerm,
    right: BoundTerm,
    source: RowBlock,
    summaries: Sequence[ColumnSummary],
    noise: float,
) -> Interaction:
    """One pair: sums of residuals against coarse features, and the best product on them."""
    every = (*left.numbers, *right.numbers)
    some = RowBlock(source.n, lambda c, rows: source.column(every[c], rows), source.y, source.w)
    found = [summaries[c] for c in every]
    inner = InnerTerm((*left.inner.factors, *right.inner.factors))
    summed = {axis.columns: own for axis, own in model.statistics_.moments.request.axes.items()}
    factors = tuple(
        ColumnRequest(own.domain, factor.coarse(own.basis, max(summaries[c].n_distinct for c in term.numbers)))
        for term, own, factor in zip(
            (left, right), (summed[left.numbers], summed[right.numbers]), inner.factors, strict=True
        )
    )
    middle = len(left.numbers)
    places = place_of(range(middle)), place_of(range(middle, len(every)))
    request = MomentRequest((TermRequest(places, factors),))
    plan = plan_pass(some.n, request, distinct_values_for("auto", request, found, some))
    moments, _ = run_pass(plan, some)
    gain = gain_of(inner, moments, noise)
    values = [
        inner.factors[d].measure(factors[d].domain, own).outer(gain.values[name]) for name, d, own in inner.parameters
    ]
    variance = variance_unit(model.target_.scale**2, inner.factors, factors).outer(gain.values["variance"])
    written = (*left.term.factors, *right.term.factors)
    kernel = Term(written).with_values(variance, values)
    assert isinstance(kernel, Product)
    one, other = (leaf.column if len(leaf.columns) == 1 else leaf.name for leaf in written)
    return Interaction((one, other), gain.nats, kernel)
