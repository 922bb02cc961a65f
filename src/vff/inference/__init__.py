"""Numbers of size P: bounds, posteriors, learning. Rows are reached only through ``vff.moments``."""

from vff.inference.collapsed import ClosedForm, Cotangents, NormalEquations
from vff.inference.fit import Fit, Milestone, fit_column
from vff.inference.optimise import Model, Optimum, maximise, rescale
from vff.inference.plan import Plan, choose_domain, largest_harmonic, make_plan, read
from vff.inference.posterior import ColumnPosterior
from vff.inference.target import TargetScale

__all__ = [
    "ClosedForm",
    "ColumnPosterior",
    "Cotangents",
    "Fit",
    "Milestone",
    "Model",
    "NormalEquations",
    "Optimum",
    "Plan",
    "TargetScale",
    "choose_domain",
    "fit_column",
    "largest_harmonic",
    "make_plan",
    "maximise",
    "read",
    "rescale",
]
