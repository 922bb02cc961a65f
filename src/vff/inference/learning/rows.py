"""Few rows are known themselves, and learning climbs the evidence of the process given them: theory (26.3), (26.4).

As many dimensions as there are rows cost nothing while these are few. Features have no part in it, so nothing is missed
that would have to be charged for, whether rows repeat, weigh more than one, or have error bars of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from vff.factors import Prior
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.model.term import Term, Values
from vff.inference.solvers.expansion import Slopes
from vff.linalg import Factor, factorise
from vff.moments import ColumnRequest, Place
from vff.parameters import PositiveVector

if TYPE_CHECKING:
    from vff.inference.learning.model import SumModel

_STEP = 1e-4  # of a logarithm, in differences of slopes
_EPSILON = 0.5 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class LearningRows:
    """Some rows, as learning sees them."""

    x: np.ndarray
    """(n, C), in the columns' own units."""
    y: np.ndarray
    """(n,)."""
    w: np.ndarray
    """(n,)."""
    errors: np.ndarray
    """Variances that a row has beside the noise, (n,)."""


class _Constant(NamedTuple):
    """What the rows say of the constant, by the name that other forms have for it."""

    edf: float
    mean: float
    variance: float


@dataclass(frozen=True)
class RowForm:
    """The process given rows at one setting, C C' = k(x_n, x_m) + noise, with the face of a form of features."""

    terms: tuple[np.ndarray, ...]
    """k(x_n, x_m) of every term, (n, n) each."""
    rows: LearningRows
    noise: float
    intercept: float | None
    log_prior: float

    error = 0.0

    @property
    def as_learnt(self) -> "RowForm":
        return self

    @property
    def objective_cotangents(self) -> "RowForm":
        return self

    @property
    def count(self) -> float:
        """How many rows there are, one of weight w counting as w."""
        return float(self.rows.w.sum())

    @cached_property
    def noises(self) -> np.ndarray:
        """Variances of rows that count once, (n,)."""
        return self.noise + self.rows.errors

    @cached_property
    def factor(self) -> Factor:
        """C."""
        return factorise(np.sum(self.terms, axis=0) + np.diag(self.noises / self.rows.w))

    @cached_property
    def _solved(self) -> np.ndarray:
        """(C C')^-1 of y and 1, (n, 2)."""
        return self.factor.solve(np.stack([self.rows.y, np.ones(self.rows.y.size)], axis=1))

    @cached_property
    def of_intercept(self) -> _Constant:
        """The constant given the rows."""
        if self.intercept is None:
            return _Constant(0.0, 0.0, 0.0)
        precision = 1.0 / self.intercept + float(self._solved[:, 1].sum())
        return _Constant(
            1.0 - 1.0 / (precision * self.intercept), float(self._solved[:, 0].sum()) / precision, 1.0 / precision
        )

    @cached_property
    def a(self) -> np.ndarray:
        """Sigma^-1 y, with the constant in Sigma, (n,)."""
        return self._solved[:, 0] - self.of_intercept.mean * self._solved[:, 1]

    @cached_property
    def precision(self) -> np.ndarray:
        """Sigma^-1, (n, n)."""
        inverse, u = self.factor.inverse(), self._solved[:, 1]
        return inverse - self.of_intercept.variance * np.multiply.outer(u, u)

    @cached_property
    def quadratic(self) -> float:
        """y'Sigma^-1 y, and what rows of one value and weight w leave of w rows."""
        return float(self.rows.y @ self.a)

    @cached_property
    def elbo(self) -> float:
        """log p(y), nats; a row of weight w counts as w rows."""
        rows, log_volume = self.rows, self.factor.logdet()
        if self.intercept is not None:
            log_volume += float(np.log(self.intercept / self.of_intercept.variance))
        again = float(np.sum((rows.w - 1.0) * np.log(2.0 * np.pi * self.noises) + np.log(rows.w)))
        return -0.5 * (rows.y.size * np.log(2.0 * np.pi) + log_volume + self.quadratic + again)

    @property
    def objective(self) -> float:
        """What learning climbs."""
        return self.elbo + self.log_prior

    @cached_property
    def rounding(self) -> float:
        """How far float64 knows the evidence, nats."""
        variances = sum(float(np.diagonal(own) @ (self.rows.w / self.noises)) for own in self.terms)
        return _EPSILON * (self.count + abs(self.factor.logdet()) + 2.0 * abs(self.quadratic) + 2.0 * variances)

    @cached_property
    def edf_by_term(self) -> np.ndarray:
        """tr(k_s Sigma^-1) of every term: how many of its coefficients the rows determine."""
        return np.array([float(np.sum(own * self.precision)) for own in self.terms])


