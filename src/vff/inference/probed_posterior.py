"""The posterior of a model too large to factor: A^-1 = W'W + W'(A~^-1 - I)W, the first exactly, the second by probes.

Variances of a few rows, and covariances, come from solutions of their own and are exact. For many rows the second part
is an average over random signs z of (phi'W'(A~^-1 z - z)) (phi'W'z): small, and known with a standard error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from vff.inference.collapsed import ClosedForm
from vff.inference.form import AbstractForm
from vff.inference.iterative import IterativeForm
from vff.inference.model import Setting, SumModel
from vff.inference.posterior import AbstractSumPosterior, SumPosterior, stretches
from vff.inference.term_posterior import TermCoefficients, TermPosterior
from vff.inference.whitening import WhitenedTerm
from vff.moments import (
    ColumnRows,
    Coupling,
    LetterFunction,
    Pair,
    Tables,
    contract,
    evaluate_letters,
    gram_columns_adjoint,
    pair_functions,
    summed,
)

FEW_ROWS = 64  # whose variances are solved for one by one
_MOST_JOINT = 2000
_AT_ONCE = 128
_GOOD_VARIANCE = 2.5e-3  # relative standard error
_MOST_PROBES, _MOST_WHEN_LARGE, _LARGE = 192, 96, 20_000  # probes for it, and features


def most_probes(P: int) -> int:
    """Probes that variances may take in a model of P features."""
    return _MOST_PROBES if P <= _LARGE else _MOST_WHEN_LARGE


@dataclass(frozen=True)
class ProbedTerm(TermPosterior):
    """q(f) for one term; ``coefficients.explained`` is not written out."""

    white: WhitenedTerm
    away: np.ndarray
    """W'(A~^-1 z - z), (P, S)."""
    signs: np.ndarray
    """W'z, (P, S)."""
    excess: np.ndarray
    """What W'W has in the corner beside U D^-1 U', in the coordinates of U."""

    @cached_property
    def _gain(self) -> np.ndarray:
        """K^-1 - U D^-1 U' in the coordinates of U, where it is diagonal; an axis per factor."""
        return 1.0 / self.white.scale - 1.0 / self.white.D

    @cached_property
    def explained_function(self) -> LetterFunction:
        """phi'(K^-1 - W'W)phi in the double letters of its columns."""
        bases = [factor.basis for factor in self.factors]
        raw = [T.transpose(U) for T, U in zip(self.transform.factors, self.white.U, strict=True)]
        squares = [gram_columns_adjoint(basis, U, U) for basis, U in zip(bases, raw, strict=True)]
        letters = contract(self._gain, squares)
        letters = letters - self._corner_letters(raw)
        return LetterFunction(self.columns, tuple(basis.double for basis in bases), letters)

    def _corner_letters(self, raw: Sequence[np.ndarray]) -> np.ndarray:
        sizes, D = self.white.corner, len(raw)
        order = [axis for d in range(D) for axis in (d, D + d)]
        tensor = self.excess.reshape(*sizes, *sizes).transpose(order).reshape([size**2 for size in sizes])
        maps = []
        for factor, U, size in zip(self.factors, raw, sizes, strict=True):
            left, right = np.repeat(np.arange(size), size), np.tile(np.arange(size), size)
            maps.append(gram_columns_adjoint(factor.basis, U[:, left], U[:, right]))
        return contract(tensor, maps)

    def probe_functions(self) -> list[LetterFunction]:
        """phi'W'(A~^-1 z - z) for every probe, then phi'W'z."""
        return [self.function(c) for c in np.concatenate([self.away, self.signs], axis=1).T]

    def written_gain(self, features: np.ndarray) -> np.ndarray:
        """phi'(K^-1 - W'W)phi for features written out, (N,)."""
        white = np.asarray(self.white.rotated(features.T)).T
        total = white**2 @ self._gain.reshape(-1)
        corner = white[:, self.white.corner_places]
        return total - np.einsum("np,np->n", corner @ self.excess, corner)

    def corner_functions(self) -> np.ndarray:
        """The corner's functions in the coordinates of the prior, (P, J)."""
        U = [columns[:, :size] for columns, size in zip(self.white.U, self.white.corner, strict=True)]
        return reduce(np.kron, U)

    def answers(
        self, x: np.ndarray, rows: Sequence[ColumnRows], vectors: Sequence[np.ndarray], engine: str = "auto"
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """phi'c for every vector c, and phi'(K^-1 - (A^-1)_ss)phi, at every row."""
        values, explained = super().answers(x, rows, vectors, engine)
        probes = probe_values(self, x, rows, engine)
        return values, explained - np.mean(probes[0] * probes[1], axis=0)

    def exact_part(self, x: np.ndarray, rows: Sequence[ColumnRows], engine: str) -> tuple[np.ndarray, np.ndarray]:
        """phi'm and phi'(K^-1 - W'W)phi."""
        (mean,), explained = super().answers(x, rows, [self.coefficients.mean], engine)
        return mean, explained

    def _written(self, x: np.ndarray, vectors: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
        values, explained = [np.empty(len(x)) for _ in vectors], np.empty(len(x))
        for rows in stretches(len(x), self.transform.size):
            features = self.features(x[rows])
            for value, c in zip(values, vectors, strict=True):
                value[rows] = features @ c
            explained[rows] = self.written_gain(features)
        return values, explained

    def _beyond(self, x: np.ndarray, vectors: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
        return self._written(x, vectors)


def probe_values(
    term: ProbedTerm, x: np.ndarray, rows: Sequence[ColumnRows], engine: str = "auto"
) -> tuple[np.ndarray, np.ndarray]:
    """phi'W'(A~^-1 z - z) and phi'W'z at every row, (S, N) each."""
    S, inside = term.signs.shape[1], term.inside(rows)
    values = np.empty((2 * S, len(x)))
    if inside.any():
        within = rows if inside.all() else [ColumnRows(one.request, one.x[inside], one.book) for one in rows]
        values[:, inside] = np.stack(evaluate_letters(within, term.probe_functions(), engine))
    if not inside.all():
        beyond, probes = np.flatnonzero(~inside), np.concatenate([term.away, term.signs], axis=1)
        for some in stretches(beyond.size, term.transform.size):
            values[:, beyond[some]] = (term.features(x[beyond[some]]) @ probes).T
    return values[:S], values[S:]


@dataclass(frozen=True)
class ProbedPosterior(AbstractSumPosterior):
    """q(f) for a sum of terms of any size."""

    terms: tuple[ProbedTerm, ...]
    form: IterativeForm

    @classmethod
    def from_form(cls, form: IterativeForm, model: SumModel, setting: Setting) -> "ProbedPosterior":
        """The posterior at a setting, with as many probes as its variances need."""
        posterior = cls._with_probes(form, model, setting)
        most = most_probes(model.size)
        while posterior.relative_error > _GOOD_VARIANCE and form.probes < most and form.probed.converged:
            form = replace(form, probes=2 * form.probes)
            posterior = cls._with_probes(form, model, setting)
        return posterior

    @classmethod
    def _with_probes(cls, form: IterativeForm, model: SumModel, setting: Setting) -> "ProbedPosterior":
        centre, places = model.centre(setting), model.moments.request.slices
        away, signs = form.to_prior(form.probed.X - form.signs), form.to_prior(form.signs)
        terms = []
        for s, place in enumerate(places):
            own = centre[place]
            X, Z, white = away[place], signs[place], form.terms[s]
            excess = form.corner_excess(s, s)
            rotated = white.rotated(own[:, None])[:, 0]
            weighed = rotated / white.D.reshape(-1)
            weighed[white.corner_places] += excess @ rotated[white.corner_places]
            covariance = white.turned_back(weighed[:, None])[:, 0]
            covariance += 0.5 * (X @ (Z.T @ own) + Z @ (X.T @ own)) / form.probes
            coefficients = TermCoefficients(form.mean[place], np.empty((0, 0)), own, covariance)
            terms.append(
                ProbedTerm(
                    coefficients,
                    setting.terms[s]["variance"],
                    model.moments.request.terms[s].columns,
                    model.terms[s].priors(model.columns[s], setting.terms[s]),
                    model.terms[s].transform(model.columns[s], setting.terms[s]),
                    white,
                    X,
                    Z,
                    excess,
                )
            )
        return cls(model.moments.request, tuple(terms), form, constant=form.level)

    @cached_property
    def _couplings(self) -> dict[Pair, Coupling]:
        return {(s, t): Coupling(self.request.terms[s], self.request.terms[t]) for s, t in self.request.pairs}

    @cached_property
    def _shared(self) -> dict[Pair, np.ndarray]:
        """W'W between terms, in the coordinates of the prior, (P_s, P_t)."""
        corners = [term.corner_functions() for term in self.terms] if self.request.pairs else []
        return {(s, t): corners[s] @ self.form.corner_excess(s, t) @ corners[t].T for s, t in self.request.pairs}

    @cached_property
    def _pair_functions(self) -> list[LetterFunction]:
        return pair_functions(self._couplings, self._shared_raw)

    @cached_property
    def _shared_raw(self) -> dict[Pair, np.ndarray]:
        return {(s, t): self.terms[t].to_raw(self.terms[s].to_raw(block).T).T for (s, t), block in self._shared.items()}

    def _pairs(self, x: np.ndarray, rows: Sequence[ColumnRows], engine: str) -> np.ndarray:
        """sum over pairs of terms of phi_s' (W'W)_st phi_t."""
        inside = np.logical_and.reduce([term.inside(rows) for term in self.terms])
        total = np.empty(len(x))
        if inside.any():
            some = rows if inside.all() else self.rows(x[inside])
            total[inside] = summed(some, self._pair_functions, engine)
        if not inside.all():
            features = [term.features(x[~inside]) for term in self.terms]
            parts = [np.einsum("np,np->n", features[s] @ block, features[t]) for (s, t), block in self._shared.items()]
            total[~inside] = np.sum(parts, axis=0)
        return total

    def inside(self, rows: Sequence[ColumnRows], tables: Tables) -> tuple[np.ndarray, np.ndarray]:
        return self.marginals(np.stack([column.x for column in rows]).T)

    def _chunk(
        self, x: np.ndarray, rows: Sequence[ColumnRows], variances: bool, engine: str
    ) -> tuple[np.ndarray, np.ndarray]:
        if not variances:
            return self._means(x, rows, engine), np.empty(len(x))
        if len(x) <= FEW_ROWS:
            mean, covariance = self._joint(x)
            return mean, np.maximum(np.diagonal(covariance), 0.0)
        parts = [term.exact_part(x, rows, engine) for term in self.terms]
        own = self.variance - np.sum([explained for _, explained in parts], axis=0)
        if self.request.pairs:
            own += 2.0 * self._pairs(x, rows, engine)
        for some in stretches(len(x), 2 * self.form.probes):
            own[some] += np.mean(np.multiply(*self._probes(x[some], engine)), axis=0)
        return np.sum([mean for mean, _ in parts], axis=0), np.maximum(own, 0.0)

    def _probes(self, x: np.ndarray, engine: str = "auto") -> tuple[np.ndarray, np.ndarray]:
        """phi'W'(A~^-1 z - z) and phi'W'z of all terms together, (S, N) each."""
        rows = self.rows(x)
        values = [probe_values(term, x, rows, engine) for term in self.terms]
        away, signs = (np.sum(part, axis=0) for part in zip(*values, strict=True))
        return away, signs

    def _means(self, x: np.ndarray, rows: Sequence[ColumnRows], engine: str) -> np.ndarray:
        return np.sum([term.means(x, rows, engine) for term in self.terms], axis=0)

    def _joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By solutions of their own."""
        self._check_few(x)
        features = [term.features(x) for term in self.terms]
        covariance = np.zeros((len(x), len(x)))
        for term, phi in zip(self.terms, features, strict=True):
            covariance += term.covariance(x) - phi @ term.white.prior.solve(phi.T)
        return self._with_solutions(x, features, covariance)

    def _with_solutions(
        self, x: np.ndarray, features: Sequence[np.ndarray], covariance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add phi'A^-1 phi."""
        every = np.concatenate(features, axis=1)
        for start in range(0, len(x), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            covariance[:, some] += every @ self.form.solve(every[some].T)
        return every @ self.form.mean, 0.5 * (covariance + covariance.T)

    def _check_few(self, x: np.ndarray) -> None:
        if len(x) > _MOST_JOINT:
            raise ValueError(
                f"a joint distribution over {len(x)} rows of a model with {self.request.size} features needs a "
                f"solution per row; ask for at most {_MOST_JOINT} rows at a time, or use predict_f(X) for every row by "
                "itself"
            )

    def _variance_of_average(self) -> float:
        centre = np.concatenate([term.coefficients.centre for term in self.terms])
        return float(centre @ self.form.solve(centre[:, None])[:, 0])

    def _slope(self, x: np.ndarray, along: int) -> tuple[np.ndarray, np.ndarray]:
        self._check_few(x)
        features, prior = [], np.zeros((len(x), len(x)))
        for term in self.terms:
            if along in term.columns:
                phi = term.features(x, along)
                prior += np.diag(np.full(len(x), term.slope_variance(along))) - phi @ term.white.prior.solve(phi.T)
            else:
                phi = np.zeros((len(x), term.transform.size))
            features.append(phi)
        mean, covariance = self._with_solutions(x, features, prior)
        return mean, np.maximum(np.diagonal(covariance), 0.0)

    @cached_property
    def relative_error(self) -> float:
        """Standard error of the latent variance over the probes, relative to it; 95 % of rows inside stay below."""
        rng = np.random.default_rng(0)
        x = np.empty((200, len(self.request.columns)))
        for c, column in enumerate(self.request.columns):
            x[:, c] = column.place.draw(rng, len(x), column.basis.size)
        away, signs = self._probes(x)
        error = np.std(away * signs, axis=0, ddof=1) / np.sqrt(self.form.probes)
        _, variance = self.marginals(x)
        return float(np.quantile(error / np.maximum(variance, 1e-300), 0.95))


def posterior_of(form: AbstractForm, model: SumModel, setting: Setting) -> AbstractSumPosterior:
    """The posterior at a setting, by the solver that got there."""
    if isinstance(form, IterativeForm):
        return ProbedPosterior.from_form(form, model, setting)
    assert isinstance(form, ClosedForm)
    return SumPosterior.from_closed_form(form, model, setting)
