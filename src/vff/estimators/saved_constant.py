"""Files of models whose constant was learnt as a number: what is not known of it is worked out when they are read.

With sites of precision s at the rows, h = Phi' S 1, and A the precision of the coefficients,

    var c0 = 1 / (sum s - h'A^-1 h + 1 / reach^2),      df(x)/dc0 = 1 - phi(x)'A^-1 h

and the mean of c0 is what targets are measured from in such a file.
"""

from dataclasses import replace

import numpy as np

from vff.inference import REACH, Fit, InterceptPosterior

HELD = (
    "the file was written by a vff that took the constant of the function for known, so that its variances and "
    "intercept_std_ leave out how well that is known; fit the rows again to have it in them"
)


def with_constant(fit: Fit, centred: bool) -> Fit:
    """The fit with what is not known of its constant, or else a note that this is missing."""
    # the posterior may speak of the constant, or the likelihood have a location in place of one
    located = not fit.from_sums and (fit.samples is not None or fit.likelihood.locates)
    if not centred or fit.posterior.intercept is not None or located:
        return fit
    intercept = _constant_of(fit)
    if intercept is not None:
        return replace(fit, posterior=replace(fit.posterior, intercept=intercept))
    return fit if HELD in fit.notes else replace(fit, notes=(*fit.notes, HELD))


def _constant_of(fit: Fit) -> InterceptPosterior | None:
    """From the sums of the sites; None where these, or A^-1, are not in the file."""
    posterior = fit.posterior
    if fit.memory is None:
        return None
    sums = fit.memory.sums.restricted(posterior.request.harmonics)
    parts = zip(posterior.terms, sums.features_sums, strict=True)
    h = np.concatenate([term.transform.forward(raw) for term, raw in parts])
    answer = posterior.covariance.apply(h)
    if answer is None:
        return None
    precision = sums.weight - float(h @ answer) + REACH**-2
    return InterceptPosterior(0.0, 1.0 / precision, answer) if precision > 0.0 else None
