"""The mean of y by a link, the normal or the logistic distribution function: Bernoulli, Binomial, Ordinal; Beta."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import special

from vff.likelihoods.base import AbstractLikelihood, Location, Moments, Parameter, choice, likelihood_column, parameter
from vff.likelihoods.float64 import numerics
from vff.likelihoods.logistic import Logistic
from vff.likelihoods.rows import is_number, require, weighted_mean, weighted_variance
from vff.words import shown

LINKS = ("logit", "probit")


def link_function(link: str, x: np.ndarray) -> np.ndarray:
    """The logistic function, or the normal distribution function."""
    return special.expit(x) if link == "logit" else special.ndtr(x)


def inverse_link(link: str, p: np.ndarray | float) -> np.ndarray:
    return special.logit(p) if link == "logit" else special.ndtri(p)


class AbstractSuccesses(AbstractLikelihood):
    """y of ``extra`` trials succeed; a label is one trial."""

    discrete = True
    affine = True

    link: str

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        """Half a row of either class more, so that one class alone has a finite guess."""
        return Location(float(inverse_link(self.link, (w @ y + 0.5) / (w @ extra + 1))), 5.0)

    def _success(self, f: np.ndarray) -> np.ndarray:
        """The probability that one trial succeeds; that it does not is this at -f."""
        return link_function(self.link, f)

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return extra * self._success(f)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return extra * self._success(f) * self._success(-np.asarray(f))


@dataclass(frozen=True)
class Bernoulli(AbstractSuccesses):
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

    support = (0.0, 1.0)
    expects = "zeros and ones", "code the two classes as 0 and 1"
    misfit = "some labels may be wrong, which vff.likelihoods.Bernoulli(squash=0.01) forgives"

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

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        signed = (2 * y - 1) * f
        if not self.squash:
            return numerics.log_link(self.link, signed)
        # the sum is at least the squash, so nothing is lost by leaving the logarithms
        success = (numerics.sigmoid if self.link == "logit" else numerics.ndtr)(signed)
        return numerics.log(self.squash + (1 - 2 * self.squash) * success)

    def logistic(self, psi: np.ndarray, y: np.ndarray, extra: np.ndarray) -> Logistic | None:
        """-softplus(-f) of a one, -softplus(f) of a zero."""
        return Logistic(0.0, 1.0, 0.0, sign=1.0 - 2.0 * y) if self.link == "logit" and not self.squash else None

    def width(self, psi: np.ndarray) -> float:
        """The squashed probit is zero where Φ(f) = -squash, about π/|f| off the real line at Φ(f) = squash."""
        squashed = self.link == "probit" and self.squash > 0
        return 1 / max(1.0, -float(special.ndtri(self.squash))) if squashed else 1.0

    def _success(self, f: np.ndarray) -> np.ndarray:
        return self.squash + (1 - 2 * self.squash) * link_function(self.link, f)

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        none = self._success(-np.asarray(f))
        return np.where(np.asarray(y) < 0, 0.0, np.where(np.asarray(y) < 1, none, 1.0))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return (rng.uniform(size=np.shape(f)) < self._success(f)).astype(float)

    def closed_moments(self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray) -> Moments | None:
        """Probit: E Φ(f) = Φ(m / sqrt(1 + v)), and var y = p (1 - p) for any y of 0 and 1."""
        f = mean / np.sqrt(1 + variance)
        return (self._success(f), self._success(f) * self._success(-f)) if self.link == "probit" else None


@dataclass(frozen=True)
class Binomial(AbstractSuccesses):
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

    support = (0.0, np.inf)
    misfit = "successes vary more than a Binomial lets them; try likelihood='beta' for their shares"

    trials: Hashable = likelihood_column(required=True)
    link: str = choice("logit", LINKS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trials is None:
            raise ValueError("Binomial needs the column of X that holds the number of trials, Binomial(trials='name').")

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        good = np.isfinite(extra) & (extra == np.floor(extra)) & (extra > 0)
        self._check_extra(good, extra, "a whole number of trials above zero")
        sentence = f"{self.title} expects whole numbers from zero to the trials of the row"
        inside = (y == np.floor(y)) & (y >= 0) & (y <= extra)
        require(inside, y, sentence, "y", "y counts successes, not their share")

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        choices = numerics.log_factorial(extra) - numerics.log_factorial(y) - numerics.log_factorial(extra - y)
        if self.link == "logit":
            return choices + y * f - extra * numerics.softplus(f)
        return choices + y * numerics.log_ndtr(f) + (extra - y) * numerics.log_ndtr(-f)

    def logistic(self, psi: np.ndarray, y: np.ndarray, extra: np.ndarray) -> Logistic | None:
        """y f - n softplus(f) and log C(n, y)."""
        if self.link != "logit":
            return None
        choices = special.gammaln(extra + 1.0) - special.gammaln(y + 1.0) - special.gammaln(extra - y + 1.0)
        return Logistic(y, extra, choices)

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """I_{1-p}(n - y, y + 1)."""
        count = np.clip(np.floor(y), -1, extra)
        within = np.clip(count, 0, np.maximum(extra - 1, 0))
        inside = special.betainc(extra - within, within + 1, self._success(-np.asarray(f)))
        return np.where(count < 0, 0.0, np.where(count >= extra, 1.0, inside))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.binomial(np.asarray(extra).astype(np.int64), self._success(f)).astype(float)


@dataclass(frozen=True)
class Ordinal(AbstractLikelihood):
    """Ordered classes y = 0 … C-1: P(y ≤ k) = F(c_k - f) with cut points c_0 < … < c_{C-2}.

    The entries of psi are the first cut point and the logarithms of the gaps between neighbours. The cut points say
    where zero is, so no constant mean is learnt beside them.

    Parameters
    ----------
    cuts : sequence of floats or None
        The cut points, held; learnt if None.
    levels : int or None
        C; None takes it from the cut points or from the data.
    link : "logit" or "probit"
        F is the logistic or the normal distribution function.

    Examples
    --------
    >>> vff.likelihoods.Ordinal(cuts=(-1.0, 1.0)).cdf(np.array([0.0, 1.0]), np.zeros(2), np.ones(2)).round(3)
    array([0.269, 0.731])
    """

    locates = True
    discrete = True

    cuts: tuple[float, ...] | None = None
    levels: int | None = None
    link: str = choice("logit", LINKS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cuts is not None:
            given: Any = self.cuts
            cuts = tuple(given) if isinstance(given, Iterable) else ()
            if not cuts or not all(map(is_number, cuts)) or np.any(np.diff(cuts) <= 0):
                raise ValueError(f"cuts must be finite numbers in increasing order; got {shown(self.cuts)}.")
            cuts = tuple(map(float, cuts))
            if self.levels not in (None, len(cuts) + 1):
                raise ValueError(
                    f"{len(cuts)} cut points make {len(cuts) + 1} levels, but levels={shown(self.levels)}."
                )
            object.__setattr__(self, "cuts", cuts)
            object.__setattr__(self, "levels", len(cuts) + 1)
        elif self.levels is not None and not (is_number(self.levels) and int(self.levels) == self.levels >= 2):
            raise ValueError(f"levels must be a whole number from two, or None; got {shown(self.levels)}.")
        top = np.inf if self.levels is None else self.levels - 1.0
        object.__setattr__(self, "support", (0.0, top))
        expected = "whole numbers from zero" + ("" if self.levels is None else f" to {self.levels - 1}")
        object.__setattr__(self, "expects", (expected, "code the levels as 0, 1, 2, … in their order"))

    @property
    def values(self) -> dict[str, Any]:
        return {"cuts": self.cuts}

    def _count(self) -> int:
        if self.levels is None:
            raise ValueError("Ordinal does not know its number of levels yet; give levels=, or use sized(y).")
        return self.levels

    @property
    def entries(self) -> tuple[Parameter, ...]:
        names = ("cut_0", *(f"gap_{k}" for k in range(1, self._count() - 1)))
        numbers = (None,) * len(names) if self.cuts is None else (self.cuts[0], *np.diff(self.cuts).tolist())
        pairs = enumerate(zip(names, numbers, strict=True))
        return tuple(Parameter(name, value, self.cuts is None, real=k == 0) for k, (name, value) in pairs)

    def _with_entries(self, values: tuple[float, ...]) -> Self:
        return replace(self, cuts=tuple(np.cumsum(values).tolist()))

    def _sized_for(self, length: int) -> Self:
        return self if self.levels is not None else replace(self, levels=length + 1)

    def sized(self, y: np.ndarray) -> Self:
        return self._sized_for(max(int(np.max(y)), 1))

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        """Cut points of a constant f = 0, from the shares of the levels with half a row more each."""
        shares = np.bincount(y.astype(int), weights=w, minlength=self._count()) + 0.5
        cuts = inverse_link(self.link, np.cumsum(shares)[:-1] / shares.sum())
        return float(cuts[0]), *np.diff(cuts).tolist()

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        return Location(0.0, 5.0)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        jnp = numerics.jnp
        ends = jnp.array([numerics.END])
        edges = jnp.concatenate([-ends, psi[:1], psi[0] + jnp.cumsum(jnp.exp(psi[1:])), ends])
        level = y.astype(int)
        return numerics.log_difference(self.link, edges[level] - f, edges[level + 1] - f)

    def _cuts(self) -> np.ndarray:
        self.psi  # noqa: B018  asks for all values
        return np.array(self.cuts)

    def _above(self, f: np.ndarray) -> np.ndarray:
        """(..., C-1) P(y > k | f)."""
        return link_function(self.link, np.asarray(f, dtype=float)[..., None] - self._cuts())

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """Σ_k P(y > k)."""
        return self._above(f).sum(-1)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """E y² = Σ_k (2k + 1) P(y > k), less the mean squared."""
        above = self._above(f)
        return np.maximum(above @ (2.0 * np.arange(above.shape[-1]) + 1) - above.sum(-1) ** 2, 0.0)

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        edges = np.concatenate([[-np.inf], self._cuts(), [np.inf]])
        level = np.clip(np.floor(y), -1, len(edges) - 2).astype(int)
        return link_function(self.link, edges[level + 1] - f)

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.sum(rng.uniform(size=np.shape(f))[..., None] < self._above(f), axis=-1).astype(float)


@dataclass(frozen=True)
class Beta(AbstractLikelihood):
    """y strictly between 0 and 1 with mean μ = 1/(1 + exp(-f)) and variance μ(1-μ)/(1 + precision).

    y ~ Beta(a, b), a = μ precision, b = (1-μ) precision.

    Parameters
    ----------
    precision : float or None
        Held, or learnt if None.

    Examples
    --------
    >>> vff.likelihoods.Beta(precision=4.0).conditional_variance(np.zeros(1), np.ones(1))
    array([0.05])
    """

    scale_name = "logit"
    support = (0.0, 1.0)
    expects = (
        "numbers strictly between 0 and 1",
        "shrink y into the interval, for example (y (N-1) + 1/2)/N, or leave such rows out",
    )
    log_concave = False
    misfit = "targets vary more than a Beta lets them; try likelihood='student-t' for their logits"

    precision: float | None = parameter()

    @property
    def outliers(self) -> bool:
        return False

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        mean, variance = weighted_mean(y, w), max(weighted_variance(y, w), 1e-12)
        return (float(np.clip(2 * (mean * (1 - mean) / variance - 1), 0.5, 1e4)),)

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        return Location(float(special.logit(weighted_mean(y, w))), 5.0)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        log, log_gamma, exp = numerics.log, numerics.log_gamma, numerics.jnp.exp
        log_a, log_b = psi[0] - numerics.softplus(-f), psi[0] - numerics.softplus(f)
        normaliser = log_gamma(psi[0]) - log_gamma(log_a) - log_gamma(log_b)
        return normaliser + (exp(log_a) - 1) * log(y) + (exp(log_b) - 1) * log(1 - y)

    def _shapes(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, precision, tiny = np.asarray(f, dtype=float), np.exp(self.psi[0]), 1e-300
        return np.maximum(precision * special.expit(f), tiny), np.maximum(precision * special.expit(-f), tiny)

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return special.expit(f)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        f = np.asarray(f, dtype=float)
        return special.expit(f) * special.expit(-f) / (1 + np.exp(self.psi[0]))

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return special.betainc(*self._shapes(f), np.clip(y, 0.0, 1.0))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.beta(*self._shapes(f))
