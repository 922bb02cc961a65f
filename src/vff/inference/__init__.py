"""Numbers of size P: bounds, posteriors, learning. Rows are reached only through ``vff.moments``."""

from vff.inference.collapsed import ClosedForm, Cotangents, NormalEquations
from vff.inference.fit import Fit, Milestone, fit_column
from vff.inference.optimise import Model, Optimum, maximise, rescale
from vff.inference.plan import Reading, choose_domain, largest_harmonic, read
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
    "Reading",
    "TargetScale",
    "choose_domain",
    "fit_column",
    "largest_harmonic",
    "maximise",
    "read",
    "rescale",
]
