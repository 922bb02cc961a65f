"""What a product term would bring: the gain in the bound, of a model of residuals or beside the terms of a sum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from vff.inference.learning.growth import bound_at
from vff.inference.learning.model import SumModel
from vff.inference.learning.optimise import maximise
from vff.inference.learning.start import together
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.model.term import Term
from vff.linalg import threads_for
from vff.moments import Moments

_ENOUGH = 0.1  # nats that a step must gain: ranks need no more
_PRECISE = 1e-3  # the same, where it is decided whether a term pays
_SHARES = (0.3, 0.03, 0.003)  # of the noise variance


@dataclass(frozen=True)
class Gain:
    """The best found for one product term."""

    nats: float
    """By which the bound rises when the term is added; negative when it does not."""
    values: dict[str, float]
    """Its hyperparameters, in units of the domains."""


def gain_of(term: Term, moments: Moments, noise: float, widest: float = np.inf) -> Gain:
    """Gain in the bound from modelling residuals by one more term.

    ``moments`` hold residuals of a fit, weighted by how precisely each is known; ``noise`` is what the variance of one
    is, about. The fit's own terms stay as they are, so this is a lower bound on what a joint fit would gain, up to what
    the fit itself is uncertain of.
    """
    model = SumModel((term,), moments, sites=True, widest=widest)
    with threads_for(model.size):
        tried = [
            model.pack(Hyperparameters(({"variance": share * noise, **values},), 1.0))
            for share in _SHARES
            for values in together([(name, own.starts) for name, _, own in term.parameters])
        ]
        tried = [model.parameters.clip(theta) for theta in tried]  # what is held or bounded stays so
        start = max(tried, key=lambda theta: bound_at(model, theta))
        try:
            optimum, _ = maximise(model, start, free=model.learnt, gain=_ENOUGH)
        except FloatingPointError:  # negative sites, of a likelihood that is not log-concave
            return Gain(-np.inf, model.unpack(start).terms[0])
    without = -0.5 * (moments.weight * np.log(2.0 * np.pi) + moments.target_squared)
    return Gain(float(optimum.elbo - without), model.unpack(optimum.theta).terms[0])


@dataclass(frozen=True)
class PartialSum:
    """Some of the terms of a model at their best hyperparameters, the rows known by sums alone."""

    whole: SumModel
    """With all terms that there are to choose from."""
    kept: tuple[int, ...]
    theta: np.ndarray
    """Logarithms of the hyperparameters of the terms that are kept, one after another, and of the noise."""
    free: np.ndarray
    """Which of them move: none that is held."""
    elbo: float

    @classmethod
    def of(cls, whole: SumModel, kept: Sequence[int], theta: np.ndarray, free: np.ndarray) -> "PartialSum":
        """At hyperparameters that are the best for these terms already."""
        some = cls(whole, tuple(kept), theta, free, np.nan)
        return replace(some, free=free & some.model.learnt, elbo=bound_at(some.model, theta))

    @cached_property
    def model(self) -> SumModel:
        """The terms that are kept."""
        return _some(self.whole, self.kept)

    @property
    def setting(self) -> Hyperparameters:
        """In units of the domains."""
        return self.model.unpack(self.theta)

    def expected(self, s: int) -> Gain:
        """What one term more would gain of what these leave, which stay as they are, by ``gain_of``."""
        model, setting, form = self.model, self.setting, self.model.at(self.theta)
        whole, here = self.whole.weighed_at(setting)  # with the error bars of rows in their weights
        moments = whole.moments
        raw = model.transform(setting).transpose(form.mean)
        left, own = moments.projects[s].copy(), moments.term(s)
        for t, place in zip(self.kept, model.moments.request.slices, strict=True):
            block = moments.blocks[t, s].T if t < s else moments.blocks[s, t]
            left -= block @ raw[place]
        if form.intercept_posterior is not None:
            left -= form.intercept_posterior.mean * own.features_sums[0]
        residual = replace(own, projects=(left,), target=0.0, target_squared=0.0).scaled(1.0 / here.noise)
        noise = whole.rows / residual.weight if residual.weight > 0.0 else 1.0
        return gain_of(whole.terms[s], residual, noise, whole.widest)

    def joined(self, s: int, values: Mapping[str, float]) -> "PartialSum":
        """With one term more, all of them learnt again from where they are and from ``values`` for the new one."""
        own = np.log([values[name] for name in self.whole.terms[s].names])
        start = np.concatenate([self.theta[:-1], own, self.theta[-1:]])
        free = np.concatenate([self.free[:-1], np.ones(own.size, bool), self.free[-1:]])
        return replace(self, kept=(*self.kept, s))._learnt(start, free)

    def _learnt(self, start: np.ndarray, free: np.ndarray) -> "PartialSum":
        """At the best hyperparameters for the terms that are kept; nothing where there is no model to start from."""
        model, free = self.model, free & self.model.learnt
        try:
            with threads_for(model.size):
                optimum, closed = maximise(model, start, free=free, gain=_PRECISE)
        except FloatingPointError:
            return replace(self, theta=start, free=free, elbo=-np.inf)
        return replace(self, theta=optimum.theta, free=free, elbo=float(closed.as_learnt.elbo))

    def within(self, other: "PartialSum") -> "PartialSum":
        """The same terms in the model of another, learnt again from where they are and from the noise there."""
        start, some = np.append(self.theta[:-1], other.theta[-1]), replace(self, whole=other.whole)
        return some._learnt(start, np.append(self.free[:-1], True))


def _some(whole: SumModel, kept: Sequence[int]) -> SumModel:
    """Some of the terms, with what is known of their hyperparameters and of the noise."""
    sizes = [len(term.names) for term in whole.terms]
    places = [first + i for first, s in zip(whole.variances[list(kept)], kept, strict=True) for i in range(sizes[s])]
    return replace(
        whole,
        terms=tuple(whole.terms[s] for s in kept),
        moments=whole.moments.terms(kept),
        known=None if whole.known is None else whole.known.taken([*places, len(whole.keys) - 1]),
        noisy=None if whole.noisy is None else whole.noisy.terms(kept),
    )
