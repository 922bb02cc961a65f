"""Units: learning sees targets near one and lengthscales in half domains, whatever the user's are. They change here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from vff.factors import Factor, TailRows
from vff.inference.model.term import Term
from vff.moments import ColumnRequest, MomentRequest, Moments, NoisySums
from vff.parameters import Unit

_CONSTANT = 1e-13  # a spread of y below this share of its mean is rounding
_ROUNDS = 60
REACH = 10.0
"""Prior standard deviation of the constant around its first guess, in targets as learning sees them.

It says next to nothing, and keeps the constant from running off for ever where all labels are the same.
"""


@dataclass(frozen=True)
class TargetScale:
    """y = mean + scale * (what the model sees)."""

    mean: float
    scale: float

    @classmethod
    def of(cls, moments: Moments, tails: tuple[TailRows, ...], normalise: bool) -> "TargetScale":
        """Weighted mean and standard deviation of y over all rows; without a mean, zero and the root mean square.

        The scale is a matter of units and never of the model, so that learning always sees targets near one. Rows with
        error bars weigh less where these are wider than y itself scatters.
        """
        if moments.nodes:
            return cls._of_noisy(NoisySums(moments), normalise)
        weight = moments.weight + sum(float(tail.w.sum()) for tail in tails)
        shift = (moments.target + sum(float(tail.w @ tail.y) for tail in tails)) / weight
        mean = moments.offset + shift
        spread = (moments.target_squared + sum(tail.yy for tail in tails)) / weight - shift**2
        square = spread if normalise else spread + mean**2
        # y was measured from its mean before it was squared, so a spread as small as this is rounding: a constant y
        scale = float(np.sqrt(square)) if square > 1e-28 * mean**2 else 1.0
        return cls(mean if normalise else 0.0, scale)

    @classmethod
    def _of_noisy(cls, sums: NoisySums, normalise: bool) -> "TargetScale":
        """Weights w / (s^2 + scale^2), of the scale that they give; from above, where it is that of all rows."""
        plain = replace(sums.moments, nodes={})
        found = cls.of(plain, (), normalise)
        for _ in range(_ROUNDS):
            last, found = found, cls.of(sums.weighed(found.scale**2), (), normalise)
            if abs(found.scale - last.scale) <= 1e-3 * last.scale:
                break
        return found

    def shifted(self, inner: float) -> "TargetScale":
        """Measured from a constant that is given as learning sees it."""
        return TargetScale(self.mean + self.scale * inner, self.scale)

    @classmethod
    def of_targets(cls, y: np.ndarray, w: np.ndarray, *, centred: bool, robust: bool) -> "TargetScale":
        """Mean and standard deviation; ``robust``, median and spread by quantiles, which wild targets do not move."""
        middle = _quantile(y, 0.5, w) if robust else float(np.average(y, weights=w))
        mean = middle if centred else 0.0
        deviation = float(np.sqrt(np.average((y - mean) ** 2, weights=w)))
        if not robust:
            return cls(mean, deviation if deviation > _CONSTANT * abs(mean) else 1.0)
        low, high = (_quantile(y, level, w) for level in (0.05, 0.95))  # wide ones: most targets may be the same
        spread = max(_quantile(np.abs(y - mean), 0.5, w) / 0.6745, 0.1 * (high - low))
        return cls(mean, spread or deviation or 1.0)


def variance_unit(square: float, factors: Iterable[Factor], requests: Iterable[ColumnRequest]) -> Unit:
    """Of the variance of a product: a square of the targets' scale times what every factor adds."""
    return Unit(square * prod(own.unit(one.domain, "variance") for own, one in zip(factors, requests, strict=True)))


@dataclass(frozen=True)
class Units:
    """What hyperparameters are measured in, in the user's units."""

    target: TargetScale
    terms: tuple[dict[str, Unit], ...]
    """By name, those of every term."""

    @classmethod
    def of(cls, target: TargetScale, terms: Sequence[Term], request: MomentRequest) -> "Units":
        """Variances in squares of the targets' scale and what their factors add, others as their factors say."""
        found = []
        for term, own in zip(terms, request.terms, strict=True):
            found.append({"variance": variance_unit(target.scale**2, term.factors, own.factors)})
            for name, d, parameter in term.parameters:
                found[-1][name] = term.factors[d].measure(own.factors[d].domain, parameter)
        return cls(target, tuple(found))

    def inner(self, given: Iterable[Mapping[str, float | None]]) -> tuple[dict[str, float | None], ...]:
        """Hyperparameters of every term as learning sees them; None stays None."""
        return tuple(
            {name: None if value is None else unit[name].inner(value) for name, value in own.items()}
            for own, unit in zip(given, self.terms, strict=True)
        )

    def bounded(self, terms: Sequence[Term], limits: Iterable[Mapping[str, tuple[float, float]]]) -> tuple[Term, ...]:
        """The terms with the bounds of their hyperparameters, which are given in the user's units."""
        return tuple(
            replace(term, limits=tuple((name, *map(unit[name].inner, ends)) for name, ends in own.items()))
            for term, unit, own in zip(terms, self.terms, limits, strict=True)
        )

    def outer(self, values: Iterable[Mapping[str, float]]) -> list[list[float]]:
        """Variance and other hyperparameters of every term in the user's units."""
        return [
            [unit[name].outer(value) for name, value in own.items()]
            for own, unit in zip(values, self.terms, strict=True)
        ]


def _quantile(values: np.ndarray, level: float, w: np.ndarray) -> float:
    return float(np.quantile(values, level, weights=w, method="inverted_cdf"))


def standardised(
    moments: Moments, tails: tuple[TailRows, ...], target: TargetScale
) -> tuple[Moments, tuple[TailRows, ...]]:
    """The rows with y measured from the target's mean in units of its scale. Tails share the moments' offset."""
    shift = moments.offset - target.mean
    scaled = tuple(replace(tail, y=(tail.y + shift) / target.scale) for tail in tails)
    return moments.recentred(target.mean).in_units(target.scale), scaled
