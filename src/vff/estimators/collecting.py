"""Sums of rows that are collected first and learnt from later: with Gaussian noise they say all, and they add up."""

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from vff.data import open_rows
from vff.estimators.base import AdditiveModel
from vff.estimators.fitting import Fitted, RowPasses, Stopwatch, learnt
from vff.estimators.named import introduce_source
from vff.estimators.options import BY_ROW
from vff.estimators.statistics import Statistics, check_unchanged
from vff.inference import Sums
from vff.words import shown


class CollectingModel(AdditiveModel):
    """A model whose rows may be summed, added and taken away before it learns."""

    def collect(self, X: Any, y: Any = None, sample_weight: Any = None, noise_std: Any = None) -> Self:
        """Sum rows on top of those already seen, and learn nothing yet: ``learn`` does, when all are there.

        Sums of rows on different machines are saved, loaded and added up with ``merge``. They add up when ``domain``,
        ``edges`` and the kernel are the same, so give these.

        Parameters
        ----------
        X, y, sample_weight, noise_std
            As for ``fit``.

        Returns
        -------
        GPRegressor
            The model itself, with the sums of all rows seen.

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> model = vff.GPRegressor(domain=(0, 6), frequencies=10)
        >>> for part in (X[:25], X[25:]):
        ...     model = model.collect(part, np.sin(part[:, 0]))
        >>> model.learn().predict([[1.5]]).round(1)
        array([1.])
        """
        self.statistics_ = self._collected(X, y, sample_weight, getattr(self, "statistics_", None), noise_std)
        return self

    def learn(self) -> Self:
        """Learn from the sums of all rows seen so far, at a cost that does not depend on how many there are.

        Returns
        -------
        GPRegressor
            The model itself, fitted.

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> model = vff.GPRegressor(domain=(0, 6), frequencies=10).collect(X, np.sin(X[:, 0])).learn()
        >>> model.predict([[1.5]]).round(1)
        array([1.])
        """
        check_is_fitted(self, "statistics_")
        self._check_sums("learn")
        return self._learnt_from(self.statistics_)

    def merge(self, other: "CollectingModel") -> Self:
        """Add the rows that another model has seen to this one's; if this one was learnt, it is learnt again.

        Parameters
        ----------
        other : GPRegressor
            With the same kernel, ``domain`` and ``edges``; the result is that of all rows together.

        Returns
        -------
        GPRegressor
            This model.

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> empty = [vff.GPRegressor(domain=(0, 6), frequencies=10) for _ in range(2)]
        >>> one, two = (model.collect(half, np.sin(half[:, 0])) for model, half in zip(empty, (X[:25], X[25:])))
        >>> one.merge(two).learn().predict([[1.5], [4.5]]).round(1)
        array([ 1., -1.])
        """
        check_is_fitted(self, "statistics_")
        check_is_fitted(other, "statistics_")
        self._check_sums("merge")
        other._check_sums("merge")
        for attribute, what in (("target_name_", "the target"), ("units_", "units")):
            mine, theirs = getattr(self, attribute, None), getattr(other, attribute, None)
            if mine and theirs and mine != theirs:
                raise ValueError(
                    f"{what} of the two models differ, {shown(mine)} and {shown(theirs)}, so their sums are not of the "
                    "same thing; sum both from the same columns, in the same units"
                )
        return self._replaced(self.statistics_.merged(other.statistics_))

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None, noise_std: Any = None) -> Self:
        """Take rows back out, and learn again: what is left is the model of the other rows.

        Parameters
        ----------
        X, y, sample_weight, noise_std
            Rows that were given before, with the same weights and error bars; sums do not tell whether they were.

        Returns
        -------
        GPRegressor
            The model itself, of the rows that are left.

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> model = vff.GPRegressor(domain=(0, 6), frequencies=10).collect(X, np.sin(X[:, 0]))
        >>> model.forget(X[:10], np.sin(X[:10, 0])).learn().predict([[4.5]]).round(1)
        array([-1.])
        """
        check_is_fitted(self, "statistics_")
        self._check_sums("forget")
        gone = self._collected(X, y, sample_weight, self.statistics_.emptied(), noise_std)
        return self._replaced(self.statistics_.without(gone))

    def _replaced(self, rows: Statistics) -> Self:
        """Other sums, and if this model was learnt, what they teach."""
        if not hasattr(self, "fit_"):
            self.statistics_ = rows
            return self
        return self._learnt_from(rows)

    def _learnt_from(self, rows: Statistics) -> Self:
        """What these sums teach; nothing changes unless all of it works."""
        spec, watch = self._spec(errors=rows.options.noise_std == repr(BY_ROW)), Stopwatch()
        with watch("learn"):
            found = learnt(spec, rows, Sums(rows.moments, rows.tails, rows.few), getattr(self, "fit_", None))
        self._store(Fitted(rows, found, dict(watch)), spec.progress)
        return self

    def _collected(
        self, X: Any, y: Any, sample_weight: Any, seen: Statistics | None, noise_std: Any = None
    ) -> Statistics:
        """The sums of some rows, on top of those seen."""
        spec = self._spec(growing=True, errors=noise_std is not None)
        self._check_sums("collect")
        if spec.most_pairs and seen is None:
            raise ValueError(
                "collect sums rows for the terms of a kernel, and interactions are products that a fit chooses; fit "
                "the first rows with fit or partial_fit, or write the products in the kernel"
            )
        source = open_rows(X)
        spec = self._spec_for(spec, source, y, sample_weight, seen)
        if seen is not None:
            check_unchanged(seen.options, spec.options)
        source = self._opened(source, y, sample_weight, spec, seen, noise_std)
        rows = RowPasses(spec, source, Stopwatch()).summed(seen)
        introduce_source(self, source)
        source.finish()
        return rows

    def _check_sums(self, method: str) -> None:
        fit = getattr(self, "fit_", None)
        if not self._requested_likelihood().conjugate or (fit is not None and not fit.from_sums):
            raise ValueError(
                f"{method} works on sums over rows with Gaussian noise, and this model has another likelihood, whose "
                "sums change as it learns; fit all rows together, or call partial_fit with more of them"
            )
