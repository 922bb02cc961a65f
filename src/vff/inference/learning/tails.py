"""Rows beyond the domain, whose features move with the hyperparameters of the only factor of the only term."""

from typing import TYPE_CHECKING

import numpy as np

from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.solvers.cotangents import Cotangents

if TYPE_CHECKING:
    from vff.inference.learning.model import SumModel


def slopes_of_tails(model: "SumModel", setting: Hyperparameters, cotangents: Cotangents) -> np.ndarray:
    """What their sums add to the derivatives in the logarithms of the term's hyperparameters, the variance first."""
    (term,) = model.terms
    found, prior = np.zeros(len(term.names)), model.only_prior(setting)
    for tail in model.tails:
        Z, slopes = prior.tail_states(tail.side), prior.tail_derivatives(tail)
        for place, (_, _, own) in enumerate(term.parameters, start=1):
            change = slopes[own.name]
            pulled = change.project @ (Z.T @ cotangents.projection) + change.total @ (Z.T @ cotangents.features)
            found[place] += float(np.sum(change.gram * cotangents.gram(Z)) + pulled)
    return found
