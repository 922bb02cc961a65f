"""The posterior process, written once, and the kinds of covariance of its coefficients."""

from vff.inference.posterior.covariance import Averaged, Direct, covariance_root
from vff.inference.posterior.pieces import Pieces
from vff.inference.posterior.probed import Probed
from vff.inference.posterior.process import Posterior, chosen
from vff.inference.posterior.term import TermProcess, Written

__all__ = [
    "Averaged",
    "Direct",
    "Pieces",
    "Posterior",
    "Probed",
    "TermProcess",
    "Written",
    "chosen",
    "covariance_root",
]
