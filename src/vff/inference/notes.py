"""What a fit has to say for itself: what limits the bound, and how learning ended."""

from vff.inference.growth import Stage


def notes_on(final: Stage, *, chosen: bool) -> tuple[str, ...]:
    """Sentences for the user: what limits the bound, and how learning ended."""
    notes = []
    missed, limit = final.missed, 10.0 * final.tolerance
    if missed > limit and _stalled(final):
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
    for name, end in final.model.parameters.at_bounds(final.optimum.theta).items():
        if final.optimum.steps:
            notes.append(f"{name} ended at its {end} bound; the data do not determine it")
    if final.closed.factor.jitter:
        notes.append(
            f"{final.closed.factor.jitter:g} was added to the scaled diagonal of the posterior precision to factor it; "
            "noise_variance is very small against the signal"
        )
    return tuple(notes)


def _stalled(stage: Stage) -> bool:
    """Whether harmonics have stopped helping: half of them miss hardly more than all of them.

    In the worst case, a Matérn-1/2, what is missed halves when M doubles; harmonics that must take one value at both
    ends of the data stop far above that.
    """
    return stage.M > 1 and stage.missed > 0.75 * stage.model.restricted(stage.M // 2).at(stage.optimum.theta).missed
