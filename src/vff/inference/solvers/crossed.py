"""The form that eliminates two columns of levels together, and factors what is left (theory §30).

With a, h and y of every level of both columns (``level_sums``) side by side in Z, and M of theory (30.1),

    E = Z'M^-1 Z,      S = K + tau (G - E_aa),      log |A| = log |S| + log |M| + ...,      c = M^-1 (y - a c_others)

and dE / d log t_i = -t_i W_i'W_i with W = M^-1 Z. Learning asks for these few numbers alone.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vff.factors import StackedTransform
from vff.inference.solvers.cotangents import Cotangents
from vff.inference.solvers.crossed_expansion import AlongRatios, CrossedExpansion
from vff.inference.solvers.direct import NormalEquations
from vff.inference.solvers.eliminated import RemainingLinearGaussian, Totals
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.inference.solvers.links import Both, LinkedLevels, Links, Ratios
from vff.inference.solvers.records import Intercept, InterceptPosterior, RowNoise
from vff.linalg import BlockDiagonal, BlockGram, Dense, ScaledIdentity, SparseBlock, StructuredCotangent


class Solved(NamedTuple):
    """What learning asks of levels at some ratios, in the functions that are summed over rows."""

    at: LinkedLevels
    W: Both
    """M^-1 Z, (L_i, R + 2)."""
    E: np.ndarray
    """Z'M^-1 Z, (R + 2, R + 2)."""
    squares: Both
    """W_i'W_i, (R + 2, R + 2)."""


@dataclass(frozen=True)
class CrossedSums:
    """What rows sum to, the levels of two terms apart from the other terms."""

    terms: tuple[int, int]
    """The one with more levels, and the other."""
    links: Links
    Z: Both
    """a, h and y of every level, (L_i, R + 2)."""
    others: NormalEquations

    @classmethod
    def of(cls, whole: NormalEquations, h: Both, terms: tuple[int, int], links: Links | None = None) -> "CrossedSums":
        """From the equations of all terms, and the sums of the features of these two."""
        G, b = whole.G, whole.b
        assert isinstance(G, BlockGram)
        others = [s for s in range(len(G.blocks)) if s not in terms]

        def between(s: int, t: int) -> np.ndarray | SparseBlock:
            return G.between[s, t] if s < t else G.between[t, s].T

        def columns(e: int, own: np.ndarray) -> np.ndarray:
            return np.concatenate([*(between(e, t) for t in others), own[:, None], b[G.slices[e], None]], axis=1)

        one, two = terms
        if links is None:
            links = Links((G.blocks[one].diagonal(), G.blocks[two].diagonal()), SparseBlock.of(between(one, two)))
        places = {s: i for i, s in enumerate(others)}
        kept = {(places[s], places[t]): own for (s, t), own in G.between.items() if {s, t} <= places.keys()}
        rest = BlockGram(tuple(G.blocks[s] for s in others), kept)
        left = np.concatenate([b[G.slices[s]] for s in others]) if others else np.zeros(0)
        return cls(terms, links, (columns(one, h[0]), columns(two, h[1])), replace(whole, b=left, G=rest))

    @cached_property
    def _recent(self) -> dict[Ratios, Solved]:
        return {}

    def at(self, t: Ratios) -> Solved:
        """At some ratios; the last are remembered."""
        if t not in self._recent:
            self._recent.clear()
            self._recent[t] = self._solved(t)
        return self._recent[t]

    def _solved(self, t: Ratios) -> Solved:
        system = self.links.at(t)
        W = system.solve(self.Z)
        # of solutions that are off by r, Z'W + W'(Z - M W) is off by r^2
        C, n, Z = self.links.C.matrix, self.links.n, self.Z
        images = [(n[0] + t[0])[:, None] * W[0] + C @ W[1], (n[1] + t[1])[:, None] * W[1] + C.T @ W[0]]
        E = np.sum([own.T @ w + w.T @ (own - image) for own, w, image in zip(Z, W, images, strict=True)], axis=0)
        squares = tuple(w.T @ w for w in W)
        return Solved(system, W, 0.5 * (E + E.T), (squares[0], squares[1]))


@dataclass(frozen=True)
class CrossedCotangents(Cotangents):
    """Derivatives of the bound: those of what is left, and those along both ratios."""

    model: "CrossedLinearGaussian"

    @cached_property
    def prior(self) -> StructuredCotangent:
        # K is kappa I, so that the derivative in log kappa is all that is asked; t is proportional to kappa
        model = self.model
        both = zip(model.along.slopes, model.of_levels, model.precisions, strict=True)
        slopes = [(along - 0.5 * model.tau * seen) / kappa for along, seen, kappa in both]
        return model.with_own(model.remaining.cotangents.prior, slopes)

    @cached_property
    def edf(self) -> float:
        model = self.model
        return model.b.size - model.prior.inner(model.projected_inverse) + model.of_intercept.edf

    @cached_property
    def log_noise(self) -> float:
        return self.model.remaining.cotangents.log_noise + sum(self.model.along.slopes)


