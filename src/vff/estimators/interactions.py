"""Which products of columns are worth adding to a fitted sum: one more look at the rows, no fit per pair."""

from dataclasses import dataclass, replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from vff.estimators.base import AdditiveModel
from vff.estimators.candidates import Candidate, FittedRows, candidates_of
from vff.factors import Product
from vff.inference import Gain, Units
from vff.moments import MomentRequest


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


def suggest_interactions(
    model: AdditiveModel, X: Any, y: Any = None, sample_weight: Any = None, noise_std: Any = None
) -> Interactions:
    """Rank pairs of columns by what adding their product would gain in the bound of a fitted sum.

    Looks at the rows once more: what the fit leaves of them is summed against products of coarse features of every pair
    of columns that the model has terms of, and each product's hyperparameters are found on these sums. With another
    likelihood than the Gaussian, rows are what their likelihoods pull at the fitted function, and how strongly. The
    terms of the fit are kept as they are, so the gain is about what a joint fit gains, and the order of the pairs is
    what it is for.

    Parameters
    ----------
    model : GPRegressor or GPClassifier
        Fitted; a classifier of two classes.
    X, y, sample_weight, noise_std
        The rows of the fit, as ``fit`` takes them: a table in memory, files, chunks, Dask collections, databases.

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
    if not isinstance(model, AdditiveModel):
        raise TypeError(
            "suggest_interactions looks at a fitted GPRegressor or GPClassifier, got "
            f"{type(model).__name__}; fit one first"
        )
    if len(getattr(model, "functions_", ())) > 1:
        raise ValueError(
            f"suggest_interactions looks at one function, and this model has one for each of {len(model.functions_)} "
            "classes; ask for estimators_[k], with y that says whether a row is of class k"
        )
    check_is_fitted(model, "posterior_")
    rows = model._rows_again(X, y, sample_weight, noise_std)
    rows = rows if model.fit_.from_sums else replace(rows, source=rows.source.revisitable())
    again = FittedRows(model.fit_, model.statistics_, rows.source, rows.reader, model.engine)
    candidates = candidates_of(model.statistics_)
    ranked = sorted(zip(candidates, again.gains(candidates), strict=True), key=lambda own: -own[1].nats)
    return Interactions(_interaction(again, *own) for own in ranked)


def _interaction(again: FittedRows, pair: Candidate, gain: Gain) -> Interaction:
    """In the user's units."""
    units = Units.of(again.fit.target, (pair.inner,), MomentRequest((pair.request,)))
    ((variance, *values),) = units.outer((gain.values,))
    return Interaction(pair.columns, gain.nats, pair.kernel(variance, values))
