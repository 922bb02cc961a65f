"""What the baselines of one column learn from: that column, checked and standardised."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vff.baselines.start import LAYOUT
from vff.basis import Interval
from vff.inference import Optimum, TargetScale
from vff.kernels import Categorical, Kernel, Matern32, Term, normal_form
from vff.parameters import PositiveVector

_CONSTANT = 1e-13  # a spread of y below this share of its mean is rounding


@dataclass(frozen=True)
class Problem:
    """Rows of one column under one Matérn, in the units the models work in."""

    term: Term
    interval: Interval
    """The range of the data, which becomes [-1, 1]."""
    target: TargetScale
    t: np.ndarray
    y: np.ndarray
    given: Mapping[str, float | None]
    """The user's variance, lengthscale and noise, None where they start from the data."""

    @classmethod
    def of(cls, term: Term, x: np.ndarray, y: np.ndarray, noise: float | None, *, centre: bool) -> "Problem":
        """Standardise checked rows; ``given`` is taken from the kernel and ``noise``, in the user's units."""
        interval, target = Interval(float(x.min()), float(x.max())), target_scale(y, centre=centre)
        given = {"variance": term.variance, "lengthscale": matern_of(term).lengthscale, "noise": noise}
        units = _units(interval, target)
        inner = {name: None if value is None else value / units[name] for name, value in given.items()}
        return cls(term, interval, target, interval.to_unit(x), (y - target.mean) / target.scale, inner)

    @property
    def p(self) -> int:
        """Order of the Matérn."""
        return matern_of(self.term).order

    def in_user_units(self, theta: np.ndarray) -> dict[str, float]:
        """Variance, lengthscale and noise of y and of the column as they came."""
        units = _units(self.interval, self.target)
        return {name: value * units[name] for name, value in LAYOUT.unpack(theta[:3]).items()}

    def bound_in_user_units(self, bound: float) -> float:
        """Nats for y as it came: the density of N standardised targets is scale^N times theirs."""
        return bound - self.y.size * float(np.log(self.target.scale))


def _units(interval: Interval, target: TargetScale) -> dict[str, float]:
    return {"variance": target.scale**2, "lengthscale": interval.half_length, "noise": target.scale**2}


def target_scale(y: np.ndarray, *, centre: bool) -> TargetScale:
    """Mean of y (or zero) and root mean square about it.

    The scale only sets the units of the search: a zero-mean model of y and one of y / scale are the same model.
    """
    mean = float(y.mean()) if centre else 0.0
    scale = float(np.sqrt(np.mean((y - mean) ** 2)))
    return TargetScale(mean, scale if scale > _CONSTANT * abs(mean) else 1.0)


def matern_of(term: Term) -> Any:
    """The one Matérn of a term."""
    factor = term.factors[0]
    if isinstance(factor, Categorical):
        raise ValueError(
            f"the kernel has the effects of levels {factor!r}, and the baselines know Matérns of numbers only; leave "
            "the column out, or use GPRegressor"
        )
    return factor


def only_term(kernel: Kernel | None, n_columns: int) -> Term:
    """The one term of the kernel."""
    if kernel is None and n_columns > 1:
        raise ValueError(
            f"X has {n_columns} columns and this baseline models one; name it, as in kernel=Matern32('x'), "
            "or pass that column alone"
        )
    term, *others = normal_form(Matern32(0) if kernel is None else kernel)
    if others or len(term.factors) > 1:
        raise ValueError(
            f"kernel has {1 + len(others)} term(s), the first over the columns {term.columns}, and this baseline "
            "models one column; give one kernel, as in kernel=Matern32('x'), or use GPRegressor or ExactGP"
        )
    matern_of(term)
    return term


def notes(optimum: Optimum, layout: PositiveVector = LAYOUT) -> tuple[str, ...]:
    """Sentences for the user about how learning ended."""
    said = [] if optimum.converged else [f"learning stopped before it converged: {optimum.message}"]
    if optimum.steps:
        for name, end in layout.at_bounds(optimum.theta[: len(layout.names)]).items():
            said.append(f"{name} ended at its {end} bound; the data do not determine it")
    return tuple(said)
