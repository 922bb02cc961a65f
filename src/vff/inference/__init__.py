"""Numbers of size P: bounds, posteriors, learning. Rows are reached only through ``vff.moments``."""

from vff.inference.asking import AbstractCrowd, Answers, Question, Walked
from vff.inference.averages import feature_sums
from vff.inference.collapsed import ClosedForm, NormalEquations
from vff.inference.coverage import on_coverage
from vff.inference.fit import Fit, Milestone, TermFit, TermPlan, fit_sum
from vff.inference.form import Constant, ConstantPosterior, Cotangents
from vff.inference.likelihood_fit import Before, LikelihoodTask, fit_likelihood
from vff.inference.memory import largest_that_fits, memory_needed
from vff.inference.model import LARGEST_DIRECT, SumModel
from vff.inference.optimise import Model, Optimum, maximise, rescale
from vff.inference.plan import harmonics_in_product, largest_harmonic, rows_beyond
from vff.inference.posterior import SumPosterior
from vff.inference.row_sites import Observed
from vff.inference.sampling.posterior import SampledPosterior, chosen
from vff.inference.sampling.samples import Samples
from vff.inference.scout import choose_harmonics
from vff.inference.screening import gain_of
from vff.inference.structured import KINDS
from vff.inference.structured_fit import fit_with_structure, no_sums, structured_memory
from vff.inference.target import REACH, TargetScale
from vff.inference.term_posterior import TermPosterior
from vff.inference.terms import Term

__all__ = [
    "KINDS",
    "LARGEST_DIRECT",
    "REACH",
    "AbstractCrowd",
    "Answers",
    "Before",
    "ClosedForm",
    "Constant",
    "ConstantPosterior",
    "Cotangents",
    "Fit",
    "LikelihoodTask",
    "Milestone",
    "Model",
    "NormalEquations",
    "Observed",
    "Optimum",
    "Question",
    "SampledPosterior",
    "Samples",
    "SumModel",
    "SumPosterior",
    "TargetScale",
    "Term",
    "TermFit",
    "TermPlan",
    "TermPosterior",
    "Walked",
    "choose_harmonics",
    "chosen",
    "feature_sums",
    "fit_likelihood",
    "fit_sum",
    "fit_with_structure",
    "gain_of",
    "harmonics_in_product",
    "largest_harmonic",
    "largest_that_fits",
    "maximise",
    "memory_needed",
    "no_sums",
    "on_coverage",
    "rescale",
    "rows_beyond",
    "structured_memory",
]
