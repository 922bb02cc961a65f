"""From moments to a fitted posterior for one column: scale, start, learn, grow, and say what limits the bound."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from vff.features import TailRows
from vff.inference.collapsed import ClosedForm
from vff.inference.column import ColumnModel
from vff.inference.growth import Growth, Stage, grow, learn, missed_nats
from vff.inference.posterior import ColumnPosterior
from vff.inference.start import harmonics_for, look
from vff.moments import Moments


@dataclass(frozen=True)
class TargetScale:
    """y = mean + scale * (what the model sees)."""

    mean: float
    scale: float

    @classmethod
    def of(cls, moments: Moments, tails: tuple[TailRows, ...], normalise: bool) -> "TargetScale":
        """Weighted mean and standard deviation of y over all rows; without a mean, zero and the root mean square.

        The scale is a matter of units and never of the model, so that learning always sees targets near one.
        """
        weight = moments.weight + sum(float(tail.w.sum()) for tail in tails)
        shift = (moments.target + sum(float(tail.w @ tail.y) for tail in tails)) / weight
        mean = moments.offset + shift
        spread = (moments.target_squared + sum(tail.yy for tail in tails)) / weight - shift**2
        square = spread if normalise else spread + mean**2
        # y is centred to rounding before it is squared, so a spread below this is a constant column
        scale = float(np.sqrt(square)) if square > 1e-28 * (1.0 + shift**2) else 1.0
        return cls(mean if normalise else 0.0, scale)


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
    growth: Growth
    notes: tuple[str, ...]

    @property
    def M(self) -> int:
        return self.growth.stages[-1].M


def standardised(
    moments: Moments, tails: tuple[TailRows, ...], target: TargetScale
) -> tuple[Moments, tuple[TailRows, ...]]:
    """The rows with y measured from the target's mean in units of its scale. Tails share the moments' offset."""
    centred = moments.recentred(target.mean)
    scaled = replace(
        centred,
        offset=0.0,
        target=centred.target / target.scale,
        target_squared=centred.target_squared / target.scale**2,
        project=centred.project / target.scale,
    )
    shift = moments.offset - target.mean
    return scaled, tuple(replace(tail, y=(tail.y + shift) / target.scale) for tail in tails)


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
    growth = _learn_all(model, inner, M, optimise=optimise, progress=progress)
    final = growth.stages[-1]
    model = model.restricted(final.M)
    values = model.parameters.unpack(final.optimum.theta)
    closed = model.at(final.optimum.theta)
    jacobian = model.weight * np.log(target.scale)
    prior = model.prior(final.optimum.theta)
    return Fit(
        ColumnPosterior.from_closed_form(
            closed, moments.request.interval, prior, values["variance"], model.centre(prior)
        ),
        target,
        values["variance"] * units["variance"],
        values["lengthscale"] * units["lengthscale"],
        values["noise"] * units["noise"],
        closed.elbo - jacobian,
        closed.upper_bound() - jacobian,
        growth,
        _notes(model, closed, growth, chosen=M is None),
    )


def _learn_all(
    model: ColumnModel,
    given: Mapping[str, float | None],
    M: int | None,
    *,
    optimise: bool,
    progress: Callable[[str], None],
) -> Growth:
    complete = all(value is not None for value in given.values())
    if complete:
        theta = model.parameters.pack({name: value for name, value in given.items() if value is not None})
        first = harmonics_for(float(given["lengthscale"] or 1.0), model.p)
    else:
        start = look(model if M is None else model.restricted(M), given)
        theta, first = start.theta, start.M
        progress(f"start: M = {start.M}, bound {start.elbo:.3f} nats")
    if M is not None:
        stage = learn(model.restricted(M), theta, optimise=optimise, progress=progress)
        return Growth((stage,))
    return grow(model, theta, min(first, model.basis.M), optimise=optimise, progress=progress)


def _notes(model: ColumnModel, closed: ClosedForm, growth: Growth, *, chosen: bool) -> tuple[str, ...]:
    """Sentences for the user: what limits the bound, and how learning ended."""
    notes = []
    final = growth.stages[-1]
    missed, limit = final.missed, 10.0 * final.tolerance
    if missed > limit and _stalled(model, final):
        notes.append(
            f"the domain limits the bound: it may gain about {missed:.3g} nats, but not from a larger M; "
            "widen domain beyond the data, or leave edges='auto'"
        )
    elif missed > limit:
        last = f"M = {final.M} is the largest this pass allows" if chosen else f"frequencies = {final.M} was given"
        notes.append(
            f"M limits the bound: it may gain about {missed:.3g} nats and {last}; "
            f"set frequencies to a larger number than {final.M}"
        )
    if not final.optimum.converged:
        notes.append(f"learning stopped before it converged: {final.optimum.message}")
    for name, end in model.parameters.at_bounds(final.optimum.theta).items():
        if final.optimum.steps:
            notes.append(f"{name} ended at its {end} bound; the data do not determine it")
    if closed.factor.jitter:
        notes.append(
            f"{closed.factor.jitter:g} was added to the scaled diagonal of the posterior precision to factor it; "
            "noise_variance is very small against the signal"
        )
    return tuple(notes)


def _stalled(model: ColumnModel, stage: Stage) -> bool:
    """Whether harmonics have stopped helping: half of them miss hardly more than all of them.

    In the worst case, a Matérn-1/2, what is missed halves when M doubles; harmonics that must take one value at both
    ends of the data stop far above that.
    """
    return stage.M > 1 and stage.missed > 0.75 * missed_nats(model.restricted(stage.M // 2).at(stage.optimum.theta))
