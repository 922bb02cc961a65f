"""The scikit-learn face. No mathematics lives here: checking, naming, storing."""

from vff.estimators.regressor import GPRegressor
from vff.estimators.tables import ExtrapolationWarning

__all__ = ["ExtrapolationWarning", "GPRegressor"]
