"""Positive hyperparameters as one vector of logarithms, with names and bounds."""

from vff.parameters.positive import PositiveVector

__all__ = ["PositiveVector"]
