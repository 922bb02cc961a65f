"""Where learning starts: a coarse look at every term by itself, over hyperparameters and noise shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vff.inference.learning.model import NOISE_BOUNDS, SumModel
from vff.inference.learning.optimise import rescale
from vff.inference.learning.sizes import capped
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.model.term import Term, Values
from vff.linalg import NotPositiveDefinite, threads_for
from vff.moments import Harmonics

_SOME_CYCLES = 12
_NOISE_SHARES = (0.1, 0.01, 1.0)  # noise variance over signal variance; the first goes with every lengthscale
_HELD_VARIANCES = (1.0, 0.1, 10.0)  # of the signal, when the noise variance is known
_SITE_SHARES = (1.0, 0.1, 10.0)  # the same, when the noise variance is one and the rows have their own precisions
_BESIDE_ERRORS = ((1.0, 0.01), (1.0, 0.3), (0.1, 0.01), (0.1, 0.3), (0.01, 1e-3))  # variances of signal and noise
_WEAK = ((1.0, 1.0), (1.0, 10.0), (1.0, 100.0))  # variances of signal and noise, to be scaled together
_WEAK_BESIDE_ERRORS = ((0.3, 1.0), (0.03, 1.0), (3e-3, 1.0))  # which cannot be
_PRODUCT_STEP = 3.0
_PRODUCT_FEATURES = 400  # of a product term, in the coarse look at it

Given = Mapping[str, float | None]
"""The user's values by parameter name, None where free."""


@dataclass(frozen=True)
class Start:
    """A candidate and the bound it reaches."""

    theta: np.ndarray
    harmonics: Harmonics
    elbo: float


def sized_for(model: SumModel, setting: Hyperparameters) -> SumModel:
    """The model with about as many harmonics as the hyperparameters deserve; of few rows, all cost next to nothing."""
    if model.few is not None or model.rank is not None:
        return model
    wanted = [_deserved(term, values) for term, values in zip(model.terms, setting.terms, strict=True)]
    return model.restricted(capped(wanted, model.harmonics))


def _deserved(term: Term, values: Mapping[str, float]) -> list[int | None]:
    """Harmonics by factor; those of a product share a number of features."""
    wanted = [factor.needed(term.values_of(d, values)) for d, factor in enumerate(term.factors)]
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
    settings = [model.alone(s).unpack(start.theta) for s, start in enumerate(alone)]
    terms = tuple(setting.terms[0] for setting in settings)
    sized = model.restricted(capped([start.harmonics[0] for start in alone], model.harmonics))
    quietest = noise or min(setting.noise for setting in settings)
    tried = [quietest] if noise or model.noise_held else [quietest, 0.3 * quietest]
    with threads_for(sized.factored):
        starts = [_scored(sized, Hyperparameters(terms, value), fixed=bool(noise) or _any(given)) for value in tried]
    return max(starts, key=_elbo)


def _any(given: tuple[Given, ...]) -> bool:
    return any(value for values in given for value in values.values())


def look_alone(model: SumModel, given: Given, noise: float | None, detail: int) -> Start:
    """The best of a few candidates for a model of one term; ``detail`` is the highest harmonic that matters.

    The rungs of its ladder first, with the first noise share; then the other shares at the best of them.
    """
    middle, *others = _variances(given["variance"], noise, model)
    fixed = bool(given["variance"] or noise)
    tried = [(sized, values, 1.0 if fixed else times) for sized, values, times in _rungs(model, given, detail)]
    with threads_for(max(sized.factored for sized, *_ in tried)):
        first = [
            (sized, values, _evaluate(sized, _raised(middle, times), values, fixed=fixed))
            for sized, values, times in tried
        ]
        # detail of small amplitude shows only when the noise is allowed to be larger than the signal; so does, beside
        # error bars, with which variances cannot be scaled, any function that explains a part
        louder = _WEAK_BESIDE_ERRORS if model.has_error_bars else _WEAK
        louder = () if fixed else louder if detail > _SOME_CYCLES else louder[:1] if model.has_error_bars else ()
        first += [
            (sized, values, _evaluate(sized, variances, values, fixed=False))
            for variances in louder
            for sized, values, _ in tried
        ]
        sized, values, best = max(first, key=lambda trial: trial[2].elbo)
        more = [_evaluate(sized, variances, values, fixed=fixed) for variances in others]
    return max([best, *more], key=_elbo)


def _look_product(model: SumModel, given: Given, noise: float | None, detail: int) -> Start:
    """The best of a few candidates for a model of one product term: all hyperparameters together, then each."""
    (term,), fixed = model.terms, bool(given["variance"] or noise)
    middle, *others = _variances(given["variance"], noise, model)
    free = [(name, own.starts) for name, _, own in term.parameters if not given[name]]

    def at(variances: tuple[float, float], others: Mapping[str, float]) -> Start:
        values = {"variance": variances[0], **{name: given[name] or others[name] for name in term.names[1:]}}
        setting = Hyperparameters((values,), variances[1])
        return _scored(sized_for(model, setting), setting, fixed=fixed)

    with threads_for(_PRODUCT_FEATURES):
        best, values = max(((at(middle, some), some) for some in together(free)), key=lambda trial: trial[0].elbo)
        # of few rows steps cost next to nothing, and go along every hyperparameter by themselves
        for name, _ in free if model.rank is None else ():
            for step in (_PRODUCT_STEP, 1.0 / _PRODUCT_STEP):
                moved = {**values, name: step * values[name]}
                trial = at(middle, moved)
                if trial.elbo > best.elbo:
                    best, values = trial, moved
        return max([best, *(at(variances, values) for variances in others)], key=_elbo)


