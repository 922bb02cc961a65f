"""What a fit has to say for itself: what limits the bound, and how learning ended."""

import numpy as np

from vff.basis import Interval
from vff.inference.growth import Stage


def notes_on(
    final: Stage, detail: int, interval: Interval, extent: tuple[float, float], *, chosen: bool
) -> tuple[str, ...]:
    """Sentences for the user.

    ``detail`` is the highest harmonic in which the targets stand out of noise; ``extent`` is where the data lie.
    """
    notes = [*_on_domain(final, interval, extent), *_on_bound(final, chosen=chosen), *_on_learning(final)]
    if detail and not _follows(final, detail):
        notes.append(
            f"the targets stand out of noise at harmonic {detail} of the domain, which the fit (M = {final.M}) takes "
            f"for noise; set frequencies to several times {detail}, or start from a shorter lengthscale"
        )
    return tuple(notes)


def _follows(final: Stage, detail: int) -> bool:
    """Whether the fitted prior leaves a harmonic enough variance for the data to speak in it."""
    values = final.model.parameters.unpack(final.optimum.theta)
    density = final.model.kernel(values["lengthscale"]).spectral_density(np.array([np.pi * detail]))[0]
    informed = 0.5 * final.model.weight * values["variance"] * density / values["noise"] > 1.0
    return bool(detail <= final.M and informed)


def _on_domain(final: Stage, interval: Interval, extent: tuple[float, float]) -> list[str]:
    notes = []
    outside = sum(tail.r.size for tail in final.model.tails)
    if outside:
        notes.append(
            f"{outside} rows lie outside the domain [{interval.a:g}, {interval.b:g}], where the features can hardly "
            f"follow them; the data reach from {extent[0]:g} to {extent[1]:g}: widen domain"
        )
    share = (extent[1] - extent[0]) / (interval.b - interval.a)
    if share < 0.05:
        notes.append(
            f"the data take up {100 * share:.2g} % of the domain [{interval.a:g}, {interval.b:g}], and the harmonics "
            "are spread over all of it; narrow domain to where predictions are wanted"
        )
    return notes


def _on_bound(final: Stage, *, chosen: bool) -> list[str]:
    notes = []
    missed, limit = final.missed, 10.0 * final.tolerance
    if final.closed.allowance > 0.5 * max(missed, final.tolerance):
        notes.append(
            "the signal stands so far above the noise that float64 limits the bound: "
            f"{final.closed.allowance:.3g} nats are allowed for rounding; a larger noise_variance would cost nothing"
        )
    elif missed > limit and _stalled(final):
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
    return notes


def _on_learning(final: Stage) -> list[str]:
    notes = []
    if not final.optimum.converged:
        notes.append(
            "learning stopped where no step raises the bound, before its gradient vanished "
            f"({final.optimum.message.strip(' :')}); try another start, or a larger noise_variance"
        )
    for name, end in final.model.parameters.at_bounds(final.optimum.theta).items():
        if final.optimum.steps:
            notes.append(f"{name} ended at its {end} bound; the data do not determine it")
    if final.closed.factor.jitter:
        notes.append(
            f"{final.closed.factor.jitter:g} was added to the scaled diagonal of the posterior precision to factor it; "
            "noise_variance is very small against the signal"
        )
    return notes


def _stalled(stage: Stage) -> bool:
    """Whether harmonics have stopped helping: half of them miss hardly more than all of them.

    In the worst case, a Matérn-1/2, what is missed halves when M doubles; harmonics that must take one value at both
    ends of the data stop far above that.
    """
    return stage.M > 1 and stage.missed > 0.75 * stage.model.restricted(stage.M // 2).at(stage.optimum.theta).missed