@dataclass(frozen=True)
class CrossedLinearGaussian(LinearGaussian):
    """A linear-Gaussian model at one setting, with a factor of all terms but two."""

    prior: BlockDiagonal
    others: NormalEquations
    """Of the other terms, in the coordinates of their prior."""
    sums: CrossedSums
    transform: StackedTransform
    """Of the other terms, to the coordinates of their prior."""

    def with_noise(self, noise: float) -> "CrossedLinearGaussian":
        return replace(self, noise=noise)

    @property
    def precisions(self) -> tuple[float, float]:
        """kappa of both."""
        one, two = (self.prior.blocks[e] for e in self.sums.terms)
        assert isinstance(one, ScaledIdentity)
        assert isinstance(two, ScaledIdentity)
        return one.scale, two.scale

    @property
    def ratios(self) -> Ratios:
        """t of both."""
        one, two = self.precisions
        return self.noise * one, self.noise * two

    @property
    def sizes(self) -> tuple[int, int]:
        """Levels of both."""
        one, two = self.sums.links.C.shape
        return one, two

    @cached_property
    def solved(self) -> Solved:
        return self.sums.at(self.ratios)

    @property
    def of_levels(self) -> tuple[float, float]:
        """tr(K^-1 G) of both."""
        (n, m), (one, two) = self.sums.links.n, self.precisions
        return float(n.sum()) / one, float(m.sum()) / two

    def moved(self, E: np.ndarray) -> np.ndarray:
        """A matrix over (a, h, y) in the coordinates of the prior."""
        R, E = E.shape[0] - 2, E.copy()
        E[:R] = self.transform.forward(E[:R])
        E[:, :R] = self.transform.forward(np.ascontiguousarray(E[:, :R].T)).T
        return 0.5 * (E + E.T)

    @cached_property
    def squares(self) -> Both:
        """W_i'W_i in the coordinates of the prior."""
        one, two = map(self.moved, self.solved.squares)
        return one, two

    @cached_property
    def reach(self) -> Both:
        """M^-1 a: how far levels follow the other terms, (L_i, R) in the coordinates of the prior."""
        one, two = (self.transform.forward(np.ascontiguousarray(own[:, :-2].T)).T for own in self.solved.W)
        return one, two

    @cached_property
    def remaining(self) -> RemainingLinearGaussian:
        """What is left of the model: the other terms, at this setting."""
        E, own = Totals.of(self.moved(self.solved.E)), self.intercept
        prior = BlockDiagonal(tuple(block for s, block in enumerate(self.prior.blocks) if s not in self.sums.terms))
        of_rows = 0.0 if self.row_noise is None else self.row_noise.log_noise
        noise = RowNoise(self.count, of_rows + self.solved.at.log_gain)
        constant = None
        if own is not None:
            constant = Intercept(own.features[self._kept] - E.ah, own.target - E.hy, own.variance)
        seen = Dense(self.others.G.dense())
        return RemainingLinearGaussian(
            prior, self.others.b - E.ay, self.yy - E.yy, self.weight - E.hh, self.prior_trace, self.noise,
            Dense(seen.matrix - E.aa), seen, sum(self.of_levels),
            sites=self.sites, intercept=constant, log_prior=self.log_prior, row_noise=noise,
        )  # fmt: skip

    @cached_property
    def _places(self) -> tuple[slice, slice]:
        """Where the levels stand among all coefficients."""
        one, two = (self.prior.slices[e] for e in self.sums.terms)
        return one, two

    @cached_property
    def _kept(self) -> np.ndarray:
        """Where the others do."""
        return np.delete(np.arange(self.b.size), np.concatenate([np.r_[own] for own in self._places]))

    def together(self, others: np.ndarray, levels: Both) -> np.ndarray:
        """Coefficients of all terms in their order, from (R, ...) and (L_i, ...)."""
        whole = np.empty((self.b.size, *others.shape[1:]))
        whole[self._kept] = others
        for own, values in zip(self._places, levels, strict=True):
            whole[own] = values
        return whole

    def with_own(self, others: StructuredCotangent, traces: tuple[float, float] | list[float]) -> StructuredCotangent:
        """What the prior keeps, from what that of the others does, and the traces of the blocks of levels."""
        parts = list(others.parts)
        for e, trace in sorted(zip(self.sums.terms, traces, strict=True)):
            parts.insert(e, StructuredCotangent((np.array([trace]),)))
        return StructuredCotangent(tuple(parts))

    def solve(self, v: np.ndarray) -> np.ndarray:
        flat = v.reshape(len(v), -1)
        one, two = self.solved.at.solve((flat[self._places[0]], flat[self._places[1]]))
        a = [own[:, :-2] for own in self.sums.Z]
        moved = self.transform.forward(a[0].T @ one + a[1].T @ two)
        others = self.remaining.solve(np.ascontiguousarray(flat[self._kept] - moved))
        levels = [self.noise * own - reach @ others for own, reach in zip((one, two), self.reach, strict=True)]
        return self.together(others, (levels[0], levels[1])).reshape(v.shape)

    def _follow(self, others: np.ndarray, constant: float) -> Both:
        """What the sums of levels leave to these, given the others and the constant."""
        one, two = (
            W[:, -1] - constant * W[:, -2] - reach @ others for W, reach in zip(self.solved.W, self.reach, strict=True)
        )
        return one, two

    @cached_property
    def intercept_posterior(self) -> InterceptPosterior | None:
        known = self.remaining.intercept_posterior
        if known is None:
            return None
        one, two = (W[:, -2] - x @ known.answer for W, x in zip(self.solved.W, self.reach, strict=True))
        return InterceptPosterior(known.mean, known.variance, self.together(known.answer, (one, two)))

    @cached_property
    def mean(self) -> np.ndarray:
        others, known = self.remaining.mean, self.remaining.intercept_posterior
        return self.together(others, self._follow(others, 0.0 if known is None else known.mean))

    @property
    def explained(self) -> float:
        return self.remaining.explained

    def energy_of(self, c: np.ndarray) -> float:
        others, (one, two), (n, m) = c[self._kept], (c[own] for own in self._places), self.sums.links.n
        raw = self.transform.transpose(others)
        across = sum(float(own @ (Z[:, :-2] @ raw)) for own, Z in zip((one, two), self.sums.Z, strict=True))
        across += float(one @ (self.sums.links.C @ two))
        return float(others @ (self.others.G @ others)) + 2.0 * across + float(n @ one**2 + m @ two**2)

    @property
    def log_gain(self) -> float:
        return self.remaining.log_gain + self.solved.at.log_gain

    @property
    def log_volume(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.remaining.log_volume

    @property
    def quadratic(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.remaining.quadratic

    @property
    def error(self) -> float:
        return 0.5 * self.solved.at.error

    @property
    def jitter(self) -> float:
        return self.remaining.jitter

    @cached_property
    def cotangents(self) -> Cotangents:
        return CrossedCotangents(self)

    @cached_property
    def along(self) -> AlongRatios:
        """Derivatives in log t of both."""
        return AlongRatios(self)

    @cached_property
    def expansion(self) -> CrossedExpansion | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None if self.solved.at.squares is None else CrossedExpansion(self)

    @cached_property
    def _own_traces(self) -> list[float]:
        """tr (A^-1)_ll of all levels of both; the constant held."""
        V, R = self.remaining.covariance(), self.others.b.size
        both = zip(self.solved.at.traces, self.squares, strict=True)
        return [self.noise * trace + float(np.sum(V * square[:R, :R])) for trace, square in both]

    @cached_property
    def projected_alone(self) -> StructuredCotangent:
        return self.with_own(self.remaining.projected_alone, self._own_traces)

    @cached_property
    def projected_inverse(self) -> StructuredCotangent:
        known = self.remaining.intercept_posterior
        if known is None:
            return self.projected_alone
        traces, u = [], known.answer  # of levels it is M^-1 (h - a'u)
        for trace, square in zip(self._own_traces, self.squares, strict=True):
            E = Totals.of(square)
            traces.append(trace + known.variance * (E.hh - 2.0 * float(u @ E.ah) + float(u @ E.aa @ u)))
        return self.with_own(self.remaining.projected_inverse, traces)

    @property
    def projected_sandwich(self) -> StructuredCotangent:
        traces = [seen / kappa for seen, kappa in zip(self.of_levels, self.precisions, strict=True)]
        return self.with_own(self.remaining.projected_sandwich, traces)

    @property
    def explained_by_term(self) -> list[float]:
        return self._by_term(self.remaining.explained_by_term, self.of_levels)

    def energies(self) -> list[float]:
        G, m = self.others.G.dense(), self.mean[self._kept]
        found = [float(m[own] @ G[own, own] @ m[own]) for own in self.remaining.block_prior.slices]
        levels = [float(n @ self.mean[own] ** 2) for n, own in zip(self.sums.links.n, self._places, strict=True)]
        return self._by_term(found, (levels[0], levels[1]))

    def _by_term(self, others: list[float], levels: tuple[float, float]) -> list[float]:
        for e, own in sorted(zip(self.sums.terms, levels, strict=True)):
            others.insert(e, own)
        return others
