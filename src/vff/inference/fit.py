"""From moments to a fitted posterior for one column: scale, start, learn, grow, and say what limits the bound."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from vff.features import TailRows
from vff.inference.column import ColumnModel
from vff.inference.growth import Stage, grow, learn
from vff.inference.notes import notes_on
from vff.inference.optimise import Optimum
from vff.inference.posterior import ColumnPosterior
from vff.inference.start import harmonics_for, look
from vff.inference.target import TargetScale, standardised
from vff.moments import Moments


@dataclass(frozen=True)
class Milestone:
    """One M on the way to the last."""

    M: int
    optimum: Optimum
    missed: float
    """How far below the evidence the bound is at least expected to lie, nats."""
    tolerance: float
    """How far it may, before M grows."""


@dataclass(frozen=True)
class Fit:
    """Everything a fit leaves behind, in the user's units."""

    posterior: ColumnPosterior
    target: TargetScale
    variance: float
    lengthscale: float
    noise_variance: float
    elbo: float
    upper_bound: float
    history: tuple[Milestone, ...]
    notes: tuple[str, ...]

    @property
    def M(self) -> int:
        return self.history[-1].M


def fit_column(
    moments: Moments,
    tails: tuple[TailRows, ...],
    p: int,
    given: Mapping[str, float | None],
    *,
    M: int | None,
    optimise: bool,
    normalise: bool,
    progress: Callable[[str], None],
) -> Fit:
    """Fit one column. ``given`` is in the user's units; ``M=None`` grows it up to the M of the moments."""
    target = TargetScale.of(moments, tails, normalise)
    half = moments.request.interval.half_length
    units = {"variance": target.scale**2, "lengthscale": half, "noise": target.scale**2}
    scaled, scaled_tails = standardised(moments, tails, target)
    model = ColumnModel(p, scaled, scaled_tails)
    inner = {name: None if value is None else value / units[name] for name, value in given.items()}
    stages = _learn_all(model, inner, M, optimise=optimise, progress=progress)
    final = stages[-1]
    model, closed, theta = final.model, final.closed, final.optimum.theta
    values, prior = model.parameters.unpack(theta), model.prior(theta)
    jacobian = model.weight * np.log(target.scale)
    return Fit(
        ColumnPosterior.from_closed_form(
            closed, moments.request.interval, prior, values["variance"], model.centre(prior)
        ),
        target,
        values["variance"] * units["variance"],
        values["lengthscale"] * units["lengthscale"],
        values["noise"] * units["noise"],
        float(closed.elbo - jacobian),
        float(closed.upper_bound() - jacobian),
        tuple(Milestone(stage.M, stage.optimum, stage.missed, stage.tolerance) for stage in stages),
        notes_on(final, chosen=M is None),
    )


def _learn_all(
    model: ColumnModel,
    given: Mapping[str, float | None],
    M: int | None,
    *,
    optimise: bool,
    progress: Callable[[str], None],
) -> list[Stage]:
    complete = all(value is not None for value in given.values())
    if complete:
        theta = model.parameters.pack({name: value for name, value in given.items() if value is not None})
        first = harmonics_for(float(given["lengthscale"] or 1.0), model.p)
    else:
        start = look(model if M is None else model.restricted(M), given)
        theta, first = start.theta, start.M
        progress(f"start: M = {start.M}, bound {start.elbo:.3f} nats")
    if M is not None:
        return [learn(model.restricted(M), theta, optimise=optimise, progress=progress)]
    return grow(model, theta, min(first, model.basis.M), optimise=optimise, progress=progress)
