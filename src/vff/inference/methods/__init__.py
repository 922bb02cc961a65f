"""Methods of inference, each from rows to the same record of a fit."""

from vff.inference.methods.fit import Fit, Milestone, SiteMemory, TermFit
from vff.inference.methods.registry import METHODS, Method, choose, inferences
from vff.inference.methods.structured.method import no_sums, structured_memory
from vff.inference.methods.task import FitTask, Spec, Sums, TermPlan, Visited

__all__ = [
    "METHODS",
    "Fit",
    "FitTask",
    "Method",
    "Milestone",
    "SiteMemory",
    "Spec",
    "Sums",
    "TermFit",
    "TermPlan",
    "Visited",
    "choose",
    "inferences",
    "no_sums",
    "structured_memory",
]
