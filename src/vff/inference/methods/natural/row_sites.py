"""Sites of rows, (s, l) with log p(y | f) standing as l f - s f^2 / 2: the formulas, whatever the features are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from vff.inference.model.scale import TargetScale
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.likelihoods import AbstractLikelihood, Expected, row_modes

_SPREAD = 2.0  # of the latent function around its constant, for a first guess at every row by itself
_FLATTEST = 1e-3  # of the average precision of a site: the first guess is a likelihood of its own at every row


@dataclass(frozen=True)
class Observed:
    """What every row says beside its columns, (N,) each."""

    y: np.ndarray
    extra: np.ndarray
    """Exposure or trials; ones where the likelihood knows none."""
    w: np.ndarray
    """Weight: as many equal rows."""
    offset: np.ndarray | None = None
    """What is added to the function, where something is."""

    def at(self, rows: slice) -> "Observed":
        offset = None if self.offset is None else self.offset[rows]
        return Observed(self.y[rows], self.extra[rows], self.w[rows], offset)

    def lifted(self, f: np.ndarray) -> np.ndarray:
        """The function with its offset: what the likelihood is of."""
        return f if self.offset is None else f + self.offset

    def lowered(self, f: np.ndarray) -> np.ndarray:
        """The function without."""
        return f if self.offset is None else f - self.offset

    def in_units(self, target: TargetScale) -> "Observed":
        """With y as learning sees it."""
        return replace(self, y=(self.y - target.mean) / target.scale)

    def taken(self, pieces: Sequence[slice]) -> "Observed":
        """Those of some stretches."""
        own = (self.y, self.extra, self.w, *(() if self.offset is None else (self.offset,)))
        return Observed(*(np.concatenate([values[rows] for rows in pieces]) for values in own))


class RowSites(NamedTuple):
    """Precision s and pull l of every row, (N,) each."""

    precision: np.ndarray
    pull: np.ndarray

    def blended(self, other: "RowSites", rate: float) -> "RowSites":
        """(1 - rate) these + rate others."""
        return RowSites(*((1.0 - rate) * own + rate * new for own, new in zip(self, other, strict=True)))


def sites_of(answer: Expected, w: np.ndarray, mean: np.ndarray) -> RowSites:
    """What a natural-gradient step asks for: s = -w E[h], l = w E[g] + s mean."""
    precision = -w * answer.curvature
    return RowSites(precision, w * answer.slope + precision * mean)


def first_sites(likelihood: AbstractLikelihood, psi: np.ndarray, observed: Observed, intercept: float) -> RowSites:
    """Of every row by itself: where its own likelihood, and a broad prior around the constant, put it. All positive.

    A likelihood that knows outliers would put one at itself; its sites are what the broad prior expects of
    it instead, and so are those of labels.
    """
    y, extra, w = observed.y, observed.extra, observed.w
    labels = likelihood.discrete and bool(np.isfinite(likelihood.support).all())  # which say little each
    if not (likelihood.outliers or labels):
        centre = observed.lifted(np.full(y.size, intercept))
        f, slope, curvature = row_modes(likelihood, psi, y, extra, centre, _SPREAD)
    else:
        f = observed.lifted(np.full(y.size, intercept))
        _, slope, curvature = likelihood.expected(psi, y, extra, f, np.ones(y.size))
    if not np.isfinite(curvature).all():
        row = int(np.argmin(np.isfinite(curvature)))
        raise ValueError(
            f"log p(y | f) or a derivative of it is not finite at y = {y[row]:g} and f = {f[row]:g}: write it so that "
            "it is, for every f"
        )
    if not np.any(curvature):
        raise ValueError(
            "log p(y | f) has no curvature in f at any row, and inference needs some: write a smooth function, with "
            "kinks such as that of |y - f| rounded off"
        )
    precision = np.maximum(-curvature, _FLATTEST * max(float(np.abs(curvature).mean()), 1e-300))
    return RowSites(w * precision, w * (slope + precision * observed.lowered(f)))


def is_positive(form: LinearGaussian) -> bool:
    """Whether the sites, some of which may be negative, make a q: A is positive definite, with the constant in it."""
    try:
        return form.jitter == 0.0 and (form.intercept_posterior is None or form.intercept_posterior.variance > 0.0)
    except FloatingPointError:
        return False
