"""The form for few rows: their Gram matrix has a root of few columns, and A is solved with in as many dimensions.

With G = L L' (P x R, R at most the number of rows), S = L'K^-1 L and noise variance s,

    A^-1 = K^-1 - U U',     U = K^-1 L C^-T,     C C' = s I + S,     log |A| - log |K| = log |I + S / s|

so a setting costs R^2 P, and hundreds of harmonics cost next to nothing on a handful of rows. Sums of targets lie in
the range of L, b = L beta, and A^-1 b / s = K^-1 L (s I + S)^-1 beta has no difference in it (theory §26).

Where no two rows are alike, what the features miss of one row has next to nothing to do with what they miss of another:
K - Q is all but diagonal, and the evidence is that of Q with the missed variance r taken for noise, s + r. The bound
charges r / 2s for every row instead, which is absurdly much where there is no noise to speak of, and hyperparameters
that please it are too smooth. So few rows are learnt from the former; the bound is reported as everywhere.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from vff.inference.solvers.cotangents import Cotangents
from vff.inference.solvers.expansion import RowExpansion
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.linalg import AbstractSymmetric, Factor, OuterView, StructuredCotangent, factorise

_PROBES = 4
_ROUNDING = 1e-15  # of every square, times the number of features: what pivots leave below is none


@dataclass(frozen=True)
class GramRoot:
    """L with L L' = G, and what lies in its range: as many rows as there are columns of it."""

    L: np.ndarray
    """(P, R)."""
    pivots: np.ndarray
    """R features in which L is lower triangular."""
    error: float
    """How far L L' is from G in some directions, relative to it: large where rounding left G without a root."""

    @classmethod
    def of(cls, G: AbstractSymmetric, rows: int | None = None) -> "GramRoot":
        """By a Cholesky factor with pivots, every feature in its own scale; of so many rows, no more columns."""
        matrix = G.dense()
        diagonal = np.diagonal(matrix)
        scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        left, L, pivots = np.where(diagonal > 0.0, 1.0, 0.0), np.zeros((len(scale), len(scale)), order="F"), []
        while len(pivots) < len(scale) and left.max() > _ROUNDING * len(scale):
            p, k = int(np.argmax(left)), len(pivots)
            if k == rows:
                break
            column = matrix[:, p] / scale / scale[p] - L[:, :k] @ L[p, :k]
            column[pivots] = 0.0
            if not column[p] > 0.0:  # rounding is all that is left
                break
            L[:, k] = column / np.sqrt(column[p])
            left = np.maximum(left - L[:, k] ** 2, 0.0)
            pivots.append(p)
            left[pivots] = 0.0
        L = L[:, : len(pivots)]
        probes = np.random.default_rng(0).choice([-1.0, 1.0], (len(scale), _PROBES))
        image = (matrix @ (probes / scale[:, None])) / scale[:, None]
        error = np.abs(image - L @ (L.T @ probes)).max() / np.abs(image).max()
        return cls(scale[:, None] * L, np.array(pivots, int), float(error))

    def preimage(self, b: np.ndarray) -> np.ndarray:
        """beta with L beta = b, for b in the range of L, (R,)."""
        return solve_triangular(self.L[self.pivots], b[self.pivots], lower=True, check_finite=False)


@dataclass(frozen=True)
class LearntCotangents(Cotangents):
    """Derivatives of the evidence with the missed variance taken for noise, s + r, r = [sum w k - tr(K^-1 G)] / n."""

    model: "LowRankLinearGaussian"

    @cached_property
    def _in_noise(self) -> float:
        """d / d(s + r): the derivative in the log noise of theory (7.5), with traces of as many dimensions as rows."""
        loud, known = self.model.as_learnt, self.model.as_learnt.intercept_posterior
        edf = len(loud.S) - loud.noise * float(np.sum(loud.whitened**2)) + loud.of_intercept.edf
        if known is not None:
            edf -= known.variance * float(known.answer @ loud.prior.mv(known.answer))
        misfit = loud.tau * (loud.yy - loud.pulled) - loud.penalty
        return -0.5 * (loud.weight - edf - misfit) / loud.noise

    @cached_property
    def prior(self) -> StructuredCotangent:
        """-1/2 [A^-1 + m m' - K^-1] at s + r, and what r has to do with K: all of it outer products of few columns."""
        model, loud, known = self.model, self.model.as_learnt, self.model.as_learnt.intercept_posterior
        columns = [0.5 * loud.taken, -0.5 * loud.mean[:, None], self._in_noise / model.weight * model.reached]
        others = [loud.taken, loud.mean[:, None], model.reached]
        if known is not None:
            columns.append(-0.5 * known.variance * known.answer[:, None])
            others.append(known.answer[:, None])
        return model.prior.project(OuterView(np.concatenate(columns, axis=1), np.concatenate(others, axis=1)))

    @cached_property
    def log_noise(self) -> float:
        return self.model.noise * self._in_noise

    @property
    def prior_trace(self) -> float:
        return self._in_noise / self.model.weight


