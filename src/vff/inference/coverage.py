"""Whether the rows of a fit lie where it expects them: a likelihood that does not suit them leaves many outside."""

import numpy as np
from scipy.special import betainc

from vff.inference.methods.fit import Fit
from vff.inference.row_sites import Observed
from vff.inference.scout import sample_pieces
from vff.moments import PreparedRows

_ROWS = 2048  # that are looked at
_OUTSIDE = 0.002  # of rows are expected outside their own 99.8 % interval
_MANY, _CHANCE = 0.02, 1e-4  # a share that is worth a note, if it has at most this probability
_ADVICE = {
    "Poisson": "counts vary more than a Poisson lets them; try likelihood='negative-binomial'",
    "Binomial": "successes vary more than a Binomial lets them; try likelihood='beta' for their shares",
    "Bernoulli": "some labels may be wrong, which vff.likelihoods.Bernoulli(squash=0.01) forgives",
    "Gaussian": "targets lie further out than Gaussian noise puts them; try likelihood='student-t'",
    "Gamma": "targets vary more than a Gamma lets them; try likelihood='student-t' for their logarithms",
    "Beta": "targets vary more than a Beta lets them; try likelihood='student-t' for their logits",
}
_OTHERWISE = "the likelihood may not suit the targets, or f cannot follow them; try another, or more frequencies"


def on_coverage(fit: Fit, walk: PreparedRows, observed: Observed) -> tuple[str, ...]:
    """A sentence where far more rows than should lie outside their own 99.8 % predictive interval.

    Rows and targets are in the user's units, and in memory; where they are many, some of them are looked at.
    """
    if not fit.likelihood.complete:
        return ()
    pieces = sample_pieces(walk.n, _ROWS)
    some = observed.taken(pieces)
    outside = _outside(fit, np.concatenate([_rows_of(walk, rows) for rows in pieces]), some)
    share, count = float(some.w @ outside / some.w.sum()), float(some.w.sum() ** 2 / (some.w @ some.w))
    if _far_more(share, count):
        advice = _ADVICE.get(type(fit.likelihood).__name__, _OTHERWISE)
        return (f"{_said(share)} where {100 * _OUTSIDE:g} % were expected: {advice}",)
    share = float(outside.mean())
    if _far_more(share, outside.size):
        return (
            f"{_said(share)} where {100 * _OUTSIDE:g} % were expected, but few of those that weigh most: the fit heeds "
            "the others little; see whether sample_weight, as numbers of equal rows, says what you mean",
        )
    return ()


def _said(share: float) -> str:
    return f"{100 * share:.2g} % of the rows of the fit lie outside their own 99.8 % interval,"


def _rows_of(walk: PreparedRows, rows: slice) -> np.ndarray:
    """The modelled columns of some rows, (N, C)."""
    return np.stack([walk.source.column(c, rows) for c in range(len(walk.plan.request.columns))], axis=1)


def _outside(fit: Fit, x: np.ndarray, observed: Observed) -> np.ndarray:
    """Which rows lie outside; those of a discrete y are where all of the interval is on one side of them."""
    likelihood, (mean, variance) = fit.likelihood, fit.posterior.marginals(x)
    f = fit.target.mean + fit.target.scale * mean, fit.target.scale**2 * variance
    new = likelihood.predictive(*f, observed.extra)
    upto = new.cdf(observed.y)
    below = new.cdf(observed.y - 1.0) if likelihood.discrete else upto
    return (upto < 0.5 * _OUTSIDE) | (below >= 1.0 - 0.5 * _OUTSIDE)


def _far_more(share: float, count: float) -> bool:
    """Whether so large a share of ``count`` rows is no accident: the tail of a binomial distribution."""
    reached = share * count
    return share >= _MANY and bool(betainc(reached, count - reached + 1.0, _OUTSIDE) < _CHANCE)
