"""Numbers of size P: bounds, posteriors, learning. Rows are reached only through ``vff.moments``."""

from vff.inference.asking import AbstractCrowd, Answers, Question, Walked
from vff.inference.averages import feature_sums
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
from vff.inference.model import LARGEST_DIRECT, SumModel
from vff.inference.optimise import Model, Optimum, maximise, rescale
from vff.inference.plan import choose_domain, harmonics_in_product, largest_harmonic, rows_beyond
from vff.inference.posterior import SumPosterior
from vff.inference.row_sites import Observed
from vff.inference.sampling.posterior import SampledPosterior, chosen
from vff.inference.sampling.samples import Samples
from vff.inference.scout import choose_harmonics
from vff.inference.screening import gain_of
from vff.inference.structured import KINDS
from vff.inference.target import REACH, TargetScale
from vff.inference.term_posterior import TermPosterior
from vff.inference.terms import LevelFactor, MaternFactor, Term

__all__ = [
    "KINDS",
    "LARGEST_DIRECT",
    "METHODS",
    "REACH",
    "AbstractCrowd",
    "Answers",
    "ClosedForm",
    "Constant",
    "ConstantPosterior",
    "Cotangents",
    "Fit",
    "FitTask",
    "LevelFactor",
    "MaternFactor",
    "Method",
    "Milestone",
    "Model",
    "NormalEquations",
    "Observed",
    "Optimum",
    "Question",
    "SampledPosterior",
    "Samples",
    "SiteMemory",
    "Spec",
    "SumModel",
    "SumPosterior",
    "Sums",
    "TargetScale",
    "Term",
    "TermFit",
    "TermPlan",
    "TermPosterior",
    "Visited",
    "Walked",
    "choose",
    "choose_domain",
    "choose_harmonics",
    "chosen",
    "feature_sums",
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
