"""What a search for the best hyperparameters asks of a model, and the record of how it ended."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from vff.inference.learning.rows import RowForm
from vff.inference.solvers.expansion import Slopes
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.parameters import PositiveVector

Form = LinearGaussian | RowForm
"""What is climbed, at one setting."""

F = TypeVar("F", bound=Form)


class Model(Protocol[F]):
    """Hyperparameters in, linear-Gaussian model out, and the chain rule back."""

    @property
    def parameters(self) -> PositiveVector:
        """The layout of theta; 'noise' is among the names."""
        ...

    def at(self, theta: np.ndarray) -> F:
        """The model at these log hyperparameters."""
        ...

    def pull_back(self, theta: np.ndarray, cotangents: Any, /) -> np.ndarray:
        """d elbo / d theta."""
        ...

    def expands(self, closed: F, /) -> bool:
        """Whether second derivatives are known."""
        ...

    def slopes(self, theta: np.ndarray, closed: F, /) -> Slopes:
        """First and second derivatives of what is climbed."""
        ...

    def scales(self, closed: F) -> np.ndarray:
        """Rough curvature in every parameter, so that the first steps have a sensible length."""
        ...


@dataclass(frozen=True)
class Optimum:
    """Where learning ended."""

    theta: np.ndarray
    elbo: float
    """The bound there, and the log prior of the hyperparameters where one is known."""
    steps: int
    evaluations: int
    converged: bool
    message: str
    curvature: np.ndarray | None = None
    """Minus the Hessian of the bound as far as the steps saw it, for the next search from here."""
    gained: float = np.nan
    """What the last step gained, nats; NaN where none was taken, or an older file does not say."""
    slope: float = np.nan
    """Length of the gradient in coordinates in which the bound is round: half its square, in nats, is left to gain.

    Of hyperparameters that move; NaN where nothing was learnt, or an older file does not say.
    """
    ends: tuple[str, ...] = ()
    """Which hyperparameters stand at a bound, and at which."""

    def after(self, before: "Optimum") -> "Optimum":
        """The same end, with what an earlier search spent on the way counted too."""
        steps, evaluations = before.steps + self.steps, before.evaluations + self.evaluations
        gained = before.gained if np.isnan(self.gained) else self.gained
        return replace(self, steps=steps, evaluations=evaluations, gained=gained)


def blocked(layout: PositiveVector, theta: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Which parameters stand at a bound and would go beyond it; one that would come back may move."""
    ends = layout.at_bounds(theta)
    outward = {"lower": slopes < 0.0, "upper": slopes > 0.0}
    return np.array([name in ends and bool(outward[ends[name]][i]) for i, name in enumerate(layout.names)])
