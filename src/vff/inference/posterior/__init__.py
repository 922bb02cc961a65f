"""The posterior process, written once, and the kinds of covariance of its coefficients."""

from vff.inference.posterior.crossed import Crossed
from vff.inference.posterior.direct import Averaged, Direct, covariance_root
from vff.inference.posterior.eliminated import Eliminated
from vff.inference.posterior.eliminated_blocks import EliminatedBlocks
from vff.inference.posterior.pieces import Pieces
from vff.inference.posterior.probed import Probed
from vff.inference.posterior.process import EffectAt, Posterior, chosen
from vff.inference.posterior.pure import PureEffect
from vff.inference.posterior.term import TermProcess, Written

__all__ = [
    "Averaged",
    "Crossed",
    "Direct",
    "EffectAt",
    "Eliminated",
    "EliminatedBlocks",
    "Pieces",
    "Posterior",
    "Probed",
    "PureEffect",
    "TermProcess",
    "Written",
    "chosen",
    "covariance_root",
]
