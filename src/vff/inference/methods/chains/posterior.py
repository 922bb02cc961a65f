"""The posterior that draws stand for: averages over hyperparameters and coefficients (``Averaged``)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np

from vff.factors import TermTransform
from vff.inference.learning.model import SumModel
from vff.inference.learning.solver import processes
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.model.term import Term, Values
from vff.inference.posterior import Averaged, Posterior
from vff.inference.solvers.records import InterceptPosterior
from vff.moments import TermRequest

_AVERAGED = 200  # settings over which K^-1 is averaged, and fewer where it is large
_NUMBERS = 2**30


class CoefficientDraws(NamedTuple):
    """Draws of the coefficients of the functions that are summed over rows, and, the last, of the constant."""

    mean: np.ndarray
    """(P + 1,)."""
    covariance: np.ndarray
    """(P + 1, P + 1)."""
    draws: np.ndarray
    """(S, P + 1)."""

    @classmethod
    def of(cls, draws: np.ndarray) -> "CoefficientDraws":
        """Moments of the draws themselves."""
        mean = draws.mean(axis=0)
        centred = draws - mean
        return cls(mean, centred.T @ centred / len(draws), draws)


def sampled_posterior(
    model: SumModel, settings: Sequence[Hyperparameters], drawn: CoefficientDraws, averages: Sequence[np.ndarray]
) -> tuple[Posterior, float]:
    """From draws of settings and of coefficients; and the average of the constant, which it is measured from.

    ``averages`` of the features over the rows of the fit, by term, are what effects are centred on.
    """
    middle, request = _median(settings), model.moments.request
    places, terms, P = request.slices, processes(model, middle), request.size
    back = [TermTransform(tuple(factor.inverse for factor in term.transform.factors)) for term in terms]

    def inner(v: np.ndarray) -> np.ndarray:
        """From the functions at rows to the coordinates of the prior."""
        return np.concatenate([own.transpose(v[place]) for own, place in zip(back, places, strict=True)])

    together, variance, known = inner(drawn.covariance[:P, P]), float(drawn.covariance[P, P]), None
    root = np.zeros(P)  # given the constant, coefficients lose rr'
    if np.ptp(drawn.draws[:, P]) > 0.0:  # else it is held
        known, root = InterceptPosterior(0.0, variance, -together / variance), together / np.sqrt(variance)
    both = zip(terms, averages, strict=True)
    centre = np.concatenate([term.transform.forward(np.asarray(own)) for term, own in both])
    averaged, taken, carried, varying, own_centre = [], [], [], [], []
    for s, (term, own, process) in enumerate(zip(model.terms, request.terms, terms, strict=True)):
        place = places[s]
        C = _both(back[s], drawn.covariance[place, place]) - np.outer(root[place], root[place])
        some = _some([setting.terms[s] for setting in settings], own.size)
        K = _both(back[s], _average_inverse(term, own, some))
        averaged.append(replace(process, variance=float(np.mean([values["variance"] for values in some]))))
        weights = (
            np.empty(0)
            if term.constant_variance
            else np.mean([term.variance_weights(own.factors, one) for one in some], axis=0)
        )
        varying.append(weights)
        taken.append(K - C)
        carried.append(K)
        own_centre.append(C @ centre[place])
    shared = {
        (s, t): back[s].transpose(back[t].transpose(drawn.covariance[places[s], places[t]].T).T)
        - np.outer(root[places[s]], root[places[t]])
        for s, t in request.pairs
    }
    kept = tuple(carried), inner(drawn.draws[:, :P].T).T, drawn.draws[:, P] - drawn.mean[P]
    weights = tuple(varying) if any(own.size for own in varying) else ()
    covariance = Averaged(tuple(averaged), tuple(taken), shared, *kept, weights)
    mean = inner(drawn.mean[:P])
    return Posterior(mean, covariance, centre, np.concatenate(own_centre), intercept=known), float(drawn.mean[P])


def _median(settings: Sequence[Hyperparameters]) -> Hyperparameters:
    """Every hyperparameter by itself."""
    terms = tuple(
        {name: float(np.median([setting.terms[s][name] for setting in settings])) for name in first}
        for s, first in enumerate(settings[0].terms)
    )
    return Hyperparameters(terms, float(np.median([setting.noise for setting in settings])))


def _both(inverse: TermTransform, matrix: np.ndarray) -> np.ndarray:
    """A symmetric matrix of coefficients of the functions at rows, in the coordinates of the prior."""
    image = inverse.transpose(inverse.transpose(matrix).T)
    return 0.5 * (image + image.T)


def _some(values: Sequence[Values], size: int) -> list[Values]:
    """Those of the draws over which matrices of this size are averaged."""
    most = int(np.clip(_NUMBERS / size**2, 16, _AVERAGED))
    return [values[n] for n in np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))]


def _average_inverse(term: Term, request: TermRequest, values: Sequence[Values]) -> np.ndarray:
    """E[K^-1] of one term over draws, of the functions at rows, (P, P)."""
    total = np.zeros((request.size, request.size))
    for own in values:
        priors = term.priors(request.factors, own)
        raw = [_both(TermTransform((prior.transform,)), prior.K.solve(np.eye(prior.basis.size))) for prior in priors]
        total += own["variance"] * reduce(np.kron, raw)
    return total / len(values)
