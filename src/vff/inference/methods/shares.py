"""What every term explains, read from sums over rows: shares that add up, and how far others could stand in for it.

With f_j the posterior mean of the pure effect of term j (``posterior.pure``) and f that of their sum,

    share       cov(f_j, f) / var(y) over the rows                          they add up to var(f) / var(y)
    concurvity  1 - var(f_j - g) / var(f_j),  g the other terms' best attempt at f_j

Both are quadratic forms in the Gram matrix, with a_j the coefficients of f_j in the features. g is what the model would
learn from f_j in place of y with all terms but the j-th, at its own priors and noise: the features of smooth terms
nearly depend on one another, and the prior says by how much that counts. A product stands in with what is pure of it.
Its relative is the "observed" measure of ``concurvity`` in R's mgcv, where bases are cut instead of smooths penalised.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from vff.inference.posterior import Posterior, PureEffect
from vff.inference.posterior.pure import Part
from vff.inference.solvers.eliminated import EliminatedLinearGaussian
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.linalg import NotPositiveDefinite, factorise
from vff.moments import Moments

_NOTHING = 1e-12  # of the variance of f, below which an effect has no concurvity


@dataclass(frozen=True)
class Explained:
    """Moments over rows of the effects of a posterior's mean."""

    effects: tuple[PureEffect, ...]
    coefficients: np.ndarray
    """a_j of every effect in the features of the model, (T, P)."""
    covariances: np.ndarray
    """cov(f_j, f), (T,)."""

    @classmethod
    def of(
        cls, posterior: Posterior, sources: Sequence[Sequence[Hashable]], Gm: np.ndarray, centre: np.ndarray, W: float
    ) -> "Explained":
        """From G m and the average of the features over the rows, both (P,), and the weight of all rows."""
        effects, places, m = posterior.pure_effects(sources), posterior.request.slices, posterior.mean
        a = np.stack([effect.embedded(m, places) for effect in effects])
        return cls(effects, a, a @ Gm / W - (a @ centre) * float(centre @ m))

    def shares(self, total: float) -> np.ndarray:
        """Relative to a variance; zero where there is none."""
        return self.covariances / total if total > 0.0 else np.zeros(len(self.covariances))


def gram_of_mean(form: LinearGaussian) -> np.ndarray:
    """G m from A m = tau (b - c0 h), without a product, (P,)."""
    known, own = form.intercept_posterior, form.intercept
    pulled = form.b if own is None or known is None else form.b - known.mean * own.features
    return pulled - form.noise * form.prior.mv(form.mean)


def shares_of_sums(
    posterior: Posterior, sums: Moments, sources: Sequence[Sequence[Hashable]], scale: float | None
) -> np.ndarray:
    """The shares of a posterior from the sums of its rows, targets in units of ``scale``; without, of f."""
    sums = sums.restricted(posterior.request.harmonics)
    places, W = list(zip(posterior.terms, posterior.request.slices, strict=True)), sums.weight
    raw = np.concatenate([term.to_raw(posterior.mean[place]) for term, place in places])
    moved = sums.gram().mv(raw)
    Gm = np.concatenate([term.transform.forward(moved[place]) for term, place in places])
    both = zip(posterior.terms, sums.features_sums, strict=True)
    centre = np.concatenate([term.transform.forward(own) / W for term, own in both])
    found = Explained.of(posterior, sources, Gm, centre, W)
    if scale is None:
        return found.shares(float(found.covariances.sum()))
    return found.shares((sums.target_squared / W - (sums.target / W) ** 2) / scale**2)


