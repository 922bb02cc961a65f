"""Likelihoods p(y | f), one factor per row, and what inference and prediction ask of them.

| likelihood | y | mean of y given f | learnt unless given |
|---|---|---|---|
| `Gaussian` | real | f | variance |
| `ErrorBars` | real, of known errors | f | variance beside these |
| `StudentT` | real, with outliers | f | scale, df |
| `Gamma` | positive | exp(f) | shape |
| `Beta` | strictly between 0 and 1 | 1/(1 + exp(-f)) | precision |
| `Poisson` | counts | exposure · exp(f) | |
| `NegativeBinomial` | counts | exposure · exp(f) | dispersion |
| `Bernoulli` | 0 or 1 | F(f), logistic or normal | |
| `Binomial` | successes of n | n F(f) | |
| `Ordinal` | levels 0 … C-1 | Σ_k F(f - c_k) | cut points c |
| `Custom` | anything | the user's | the user's, in log space |

A likelihood is a small frozen object. Its log-density is written in JAX, which gives the derivatives; JAX is imported
when an expectation is first asked for, never by importing this room, and always computes in float64 without touching
its global flags. ``LIKELIHOODS`` are the kinds there are, and ``register`` adds one. Importing
the room imports their names alone, so that help is quick; the first use of anything else imports all of it.
"""

# ruff: noqa: F405

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vff.likelihoods.registry import *  # noqa: F403

__all__ = [
    "LIKELIHOODS",
    "WIDEST_EXPONENT",
    "AbstractLikelihood",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Custom",
    "ErrorBars",
    "Expected",
    "Gamma",
    "Gaussian",
    "Location",
    "Marginal",
    "Mixture",
    "NegativeBinomial",
    "Ordinal",
    "Parameter",
    "Poisson",
    "Predictive",
    "StudentT",
    "best_constant",
    "binary_names",
    "by_name",
    "choice",
    "exposed_names",
    "likelihood_column",
    "likelihood_names",
    "log_predictive",
    "parameter",
    "parameter_derivatives",
    "register",
    "row_modes",
    "unregister",
]

NAMES: dict[str, tuple[str, ...]] = {
    "Gaussian": ("gaussian",),
    "Bernoulli": ("bernoulli", "logit", "probit"),
    "Poisson": ("poisson",),
    "NegativeBinomial": ("negative-binomial",),
    "StudentT": ("student-t",),
    "Gamma": ("gamma",),
    "Beta": ("beta",),
    "Ordinal": ("ordinal",),
    "Binomial": ("binomial",),
    "ErrorBars": (),
    "Custom": (),
}
"""What stands for every kind in place of an object, in the order in which sentences name them."""
NEEDED = {"Binomial": "trials", "Custom": "function"}
"""The field without which there is no object."""


def likelihood_names() -> tuple[str, ...]:
    """Names that stand for a likelihood without anything more.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> vff.likelihoods.likelihood_names()[:3]
    ('gaussian', 'bernoulli', 'logit')
    """
    return tuple(name for kind, names in NAMES.items() if kind not in NEEDED for name in names)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("vff.likelihoods.registry"), name)
    raise AttributeError(f"module 'vff.likelihoods' has no attribute {name!r}")
