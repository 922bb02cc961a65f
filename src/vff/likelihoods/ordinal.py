"""Ordered classes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from vff.likelihoods.base import AbstractLikelihood, Location, Parameter, choice
from vff.likelihoods.checks import is_number, require, whole
from vff.likelihoods.classes import LINKS, inverse_link, link_function
from vff.words import shown


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

    @property
    def form(self) -> Self:
        return replace(self, cuts=None)

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
        return self if self.levels is not None else replace(self, levels=max(int(np.max(y)) + 1, 2))

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        expected = "whole numbers from zero" + ("" if self.levels is None else f" to {self.levels - 1}")
        good = whole(y) & (y >= 0) & (y <= self.support[1])
        require(good, y, self.title, expected, "code the levels as 0, 1, 2, … in their order")

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        """Cut points of a constant f = 0, from the shares of the levels with half a row more each."""
        shares = np.bincount(y.astype(int), weights=w, minlength=self._count()) + 0.5
        cuts = inverse_link(self.link, np.cumsum(shares)[:-1] / shares.sum())
        return float(cuts[0]), *np.diff(cuts).tolist()

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        return Location(0.0, 5.0)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        from vff.likelihoods.numerics import END, jnp, log_difference

        cuts = jnp.concatenate([psi[:1], psi[0] + jnp.cumsum(jnp.exp(psi[1:]))])
        ends = jnp.array([END])
        edges = jnp.concatenate([-ends, cuts, ends])
        level = y.astype(int)
        return log_difference(self.link, edges[level] - f, edges[level + 1] - f)

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
