"""``inference="mcmc"``: the options of Markov chains, checked, and draws as ArviZ has them."""

from collections.abc import Mapping
from importlib.util import find_spec
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

from sklearn.utils import check_random_state

from vff.estimators.options import check_choice
from vff.likelihoods import AbstractLikelihood

if TYPE_CHECKING:
    from vff.inference.sampling.chains import Plan

INFERENCES = ("variational", "mcmc")
_SAMPLERS = ("nuts", "hmc")
_LEAST_DRAWS, _LEAST_WARMUP = 10, 20


class Asked(NamedTuple):
    """The constructor's options of Markov chains."""

    draws: Any
    warmup: Any
    chains: Any
    sampler: Any
    priors: Any
    random_state: Any


def check_inference(inference: Any, covariance: str, likelihood: AbstractLikelihood, growing: bool) -> bool:
    """Whether to sample; refuse what cannot be sampled."""
    check_choice("inference", inference, INFERENCES)
    if inference == "variational":
        return False
    if covariance != "full":
        raise ValueError(
            f"inference='mcmc' samples the posterior as it is, without a covariance; got covariance={covariance!r}: "
            "leave it at 'full'"
        )
    if growing and not _is_collapsed(likelihood):
        raise ValueError(
            "partial_fit keeps sums of rows, and inference='mcmc' needs the rows themselves unless noise is Gaussian; "
            "use inference='variational', or fit all rows together"
        )
    _check_installed()
    return True


def _is_collapsed(likelihood: AbstractLikelihood) -> bool:
    return type(likelihood).__name__ == "Gaussian" and bool(likelihood.free.all())


def _check_installed() -> None:
    if find_spec("blackjax") is None:
        raise ImportError("inference='mcmc' needs BlackJAX, which is not installed; pip install 'vff[mcmc]'")


def plan_of(asked: Asked) -> "Plan":
    """The options, checked."""
    from vff.inference.sampling.chains import Plan

    check_choice("sampler", asked.sampler, _SAMPLERS)
    draws = _whole("draws", asked.draws, _LEAST_DRAWS)
    warmup = _whole("warmup", asked.warmup, _LEAST_WARMUP)
    chains = _whole("chains", asked.chains, 1)
    if asked.priors is not None and not isinstance(asked.priors, Mapping):
        raise ValueError(
            f"priors must be None or a dictionary by hyperparameter, such as {{'lengthscale': Gamma(2, 1)}}; got "
            f"{asked.priors!r}"
        )
    seed = int(check_random_state(asked.random_state).randint(2**31 - 1))
    return Plan(draws, warmup, chains, asked.sampler, seed)


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}")
    return int(value)
