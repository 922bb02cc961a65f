"""``inference="mcmc"``: the options of Markov chains, checked, and draws as ArviZ has them."""

import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vff.estimators.arguments import seeded, whole_number
from vff.estimators.options import check_choice
from vff.inference import Samples
from vff.words import shown

if TYPE_CHECKING:
    from vff.inference.methods.chains.run import Plan

_DIMENSIONS = {"variance": "term", "lengthscale": "column"}
_SAMPLERS = ("nuts", "hmc")
_LEAST_DRAWS, _LEAST_WARMUP = 10, 20


class ChainOptions(NamedTuple):
    """The constructor's options of Markov chains."""

    draws: Any = 500
    warmup: Any = None
    chains: Any = 4
    sampler: Any = "nuts"
    priors: Any = None
    random_state: Any = None


def check_installed() -> None:
    if find_spec("blackjax") is None:
        raise ImportError("inference='mcmc' needs BlackJAX, which is not installed; pip install 'vff[mcmc]'")


def plan_of(requested: ChainOptions) -> "Plan":
    """How to run; a random state moves on by one number."""
    from vff.inference.methods.chains.run import Plan

    seed = int(seeded(requested.random_state).randint(2**31 - 1))
    return Plan(*check_plan(requested), requested.sampler, seed)


def check_plan(requested: ChainOptions) -> tuple[int, int | None, int]:
    """Draws, warm-up and chains, checked with the other options."""
    check_choice("sampler", requested.sampler, _SAMPLERS)
    draws = whole_number("draws", requested.draws, _LEAST_DRAWS)
    warmup = None if requested.warmup is None else whole_number("warmup", requested.warmup, _LEAST_WARMUP)
    chains = whole_number("chains", requested.chains, 1)
    if requested.priors is not None and not isinstance(requested.priors, Mapping):
        raise ValueError(
            f"priors must be None or a dictionary by hyperparameter, such as {{'lengthscale': Gamma(2, 1)}}; got "
            f"{shown(requested.priors)}"
        )
    return draws, warmup, chains


def inference_data(samples: Samples, y: np.ndarray | None) -> Any:
    """Draws, how the chains went, and the targets, as ArviZ has them."""
    if find_spec("arviz") is None:
        raise ImportError("to_arviz needs ArviZ, which is not installed; pip install 'vff[mcmc]'")
    with warnings.catch_warnings():
        # said on the first import of a day, and remembered in the user's cache: it is about code that calls ArviZ,
        # and both of its faces are called below
        warnings.filterwarnings("ignore", message=r"\s*ArviZ is undergoing a major refactor", category=FutureWarning)
        import arviz

    posterior, coords, dims = {}, {}, {}
    kinds = dict.fromkeys(own.kind for own in samples.parameters if own.prior is not None)
    for kind in kinds:
        own = [one for one in samples.parameters if one.kind == kind and one.prior is not None]
        draws = [samples.values[one.name] for one in own]
        labels = [one.label for one in own if one.label is not None]
        if labels:
            dim = _DIMENSIONS.get(kind, kind)
            posterior[kind], coords[dim], dims[kind] = np.stack(draws, axis=-1), labels, [dim]
        else:
            posterior[kind] = draws[0]
    groups: dict[str, Any] = {"posterior": posterior, "sample_stats": dict(samples.stats)}
    if y is not None:
        groups["observed_data"] = {"y": y}
    if arviz.__version__.startswith("0."):  # groups were arguments then; asking 1.x for the names of 0.x warns
        return arviz.from_dict(**groups, coords=coords, dims=dims)
    return arviz.from_dict(groups, coords=coords, dims=dims)