@dataclass(frozen=True)
class LowRankLinearGaussian(LinearGaussian):
    """A linear-Gaussian model at one setting, with a factor of as many dimensions as there are rows."""

    L: np.ndarray
    """(P, R), L L' = Phi' W Phi."""
    sides: np.ndarray
    """beta, and beside it that of the constant where there is one: L sides = (b, h), (R, 1 or 2)."""
    unlike: bool = field(default=False, kw_only=True)
    """Whether every row counts once, and no two are alike."""

    def with_noise(self, noise: float) -> "LowRankLinearGaussian":
        return replace(self, noise=noise)

    @cached_property
    def as_learnt(self) -> "LowRankLinearGaussian":
        """With what the features miss of every row taken for noise, where rows are unlike."""
        if not self.unlike:
            return self
        louder = self.noise + max(0.0, self.residual) / self.weight
        loud = replace(self, noise=louder, prior_trace=self.explained)
        vars(loud).update(reached=self.reached, S=self.S)  # which noise has no part in
        return loud

    @property
    def objective(self) -> float:
        return self.as_learnt.elbo + self.log_prior

    @property
    def objective_cotangents(self) -> Cotangents:
        return LearntCotangents(self) if self.unlike else self.cotangents

    @cached_property
    def reached(self) -> np.ndarray:
        """K^-1 L, (P, R)."""
        return self.prior.solve(self.L)

    @cached_property
    def S(self) -> np.ndarray:
        """L'K^-1 L, (R, R)."""
        S = self.L.T @ self.reached
        return 0.5 * (S + S.T)

    @cached_property
    def factor(self) -> Factor:
        """C, of s I + S."""
        return factorise(self.S + self.noise * np.eye(len(self.S)))

    @cached_property
    def whitened(self) -> np.ndarray:
        """C^-1, (R, R)."""
        return solve_triangular(self.factor.lower, np.eye(len(self.S)), lower=True, check_finite=False)

    @cached_property
    def taken(self) -> np.ndarray:
        """U, (P, R): what the rows take from the prior covariance is U U'."""
        return self.reached @ self.whitened.T

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self.prior.solve(v) - self.taken @ (self.taken.T @ v)

    def covariance(self) -> np.ndarray:
        return self.prior.solve(np.eye(self.b.size)) - self.taken @ self.taken.T

    @cached_property
    def solutions(self) -> np.ndarray:
        return self.reached @ self.factor.solve(self.sides)

    @cached_property
    def explained(self) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]  # summed once
        return float(np.sum(self.L * self.reached))

    def energy_of(self, c: np.ndarray) -> float:
        return float(np.sum((self.L.T @ c) ** 2))

    def written_gram(self) -> np.ndarray:
        return self.L @ self.L.T

    @property
    def log_gain(self) -> float:
        return self.factor.logdet() - self.L.shape[1] * float(np.log(self.noise))

    @property
    def expansion(self) -> RowExpansion | None:
        return RowExpansion(self) if self.unlike else None

    @property
    def error(self) -> float:
        return 0.0

    @property
    def jitter(self) -> float:
        return self.factor.jitter

    @cached_property
    def projected_alone(self) -> StructuredCotangent:
        return self.prior.project_inverse() + -1.0 * self.prior.project(OuterView(self.taken, self.taken))

    @property
    def projected_sandwich(self) -> StructuredCotangent:
        return self.prior.project(OuterView(self.reached, self.reached))

    @property
    def explained_by_term(self) -> list[float]:
        both = self.L * self.reached
        return [float(np.sum(both[place])) for place in self.block_prior.slices]

    def energies(self) -> list[float]:
        m = self.mean
        return [float(np.sum((self.L[place].T @ m[place]) ** 2)) for place in self.block_prior.slices]
