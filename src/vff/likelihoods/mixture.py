"""A new y at every row where f is one of several draws."""

from collections.abc import Callable, Sequence

import numpy as np

from vff.likelihoods.base import AbstractLikelihood
from vff.likelihoods.predictive import Predictive, checked_levels, inverted, origin

_QUANTILE_DRAWS = 250


class Mixture(Predictive):
    """Averages over S draws of f at N rows, (N, S), each with its own parameters of the likelihood."""

    def __init__(self, likelihoods: Sequence[AbstractLikelihood], f: np.ndarray, extra: np.ndarray):
        """``likelihoods`` by draw, all parameters set; ``extra`` by row."""
        self._likelihoods, self._f, self._extra = likelihoods, f, extra
        # draws with the same parameters are answered together: all of them where the likelihood has none
        groups: dict[AbstractLikelihood, list[int]] = {}
        for number, likelihood in enumerate(likelihoods):
            groups.setdefault(likelihood, []).append(number)
        self._groups = [(likelihood, np.array(some)) for likelihood, some in groups.items()]

    def _by_draw(self, ask: Callable[[AbstractLikelihood, np.ndarray], np.ndarray]) -> np.ndarray:
        """A function of a likelihood and some draws (N, G), for all draws, (N, S)."""
        values = np.empty(self._f.shape)
        for likelihood, some in self._groups:
            values[:, some] = ask(likelihood, self._f[:, some])
        return values

    def _means(self) -> np.ndarray:
        return self._by_draw(lambda likelihood, f: likelihood.conditional_mean(f, self._extra[:, None]))

    def mean(self) -> np.ndarray:
        """E y, (N,)."""
        with np.errstate(over="ignore"):  # beyond float64 a mean is infinite
            return self._means().mean(axis=1)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of y: E[var[y|f]] + var[E[y|f]]."""
        with np.errstate(over="ignore", invalid="ignore"):
            means = self._means()
            within = self._by_draw(lambda likelihood, f: likelihood.conditional_variance(f, self._extra[:, None]))
            return means.mean(axis=1), within.mean(axis=1) + means.var(axis=1)

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """One y for every draw, (N, S)."""
        return self._by_draw(lambda likelihood, f: np.asarray(likelihood.sample(f, self._extra[:, None], rng), float))

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """Quantiles of y, (N, L), from the average of the distribution functions of some of the draws."""
        levels = checked_levels(levels)
        some = np.arange(0, self._f.shape[1], -(-self._f.shape[1] // _QUANTILE_DRAWS))
        start = origin(self._likelihoods[0], self._f.mean(axis=1))[:, None]
        few = Mixture([self._likelihoods[number] for number in some], self._f[:, some] - start, self._extra)
        return start + few._inverted(levels)

    def _inverted(self, levels: np.ndarray) -> np.ndarray:
        groups, kind = self._groups, type(self._likelihoods[0])

        def cdf(y: np.ndarray) -> np.ndarray:
            return kind.mean_cdf(groups, y, self._f, self._extra)

        return inverted(self._groups[0][0], *self.moments(), levels, cdf)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """log p(y), (N,): the logarithm of the average density over draws."""

        def ask(likelihood: AbstractLikelihood, f: np.ndarray) -> np.ndarray:
            N, G = f.shape
            rows = np.repeat(y, G), np.repeat(self._extra, G), f.reshape(-1), np.zeros(N * G)
            at = likelihood.expected(likelihood.psi, *rows)
            return at.value.reshape(N, G)

        values = self._by_draw(ask)
        top = values.max(axis=1)
        return top + np.log(np.mean(np.exp(values - top[:, None]), axis=1))