def concurvities(explained: Explained, form: LinearGaussian, centre: np.ndarray, W: float) -> list[float | None]:
    """Of every term; None where it has no effect, or G was never written out."""
    T, written = len(explained.effects), form.written_gram()
    if T > 1 and isinstance(form, EliminatedLinearGaussian) and all(own.plain for own in explained.effects):
        try:
            return _beside_levels(explained, form, centre, W)
        except NotPositiveDefinite:  # rounding, where noise is nearly nothing
            return [None] * T
    if T == 1 or written is None:
        return [None] * T
    places, own = form.block_prior.slices, [effect.parts[0] for effect in explained.effects]
    G, a = written - W * np.multiply.outer(centre, centre), explained.coefficients
    moved = G @ a.T
    variances = np.einsum("tp,pt->t", a, moved)
    least = _NOTHING * max(float(np.sum(explained.covariances)) * W, np.finfo(float).tiny)
    try:
        S = _inverse(form, G, explained.effects, centre, W)
        attempts = [_attempt(j, S, form.tau * moved[:, j], places, own) for j in range(T)]
    except NotPositiveDefinite:  # rounding, where noise is nearly nothing
        return [None] * T
    found: list[float | None] = []
    for variance, product, g in zip(variances, moved.T, attempts, strict=True):
        left = float(variance - 2.0 * (g @ product) + g @ G @ g)
        found.append(min(1.0, max(0.0, 1.0 - left / float(variance))) if variance > least else None)
    return found


def _beside_levels(
    explained: Explained, form: EliminatedLinearGaussian, centre: np.ndarray, W: float
) -> list[float | None]:
    """The same where levels were eliminated and every effect is its term: by solutions, without G or S written out."""

    def gram(v: np.ndarray) -> np.ndarray:
        return form.gram_times(v) - W * centre * float(centre @ v)

    least = _NOTHING * max(float(np.sum(explained.covariances)) * W, np.finfo(float).tiny)
    found: list[float | None] = []
    for j, a in enumerate(explained.coefficients):
        product = gram(a)
        variance = float(a @ product)
        g, u = form.solve_without(j, np.stack([form.tau * product, centre], axis=1)).T
        others = centre.copy()
        others[form.prior.slices[j]] = 0.0
        precision = 1.0 / (form.tau * W) - float(others @ u)
        if not (precision > 0.0 and variance > least):
            found.append(None)
            continue
        g = g + u * float(others @ g) / precision
        left = float(variance - 2.0 * (g @ product) + g @ gram(g))
        found.append(min(1.0, max(0.0, 1.0 - left / variance)))
    return found


def _inverse(
    form: LinearGaussian, G: np.ndarray, effects: Sequence[PureEffect], centre: np.ndarray, W: float
) -> np.ndarray:
    """(K + tau M'GM)^-1, (P, P), with M what is pure of every term, and G centred on the rows."""
    if all(effect.plain for effect in effects):  # that of the model, but for the constant
        S = form.covariance()
        u = S @ centre
        precision = 1.0 / (form.tau * W) - float(centre @ u)
        if not precision > 0.0:
            raise NotPositiveDefinite("the rows leave nothing beside their average")
        return S + np.multiply.outer(u, u) / precision
    places, own = form.block_prior.slices, [effect.parts[0] for effect in effects]
    half = np.concatenate([part.adjoint(G[place]) for part, place in zip(own, places, strict=True)])
    pure = np.concatenate([part.adjoint(half[:, place].T) for part, place in zip(own, places, strict=True)])
    return factorise(form.block_prior.lower_plus(form.tau * 0.5 * (pure + pure.T))).inverse()


def _attempt(j: int, S: np.ndarray, right: np.ndarray, places: Sequence[slice], own: Sequence[Part]) -> np.ndarray:
    """Coefficients of the best attempt of all terms but one at a function, (P,), from tau G times those of it."""
    place = places[j]
    right = np.concatenate([part.adjoint(right[p]) for part, p in zip(own, places, strict=True)])
    right[place] = 0.0
    # of all other terms o, (A_oo)^-1 = S_oo - S_oj S_jj^-1 S_jo
    beta = S @ right
    beta -= S[:, place] @ factorise(S[place, place]).solve(beta[place])
    beta[place] = 0.0
    return np.concatenate([part.embedded(beta[p]) for part, p in zip(own, places, strict=True)])
