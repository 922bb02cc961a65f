"""Where learning starts: a coarse look at every term by itself, over lengthscales and noise shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vff.inference.model import Setting, SumModel, capped
from vff.inference.optimise import rescale
from vff.inference.terms import Term
from vff.linalg import NotPositiveDefinite, threads_for
from vff.moments import Harmonics

_LENGTHSCALES = (2.0, 0.6, 0.2, 0.06, 0.02)  # half domains
_SHORT_LENGTHSCALE, _MANY_CYCLES, _SOME_CYCLES = 0.006, 32, 12
_NOISE_SHARES = (0.1, 0.01, 1.0)  # noise variance over signal variance; the first goes with every lengthscale
_SITE_SHARES = (1.0, 0.1, 10.0)  # the same, when the noise variance is one and the rows have their own precisions
_WEAK_SHARES = (1.0, 10.0, 100.0)
_MOST_HARMONICS = 128
_PRODUCT_LENGTHSCALES, _PRODUCT_STEP = (2.0, 0.6, 0.2), 3.0
_PRODUCT_FEATURES = 400  # of a product term, in the coarse look at it

Given = Mapping[str, float | None]
"""The user's values by parameter name, None where free."""


@dataclass(frozen=True)
class Start:
    """A candidate and the bound it reaches."""

    theta: np.ndarray
    harmonics: Harmonics
    elbo: float


def harmonics_for(lengthscale: float, p: int) -> int:
    """Harmonics that carry most of the prior variance at this lengthscale (half domains)."""
    # Half the spectral mass of f lies below about omega = rate; four rates leave a few per cent or less.
    rate = np.sqrt(2 * p + 1) / lengthscale
    return int(np.clip(np.ceil(4.0 * rate / np.pi), 12, 10_000))


def sized_for(model: SumModel, setting: Setting) -> SumModel:
    """The model with about as many harmonics as the lengthscales deserve."""
    wanted = [_deserved(term, values) for term, values in zip(model.terms, setting.terms, strict=True)]
    return model.restricted(capped(wanted, model.harmonics))


def _deserved(term: Term, values: Mapping[str, float]) -> list[int | None]:
    """Harmonics by factor; those of a product share a number of features."""
    orders = [term.order(d) for d in range(len(term.factors))]
    wanted = [None if p is None else harmonics_for(term.lengthscale(d, values), p) for d, p in enumerate(orders)]
    if len(wanted) == 1:
        return wanted
    most = max(2, int(0.5 * (_PRODUCT_FEATURES ** (1.0 / len(wanted)) - 4.0)))
    return [None if M is None else min(M, most) for M in wanted]


def look(model: SumModel, given: tuple[Given, ...], noise: float | None, details: Sequence[int]) -> Start:
    """A start for all terms together: what each of them would say alone, and the noise that they leave.

    ``details`` are the highest harmonics that matter, by term.
    """
    alone = [
        (look_alone if len(model.terms[s].factors) == 1 else _look_product)(model.alone(s), values, noise, detail)
        for s, (values, detail) in enumerate(zip(given, details, strict=True))
    ]
    if len(alone) == 1:
        return alone[0]
    settings = [model.alone(s).setting(start.theta) for s, start in enumerate(alone)]
    terms = tuple(setting.terms[0] for setting in settings)
    sized = model.restricted(capped([start.harmonics[0] for start in alone], model.harmonics))
    quietest = noise or min(setting.noise for setting in settings)
    tried = [quietest] if noise else [quietest, 0.3 * quietest]
    with threads_for(sized.size):
        starts = [_scored(sized, Setting(terms, value), fixed=bool(noise) or _any(given)) for value in tried]
    return max(starts, key=_elbo)


def _any(given: tuple[Given, ...]) -> bool:
    return any(value for values in given for value in values.values())


def look_alone(model: SumModel, given: Given, noise: float | None, detail: int) -> Start:
    """The best of a few candidates for a model of one term; ``detail`` is the highest harmonic that matters.

    Lengthscales first, with the first noise share; then the other shares at the best lengthscale. Short lengthscales
    are tried with all the harmonics they need only when the targets have something to say at high frequencies.
    """
    middle, *others = _variances(given["variance"], noise, sites=model.sites)
    fixed = bool(given["variance"] or noise)
    tried = _lengthscales(model, given, detail)
    with threads_for(max(sized.size for sized, _ in tried)):
        first = [(sized, length, _evaluate(sized, middle, length, fixed=fixed)) for sized, length in tried]
        if detail > _SOME_CYCLES and not fixed:
            # detail of small amplitude shows only when the noise is allowed to be larger than the signal
            first += [
                (sized, length, _evaluate(sized, (1.0, share), length, fixed=False))
                for share in _WEAK_SHARES
                for sized, length in tried
            ]
        sized, length, best = max(first, key=lambda trial: trial[2].elbo)
        more = [_evaluate(sized, variances, length, fixed=fixed) for variances in others]
    return max([best, *more], key=_elbo)


