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
from vff.inference.start import Start, harmonics_for, highest_standing_out, look
from vff.inference.target import TargetScale, standardised
from vff.moments import Moments

_BETTER_START = 10.0  # nats by which a start found in the data must beat the user's to be taken instead


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
    extent: tuple[float, float],
    progress: Callable[[str], None],
) -> Fit:
    """Fit one column.

    ``given`` is in the user's units; ``M=None`` grows it up to the M of the moments; ``extent`` is where the data lie.
    """
    target = TargetScale.of(moments, tails, normalise)
    half = moments.request.interval.half_length
    units = {"variance": target.scale**2, "lengthscale": half, "noise": target.scale**2}
    scaled, scaled_tails = standardised(moments, tails, target)
    whole = ColumnModel(p, scaled, scaled_tails)
    inner = {name: None if value is None else value / units[name] for name, value in given.items()}
    stages = _learn_all(whole, inner, M, optimise=optimise, progress=progress)
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
        notes_on(final, highest_standing_out(whole), moments.request.interval, extent, chosen=M is None),
    )


def _given_start(model: ColumnModel, given: Mapping[str, float | None]) -> Start | None:
    """The user's values, when all are given."""
    values = {name: value for name, value in given.items() if value is not None}
    if len(values) < len(given):
        return None
    sized = model.restricted(min(model.basis.M, harmonics_for(values["lengthscale"], model.p)))
    theta = model.parameters.pack(values)
    return Start(theta, sized.basis.M, sized.at(theta).elbo)


def _learn_all(
    model: ColumnModel,
    given: Mapping[str, float | None],
    M: int | None,
    *,
    optimise: bool,
    progress: Callable[[str], None],
) -> list[Stage]:
    sized = model if M is None else model.restricted(M)
    start = _given_start(sized, given) or look(sized, given)
    if optimise and any(given.values()):
        free = look(sized, dict.fromkeys(given))
        start = free if free.elbo > start.elbo + _BETTER_START else start
    progress(f"start: M = {start.M}, bound {start.elbo:.3f} nats")
    theta, first = start.theta, start.M
    if M is not None:
        return [learn(model.restricted(M), theta, optimise=optimise, progress=progress)]
    return grow(model, theta, min(first, model.basis.M), optimise=optimise, progress=progress)
