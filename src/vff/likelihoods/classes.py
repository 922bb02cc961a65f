"""Classes and successes, by a link: Bernoulli, Binomial."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import special

from vff.likelihoods.base import AbstractLikelihood, Location, Moments, choice, likelihood_column
from vff.likelihoods.checks import is_number, require, require_extra, whole
from vff.words import shown

LINKS = ("logit", "probit")


def link_function(link: str, x: np.ndarray) -> np.ndarray:
    """The logistic function, or the normal distribution function."""
    return special.expit(x) if link == "logit" else special.ndtr(x)


def inverse_link(link: str, p: np.ndarray | float) -> np.ndarray:
    return special.logit(p) if link == "logit" else special.ndtri(p)


@dataclass(frozen=True)
class Bernoulli(AbstractLikelihood):
    """y = 1 with probability squash + (1 - 2 squash) F(f), else 0.

    Parameters
    ----------
    link : "logit" or "probit"
        F is the logistic or the normal distribution function.
    squash : float
        Above zero it forgives mislabelled rows; Hensman et al. (2018) use the probit with 0.001.

    Examples
    --------
    >>> vff.likelihoods.Bernoulli("probit", squash=0.1).conditional_mean(np.array([0.0, 9.0]), np.ones(2)).round(2)
    array([0.5, 0.9])
    """

    discrete = True
    affine = True
    support = (0.0, 1.0)

    link: str = choice("logit", LINKS)
    squash: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.squash) and 0 <= self.squash < 0.5):
            raise ValueError(f"squash must be at least 0 and below 0.5; got {shown(self.squash)}.")
        object.__setattr__(self, "scale_name", self.link)
        object.__setattr__(self, "log_concave", not self.squash)

    @classmethod
    def named(cls, name: str, **options: Any) -> Self:
        return cls("probit" if name == "probit" else "logit", **options)

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        require((y == 0) | (y == 1), y, self.title, "zeros and ones", "code the two classes as 0 and 1")

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        """Half a row of either class more, so that one class alone has a finite guess."""
        return Location(float(inverse_link(self.link, (w @ y + 0.5) / (w.sum() + 1))), 5.0)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        from vff.likelihoods.numerics import log, log_link, ndtr, sigmoid

        signed = (2 * y - 1) * f
        if not self.squash:
            return log_link(self.link, signed)
        # the sum is at least the squash, so nothing is lost by leaving the logarithms
        return log(self.squash + (1 - 2 * self.squash) * (sigmoid if self.link == "logit" else ndtr)(signed))

    def width(self, psi: np.ndarray) -> float:
        """The squashed probit is zero where Φ(f) = -squash, about π/|f| off the real line at Φ(f) = squash."""
        squashed = self.link == "probit" and self.squash > 0
        return 1 / max(1.0, -float(special.ndtri(self.squash))) if squashed else 1.0

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return self.squash + (1 - 2 * self.squash) * link_function(self.link, f)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return self.conditional_mean(f, extra) * self.conditional_mean(-np.asarray(f), extra)

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        none = self.conditional_mean(-np.asarray(f), extra)
        return np.where(np.asarray(y) < 0, 0.0, np.where(np.asarray(y) < 1, none, 1.0))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return (rng.uniform(size=np.shape(f)) < self.conditional_mean(f, extra)).astype(float)

    def closed_moments(self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray) -> Moments | None:
        """Probit: E Φ(f) = Φ(m / sqrt(1 + v)), and var y = p (1 - p) for any y of 0 and 1."""
        if self.link != "probit":
            return None
        p = self.conditional_mean(mean / np.sqrt(1 + variance), extra)
        return p, p * self.conditional_mean(-mean / np.sqrt(1 + variance), extra)


@dataclass(frozen=True)
class Binomial(AbstractLikelihood):
    """y of ``trials`` succeed, each with probability F(f): log p = log C(n, y) + y log F(f) + (n - y) log F(-f).

    Parameters
    ----------
    trials : str or int
        The column of X that holds the number of trials.
    link : "logit" or "probit"
        F is the logistic or the normal distribution function.

    Examples
    --------
    >>> vff.likelihoods.Binomial(trials="n").conditional_mean(np.zeros(1), np.array([10.0]))
    array([5.])
    """

    discrete = True
    affine = True
    support = (0.0, np.inf)

    trials: Hashable = likelihood_column(required=True)
    link: str = choice("logit", LINKS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trials is None:
            raise ValueError("Binomial needs the column of X that holds the number of trials, Binomial(trials='name').")

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        trials, expected = whole(extra) & (extra > 0), "whole numbers from zero to the trials of the row"
        require_extra(trials, extra, self.title, self.column, "a whole number of trials above zero")
        require(whole(y) & (y >= 0) & (y <= extra), y, self.title, expected, "y counts successes, not their share")

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        return Location(float(inverse_link(self.link, (w @ y + 0.5) / (w @ extra + 1))), 5.0)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        from vff.likelihoods.numerics import log_factorial, log_ndtr, softplus

        choices = log_factorial(extra) - log_factorial(y) - log_factorial(extra - y)
        if self.link == "logit":
            return choices + y * f - extra * softplus(f)
        return choices + y * log_ndtr(f) + (extra - y) * log_ndtr(-f)

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return extra * link_function(self.link, f)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return extra * link_function(self.link, f) * link_function(self.link, -np.asarray(f))

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """I_{1-p}(n - y, y + 1)."""
        count = np.clip(np.floor(y), -1, extra)
        within = np.clip(count, 0, np.maximum(extra - 1, 0))
        inside = special.betainc(extra - within, within + 1, link_function(self.link, -np.asarray(f)))
        return np.where(count < 0, 0.0, np.where(count >= extra, 1.0, inside))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.binomial(np.asarray(extra).astype(np.int64), link_function(self.link, f)).astype(float)
