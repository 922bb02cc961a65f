"""How many harmonics: grow M on the nested statistics of one pass until the bound has no more to gain (theory §8).

T, theory (8.1), costs O(P^2) at any M and no factorisation, so the M that the current hyperparameters need is found
without trying it; in a sum of independent terms each grows by itself.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from vff.inference.learning.model import SumModel
from vff.inference.learning.optimise import maximise, with_enough_noise
from vff.inference.learning.records import Optimum
from vff.inference.learning.sizes import edf_by_term, edf_of_detail
from vff.inference.model.term import Term
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.linalg import threads_for
from vff.moments import Harmonics

_SHORTEST_LEAP, _LONGEST_LEAP = 1.25, 2.5
_STALLED = 0.75
_FORESIGHT = 1.0  # log units
_ROUGHLY = 5e-4  # of what is missed: a step that gains less can wait for the next stage
_FEWER, _FEWEST = 0.7, 3  # harmonics, to see what one factor of a product leaves out
_MANY_FEATURES = 1200
_HARDLY_ANY = 1.0  # coefficients: a term that determines fewer may be nothing at all
_NOTHING = 0.05  # nats that a term may bring and still be taken for nothing
_FEW_FEATURES = 400  # up to which a term that vanished gets another chance
_FEW_ROWS = 200  # up to which learning a sum starts from two places
_VANISHED = 10.0  # times the least variance
_REVIVED = (1e-4, 1e-2)  # variances to begin again from, of that of y
_WORTH_IT = 0.5  # nats that another chance must gain


@dataclass(frozen=True)
class Stage:
    """One set of harmonics on the way."""

    model: SumModel
    optimum: Optimum
    closed: LinearGaussian
    """The model at the optimum."""
    tolerance: float
    """What may be missed."""
    free: np.ndarray
    """Which parameters still move; those of terms that came to nothing do not."""
    rough: bool
    """Whether learning stopped early, because M was going to grow anyway."""

    @property
    def harmonics(self) -> Harmonics:
        return self.model.harmonics

    @property
    def bound_gap(self) -> float:
        """T at this M and these hyperparameters, nats."""
        return self.closed.bound_gap

    @cached_property
    def bound_gap_by_term(self) -> np.ndarray:
        return self.model.bound_gap_by_term(self.closed, self.optimum.theta)

    @property
    def enough(self) -> bool:
        """Whether a larger M has too little to gain."""
        return self.bound_gap <= self.tolerance


def tolerance(weight: float, edf: float) -> float:
    """Nats that may be left over: half a nat, one millionth per row, or 0.02 per coefficient the data determine.

    The last is the one that counts for rich functions: the divergence between the approximate and the exact posterior,
    spread over the directions in which the data speak, then moves each by a fraction of its standard deviation.
    """
    return max(0.5, 1e-6 * weight, 0.02 * edf)


def learn(
    model: SumModel,
    start: np.ndarray,
    *,
    optimise: bool,
    progress: Callable[[str], None],
    curvature: np.ndarray | None = None,
    free: np.ndarray | None = None,
    rough: bool = False,
    gain: float | None = None,
    first: Any = None,
) -> Stage:
    """Hyperparameters at fixed harmonics; ``curvature`` comes from a smaller model, if there was one.

    A step that gains less than ``gain`` nats is the last; by default, one that gains nothing. ``first`` is the model at
    the start, where it is known already.
    """
    free = model.learnt if free is None else free
    if model.factored > _MANY_FEATURES:
        how = "by iterations" if model.iterative else "with a factor"
        progress(f"M = {_text(model.harmonics)}: {model.size:,} features, solved {how}")
    with threads_for(model.factored):
        if optimise:
            climbed, elsewhere = model.climbed, 0
            if first is None:
                start, first = with_enough_noise(climbed, model.parameters.clip(start), free)
            if climbed.expands(first):  # a search that is cheap
                start, first, elsewhere = _best_of(model, start, first, free)
            # where features are many and still miss much, the last bit of learning is not worth its time
            if model.few is None and gain is None and (rough or model.factored > _MANY_FEATURES):
                gain = _ROUGHLY * first.bound_gap
            optimum, form = maximise(climbed, start, curvature, free, gain, first)
            optimum = replace(optimum, evaluations=optimum.evaluations + elsewhere)
            if not rough:
                optimum, form, free = _settled(model, optimum, form, free, gain)
            closed = form if model.few is None else model.at(optimum.theta)
        else:
            closed = model.at(start)
            optimum = Optimum(start, closed.objective, 0, 1, True, "hyperparameters kept as given")
        enough = tolerance(model.rows, edf_of_detail(closed, model.harmonics))
    stage = Stage(model, optimum, closed, enough, free, rough)
    progress(
        f"M = {_text(model.harmonics)}: bound {optimum.elbo:.3f} nats for standardised y, "
        f"{optimum.evaluations} evaluations, misses {stage.bound_gap:.3g}"
    )
    return stage


def _other_starts(model: SumModel, start: np.ndarray, free: np.ndarray) -> Iterator[np.ndarray]:
    """Of few rows, a sum in which every term is as smooth as most are: each by itself may have looked otherwise."""
    if len(model.terms) == 1 or model.rows > _FEW_ROWS or model.sites:
        return
    typical = [value for term in model.terms for value in (np.nan, *(own.typical for _, _, own in term.parameters))]
    with np.errstate(invalid="ignore"):
        wish = np.log([*typical, np.nan])
    yield model.parameters.clip(np.where(free & np.isfinite(wish), wish, start))


def _best_of(model: SumModel, start: np.ndarray, first: Any, free: np.ndarray) -> tuple[np.ndarray, Any, int]:
    """The start from which learning comes highest, as far as a few steps tell, the model there, and evaluations."""
    climbed = model.climbed
    others = list(_other_starts(model, start, free))
    if not others:
        return start, first, 0
    ends = [maximise(climbed, start, free=free, gain=_WORTH_IT, first=first)]
    for other in others:
        with suppress(FloatingPointError):  # no model there
            ends.append(maximise(climbed, other, free=free, gain=_WORTH_IT))
    optimum, form = max(ends, key=lambda end: end[0].elbo)
    return optimum.theta, form, sum(own.evaluations for own, _ in ends) - 1


def _text(harmonics: Harmonics) -> str:
    return ", ".join(" x ".join("-" if M is None else str(M) for M in term) for term in harmonics)


def _settled(
    model: SumModel, optimum: Optimum, form: Any, free: np.ndarray, gain: float | None
) -> tuple[Optimum, Any, np.ndarray]:
    """Terms that came to nothing taken out, and the others learnt to the end without them."""
    climbed = model.climbed
    while True:
        optimum, form, kept = _without_nothings(model, optimum, form, free)
        if np.array_equal(kept, free):
            revived = _revived(model, optimum, free)
            if revived is None:
                return optimum, form, free
            optimum, kept = revived
        free, before = kept, optimum
        optimum, form = maximise(climbed, before.theta, before.curvature, free, gain)
        optimum = optimum.after(before)


def _without_nothings(
    model: SumModel, optimum: Optimum, form: Any, free: np.ndarray
) -> tuple[Optimum, Any, np.ndarray]:
    """Terms without which the bound loses next to nothing get the least variance, and stay there.

    On a logarithmic scale a vanishing variance would creep towards zero for ever.
    """
    # a term that is not there has no hyperparameters, and no prior of them: bounds are compared
    theta, free, elbo, spent = optimum.theta.copy(), free.copy(), form.as_learnt.elbo, optimum.evaluations
    places = [*model.variances, theta.size - 1]
    edf = edf_by_term(form) if model.few is None else form.edf_by_term
    for s in np.argsort(edf):
        first = places[s]
        if not free[first] or edf[s] > _HARDLY_ANY or model.terms[s].lone or model.terms[s].needed:
            continue
        trial = theta.copy()
        trial[first] = model.parameters.log_bounds[first][0]
        without, spent = model.climbed.at(trial), spent + 1
        if without.as_learnt.elbo >= elbo - _NOTHING:
            theta, form, elbo = trial, without, without.as_learnt.elbo
            free[first : places[s + 1]] = False
    return replace(optimum, theta=theta, elbo=form.objective, evaluations=spent), form, free


def _revived(model: SumModel, optimum: Optimum, free: np.ndarray) -> tuple[Optimum, np.ndarray] | None:
    """Terms that vanished on the way, in play again where that raises the bound; None where it does not.

    On a logarithmic scale a vanishing variance has no slope: what one path switched off, another may not.
    """
    if model.factored > _FEW_FEATURES or model.sites:
        return None
    theta, elbo, lows = optimum.theta, bound_at(model, optimum.theta), model.parameters.log_bounds
    places = [*model.variances, theta.size - 1]
    for term, (first, end) in zip(model.terms, pairwise(places), strict=True):
        if theta[first] > lows[first][0] + np.log(_VANISHED) or term.lone or term.needed:
            continue
        for trial in _chances(term, theta, first):
            bound = bound_at(model, model.parameters.clip(trial))
            if bound > elbo + _WORTH_IT:
                theta, elbo = model.parameters.clip(trial), bound
                own = (np.arange(theta.size) >= first) & (np.arange(theta.size) < end)
                free = free | (own & model.learnt)
    if theta is optimum.theta:
        return None
    return replace(optimum, theta=theta, elbo=model.climbed.at(theta).objective), free


def _chances(term: Term, theta: np.ndarray, first: int) -> Iterator[np.ndarray]:
    """A term with more variance, as smooth as most are."""
    for variance in _REVIVED:
        trial = theta.copy()
        values = [variance, *(own.typical for _, _, own in term.parameters)]
        trial[first : first + len(values)] = np.log(values)
        yield trial


def bound_at(model: SumModel, theta: np.ndarray) -> float:
    """What is learnt from, without the priors of hyperparameters; minus infinity where rounding leaves no model."""
    try:
        return float(model.climbed.at(theta).as_learnt.elbo)
    except FloatingPointError:  # negative sites, too
        return -np.inf


def grow(
    model: SumModel,
    start: np.ndarray,
    harmonics: Harmonics,
    *,
    optimise: bool,
    progress: Callable[[str], None],
    known: dict[str, Any] | None = None,
    budgets: Sequence[float] | None = None,
) -> list[Stage]:
    """Learn at few harmonics, then at those the hyperparameters need, until it is enough or the statistics end.

    ``known`` is what the first of them may be told (see ``learn``); ``budgets`` are features that terms may grow to,
    where the statistics have more.
    """
    budgets = [np.inf] * len(model.terms) if budgets is None else budgets
    rough = optimise and len(model.terms) > 1
    how: dict[str, Any] = {"optimise": optimise, "progress": progress}
    first = {"rough": rough and harmonics != model.harmonics, **(known or {})}
    stages = [learn(model.restricted(harmonics), start, **first, **how)]
    stuck = np.zeros(len(model.terms), bool)
    while True:
        last = stages[-1]
        stuck |= _stuck(stages)
        wanted = last.harmonics if last.enough else _next(last, model, stuck, budgets)
        grows = wanted != last.harmonics
        if not grows and not last.rough:
            return stages
        larger = model.restricted(wanted) if grows else last.model
        theta = foreseen(last, larger) if grows and optimise else last.optimum.theta
        more = {
            "curvature": last.optimum.curvature,
            "free": last.free,
            "first": None if grows or last.model.few is not None else last.closed,
        }
        stage = learn(larger, theta, rough=rough and grows and wanted != model.harmonics, **more, **how)
        if grows:
            stages.append(stage)
        else:
            stages[-1] = replace(stage, optimum=stage.optimum.after(last.optimum))


def _stuck(stages: list[Stage]) -> np.ndarray:
    """Which terms gained nothing from their last growth of M: something else, their domain, is what limits them."""
    last = stages[-1]
    if len(stages) == 1:
        return np.zeros(len(last.harmonics), bool)
    before, theta = stages[-2].model, last.optimum.theta
    grew = np.array([now != then for now, then in zip(last.harmonics, before.harmonics, strict=True)])
    hardly = last.bound_gap_by_term > _STALLED * before.bound_gap_by_term(before.at(theta), theta)
    return grew & hardly


def _next(stage: Stage, model: SumModel, stuck: np.ndarray, budgets: Sequence[float]) -> Harmonics:
    """The harmonics that should be enough: T falls like M^-decay, the tail of the spectrum.

    A stage costs P^3, so one on the way is cheap and leaves little to learn at the last and largest: no leap is long.
    """
    share = stage.tolerance / len(model.terms)
    wanted: list[tuple[int | None, ...]] = []
    for s, bound_gap in enumerate(stage.bound_gap_by_term):
        now, most = stage.harmonics[s], model.harmonics[s]
        if bound_gap <= share or stuck[s]:
            wanted.append(now)
            continue
        factors = range(len(now))
        tails = _tails(stage, s) if len(now) > 1 else [bound_gap]
        leaps = tuple(_leap(stage, s, d, most[d], tails[d], share / len(now)) for d in factors)
        wanted.append(_within(stage, s, leaps, tails, budgets[s]))
    return tuple(wanted)


def _within(
    stage: Stage, s: int, wanted: tuple[int | None, ...], tails: Sequence[float], budget: float
) -> tuple[int | None, ...]:
    """As many of the wanted harmonics as a number of features allows, each for the factor that misses most then."""
    bases, factors = stage.model.moments.request.terms[s].bases, stage.model.terms[s].factors
    now = [basis.detail for basis in bases]

    def size(trial: Sequence[int | None]) -> int:
        return prod(basis.resized(M).size if M else basis.size for basis, M in zip(bases, trial, strict=True))

    if size(wanted) <= budget:
        return wanted
    trial = list(now)
    while True:
        misses = [
            (tails[d] * (old / M) ** (factor.decay or 1.0), d)
            for d, (old, M, most, factor) in enumerate(zip(now, trial, wanted, factors, strict=True))
            if old is not None and M is not None and most is not None and most > M
        ]
        d = max(misses)[1] if misses else 0
        grown = [M + 1 if e == d and M is not None else M for e, M in enumerate(trial)]
        if not misses or size(grown) > budget:
            return tuple(trial)
        trial = grown


def _leap(stage: Stage, s: int, d: int, most: int | None, bound_gap: float, share: float) -> int | None:
    """Harmonics at which one factor should miss no more than its share."""
    M, decay = stage.harmonics[s][d], stage.model.terms[s].factors[d].decay
    if M is None or most is None or decay is None or bound_gap <= share:
        return M
    factor = (bound_gap / (0.5 * share)) ** (1.0 / decay)
    enough = int(np.ceil(M * min(max(factor, _SHORTEST_LEAP), _LONGEST_LEAP)))
    return most if _SHORTEST_LEAP * enough > most else enough


def _tails(stage: Stage, s: int) -> list[float]:
    """What each factor of a product leaves out, from what fewer of its harmonics would."""
    theta, tails = stage.optimum.theta, []
    for d, M in enumerate(stage.harmonics[s]):
        decay = stage.model.terms[s].factors[d].decay
        if M is None or decay is None or M < _FEWEST:
            tails.append(0.0 if M is None or decay is None else float(stage.bound_gap_by_term[s]))
            continue
        fewer = int(_FEWER * M)
        model = stage.model.alone(s).restricted(
            (tuple(fewer if e == d else other for e, other in enumerate(stage.harmonics[s])),)
        )
        first = stage.model.variances[s]
        own = np.append(theta[first : first + len(stage.model.terms[s].names)], theta[-1])
        bound_gap = model.bound_gap_by_term(model.at(own), own)[0] - stage.bound_gap_by_term[s]
        tails.append(max(0.0, float(bound_gap)) / ((M / fewer) ** decay - 1.0))
    return tails


def foreseen(last: Stage, large: SumModel) -> np.ndarray:
    """Where the optimum moves when the model grows: one Newton step on what is known of the gain, T_small - T_large."""
    theta, small, curvature = last.optimum.theta, last.model, last.optimum.curvature
    if curvature is None or small.few is not None:  # what rows themselves say does not move with M
        return theta
    gain = small.pull_back(theta, last.closed.gap_cotangents)
    gain = gain - large.pull_back(theta, large.at(theta).gap_cotangents)
    step = np.clip(np.linalg.solve(curvature, gain), -_FORESIGHT, _FORESIGHT)
    return theta + np.where(last.free, step, 0.0)
