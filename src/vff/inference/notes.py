"""What a fit has to say for itself: what limits the bound, which terms came to nothing, and how learning ended."""

from collections.abc import Sequence

import numpy as np

from vff.basis import Interval
from vff.inference.growth import Stage
from vff.inference.model import SumModel
from vff.inference.start import highest_standing_out
from vff.inference.terms import MaternTerm
from vff.moments import ColumnRequest, Survey


def notes_on(
    final: Stage,
    whole: SumModel,
    requests: Sequence[ColumnRequest],
    extents: Sequence[Survey],
    labels: Sequence[str],
    chosen: Sequence[bool],
) -> tuple[str, ...]:
    """Sentences for the user.

    ``whole`` is the model with all harmonics that were summed; ``extents`` say where the data lie, ``labels`` what the
    columns are called, and ``chosen`` whose harmonics were left to the fit.
    """
    notes = []
    for s, label in enumerate(labels):
        place = requests[s].place
        if isinstance(place, Interval):
            notes += _on_domain(final, place, extents[s], label)
            notes += _on_detail(final, whole, s, label)
    notes += [*_on_bound(final, labels, chosen), *_on_learning(final, labels)]
    return tuple(notes)


def _on_detail(final: Stage, whole: SumModel, s: int, label: str) -> list[str]:
    # with several columns, detail in one may be the echo of another
    detail = highest_standing_out(whole) if len(whole.terms) == 1 else 0
    if not detail or _follows(final, s, detail):
        return []
    return [
        f"the targets stand out of noise at harmonic {detail} of the domain of {label}, which the fit "
        f"(M = {final.harmonics[s]}) takes for noise; set frequencies to several times {detail}, or start from a "
        "shorter lengthscale"
    ]


def _follows(final: Stage, s: int, detail: int) -> bool:
    """Whether the fitted prior leaves a harmonic enough variance for the data to speak in it."""
    term, setting, M = final.model.terms[s], final.model.setting(final.optimum.theta), final.harmonics[s]
    if not isinstance(term, MaternTerm) or M is None:
        return True
    values = setting.terms[s]
    density = term.kernel(values).spectral_density(np.array([np.pi * detail]))[0]
    informed = 0.5 * final.model.weight * values["variance"] * density / setting.noise > 1.0
    return bool(detail <= M and informed)


def _on_domain(final: Stage, interval: Interval, extent: Survey, label: str) -> list[str]:
    notes = []
    outside = sum(tail.r.size for tail in final.model.tails)
    if outside:
        notes.append(
            f"{outside} rows lie outside the domain [{interval.a:g}, {interval.b:g}], where the features can hardly "
            f"follow them; the data reach from {extent.low:g} to {extent.high:g}: widen domain"
        )
    share = (extent.high - extent.low) / (interval.b - interval.a)
    if extent.constant:
        notes.append(
            f"column {label} holds one value, {extent.low:g}, in all rows; its effect cannot be told from a constant: "
            "leave it out"
        )
    elif share < 0.05:
        notes.append(
            f"the data of column {label} take up {100 * share:.2g} % of the domain [{interval.a:g}, {interval.b:g}], "
            "and the harmonics are spread over all of it; narrow domain to where predictions are wanted"
        )
    return notes


def _on_bound(final: Stage, labels: Sequence[str], chosen: Sequence[bool]) -> list[str]:
    missed, limit = final.missed, 10.0 * final.tolerance
    if final.closed.allowance > 0.5 * max(missed, final.tolerance):
        return [
            "the signal stands so far above the noise that float64 limits the bound: "
            f"{final.closed.allowance:.3g} nats are allowed for rounding; a larger noise_variance would cost nothing"
        ]
    if missed <= limit:
        return []
    worst = int(np.argmax(final.missed_by_term))
    M, label = final.harmonics[worst], labels[worst]
    if _stalled(final, worst):
        return [
            f"the domain limits the bound: it may gain about {missed:.3g} nats, most of it in column {label}, but not "
            "from a larger M; widen domain beyond the data, or leave edges='auto'"
        ]
    last = f"M = {M} is the largest this pass allows" if chosen[worst] else f"frequencies = {M} was given"
    return [
        f"M limits the bound: it may gain about {missed:.3g} nats, most of it in column {label}, and {last}; "
        f"set frequencies to a larger number than {M}"
    ]


def _on_learning(final: Stage, labels: Sequence[str]) -> list[str]:
    notes = []
    if not final.optimum.converged:
        notes.append(
            "learning stopped where no step raises the bound, before its gradient vanished "
            f"({final.optimum.message.strip(' :')}); try another start, or a larger noise_variance"
        )
    nothing = [label for s, label in enumerate(labels) if not supported(final, s)]
    if nothing:
        many = len(nothing) > 1
        notes.append(
            f"the data do not support {'effects' if many else 'an effect'} of {', '.join(nothing)}: "
            f"{'their variances' if many else 'its variance'} shrank to nothing"
        )
    for name, end in final.model.parameters.at_bounds(final.optimum.theta).items():
        kind, _, s = name.partition(" ")
        if final.optimum.steps and (not s or supported(final, int(s))):
            of = f" of {labels[int(s)]}" if s and len(labels) > 1 else ""
            notes.append(f"{kind}{of} ended at its {end} bound; the data do not determine it")
    if final.closed.factor.jitter:
        notes.append(
            f"{final.closed.factor.jitter:g} was added to the scaled diagonal of the posterior precision to factor it; "
            "noise_variance is very small against the signal"
        )
    return notes


def supported(final: Stage, s: int) -> bool:
    """Whether the term is still in play."""
    first = sum(len(term.names) for term in final.model.terms[:s])
    return bool(final.free[first])


def _stalled(stage: Stage, s: int) -> bool:
    """Whether harmonics have stopped helping: half of them miss hardly more than all of them.

    In the worst case, a Matérn-1/2, what is missed halves when M doubles; harmonics that must take one value at both
    ends of the data stop far above that.
    """
    M = stage.harmonics[s]
    if M is None or M == 1:
        return False
    fewer = stage.model.restricted((*stage.harmonics[:s], M // 2, *stage.harmonics[s + 1 :]))
    missed = fewer.missed_by_term(fewer.at(stage.optimum.theta), stage.optimum.theta)[s]
    return bool(stage.missed_by_term[s] > 0.75 * missed)