@dataclass(frozen=True)
class RowModel:
    """Hyperparameters in, the process given rows out, and the chain rule back; to second order, too."""

    model: "SumModel"
    rows: LearningRows

    @property
    def parameters(self) -> PositiveVector:
        return self.model.parameters

    @cached_property
    def _inputs(self) -> tuple[tuple[np.ndarray, ...], ...]:
        """Of every factor of every term, in units of its domain."""
        return tuple(
            tuple(_input(self.rows.x, place, own) for place, own in zip(term.columns, term.factors, strict=True))
            for term in self.model.moments.request.terms
        )

    def _parts(
        self, setting: Hyperparameters
    ) -> Iterator[tuple[Term, Values, Sequence[Prior], tuple[np.ndarray, ...]]]:
        columns = zip(self.model.terms, self.model.columns, setting.terms, self._inputs, strict=True)
        for term, own, values, x in columns:
            yield term, values, term.priors(own, values), x

    def at(self, theta: np.ndarray) -> RowForm:
        """The form at log hyperparameters."""
        setting, known, terms = self.model.unpack(theta), self.model.known, []
        for _, values, priors, inputs in self._parts(setting):
            total = np.full((len(self.rows.y), len(self.rows.y)), values["variance"])
            for prior, x in zip(priors, inputs, strict=True):
                total *= prior.factor.correlation(x, x, prior.values)
            terms.append(total)
        log_prior = 0.0 if known is None else known.value(theta)
        return RowForm(tuple(terms), self.rows, setting.noise, self.model.intercept, log_prior)

    def expands(self, closed: RowForm) -> bool:
        """Second derivatives are known."""
        return True

    def pull_back(self, theta: np.ndarray, form: RowForm) -> np.ndarray:
        """The derivatives of what is climbed."""
        moves = [move for term in self._moves(theta, form) for move in term]
        return self._gradient(theta, form, np.array(moves).reshape(len(moves), -1))

    def slopes(self, theta: np.ndarray, form: RowForm) -> Slopes:
        """First and second derivatives of what is climbed, theory (26.4)."""
        by_term = self._moves(theta, form)
        moves = np.array([*(move for term in by_term for move in term), np.diag(form.noise / form.rows.w)])
        flat, W = moves.reshape(len(moves), -1), _weights(form)
        relative, pulled = form.precision @ moves, moves @ form.a
        both = relative.reshape(len(moves), -1) @ relative.transpose(0, 2, 1).reshape(len(moves), -1).T
        hessian = 0.5 * both - pulled @ form.precision @ pulled.T
        hessian[:-1, :-1] += 0.5 * np.asarray(block_diag(*self._twice(theta, by_term, W)))
        hessian[-1, -1] += 0.5 * float(flat[-1] @ W.reshape(-1)) + _of_weights(form)[1]
        if self.model.known is not None:
            hessian[np.diag_indices_from(hessian)] += self.model.known.slopes(theta)[1]
        return Slopes(self._gradient(theta, form, flat[:-1]), 0.5 * (hessian + hessian.T))

    def _gradient(self, theta: np.ndarray, form: RowForm, moves: np.ndarray) -> np.ndarray:
        """From the changes of the covariance along every hyperparameter of the terms, (R, n n)."""
        W = _weights(form)
        noise = 0.5 * float(np.diagonal(W) @ (form.noise / form.rows.w)) + _of_weights(form)[0]
        slopes = np.append(0.5 * moves @ W.reshape(-1), noise)
        return slopes if self.model.known is None else slopes + self.model.known.slope(theta)

    def _moves(self, theta: np.ndarray, form: RowForm) -> list[list[np.ndarray]]:
        """What the covariance changes by along the logarithm of every hyperparameter, term by term."""
        found = []
        for (_, values, priors, inputs), own in zip(self._parts(self.model.unpack(theta)), form.terms, strict=True):
            blocks = [_block(prior, x, prior.values) for prior, x in zip(priors, inputs, strict=True)]
            found.append([own])
            for d, (_, slopes) in enumerate(blocks):
                rest = _product(values["variance"], [value for e, (value, _) in enumerate(blocks) if e != d])
                found[-1] += [rest * slope for slope in slopes]
        return found

    def _twice(self, theta: np.ndarray, moves: list[list[np.ndarray]], W: np.ndarray) -> list[np.ndarray]:
        """<W, second derivatives> of every term's covariance."""
        found = []
        for (term, values, priors, inputs), own in zip(self._parts(self.model.unpack(theta)), moves, strict=True):
            twice = np.zeros((len(own), len(own)))
            twice[0] = twice[:, 0] = [float(np.sum(W * move)) for move in own]  # it is proportional to the variance
            places = [[j for j, (_, e, _) in enumerate(term.parameters, start=1) if e == d] for d in range(len(priors))]
            parts = [_block(prior, x, prior.values) for prior, x in zip(priors, inputs, strict=True)]
            for d, (prior, x) in enumerate(zip(priors, inputs, strict=True)):
                rest = W * _product(values["variance"], [value for e, (value, _) in enumerate(parts) if e != d])
                for j, second in zip(places[d], _second(prior, x), strict=True):
                    twice[j, places[d]] = [float(np.sum(rest * change)) for change in second]
                for e in range(d + 1, len(priors)):
                    others = [value for f, (value, _) in enumerate(parts) if f not in (d, e)]
                    rest = W * _product(values["variance"], others)
                    for i, mine in zip(places[d], parts[d][1], strict=True):
                        for j, theirs in zip(places[e], parts[e][1], strict=True):
                            twice[i, j] = twice[j, i] = float(np.sum(rest * mine * theirs))
            found.append(0.5 * (twice + twice.T))
        return found

    def scales(self, closed: RowForm) -> np.ndarray:
        """Rough curvature in every log parameter: rows for the noise, edf for a term."""
        sizes = [len(term.names) for term in self.model.terms]
        return np.append(np.repeat(np.maximum(1.0, closed.edf_by_term), sizes), closed.count)


