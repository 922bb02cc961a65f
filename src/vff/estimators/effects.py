"""What an estimator says of its terms."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from vff.estimators.arguments import flag
from vff.estimators.evaluation import Block
from vff.estimators.predict import ProcessMixin
from vff.estimators.statistics import Statistics
from vff.inference import EffectAt, PureEffect
from vff.words import shown


class Effects(NamedTuple):
    """Per-term posterior at rows, as ``effects`` of an estimator gives it.

    Attributes
    ----------
    names : tuple of str
        Of the T terms.
    mean, std : array (N, T)
        Posterior mean and standard deviation of every term at every row.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(50, 2))
    >>> vff.GPRegressor(frequencies=5).fit(X, X[:, 0] - X[:, 1]).effects(X[:3]).names
    ('0', '1')
    """

    names: tuple[str, ...]
    mean: np.ndarray
    std: np.ndarray


class EffectsMixin(ProcessMixin):
    """Effects and slopes of the terms of a sum."""

    statistics_: Statistics
    fit_: Any

    def predict_derivative(self, X: Any, column: str | int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the slope df/dx at every row.

        Parameters
        ----------
        X : what ``fit`` takes
        column : str, int or None
            Which of several columns of numbers the slope is along.

        Returns
        -------
        mean, variance : array (N,)
            Of units of y per unit of the column; with a link, of units of the latent function.

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> model = vff.GPRegressor(vff.Matern52(0), frequencies=10).fit(X, np.sin(X[:, 0]))
        >>> mean, variance = model.predict_derivative([[3.1416]])
        >>> mean.round(1)
        array([-1.])
        """
        (x,) = self._evaluate(X, lambda rows: (rows.x,), about="terms")
        columns = self.statistics_.binding.columns
        named = isinstance(column, str | Integral) and not isinstance(column, bool)
        along = [c for c, bound in enumerate(columns) if column is None or (named and column in bound.aliases)]
        if len(along) != 1:
            along = [c for c in along if columns[c].levels is None]
        if len({columns[c].index for c in along}) != 1:
            names = ", ".join(bound.label for bound in columns[:12])
            raise ValueError(f"the slope is along one column, got column={shown(column)}; name one of {names}")
        together = [place for place in self.statistics_.binding.places if not isinstance(place, int)]
        if any(columns[along[0]].index == columns[c].index for place in together for c in place):
            raise ValueError(
                f"column {shown(column)} is read together with another, as on a globe or where rows are averages, and "
                "a slope along it means little; ask for predictions nearby, and take their difference"
            )
        if columns[along[0]].levels is not None:
            raise ValueError(f"column {shown(column)} is categorical and has no slope; name a column of numbers")
        mean, variance = self.fit_.posterior.slope(x, *along)
        return self.target_.scale * mean, self.target_.scale**2 * variance

    def effects(self, X: Any, pure: bool = True) -> Effects:
        """Posterior of each term at the rows of X, centred on the rows of the fit.

        Products are pure interactions: what a product says of one of its columns alone, on average over the rows of the
        fit, is added to the term that is over this column alone, where the model has one, and stays with the product
        where it has none; likewise for two of three columns. So ``x + g + x * g`` shows the common curve, the groups'
        levels, and how the curves of the groups differ from the common one. ``pure=False`` shows terms as they are in
        the prior, in which the data cannot tell a product's average along a column from that column's own term.

        (After ``partial_fit`` with a likelihood that is not Gaussian, on the rows of the last call.) Both moments come
        from the joint posterior of all terms and the constant. The terms sum to ``predict_f(X)`` less ``intercept_``,
        the mean of the fitted function over the rows of the fit, whose own uncertainty is ``intercept_std_``.

        Parameters
        ----------
        X : what ``fit`` takes
        pure : bool

        Returns
        -------
        Effects
            ``names`` of the T terms, ``mean`` and ``std``, (N, T) each: in the units of y, or on the scale of the link.
            With more than two classes, each of ``estimators_`` has its own.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(size=(50, 2))
        >>> model = vff.GPRegressor(frequencies=5).fit(X, X[:, 0] - X[:, 1])
        >>> np.allclose(model.effects(X).mean.sum(axis=1) + model.intercept_, model.predict_f(X)[0])
        True
        """

        flag("pure", pure)

        def compute(rows: Block) -> tuple[np.ndarray, np.ndarray]:
            ready = self.fit_.posterior.rows(rows.x)
            parts = [self._effect(s, rows.x, ready, pure) for s in range(len(self.statistics_.terms))]
            means, variances, _ = zip(*parts, strict=True)
            return np.stack(means, axis=1), np.stack(variances, axis=1)

        mean, variance = self._evaluate(X, compute, about="terms")
        names = tuple(term.name for term in self.statistics_.terms)
        return Effects(names, self.target_.scale * mean, self.target_.scale * np.sqrt(variance))

    def _effect(self, s: int, x: np.ndarray, ready: Any, pure: bool) -> EffectAt:
        """One effect at rows of the modelled columns, as learning sees y."""
        return self.fit_.posterior.effect_at(s, self._pure_effects[s] if pure else None, x, ready)

    @property
    def _pure_effects(self) -> tuple[PureEffect, ...]:
        """The effect of every term, with margins of products where they belong."""
        return self.fit_.posterior.pure_effects(self.statistics_.binding.sources)
