"""Draws of Markov chains as ArviZ has them. The only file that knows ArviZ."""

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vff.inference import Samples

_DIMENSIONS = {"variance": "term", "lengthscale": "column"}


class DrawsMixin:
    """The draws of a model that was sampled."""

    samples_: Samples | None

    @property
    def functions_(self) -> tuple[Any, ...]:
        """The models of one latent function each that this one consists of: itself, or one per class."""
        return (self,)

    def to_arviz(self) -> Any:
        """Draws of ``inference="mcmc"`` for ArviZ.

        Returns
        -------
        arviz.InferenceData
            With the groups posterior, sample_stats and observed_data.

        Examples
        --------
        (Not run by the tests, since chains are compiled for many seconds.)

        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> model = vff.GPRegressor(vff.Matern32(0), inference="mcmc", frequencies=5, draws=10, warmup=20, chains=2)
        >>> sorted(model.fit(X, np.sin(X[:, 0])).to_arviz().groups())  # doctest: +SKIP
        ['observed_data', 'posterior', 'sample_stats']
        """
        if len(self.functions_) > 1:
            raise ValueError("with more than two classes there is a model per class; ask estimators_[k].to_arviz()")
        check_is_fitted(self, "posterior_")
        if self.samples_ is None:
            raise ValueError("to_arviz needs draws, and this model was fitted with inference='variational'; use 'mcmc'")
        return _inference_data(self.samples_)


def _inference_data(samples: Samples) -> Any:
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
    if samples.y is not None:
        groups["observed_data"] = {"y": samples.y}
    if arviz.__version__.startswith("0."):  # groups were arguments then; asking 1.x for the names of 0.x warns
        return arviz.from_dict(**groups, coords=coords, dims=dims)
    return arviz.from_dict(groups, coords=coords, dims=dims)
