"""Products of two terms join a sum as long as they pay: what is tried, what is asked of a pair, and the fit at the end.

The sum is fitted without them. One look at the rows ranks the pairs by what they would gain of its residuals, one pass
sums the best few of them together with the terms of the fit, and these sums say what each gains beside the terms that
are there, all hyperparameters learnt again; no row is read for that. Those that pay are written into the kernel, and
the fit is that of the kernel. Theory §25 says what a pair must gain, and why.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Any, NamedTuple

import numpy as np

from vff.data import Source
from vff.estimators.candidates import Candidate, FittedRows, candidates_of
from vff.estimators.fitting import Fitted, RowPasses, Stopwatch, fit, learnt, task_of
from vff.estimators.options import FitSpec
from vff.estimators.tried import TriedInteractions, TriedPair
from vff.factors import Product, sum_of
from vff.inference import LARGEST_DIRECT, Fit, Gain, Joining, PartialSum, SumModel, Sums, TermFit, Units, model_beside
from vff.kernels import Kernel

_PAYS = 3.0  # nats that a pair must gain, and the logarithm of the number of pairs on top
_HOPEFUL = 0.5  # of that, which it must be expected to gain to be fitted: a fit may gain twice as much
_MOST_FAILURES = 2  # pairs that did not pay before it ends
_EXPECTED_MISS = 1.5  # times what is known to be missed for want of features
_MORE = 3  # pairs that are summed beyond those that may join: two may tell one story
_LARGEST_PAIR = 1600  # coarse features of a pair that is looked at: levels have as many as there are


def fit_choosing(spec: FitSpec, source: Source, before: Fitted | None = None) -> Fitted:
    """Rows to a posterior, with as many pairs as pay where these were asked for; later rows find them settled."""
    if not spec.most_pairs or before is not None:
        return fit(spec, source, before)
    _check_asked(spec, source)
    plain = replace(
        spec,
        inference="variational",
        hyperparameters="maximise",
        covariance="full",
        options=spec.options._replace(covariance="full"),
        priors=spec.priors if spec.inference == "variational" else None,
    )
    again = source if plain.method().needs == "sums" else source.revisitable()
    found, kernel = Choice(plain, again).made()
    if spec.inference == plain.inference and spec.covariance == plain.covariance:
        return found if spec.hyperparameters == "maximise" else _averaged(spec, found, kernel, again)
    last = fit(replace(spec, kernel=kernel), again)
    seconds = {phase: found.seconds.get(phase, 0.0) + last.seconds.get(phase, 0.0) for phase in found.seconds}
    return last._replace(interactions=found.interactions, seconds={**last.seconds, **seconds})


def _averaged(spec: FitSpec, found: Fitted, kernel: Kernel | None, source: Source) -> Fitted:
    """With hyperparameters averaged over, where that is asked for or matters: from sums, where they say all."""
    spec = replace(spec, kernel=kernel)
    if spec.method().needs != "sums":
        return fit(spec, source)._replace(interactions=found.interactions)
    rows = found.statistics
    return found._replace(fit=learnt(spec, rows, Sums(rows.moments, rows.tails, rows.few), found.fit))


def _check_asked(spec: FitSpec, source: Source) -> None:
    if spec.optimizer is None:
        raise ValueError(
            "interactions are chosen by what their products gain when hyperparameters are learnt, and optimizer=None "
            "keeps those that were given; leave optimizer='lbfgs', or write the products in the kernel"
        )
    if not source.repeatable:
        raise ValueError(
            "interactions are chosen by reading the rows again, and an iterator gives them once; pass a function that "
            "returns a new iterator, or write the products in the kernel"
        )
    if source.options.checkpoint is not None:
        raise ValueError(
            "a checkpoint keeps the state of one pass over the rows, and interactions are chosen by several; leave "
            "checkpoint out, or write the products in the kernel"
        )


def _limited(found: Fitted) -> float:
    """Nats that the bound misses because a product has all harmonics that were summed for it; 0 where none has."""
    assert found.fit is not None
    stage, most = found.fit.history[-1], found.statistics.moments.request.harmonics
    asked = found.statistics.harmonics
    ended = (
        len(own) > 1 and own == whole and None in wish
        for own, whole, wish in zip(stage.harmonics, most, asked, strict=True)
    )
    return stage.bound_gap if any(ended) and stage.bound_gap > stage.tolerance else 0.0


@dataclass
class Choice:
    """Which pairs join, for a likelihood and a source."""

    spec: FitSpec
    source: Source

    @cached_property
    def alone(self) -> Fitted:
        """The sum without pairs."""
        return fit(self.spec, self.source)

    def made(self) -> tuple[Fitted, Kernel | None]:
        """The fit with those that pay, and its kernel."""
        alone, watch = self.alone, Stopwatch()
        found = candidates_of(alone.statistics)
        needed = _PAYS + log(max(1, len(found)))
        self.spec.progress(f"{len(found):,} pairs of terms might join, each if it gains {needed:.1f} nats")
        with watch("pairs"):
            trials = self._trials(found, needed)
        last, rise, trials = self._fitted(trials)
        tried = TriedInteractions(trials.record(), needed, self.spec.most_pairs, rise)
        every = [alone.seconds, dict(watch), {} if last is alone else last.seconds]
        phases = dict.fromkeys(phase for own in every for phase in own)
        seconds = {phase: sum(own.get(phase, 0.0) for own in every) for phase in phases}
        kernel = last.statistics.binding.kernel if trials.joined else self.spec.kernel
        return last._replace(interactions=tried, seconds=seconds), kernel

    def _fitted(self, trials: "Trials") -> "tuple[Fitted, float | None, Trials]":
        """The fit with those that joined, by how much its bound is higher, and which they are in the end."""
        while trials.joined:
            last, rise = self._with(trials)
            while (fewer := trials.strongest(_limited(last))) is not None:
                other, higher = self._with(fewer)
                if not higher > rise:
                    break
                last, rise, trials = other, higher, fewer
            if not rise < trials.needed * len(trials.joined):  # NaN where there is no bound
                return last, rise, trials
            trials = trials.without_last(rise)
        return self.alone, None, trials

    def _with(self, trials: "Trials") -> tuple[Fitted, float]:
        """The sum with the pairs that joined, and by how much its bound is higher."""
        terms = (term.term.expression for term in self.alone.statistics.terms)
        spec = replace(self.spec, kernel=sum_of([*terms, *trials.kernels]))
        last = fit(spec, self.source, start=trials.start)
        assert last.fit is not None
        assert self.alone.fit is not None
        return last, last.fit.elbo - self.alone.fit.elbo

    def _trials(self, found: list[Candidate], needed: float) -> "Trials":
        """Look at all pairs, let the best few join one after another, and look again at what those leave."""
        fitted, most = self.alone.fit, self.spec.most_pairs
        assert fitted is not None
        rows, reader = self.alone.statistics, RowPasses(self.spec, self.source, Stopwatch()).reader
        again = FittedRows(fitted, rows, self.source, reader, self.spec.engine)
        small = [own for own in found if own.request.size <= _LARGEST_PAIR]
        loose = self._loose()
        gains = (again if loose is None else replace(again, fit=loose)).gains(small)
        ranked = sorted(zip(small, gains, strict=True), key=lambda own: -own[1].nats)
        at, loosely = At.of(fitted), None if loose is None else At.of(loose)
        large = [own for own in found if own.request.size > _LARGEST_PAIR]
        pairs, expected = [own for own, _ in ranked], [gain for _, gain in ranked]
        trials = Trials(again, self.spec, pairs, expected, large, needed, at, loosely=loosely)
        while True:
            before = len(trials.joined)
            trials = trials.tried(most)
            failed = len(trials.gains) - len(trials.joined)
            if len(trials.joined) in (before, most) or failed >= _MOST_FAILURES:
                return trials
            trials = trials.looked_at()

    def _loose(self) -> Fit | None:
        """The sum without pairs, and with a noise that is learnt; None where it is learnt anyway."""
        rows, loose = self.alone.statistics, _loosened(self.spec)
        return None if loose is None else learnt(loose, rows, Sums(rows.moments, rows.tails, rows.few), None)


def _loosened(spec: FitSpec) -> FitSpec | None:
    """The same with noise that is learnt, whatever was said of it (see ``Joining``); None where nothing was."""
    priors = dict(spec.priors or {})
    said = priors.pop("noise_variance", None) is not None or spec.noise == 0.0 or spec.noise_limits is not None
    if not said or not spec.likelihood.conjugate:
        return None
    return replace(spec, noise=None, noise_limits=None, priors=priors or None, progress=lambda message: None)


class At(NamedTuple):
    """Where learning stands: logarithms of hyperparameters, and which of them move unless they are held."""

    theta: np.ndarray
    free: np.ndarray

    @classmethod
    def of(cls, fit: Fit) -> "At":
        """Where a fit has ended; terms that came to nothing stay nothing."""
        moves = [own.active for own in fit.terms for _ in (own.variance, *own.lengthscales)]
        return cls(fit.history[-1].optimum.theta, np.array([*moves, True]))

    @classmethod
    def here(cls, some: PartialSum) -> "At":
        return cls(some.theta, some.free)


@dataclass(frozen=True)
class Trials:
    """Pairs, best first by what was expected of them at first, and how those fared that were fitted."""

    again: FittedRows
    """The rows, with a fit of the terms and of the pairs that joined before the last look."""
    spec: FitSpec
    pairs: "list[Candidate]"
    expected: "list[Gain]"
    """Of every pair, at the last look that it was there for."""
    large: "list[Candidate]"
    """Pairs that were not looked at."""
    needed: float
    at: At
    """Of the terms, and of the pairs that joined."""
    gains: tuple[tuple[int, float], ...] = ()
    """Of those that were fitted, by their place among the pairs."""
    joined: tuple[int, ...] = ()
    reasons: tuple[tuple[int, str], ...] = ()
    """Why others did not join, where that is not what they gained."""
    start: Fit | None = None
    """Hyperparameters of the terms and of those that joined, to start from."""
    loose: Fit | None = None
    """The same with noise that is learnt, and with its posterior, at coarse features: what the next look is from."""
    loosely: At | None = None
    """Where learning stands with noise that is learnt; None where it is learnt anyway."""

    @property
    def kernels(self) -> list[Product]:
        """The products that joined."""
        return [self.pairs[s].kernel() for s in self.joined]

    @property
    def _left(self) -> list[int]:
        """Pairs that were not fitted yet."""
        return [s for s in range(len(self.pairs)) if s not in dict(self.gains)]

    def looked_at(self) -> "Trials":
        """With what the pairs that are left would gain of what the sum leaves unexplained now."""
        assert self.loose is not None
        left, again, expected = self._left, replace(self.again, fit=self.loose), list(self.expected)
        for s, gain in zip(left, again.gains([self.pairs[s] for s in left]), strict=True):
            expected[s] = gain
        return replace(self, again=again, expected=expected)

    def _hopeful(self, most: int) -> list[int]:
        """The best few of those that might pay, as many as there is room for."""
        some = [s for s in self._left if self.expected[s].nats > _HOPEFUL * self.needed]
        some.sort(key=lambda s: -self.expected[s].nats)
        open_places, used, found = most - len(self.joined), self.again.fit.posterior.request.size, []
        for s in some[: min(2 * open_places, open_places + _MORE)]:
            used += self.pairs[s].request.size
            if used > LARGEST_DIRECT:
                break
            found.append(s)
        return found

    def tried(self, most: int) -> "Trials":
        """One after another on the sums of all of them, until enough have joined or too many have not."""
        fits = self._hopeful(most)
        if not fits:
            return self
        sums, T = self.again.summed([self.pairs[s].request for s in fits]), len(self.again.fit.posterior.request.terms)
        now = self._standing(sums, fits)
        place, left = {s: T + i for i, s in enumerate(fits)}, {s: self.expected[s] for s in fits}
        gains, before, reasons = list(self.gains), len(self.joined) - T, self.reasons
        while left and len(now.kept) + before < most and len(gains) - len(now.kept) - before < _MOST_FAILURES:
            s = max(left, key=lambda own: left[own].nats)
            start = left.pop(s)
            if start.nats <= _HOPEFUL * self.needed:  # and so is all that is expected of others
                why = "expected to gain too little beside those that joined"
                reasons = (*reasons, *((other, why) for other in (s, *left)))
                break
            trial = now.joined(place[s], start.values)
            gains.append((s, trial.elbo - now.elbo))
            if gains[-1][1] > self.needed:
                now = trial
                left = {other: now.expected(place[other]) for other in left}  # two pairs may tell one story
        joined = (*self.joined, *(fits[c - T] for c in now.kept[T:]))
        found = {"gains": tuple(gains), "joined": joined, "reasons": reasons, "at": At.here(now.asked)}
        seen = now.loose
        posterior = seen.model.posterior(seen.model.at(seen.theta), seen.theta)
        loose = replace(self._start(seen), posterior=posterior)
        loosely = None if self.loosely is None else At.here(seen)
        return replace(self, **found, start=self._start(now.asked), loose=loose, loosely=loosely)

    def _standing(self, sums: Sums, fits: Sequence[int]) -> Joining:
        """The terms of the fit and those that joined, in sums that have products that might."""
        kept, spec = range(len(self.again.fit.posterior.request.terms)), _loosened(self.spec)
        asked = PartialSum.of(self._model(self.spec, sums, fits), kept, *self.at)
        if spec is None or self.loosely is None:
            return Joining(asked, asked)
        return Joining(asked, PartialSum.of(self._model(spec, sums, fits), kept, *self.loosely))

    def _model(self, spec: FitSpec, sums: Sums, fits: Sequence[int]) -> SumModel:
        """The terms of the fit and those that joined, beside products that might."""
        fit, rows = self.again.fit, self.again.rows
        products = [self.pairs[s].plan(rows) for s in (*self.joined, *fits)]
        return model_beside(task_of(spec, rows, sums, more=products), fit)

    def _start(self, now: PartialSum) -> Fit:
        """The fit with the hyperparameters of these terms, in the user's units."""
        fit, setting, model = self.again.fit, now.setting, now.model
        values = Units.of(fit.target, model.terms, model.moments.request).outer(setting.terms)
        new = len(values) - len(fit.terms)
        names = [*(own.name for own in fit.terms), *[""] * new]
        active = [*(own.active for own in fit.terms), *[True] * new]
        each = zip(names, values, active, strict=True)
        terms = tuple(TermFit(name, own[0], tuple(own[1:]), None, None, 0.0, on) for name, own, on in each)
        if not fit.from_sums:
            return replace(fit, terms=terms, memory=None)
        likelihood: Any = fit.likelihood  # which has a variance; of none beside error bars there stays none
        noise = setting.noise * fit.target.scale**2 if model.row_noise is None else 0.0
        likelihood = replace(likelihood, variance=noise)
        return replace(fit, terms=terms, noise_variance=noise, likelihood=likelihood, memory=None)

    def without_last(self, rise: float) -> "Trials":
        """Where the fit did not gain what was expected of the pairs together."""
        *joined, last = self.joined
        why = f"the fit of all rows with it gains {rise:,.1f} nats in all"
        return replace(self, joined=tuple(joined), reasons=(*self.reasons, (last, why)), start=None)

    def strongest(self, gap: float) -> "Trials | None":
        """Without the weakest pairs, whose features may bring more in the others; None where they all bring more.

        ``gap`` is what the products are known to miss for want of features, and they are expected to miss up to twice
        that: pairs that gained no more than the middle of both, all together, might be left out.
        """
        gains, kept, spent = dict(self.gains), list(self.joined), 0.0
        for s in sorted(self.joined, key=lambda own: gains[own]):
            spent += gains[s]
            if spent > _EXPECTED_MISS * gap or len(kept) == 1:
                break
            kept.remove(s)
        if len(kept) == len(self.joined):
            return None
        why = "its features bring more in the pairs that joined"
        gone = tuple((s, why) for s in self.joined if s not in kept)
        return replace(self, joined=tuple(kept), reasons=(*self.reasons, *gone), start=None)

    def record(self) -> tuple[TriedPair, ...]:
        """All pairs: those that joined, then others as they were ranked, and those that were not looked at."""
        gains, reasons = dict(self.gains), dict(self.reasons)
        left = (s for s in range(len(self.pairs)) if s not in self.joined)
        order = [*self.joined, *sorted(left, key=lambda s: -self.expected[s].nats)]
        pairs = []
        for s in order:
            pair, expected, gain, joined = self.pairs[s], self.expected[s], gains.get(s), s in self.joined
            known = gain is not None and np.isfinite(gain)
            why = "" if joined else reasons.get(s) or self._why(gain, expected.nats)
            nats = expected.nats if np.isfinite(expected.nats) else None
            pairs.append(
                TriedPair(pair.columns, nats, float(gain) if known and gain is not None else None, joined, why)
            )
        room = (f"its {own.request.size:,} features are too many to look at" for own in self.large)
        pairs += [TriedPair(own.columns, None, None, False, why) for own, why in zip(self.large, room, strict=True)]
        return tuple(pairs)

    def _why(self, gain: float | None, expected: float) -> str:
        if gain is not None or not expected > _HOPEFUL * self.needed:
            return "gains too little" if gain is not None else "expected to gain too little"
        if len(self.joined) == self.spec.most_pairs:
            return "enough had joined"
        failed = len(self.gains) - len(self.joined) >= _MOST_FAILURES
        return "others before it did not pay" if failed else "no room for its features beside the others"
