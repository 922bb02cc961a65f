"""Draws of Markov chains as ArviZ has them."""

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

from vff.inference import Samples

_DIMENSIONS = {"variance": "term", "lengthscale": "column"}


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
