"""The constant of the latent function beside terms whose covariance has a structure.

Where a term's covariance is dense, the constant is one more feature of the first term, so that with one term q has the
full covariance still. Where covariances are Kronecker products it is a term of its own, independent of the others under
q as they are of one another: the bound stays one, and f is a little less certain than with the full covariance.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from vff.inference.methods.structured.fit import Kind, ProductTerm, StructuredFit, whiten
from vff.inference.model.scale import REACH
from vff.inference.solvers.linear_gaussian import InterceptPosterior
from vff.linalg import product_rows

_VARIANCE = REACH**2


def with_intercept(kind: Kind, terms: Sequence[ProductTerm]) -> list[ProductTerm]:
    """The terms and the constant, as ``fit_structured`` takes them."""
    first, *others = terms
    one = np.ones((len(first.features[0]), 1))
    if kind != "factorised":
        return [*terms, ProductTerm((one,), (np.eye(1),), _VARIANCE)]
    features = np.concatenate([product_rows(list(first.features)), one], axis=1)
    P, variance = features.shape[1] - 1, first.variance + _VARIANCE
    K = np.zeros((P + 1, P + 1))
    K[:P, :P], K[P, P] = variance / first.variance * reduce(np.kron, first.priors), variance / _VARIANCE
    return [ProductTerm((features,), (K,), variance), *others]


def means_with_intercept(kind: Kind, means: Sequence[np.ndarray], intercept: float) -> list[np.ndarray]:
    """Means of the coefficients (P,) of every term, and of the constant, in the order of ``with_intercept``."""
    if kind != "factorised":
        return [*means, np.array([intercept])]
    first, *others = means
    return [np.append(first, intercept), *others]


def without_intercept(
    kind: Kind, fit: StructuredFit, terms: Sequence[ProductTerm], w: np.ndarray
) -> tuple[StructuredFit, InterceptPosterior]:
    """q of the terms themselves, the constant held, and q of the constant."""
    P = sum(int(np.prod([phi.shape[1] for phi in term.features])) for term in terms)
    if kind != "factorised":
        intercept = InterceptPosterior(
            float(fit.means[-1].item()), float(fit.covariance(len(terms)).item()), np.zeros(P)
        )
        left = {name: getattr(fit, name)[:-1] for name in ("means", "factors", "variances", "whiteners", "edf")}
        return replace(fit, **left), intercept
    first, own = terms[0], fit.means[0].size - 1
    ((L,),) = fit.factors[0]
    # a root of the same covariance with the constant first: what is left below it is that of the others, given it
    root = np.asarray(np.linalg.qr(np.concatenate([L[own:], L[:own]]).T, mode="r")).T
    variance = float(root[0, 0] ** 2)
    answer = np.concatenate([-root[1:, 0] / root[0, 0], np.zeros(P - own)])
    shape = [phi.shape[1] for phi in first.features]
    inner = replace(
        fit,
        means=(fit.means[0][:own].reshape(shape), *fit.means[1:]),
        factors=(((root[1:, 1:],),), *fit.factors[1:]),
        variances=(first.variance, *fit.variances[1:]),
        whiteners=(whiten(first, w), *fit.whiteners[1:]),
        edf=(fit.edf[0] - 1.0 + variance / _VARIANCE, *fit.edf[1:]),
    )
    return inner, InterceptPosterior(float(fit.means[0][own]), variance, answer)
