"""Gaussian processes for tables of thousands to billions of rows, by variational Fourier features."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vff.kinds import FACTORS

if TYPE_CHECKING:
    from vff import baselines, basis, datasets, features, kernels, likelihoods, plot, priors
    from vff.data import scan
    from vff.estimators import (
        CoxProcess,
        Effects,
        ExtrapolationWarning,
        GPClassifier,
        GPRegressor,
        SlidingWindow,
        load,
        suggest_interactions,
    )
    from vff.kernels import (
        Areas,
        Categorical,
        Linear,
        Matern12,
        Matern32,
        Matern52,
        Matern72,
        Matern92,
        Ordered,
        Oscillator,
        Periodic,
        Trend,
        parse_kernel,
    )
    from vff.parameters import between, fixed

__version__ = "0.9.0"

_LEAVES = tuple(leaf for leaves in FACTORS.values() for leaf in leaves)
# Where each public name lives. Resolved on first use, so that `import vff` costs nothing.
_HOMES = {
    **dict.fromkeys(_LEAVES, "vff.kernels"),
    "CoxProcess": "vff.estimators",
    "Effects": "vff.estimators",
    "ExtrapolationWarning": "vff.estimators",
    "GPClassifier": "vff.estimators",
    "GPRegressor": "vff.estimators",
    "SlidingWindow": "vff.estimators",
    "between": "vff.parameters",
    "fixed": "vff.parameters",
    "load": "vff.estimators",
    "parse_kernel": "vff.kernels",
    "scan": "vff.data",
    "suggest_interactions": "vff.estimators",
}
_ROOMS = ("baselines", "basis", "datasets", "features", "kernels", "likelihoods", "plot", "priors")

__all__ = sorted([*_HOMES, *_ROOMS])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"vff.{name}")
    raise AttributeError(f"module 'vff' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
