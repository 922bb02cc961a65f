"""Rows as a fit sees them: their sites at its posterior, or what these leave unexplained (theory §25).

With f ~ N(m, v) at a row, its likelihood stands as l f - s f^2 / 2, s = -w E[h] and l = w E[g] + s m. What is left of
it when f is measured from m is the pull w E[g], at the same precision: the residual w (y - m) / noise where noise is
Gaussian.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vff.inference.methods.fit import Fit
from vff.inference.methods.natural.oracle import ChunkSites
from vff.inference.methods.natural.row_sites import Observed, RowSites
from vff.inference.model.scale import TargetScale
from vff.inference.posterior import Posterior
from vff.likelihoods import AbstractLikelihood
from vff.moments import ColumnRows, Tables


@dataclass(frozen=True)
class WorkingSites:
    """The sites of rows whose y is in the user's units, for f as learning saw it; in total, their weights."""

    likelihood: AbstractLikelihood
    """With its parameters learnt."""
    target: TargetScale
    """What f is measured from, and in what."""
    posterior: Posterior
    residual: bool
    """Whether pulls are those on f measured from its posterior mean."""
    tables: Tables = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, fit: Fit, *, residual: bool) -> "WorkingSites":
        return cls(fit.likelihood, fit.target, fit.posterior, residual)

    @property
    def noise(self) -> float:
        """Variance of Gaussian noise that all rows share, as learning saw it."""
        return self.likelihood.values["variance"] / self.target.scale**2

    def __call__(self, observed: Observed, columns: Sequence[ColumnRows]) -> ChunkSites:
        w, (centre, scale) = observed.w, (self.target.mean, self.target.scale)
        if self.likelihood.normal:  # what others integrate is known here, and needs no variance
            mean = self.posterior.mean_inside(columns, self.tables)
            precision = w * scale**2 / self.likelihood.conditional_variance(mean, observed.extra)
            pull = precision * ((observed.y - centre) / scale - mean)
        else:
            mean, variance = self.posterior.inside(columns, self.tables)
            f = observed.lifted(centre + scale * mean)
            answer = self.likelihood.expected(self.likelihood.psi, observed.y, observed.extra, f, scale**2 * variance)
            precision, pull = -w * answer.curvature * scale**2, w * answer.slope * scale
        pull = pull if self.residual else pull + precision * mean
        return ChunkSites(RowSites(precision, pull), np.array([float(w.sum())]))
