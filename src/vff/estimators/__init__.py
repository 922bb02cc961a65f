"""The scikit-learn contract: tables in, checked columns on, answers in the user's units out. No mathematics."""

from vff.estimators.classifier import GPClassifier
from vff.estimators.coefficients import Coefficient, Coefficients
from vff.estimators.cox import CoxProcess
from vff.estimators.effects import Effects
from vff.estimators.evaluation import ExtrapolationWarning
from vff.estimators.interactions import Interaction, Interactions, suggest_interactions
from vff.estimators.pattern import Count, Intensity
from vff.estimators.regressor import GPRegressor
from vff.estimators.saving import describe, load, save
from vff.estimators.sliding import SlidingWindow

__all__ = [
    "Coefficient",
    "Coefficients",
    "Count",
    "CoxProcess",
    "Effects",
    "ExtrapolationWarning",
    "GPClassifier",
    "GPRegressor",
    "Intensity",
    "Interaction",
    "Interactions",
    "SlidingWindow",
    "describe",
    "load",
    "save",
    "suggest_interactions",
]
