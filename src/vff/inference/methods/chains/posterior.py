"""The posterior that draws stand for: averages over hyperparameters and coefficients (``posterior.averaged``)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vff.factors import TermTransform
from vff.inference.learning.model import SumModel
from vff.inference.learning.solver import processes
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.model.term import Term
from vff.inference.posterior import Averaged, Posterior
from vff.inference.solvers.linear_gaussian import InterceptPosterior
from vff.moments import TermRequest

_AVERAGED = 200  # settings over which K^-1 is averaged, and fewer where it is large
_NUMBERS = 2**30


@dataclass(frozen=True)
class CoefficientDraws:
    """Draws of the coefficients of all terms, of the functions that are summed over rows, or what is known of them."""

    mean: np.ndarray
    """(P,)."""
    covariance: np.ndarray
    """(P, P)."""
    draws: np.ndarray
    """(S, P)."""

    @classmethod
    def of(cls, draws: np.ndarray) -> "CoefficientDraws":
        """Moments of the draws themselves."""
        mean = draws.mean(axis=0)
        centred = draws - mean
        return cls(mean, centred.T @ centred / len(draws), draws)


@dataclass(frozen=True)
class InterceptDraws:
    """How far the constant is from its average, and what is known of it beside the draws."""

    draws: np.ndarray
    """(S,)."""
    covariance: np.ndarray
    """With the coefficients of all terms, (P,)."""
    variance: float

    @classmethod
    def of(cls, draws: np.ndarray, coefficients: CoefficientDraws) -> "InterceptDraws":
        """Moments of the draws themselves."""
        return cls(draws, coefficients.draws.T @ draws / len(draws), float(np.mean(draws**2)))

    def posterior(self, together: np.ndarray) -> tuple[InterceptPosterior | None, np.ndarray]:
        """The constant, whose covariance with the coefficients is ``together``, and r: given it they lose rr'."""
        if not self.variance > 0.0:
            return None, np.zeros(together.size)
        return InterceptPosterior(0.0, self.variance, -together / self.variance), together / np.sqrt(self.variance)


def sampled_posterior(
    model: SumModel,
    settings: Sequence[Hyperparameters],
    coefficients: CoefficientDraws,
    averages: Sequence[np.ndarray],
    intercept: InterceptDraws,
) -> Posterior:
    """From draws of settings, of coefficients and of the constant.

    ``averages`` of the features over the rows of the fit, by term, are what effects are centred on.
    """
    middle, request = _median(settings), model.moments.request
    places, terms = request.slices, processes(model, middle)
    back = [_inverse(term.transform) for term in terms]

    def inner(v: np.ndarray) -> np.ndarray:
        """From the functions at rows to the coordinates of the prior."""
        return np.concatenate([own.transpose(v[place]) for own, place in zip(back, places, strict=True)])

    known, root = intercept.posterior(inner(intercept.covariance))
    both = zip(terms, averages, strict=True)
    centre = np.concatenate([term.transform.forward(np.asarray(own)) for term, own in both])
    averaged, taken, carried, own_centre = [], [], [], []
    for s, (term, own, process) in enumerate(zip(model.terms, request.terms, terms, strict=True)):
        place = places[s]
        C = _both(back[s], coefficients.covariance[place, place]) - np.outer(root[place], root[place])
        variance, raw = _average_inverse(term, own, [setting.terms[s] for setting in settings])
        K = _both(back[s], raw)
        averaged.append(replace(process, variance=variance))
        taken.append(K - C)
        carried.append(K)
        own_centre.append(C @ centre[place])
    shared = {
        (s, t): back[s].transpose(back[t].transpose(coefficients.covariance[places[s], places[t]].T).T)
        - np.outer(root[places[s]], root[places[t]])
        for s, t in request.pairs
    }
    kept = tuple(carried), inner(coefficients.draws.T).T, intercept.draws
    covariance = Averaged(tuple(averaged), tuple(taken), shared, *kept)
    return Posterior(inner(coefficients.mean), covariance, centre, np.concatenate(own_centre), intercept=known)


def _median(settings: Sequence[Hyperparameters]) -> Hyperparameters:
    """Every hyperparameter by itself."""
    terms = tuple(
        {name: float(np.median([setting.terms[s][name] for setting in settings])) for name in first}
        for s, first in enumerate(settings[0].terms)
    )
    return Hyperparameters(terms, float(np.median([setting.noise for setting in settings])))


def _inverse(transform: TermTransform) -> TermTransform:
    """T^-1."""
    return TermTransform(tuple(factor.inverse for factor in transform.factors))


def _both(inverse: TermTransform, matrix: np.ndarray) -> np.ndarray:
    """A symmetric matrix of coefficients of the functions at rows, in the coordinates of the prior."""
    image = inverse.transpose(inverse.transpose(matrix).T)
    return 0.5 * (image + image.T)


def _average_inverse(term: Term, request: TermRequest, values: Sequence[dict[str, float]]) -> tuple[float, np.ndarray]:
    """E[k(0)] and E[K^-1] of one term over the same draws, the latter of the functions at rows, (P, P)."""
    most = int(np.clip(_NUMBERS / request.size**2, 16, _AVERAGED))
    some = [values[n] for n in np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))]
    total = np.zeros((request.size, request.size))
    for own in some:
        priors = term.priors(request.factors, own)
        raw = [_both(TermTransform((prior.transform,)), prior.K.solve(np.eye(prior.basis.size))) for prior in priors]
        product = raw[0]
        for other in raw[1:]:
            product = np.kron(product, other)
        total += own["variance"] * product
    return float(np.mean([own["variance"] for own in some])), total / len(some)
