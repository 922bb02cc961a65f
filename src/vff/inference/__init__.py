"""Numbers of size P: bounds, posteriors, learning. Rows are reached only through ``vff.moments``."""

from vff.inference.learning.column_scan import choose_harmonics
from vff.inference.learning.harmonics import (
    beside_levels,
    harmonics_in_product,
    largest_harmonic,
    largest_that_fits,
    memory_needed,
    rows_beyond,
)
from vff.inference.learning.interaction_gain import Gain, PartialSum, gain_of
from vff.inference.learning.levels import NONE as NO_LEVELS
from vff.inference.learning.levels import Exchangeable
from vff.inference.learning.model import SumModel
from vff.inference.learning.optimise import maximise, rescale
from vff.inference.learning.records import Optimum
from vff.inference.learning.solver import LARGEST_DIRECT
from vff.inference.methods.chains.samples import Samples
from vff.inference.methods.fit import Fit, TermFit
from vff.inference.methods.joining import Joining, model_beside
from vff.inference.methods.natural.first import no_sums
from vff.inference.methods.natural.oracle import MemoryRows, RowOracle, SiteQuery, SiteSums
from vff.inference.methods.natural.row_sites import Observed
from vff.inference.methods.natural.working import WorkingSites
from vff.inference.methods.notes import on_coverage, on_few_rows
from vff.inference.methods.registry import METHODS, choose, inferences
from vff.inference.methods.shares import shares_of_sums
from vff.inference.methods.structured.fit import KINDS
from vff.inference.methods.structured.method import structured_memory
from vff.inference.methods.task import FitTask, Method, Spec, Sums, TermPlan, Visited
from vff.inference.model.scale import REACH, TargetScale, Units, standardised, variance_unit
from vff.inference.model.term import Term, exchangeable_factors
from vff.inference.posterior import EffectAt, Posterior, PureEffect, chosen
from vff.inference.solvers.cotangents import Cotangents
from vff.inference.solvers.direct import DirectLinearGaussian, NormalEquations
from vff.inference.solvers.expansion import Slopes
from vff.inference.solvers.records import Intercept, InterceptPosterior

__all__ = [
    "KINDS",
    "LARGEST_DIRECT",
    "METHODS",
    "NO_LEVELS",
    "REACH",
    "Cotangents",
    "DirectLinearGaussian",
    "EffectAt",
    "Exchangeable",
    "Fit",
    "FitTask",
    "Gain",
    "Intercept",
    "InterceptPosterior",
    "Joining",
    "MemoryRows",
    "Method",
    "NormalEquations",
    "Observed",
    "Optimum",
    "PartialSum",
    "Posterior",
    "PureEffect",
    "RowOracle",
    "Samples",
    "SiteQuery",
    "SiteSums",
    "Slopes",
    "Spec",
    "SumModel",
    "Sums",
    "TargetScale",
    "Term",
    "TermFit",
    "TermPlan",
    "Units",
    "Visited",
    "WorkingSites",
    "beside_levels",
    "choose",
    "choose_harmonics",
    "chosen",
    "exchangeable_factors",
    "gain_of",
    "harmonics_in_product",
    "inferences",
    "largest_harmonic",
    "largest_that_fits",
    "maximise",
    "memory_needed",
    "model_beside",
    "no_sums",
    "on_coverage",
    "on_few_rows",
    "rescale",
    "rows_beyond",
    "shares_of_sums",
    "standardised",
    "structured_memory",
    "variance_unit",
]