def _input(x: np.ndarray, place: Place, own: ColumnRequest) -> np.ndarray:
    return own.domain.to_unit(np.ascontiguousarray(x[:, place]))


def _block(prior: Prior, x: np.ndarray, values: Values) -> tuple[np.ndarray, list[np.ndarray]]:
    """The correlation of rows, and its derivatives in the logarithm of every hyperparameter."""
    own = prior.factor.block(x, x, values)
    slopes = own.slopes()
    if own.exponent is None:
        return own.value, list(slopes)
    decay = np.exp(-own.exponent)
    return own.value * decay, [slope * decay for slope in slopes]


def _second(prior: Prior, x: np.ndarray) -> list[list[np.ndarray]]:
    """Second derivatives of the correlation, by differences of the first."""
    found, values = [], prior.values
    for own in prior.factor.parameters:
        ends = [
            _block(prior, x, {**values, own.name: values[own.name] * float(np.exp(step))})[1]
            for step in (_STEP, -_STEP)
        ]
        found.append([(more - less) / (2.0 * _STEP) for more, less in zip(*ends, strict=True)])
    return found


def _product(variance: float, values: Sequence[np.ndarray]) -> np.ndarray | float:
    return reduce(np.multiply, values, variance)


def _weights(form: RowForm) -> np.ndarray:
    """W = a a' - Sigma^-1."""
    return np.multiply.outer(form.a, form.a) - form.precision


def _of_weights(form: RowForm) -> tuple[float, float]:
    """What rows of weight w, which are w rows, add to the first and second derivatives in log noise."""
    share, more = form.noise / form.noises, form.rows.w - 1.0
    return -0.5 * float(more @ share), -0.5 * float(more @ (share - share**2))
