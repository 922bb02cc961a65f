"""Natural gradients on Fourier features: sums of sites in, q and its hyperparameters out, and the rows asked again."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from vff.inference.learning.growth import Stage, bound_at, grow, learn, tolerance
from vff.inference.learning.log_prior import LogPriors
from vff.inference.learning.model import SumModel
from vff.inference.learning.records import Optimum
from vff.inference.learning.sizes import edf_of_detail
from vff.inference.methods.fit import SiteMemory
from vff.inference.methods.known import psi_slopes
from vff.inference.methods.natural.ascent import Ascent, Step, Visit, arrive
from vff.inference.methods.natural.oracle import ExpectedSites, InitialSites, RowOracle
from vff.inference.methods.natural.row_sites import is_positive
from vff.inference.model.scale import REACH
from vff.inference.model.term import Term
from vff.likelihoods import AbstractLikelihood
from vff.moments import Moments

SiteStep = Step[Moments, Stage]
SiteAscent = Ascent[Moments, Stage]

_REVIVED, _WORTH_IT = 0.1, 0.5  # variance of a term that gets another chance, and nats that it must gain
_PROMISING = 0.1  # of these, at variances and shapes that nobody has learnt
_REVIVED_FROM, _SHORTER = (1e-3, 1e-1), (1.0, 4.0)  # variances at which it is asked for, and of what shape
_LEARNT = 0.1  # of the tolerance of the ascent, for hyperparameters on the way


@dataclass(frozen=True)
class SiteProblem:
    """Rows with a likelihood, and a sum of terms."""

    terms: tuple[Term, ...]
    oracle: RowOracle
    """All rows."""
    likelihood: AbstractLikelihood
    optimise: bool
    """Whether hyperparameters are learnt."""
    centred: bool
    """Whether the latent function has a constant beside its terms."""
    grows: bool
    """Whether harmonics may be added on the way."""
    tolerance: float
    """Nats that a last step of the ascent may still gain."""
    intercept_prior: float = 0.0
    """Prior mean of the latent function; that of its constant, where it has one."""
    memory: SiteMemory | None = None
    """What is left of earlier rows."""
    known: LogPriors | None = None
    """What is known of the hyperparameters beforehand."""
    known_psi: LogPriors | None = None
    """The same of the likelihood's parameters."""

    def log_prior(self, stage: Stage, psi: np.ndarray) -> float:
        """Of the hyperparameters and the likelihood's parameters: what the objective has beside the bound."""
        return stage.closed.log_prior + psi_slopes(self.known_psi, psi)[0]

    def model(self, sums: Moments) -> SumModel:
        """The Gaussian model of some sums."""
        more: dict[str, Any] = {"intercept": REACH**2 if self.centred else None, "widest": self.likelihood.widest}
        more["known"] = self.known
        return SumModel(self.terms, sums.recentred(self.intercept_prior), sites=True, **more)

    def first_sums(self, psi: np.ndarray, intercept: float) -> tuple[Moments, float]:
        """Of a first guess at every site; and the sum of the squares of l - s constant, their power in any harmonic."""
        found = self.oracle.visit(InitialSites(self.likelihood, psi, intercept))
        return self._remembering(found.moments), float(found.totals[0])

    def _remembering(self, sums: Moments) -> Moments:
        """With the sites of earlier rows."""
        return sums if self.memory is None else self.memory.sums + sums

    def update(self, sums: Moments, stage: Stage, learn_share: float) -> Stage | None:
        """See ``ascent.Problem``."""
        if not learn_share or not (self.optimise or self.grows):
            return self.settled(sums, stage)
        try:
            wished = self._learn(self.model(sums), stage)
        except FloatingPointError:  # no q where the search starts
            return None
        theta = stage.optimum.theta + learn_share * (wished.optimum.theta - stage.optimum.theta)
        return self.settled(sums, replace(wished, optimum=replace(wished.optimum, theta=theta)))

    def _learn(self, model: SumModel, stage: Stage) -> Stage:
        """Where the sums want the hyperparameters, and how many harmonics."""
        known: dict[str, Any] = {"free": stage.free, "gain": _LEARNT * self.tolerance}
        known["curvature"] = stage.optimum.curvature
        how: dict[str, Any] = {"optimise": self.optimise, "progress": lambda message: None}
        if self.grows:
            # only where more of them are new does a first step have others after it
            known["rough"] = stage.rough and len(self.terms) > 1 and stage.harmonics != model.harmonics
            return grow(model, stage.optimum.theta, stage.harmonics, known=known, **how)[-1]
        return learn(model.restricted(stage.harmonics), stage.optimum.theta, **known, **how)

    def revived(self, step: SiteStep) -> SiteStep | None:
        """From where an ascent ended, with the terms that it switched off in play again; None if none gains.

        On a logarithmic scale a vanishing variance has no slope, so that what early sites switched off stays off.
        """
        stage = step.iterate
        variances = stage.model.variances
        off = variances[~stage.free[variances] & stage.model.learnt[variances]]
        theta = None if off.size == 0 else self._lifted(step, off)
        if theta is None:
            return None
        optimum = replace(stage.optimum, theta=theta, curvature=None)
        lifted = replace(stage, free=stage.model.learnt, optimum=optimum)
        iterate, without = self.update(step.visit.sums, lifted, 1.0), self.settled(step.visit.sums, stage)
        if iterate is None or without is None:
            return None
        if iterate.closed.objective < without.closed.objective + 0.5 * _WORTH_IT:
            return None  # sums that ask for so little do not know of more
        there = arrive(self, iterate, step.psi, step.visit.sums)
        return there if there.elbo > step.elbo + _WORTH_IT else None

    def _lifted(self, step: SiteStep, off: np.ndarray) -> np.ndarray | None:
        """With some variance for the terms for which the sums, as they are, say that this gains; None where for none.

        With the sites held, the bound has the same slope in a variance: a term that gains nothing there stays off.
        """
        stage = step.iterate
        model = self.model(step.visit.sums).restricted(stage.harmonics)
        theta = stage.optimum.theta.copy()
        bound, lifted = bound_at(model, theta), False
        for first in off.tolist():
            term = model.terms[int(np.flatnonzero(model.variances == first)[0])]
            typical = np.log([own.typical for _, _, own in term.parameters])
            trials = []
            for variance, shorter in product(_REVIVED_FROM, _SHORTER):
                trial = theta.copy()
                trial[first : first + 1 + typical.size] = [np.log(variance), *(typical - np.log(shorter))]
                trials.append(model.parameters.clip(trial))
            gains = [bound_at(model, trial) - bound for trial in trials]
            if max(gains) > _PROMISING * _WORTH_IT:
                theta[first:] = trials[int(np.argmax(gains))][first:]
                theta[first], lifted = np.log(_REVIVED), True
        return theta if lifted else None

    def settled(self, sums: Moments, stage: Stage) -> Stage | None:
        """q for some sums at the hyperparameters of a stage; None where they make none."""
        model = self.model(sums).restricted(stage.harmonics)
        form = model.at(stage.optimum.theta)
        if not is_positive(form):
            return None
        enough = tolerance(model.rows, edf_of_detail(form, model.harmonics))
        optimum = replace(stage.optimum, elbo=form.objective)
        return replace(stage, model=model, closed=form, tolerance=enough, optimum=optimum)

    def _credit(self, stage: Stage) -> float:
        """E[sum l f - s f^2 / 2] over the sites of earlier rows, f = prior mean + c0 + phi'c + remainder."""
        if self.memory is None:
            return 0.0
        sums, form = self.memory.sums, stage.closed
        old = self.model(sums).restricted(stage.harmonics).at(stage.optimum.theta)
        m, spread = form.mean, form.spread_over(old)
        value = float(m @ old.b) - 0.5 * (old.energy_of(m) + spread + old.residual)
        known = form.intercept_posterior
        if known is not None and old.intercept is not None:
            m0, variance, u = known.mean, known.variance, known.answer
            h, weight = old.intercept.features, old.weight
            # the constant moves f by 1 - phi'u at every row
            moved = weight - 2.0 * float(h @ u) + old.energy_of(u)
            value += m0 * (old.intercept.target - float(h @ m)) - 0.5 * (m0**2 * weight + variance * moved)
        return value + self.intercept_prior * sums.target - 0.5 * self.intercept_prior**2 * sums.weight

    def given(self, sums: Moments, theta: np.ndarray, harmonics: Any) -> Stage | None:
        """q for some sums at hyperparameters that are kept."""
        model = self.model(sums).restricted(harmonics)
        optimum = Optimum(theta, np.nan, 0, 1, True, "hyperparameters kept as given")
        return self.settled(sums, Stage(model, optimum, model.at(theta), np.inf, model.learnt, False))

    def visit(self, stage: Stage, psi: np.ndarray) -> Visit[Moments]:
        """See ``ascent.Problem``."""
        R, form = self.likelihood.free.size, stage.closed
        posterior = stage.model.posterior(form, stage.optimum.theta)
        found = self.oracle.visit(ExpectedSites(self.likelihood, psi, posterior, self.intercept_prior))
        sums, total = self._remembering(found.moments), float(found.totals[0])
        gradient, hessian = found.totals[1 : 1 + R], found.totals[1 + R :].reshape(R, R).copy()
        if self.memory is not None:
            away, known = psi - self.memory.psi, self.memory.information
            total -= 0.5 * float(away @ known @ away)
            gradient, hessian = gradient - known @ away, hessian - known
        said, slope, curvature = psi_slopes(self.known_psi, psi)
        total, gradient, hessian = total + said + form.log_prior, gradient + slope, hessian + curvature
        held = ~self.likelihood.free
        hessian[held], hessian[:, held] = 0.0, 0.0
        slopes = np.where(held, 0.0, gradient), hessian - np.diag(held.astype(float))
        return Visit(total - (form.divergence - self._credit(stage)), form.error, sums, *slopes)
