"""Numbers of size P: bounds, posteriors, learning. Rows are reached only through ``vff.moments``."""

from vff.inference.asking import AbstractCrowd, Answers, Question, Walked
from vff.inference.collapsed import ClosedForm, NormalEquations
from vff.inference.coverage import on_coverage
from vff.inference.form import Constant, ConstantPosterior, Cotangents
from vff.inference.memory import largest_that_fits, memory_needed
from vff.inference.methods import (
    METHODS,
    Fit,
    FitTask,
    Method,
    Milestone,
    SiteMemory,
    Spec,
    Sums,
    TermFit,
    TermPlan,
    Visited,
    choose,
    inferences,
    no_sums,
    registered,
    structured_memory,
)
from vff.inference.model import SumModel
from vff.inference.optimise import Model, Optimum, maximise, rescale
from vff.inference.plan import harmonics_in_product, largest_harmonic, rows_beyond
from vff.inference.posterior import Posterior, TermProcess, chosen
from vff.inference.row_sites import Observed
from vff.inference.sampling.samples import Samples
from vff.inference.scout import choose_harmonics
from vff.inference.screening import gain_of
from vff.inference.solvers import LARGEST_DIRECT, SOLVERS
from vff.inference.structured import KINDS
from vff.inference.target import REACH, TargetScale
from vff.inference.terms import Term

__all__ = [
    "KINDS",
    "LARGEST_DIRECT",
    "METHODS",
    "REACH",
    "SOLVERS",
    "AbstractCrowd",
    "Answers",
    "ClosedForm",
    "Constant",
    "ConstantPosterior",
    "Cotangents",
    "Fit",
    "FitTask",
    "Method",
    "Milestone",
    "Model",
    "NormalEquations",
    "Observed",
    "Optimum",
    "Posterior",
    "Question",
    "Samples",
    "SiteMemory",
    "Spec",
    "SumModel",
    "Sums",
    "TargetScale",
    "Term",
    "TermFit",
    "TermPlan",
    "TermProcess",
    "Visited",
    "Walked",
    "choose",
    "choose_harmonics",
    "chosen",
    "gain_of",
    "harmonics_in_product",
    "inferences",
    "largest_harmonic",
    "largest_that_fits",
    "maximise",
    "memory_needed",
    "no_sums",
    "on_coverage",
    "registered",
    "rescale",
    "rows_beyond",
    "structured_memory",
]
