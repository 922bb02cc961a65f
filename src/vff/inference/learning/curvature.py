"""First and second derivatives of what a sum of terms is learnt from, in the logarithms of its hyperparameters."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import block_diag

from vff.inference.learning.records import blocked
from vff.inference.model.term import Values
from vff.inference.solvers.expansion import Slopes
from vff.inference.solvers.linear_gaussian import LinearGaussian

if TYPE_CHECKING:
    from vff.inference.learning.model import SumModel

_STEP, _LONGER_STEP = 3e-5, 1e-4  # of a logarithm, in differences of closed forms, and of sums


def slopes_of(model: "SumModel", theta: np.ndarray, closed: LinearGaussian) -> Slopes:
    """Of a model at log hyperparameters, from the form that it has there."""
    if model.noisy is not None:
        return _beside_error_bars(model, theta, closed)
    expansion, setting, prior = closed.expansion, model.unpack(theta), closed.block_prior
    assert expansion is not None
    changes, twice, traces = [], [], []
    for s, (term, columns, values) in enumerate(zip(model.terms, model.columns, setting.terms, strict=True)):
        changes.append(term.changes(columns, values, prior.blocks[s]))
        slopes = model.prior_trace_slopes(s, values)
        traces += [slopes.get(name, 0.0) for name in term.names]
        found = term.pull_back_twice(columns, values, prior.blocks[s], expansion.view(s))
        twice.append(found + expansion.in_trace * _prior_trace_curvature(model, s, values))
    gradient, hessian = expansion.slopes(changes, np.array(traces))
    hessian[:-1, :-1] += block_diag(*twice)
    if model.known is not None:
        slope, curvature = model.known.slopes(theta)
        gradient = gradient + slope
        hessian[np.diag_indices_from(hessian)] += curvature
    return Slopes(gradient, hessian)


def _beside_error_bars(model: "SumModel", theta: np.ndarray, closed: LinearGaussian) -> Slopes:
    """The same where weights move with the noise: along it by differences, in the others as for known weights."""
    weighed, setting = model.weighed_at(model.unpack(theta))
    hessian = slopes_of(weighed, weighed.pack(setting), closed).hessian
    gradient = model.pull_back(theta, closed.objective_cotangents)
    hessian[-1] = hessian[:, -1] = 0.0
    if not (model.parameters.held[-1] or blocked(model.parameters, theta, gradient)[-1]):
        there = theta + np.eye(theta.size)[-1] * _LONGER_STEP
        moved = model.pull_back(there, model.at(there).objective_cotangents)
        hessian[-1] = hessian[:, -1] = (moved - gradient) / _LONGER_STEP
    return Slopes(gradient, hessian)


def _prior_trace_curvature(model: "SumModel", s: int, values: Values) -> np.ndarray:
    """Second derivatives of a term's part of sum w k(x, x), (R, R)."""
    names, own = model.terms[s].names, model.prior_trace_slopes
    first = own(s, values)
    found = np.zeros((len(names), len(names)))
    found[0] = found[:, 0] = [first.get(name, 0.0) for name in names]  # it is proportional to the variance
    if model.varying[s] is not None:
        for j, name in enumerate(names[1:], start=1):
            for sign in (1.0, -1.0):
                there = own(s, {**values, name: values[name] * float(np.exp(sign * _STEP))})
                found[1:, j] += sign / (2.0 * _STEP) * np.array([there.get(other, 0.0) for other in names[1:]])
    return 0.5 * (found + found.T)
