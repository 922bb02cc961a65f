"""Coefficients that can be read by themselves: slopes, intercepts and effects of levels, with intervals."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from vff.estimators.arguments import flag, interval_level
from vff.estimators.binding import BoundTerm
from vff.estimators.statistics import Statistics
from vff.inference import Fit, InterceptPosterior
from vff.words import shown

CONSTANT = "constant"
"""What the constant beside the terms is called."""


class Coefficient(NamedTuple):
    """One row of the table."""

    mean: float
    std: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Coefficients:
    """A table of coefficients in the user's units, as ``coefficients`` of an estimator gives it.

    Attributes
    ----------
    names : tuple of str
        ``constant``; of ``Linear("x")`` the column ``x``; of levels ``g[a]``; of slopes by level ``x * g[a]``; of an
        intercept of ``Linear("x", intercept=True)``, which is the value at x = 0, ``x[intercept] * g[a]``.
    mean, std, lower, upper : array (R,)
        Of every coefficient its posterior mean and standard deviation, and the ends of its interval.
    level : float
        Posterior probability of every interval.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> found = vff.GPRegressor(vff.Linear(0) + vff.Linear(1)).fit(X, 1.0 + X @ [2.0, -3.0]).coefficients()
    >>> found.names, found["1"].mean.round(4)
    (('constant', '0', '1'), np.float64(-3.0))
    """

    names: tuple[str, ...]
    mean: np.ndarray
    std: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float

    def __getitem__(self, name: str) -> Coefficient:
        if name not in self.names:
            raise KeyError(f"there is no coefficient {shown(name)}; there are {shown(self.names)}")
        return Coefficient(*(own[self.names.index(name)] for own in self._columns.values()))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def _columns(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in ("mean", "std", "lower", "upper")}

    @property
    def data(self) -> dict[str, Any]:
        """The table by column, from which any library makes a frame, as ``pandas.DataFrame(found.data)``."""
        return {"coefficient": list(self.names), **self._columns}

    def __str__(self) -> str:
        width = max(map(len, (*self.names, "coefficient")))
        lines = [f"{'coefficient':{width}}" + "".join(f"{name:>12}" for name in self._columns)]
        rows = zip(self.names, *self._columns.values(), strict=True)
        lines += [f"{name:{width}}" + "".join(f"{value:12.4g}" for value in values) for name, *values in rows]
        return "\n".join(lines)


class ReadableMixin:
    """Estimators of sums of terms, some of which can be read."""

    fit_: Fit
    learnt_statistics_: Statistics

    def coefficients(self, level: float = 0.95, levels: bool = True) -> Coefficients:
        """A table of the coefficients that can be read by themselves: slopes, intercepts, effects of levels.

        They are those of ``Linear`` and ``Categorical`` terms and their products, and the constant beside them: f where
        every ``Linear`` column is zero, other terms averaged over the rows of the fit. Smooth terms have none: see
        ``effects``.

        Parameters
        ----------
        level : float
            Posterior probability of the intervals.
        levels : bool
            Whether those of levels, which may be many, are among them.

        Returns
        -------
        Coefficients

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(40, 1))
        >>> vff.GPRegressor(vff.Linear(0)).fit(X, 1.0 - 2.0 * X[:, 0]).coefficients()["0"].mean.round(4)
        np.float64(-2.0)
        """
        check_is_fitted(self, "fit_")
        return coefficients_of(
            self.fit_, self.learnt_statistics_.terms, interval_level(level), levels=flag("levels", levels)
        )


class _Part(NamedTuple):
    """Rows of the table in units of learning."""

    names: list[str]
    mean: np.ndarray
    variance: np.ndarray
    draws: np.ndarray | None
    """(S, R), where the model was sampled."""
    unit: np.ndarray
    origin: float = 0.0


def coefficients_of(fit: Fit, terms: tuple[BoundTerm, ...], level: float, *, levels: bool) -> Coefficients:
    """Of all terms whose coefficients mean something by themselves, and the constant."""
    names, columns, tails = [], [], np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])
    for part in _parts(fit, terms, levels):
        names += part.names
        std = np.sqrt(np.maximum(part.variance, 0.0))
        ends = part.mean[:, None] + std[:, None] * ndtri(tails)
        if part.draws is not None:
            ends = np.quantile(part.draws, tails, axis=0).T
        own = np.stack([part.mean, ends[:, 0], ends[:, 1]]) * part.unit + part.origin
        columns.append(np.stack([own[0], std * part.unit, own[1], own[2]]))
    if not names:
        columns = [np.empty((4, 0))]
    mean, std, lower, upper = np.concatenate(columns, axis=1)
    return Coefficients(_different(names), mean, std, lower, upper, level)


def _parts(fit: Fit, terms: tuple[BoundTerm, ...], levels: bool) -> Iterator[_Part]:
    posterior, scale = fit.posterior, fit.target.scale
    constant, covariance = posterior.intercept, posterior.covariance
    kept = covariance.kept()
    if constant is not None:
        yield _constant(fit, constant)
    for s, (bound, term, place) in enumerate(zip(terms, posterior.terms, posterior.request.slices, strict=True)):
        readable = [prior.readable() for prior in term.factors]
        found = [own for own in readable if own is not None]
        if len(found) < len(readable) or not (levels or all(not domain.discrete for domain in term.domains)):
            continue
        columns = [str(leaf.column) for leaf in bound.term.factors]
        names = [
            " * ".join(column + after for column, (after, _) in zip(columns, some, strict=True))
            for some in product(*found)
        ]
        unit = np.array([scale * prod(size for _, size in some) for some in product(*found)])
        variance = covariance.coefficient_variances(s)
        if constant is not None:
            variance = variance + constant.variance * constant.answer[place] ** 2
        draws = None if kept is None else kept[0][:, place]
        yield _Part(names, posterior.mean[place], variance, draws, unit)


def _constant(fit: Fit, constant: InterceptPosterior) -> _Part:
    """c0 + z'c: z are the features of lines at zero, and averages over the rows of those that know no zero.

    Effects of levels are beside it, and a product with a line is nothing where the line is.
    """
    posterior = fit.posterior
    z, kept = np.zeros(posterior.mean.size), posterior.covariance.kept()
    for term, place in zip(posterior.terms, posterior.request.slices, strict=True):
        lines = [prior.factor.lone for prior in term.factors]
        if len(lines) == 1 and lines[0]:
            z[place] = term.factors[0].features(np.zeros(1))[0]
        elif not any(lines) and any(prior.readable() is None for prior in term.factors):
            z[place] = posterior.centre[place]
    mean = constant.mean + float(z @ posterior.mean)
    # the coefficients follow the constant; what is left of the average then does
    follows = 1.0 - float(z @ constant.answer)
    variance = constant.variance * follows**2 + float(z @ posterior.covariance.product(z))
    draws = None if kept is None else (kept[1] + constant.mean + kept[0] @ z)[:, None]
    unit = np.array([fit.target.scale])
    return _Part([CONSTANT], np.array([mean]), np.array([variance]), draws, unit, fit.target.mean)


def _different(names: list[str]) -> tuple[str, ...]:
    """Names of coefficients of terms over the same columns, numbered where they are the same."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(found)