def together(starts: Sequence[tuple[str, Sequence[float]]]) -> list[dict[str, float]]:
    """The first start of all, then the second, and so on; of one that has fewer, its last again."""
    most = max((len(own) for _, own in starts), default=1)
    return [{name: own[min(n, len(own) - 1)] for name, own in starts} for n in range(most)]


def _raised(variances: tuple[float, float], times: float) -> tuple[float, float]:
    variance, noise = variances
    return times * variance, noise


def _rungs(model: SumModel, given: Given, detail: int) -> list[tuple[SumModel, Values, float]]:
    """Candidates with the models to try them in, and how many times the usual variance; what was given stays."""
    ((factor,),), ((M,),) = (term.factors for term in model.terms), model.harmonics
    known = {own.name: value for own in factor.parameters if (value := given[own.name])}
    if len(known) == len(factor.parameters):
        return [(model, known, 1.0)]
    models: dict[int | None, SumModel] = {None: model}
    tried = []
    for values, most, times in factor.ladder(detail):
        cap = None if most is None or M is None or model.rank is not None else min(M, most)
        if cap not in models:
            models[cap] = model.restricted(((cap,),))
        tried.append((models[cap], {**values, **known}, times))
    return tried


def highest_standing_out(model: SumModel, expected: float | None = None) -> int:
    """The highest harmonic of a model of one column in which the targets stand out of white noise; 0 when none does.

    ``expected`` is the sum of the squares of what was projected on the harmonics: of the targets, unless given.
    """
    (first, *others), ((M, *more), *_) = model.terms, model.harmonics
    if others or more or M is None or first.factors[0].waves(M) is None:
        return 0  # with several columns, detail in one may be the echo of another
    project = model.moments.project
    expected = model.moments.target_squared if expected is None else expected
    found = np.flatnonzero(stands_out(power_of(project, M), expected))
    return int(found[-1]) + 1 if found.size else 0


def power_of(waves: np.ndarray, M: int) -> np.ndarray:
    """Power in the harmonics 1 ... M of sums over cosines and sines, (M,)."""
    return waves[1 : M + 1] ** 2 + waves[M + 1 : 2 * M + 1] ** 2


def stands_out(power: np.ndarray, expected: float) -> np.ndarray:
    """Which harmonics stand out of white noise: its power is about exponential with mean ``expected`` = sum w y^2.

    12 + log M is one false alarm in 1e5 tables.
    """
    return power > (12.0 + np.log(power.size)) * expected


def _elbo(start: Start) -> float:
    return start.elbo


def _variances(variance: float | None, noise: float | None, model: SumModel) -> list[tuple[float, float]]:
    """(variance, noise) to try."""
    sites = model.sites
    if variance and noise:
        return [(variance, noise)]
    if model.has_error_bars:  # which cannot be scaled with the variances
        return [(variance or own, noise or share) for own, share in _BESIDE_ERRORS]
    if noise and not sites and model.noise_held:  # how loud the noise is says nothing of the signal then
        return [(louder, noise) for louder in _HELD_VARIANCES]
    if noise:
        return [(noise / share, noise) for share in (_SITE_SHARES if model.sites else _NOISE_SHARES)]
    return [(variance or 1.0, share * (variance or 1.0)) for share in _NOISE_SHARES]


def _evaluate(model: SumModel, variances: tuple[float, float], values: Values, *, fixed: bool) -> Start:
    variance, noise = variances
    setting = Hyperparameters(({"variance": variance, **values},), noise)
    return _scored(sized_for(model, setting), setting, fixed=fixed)


def _scored(model: SumModel, setting: Hyperparameters, *, fixed: bool) -> Start:
    """A candidate with its bound; unless a variance was given, all of them are scaled together to the best."""
    theta, fixed = within(model, model.pack(setting)), fixed or model.has_error_bars
    try:
        closed = model.climbed.at(theta)
        scale, elbo = (1.0, closed.elbo) if fixed else rescale(closed)
        if fixed or scale == 1.0:
            return Start(theta, model.harmonics, closed.objective)
        louder = theta.copy()
        louder[[*model.variances, -1]] += np.log(scale)
        limited = within(model, louder)
        if model.known is not None or not np.array_equal(limited, louder):  # what is held does not follow
            elbo = model.climbed.at(limited).objective
        return Start(limited, model.harmonics, elbo)
    except NotPositiveDefinite:  # less noise than rounding leaves room for
        return Start(theta, model.harmonics, -np.inf)


def within(model: SumModel, theta: np.ndarray) -> np.ndarray:
    """Where the user lets hyperparameters be, and can imagine them; others may start anywhere."""
    theta = theta if model.known is None else model.known.clipped(theta)
    if not any(term.limits for term in model.terms) and model.noise_limits == NOISE_BOUNDS:
        return theta
    return model.parameters.clip(theta)