def _look_product(model: SumModel, given: Given, noise: float | None, detail: int) -> Start:
    """The best of a few candidates for a model of one product term: one lengthscale for all columns, then each."""
    (term,), fixed = model.terms, bool(given["variance"] or noise)
    middle, *others = _variances(given["variance"], noise, sites=model.sites)
    names = [name for name in term.names[1:] if not given[name]]

    def at(variances: tuple[float, float], lengthscales: Mapping[str, float]) -> Start:
        values = {"variance": variances[0], **{name: given[name] or lengthscales[name] for name in term.names[1:]}}
        setting = Setting((values,), variances[1])
        return _scored(sized_for(model, setting), setting, fixed=fixed)

    with threads_for(_PRODUCT_FEATURES):
        tried = [dict.fromkeys(names, length) for length in (_PRODUCT_LENGTHSCALES if names else (1.0,))]
        best, lengthscales = max(((at(middle, lengths), lengths) for lengths in tried), key=lambda trial: trial[0].elbo)
        for name in names:
            for step in (_PRODUCT_STEP, 1.0 / _PRODUCT_STEP):
                moved = {**lengthscales, name: step * lengthscales[name]}
                trial = at(middle, moved)
                if trial.elbo > best.elbo:
                    best, lengthscales = trial, moved
        return max([best, *(at(variances, lengthscales) for variances in others)], key=_elbo)


def _lengthscales(model: SumModel, given: Given, detail: int) -> list[tuple[SumModel, float | None]]:
    """Candidates with the models to try them in; a term of levels has no lengthscale."""
    ((M,),) = model.harmonics
    if M is None:
        return [(model, None)]
    if given["lengthscale"]:
        return [(model, given["lengthscale"])]
    coarse = model.restricted(((min(M, _MOST_HARMONICS),),))
    tried: list[tuple[SumModel, float | None]] = [(coarse, length) for length in _LENGTHSCALES]
    if detail > _MANY_CYCLES:
        tried.append((coarse, _SHORT_LENGTHSCALE))
    if detail > _MOST_HARMONICS:
        fine = model.restricted(((min(M, harmonics_above(detail)),),))
        tried += [(fine, length) for length in (4.0 / detail, 1.0 / detail, 0.25 / detail)]
    return tried


def highest_standing_out(model: SumModel, expected: float | None = None) -> int:
    """The highest harmonic of a model of one column in which the targets stand out of white noise; 0 when none does.

    ``expected`` is the sum of the squares of what was projected on the harmonics: of the targets, unless given.
    """
    every = [M for term in model.harmonics for M in term]
    if len(every) > 1 or every[0] is None:
        return 0  # with several columns, detail in one may be the echo of another
    M, project = every[0], model.moments.project
    expected = model.moments.target_squared if expected is None else expected
    standing = np.flatnonzero(stands_out(power_of(project, M), expected))
    return int(standing[-1]) + 1 if standing.size else 0


def power_of(waves: np.ndarray, M: int) -> np.ndarray:
    """Power in the harmonics 1 ... M of sums over cosines and sines, (M,)."""
    return waves[1 : M + 1] ** 2 + waves[M + 1 : 2 * M + 1] ** 2


def stands_out(power: np.ndarray, expected: float) -> np.ndarray:
    """Which harmonics stand out of white noise: its power is about exponential with mean ``expected`` = sum w y^2.

    12 + log M is one false alarm in 1e5 tables.
    """
    return power > (12.0 + np.log(power.size)) * expected


def harmonics_above(detail: int) -> int:
    """Harmonics that hold detail at this one, with room to take its shape."""
    return int(1.3 * detail) + 8


def _elbo(start: Start) -> float:
    return start.elbo


def _variances(variance: float | None, noise: float | None, *, sites: bool) -> list[tuple[float, float]]:
    """(variance, noise) to try."""
    if variance and noise:
        return [(variance, noise)]
    if noise:
        return [(noise / share, noise) for share in (_SITE_SHARES if sites else _NOISE_SHARES)]
    return [(variance or 1.0, share * (variance or 1.0)) for share in _NOISE_SHARES]


def _evaluate(model: SumModel, variances: tuple[float, float], lengthscale: float | None, *, fixed: bool) -> Start:
    variance, noise = variances
    values = {"variance": variance} if lengthscale is None else {"variance": variance, "lengthscale": lengthscale}
    setting = Setting((values,), noise)
    return _scored(sized_for(model, setting), setting, fixed=fixed)


def _scored(model: SumModel, setting: Setting, *, fixed: bool) -> Start:
    """A candidate with its bound; unless a variance was given, all of them are scaled together to the best."""
    theta = model.pack(setting)
    try:
        closed = model.at(theta)
        scale, elbo = (1.0, closed.elbo) if fixed else rescale(closed)
    except NotPositiveDefinite:  # less noise than rounding leaves room for
        return Start(theta, model.harmonics, -np.inf)
    if fixed:
        return Start(theta, model.harmonics, elbo)
    louder = tuple({**values, "variance": scale * values["variance"]} for values in setting.terms)
    return Start(model.pack(Setting(louder, scale * setting.noise)), model.harmonics, elbo)
