"""The posterior process, written once, and the kinds of covariance of its coefficients."""

from vff.inference.posterior.covariance import AbstractCovariance, Averaged, Direct, columns_of, covariance_root
from vff.inference.posterior.pieces import Pieces
from vff.inference.posterior.probed import FEW_ROWS, Probed
from vff.inference.posterior.process import Posterior, chosen
from vff.inference.posterior.term import TermProcess, Written, stretches

__all__ = [
    "FEW_ROWS",
    "AbstractCovariance",
    "Averaged",
    "Direct",
    "Pieces",
    "Posterior",
    "Probed",
    "TermProcess",
    "Written",
    "chosen",
    "columns_of",
    "covariance_root",
    "stretches",
]
