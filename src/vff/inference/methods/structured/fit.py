"""Gaussian approximations whose covariance has a structure, for any likelihood (theory §10).

In coefficients c = K^-1 u, f = offset + phi(x)'c + residual, q(c) = N(m, S), terms independent, and S_t one Kronecker
product over the factors (``"kronecker"``), a sum of two (``"two kroneckers"``), or dense (``"factorised"``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Literal

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from vff.inference.methods.structured.bound import Objective, Pieces, Rows, State, trace
from vff.inference.methods.structured.search import Search, diagonal_precision, iterate, maximise_jointly, step_mean
from vff.inference.model.scale import REACH
from vff.inference.solvers.records import InterceptPosterior
from vff.linalg import apply_along, product_rows
from vff.words import shown

Kind = Literal["kronecker", "two kroneckers", "factorised"]
KINDS = ("kronecker", "two kroneckers", "factorised")
_SWEEPS, _ROUND, _ROUNDS = 200, 400, 10
_SCALES = (0.1, 0.01, 1e-4)  # of the prior, for the first q
_VARIANCE = REACH**2  # of the constant
LARGEST_JOINT = 2_000_000  # numbers of q; fixed points alone move more


@dataclass(frozen=True)
class ProductTerm:
    """One term at the rows: a product of factors with features Phi_d (N, P_d) and prior K_d (P_d, P_d).

    K_d is for unit variance: K = kron_d K_d / variance.
    """

    features: tuple[np.ndarray, ...]
    priors: tuple[np.ndarray, ...]
    variance: float = 1.0
    varying: np.ndarray | None = None
    """k(x, x) at the rows, (N,); None where it is the variance everywhere."""

    @property
    def prior_variance(self) -> np.ndarray | float:
        """k(x, x)."""
        return self.variance if self.varying is None else self.varying


@dataclass(frozen=True)
class StructuredFit:
    """q at the optimum, in coefficients."""

    kind: Kind
    means: tuple[np.ndarray, ...]
    """m of every term, as a tensor over its factors."""
    factors: Pieces
    """Over terms, pieces and groups: L with S = sum over pieces of kron_g L_g L_g'. A group is a factor of the term, or
    for ``"factorised"`` the whole term."""
    whiteners: tuple[tuple[np.ndarray, ...], ...]
    """G_d for every factor, K_d^-1 = G_d G_d'."""
    edf: tuple[float, ...]
    """P - tr(K S) of every term: how many of its coefficients the data determine."""
    elbo: float
    converged: bool
    slope: float
    """The largest derivative of the bound at the end, per unit of q's own spread."""
    evaluations: int

    def covariance(self, t: int = 0) -> np.ndarray:
        """S of a term, written out."""
        size = self.means[t].size
        return sum((reduce(np.kron, [L @ L.T for L in piece]) for piece in self.factors[t]), np.zeros((size, size)))


def whiten(term: ProductTerm, w: np.ndarray) -> tuple[np.ndarray, ...]:
    """G_d of every factor: K^-1 = kron_d G_d G_d', and the features Phi_d G_d are orthogonal over the rows."""
    maps = []
    for phi, K in zip(term.features, term.priors, strict=True):
        root = cholesky(K, lower=True)
        z = solve_triangular(root, phi.T, lower=True)
        _, rotation = np.linalg.eigh((z * w) @ z.T)
        maps.append(solve_triangular(root, rotation[:, ::-1], lower=True, trans=1))
    return np.sqrt(term.variance) * maps[0], *maps[1:]


def rows_of(
    kind: Kind,
    terms: Sequence[ProductTerm],
    whiteners: Sequence[tuple[np.ndarray, ...]],
    data: tuple[Any, ...],
    offset: np.ndarray | float = 0.0,
) -> Rows:
    """The rows in whitened coefficients; ``data`` is (y, w, extra, psi)."""
    both = zip(terms, whiteners, strict=True)
    z = [tuple(phi @ G for phi, G in zip(term.features, own, strict=True)) for term, own in both]
    residual = np.zeros(len(data[1]))
    for term, own in zip(terms, z, strict=True):
        explained = np.prod([np.sum(factor**2, axis=1) for factor in own], axis=0)
        residual += np.maximum(term.prior_variance - explained, 0.0)
    if kind == "factorised":
        z = [(product_rows(list(own)),) for own in z]
    return Rows(tuple(z), residual, data, offset)


def prior_state(rows: Rows, scale: float = 1.0) -> State:
    """q at the prior, in one piece; or of ``scale`` times its standard deviations."""
    sizes = [[factor.shape[1] for factor in z] for z in rows.z]
    means = tuple(np.zeros(int(np.prod(own))) for own in sizes)
    pieces = ((scale * np.eye(first), *(np.eye(P) for P in others)) for first, *others in sizes)
    return State(means, tuple((piece,) for piece in pieces))


def _begun(rows: Rows, objective: Objective, means: Sequence[np.ndarray] | None) -> Search:
    """Where the search starts: at the prior, or with less variance or known means where the rows like that more."""
    first = Search(rows, objective, prior_state(rows))
    states = [prior_state(rows, scale) for scale in _SCALES]
    if means is not None:
        states += [state._replace(means=tuple(means)) for state in states]
    possible = [search for search in (first, *map(first.moved, states)) if search.finite]
    if not possible:
        raise ValueError(
            "log p(y | f) or a derivative of it is not finite at the prior mean of f: write it so that it is, for "
            "every f, or give hyperparameters nearer to the targets"
        )
    return max(possible, key=lambda search: search.sites.bound)


def _two_piece_starts(search: Search) -> list[State]:
    """Sums of two products that resemble the posterior, from q in one piece.

    With H_g the directions of group g that the data leave alone and I - H_g those they determine, what is left alone in
    any group is I (x) ... (x) H_g + H (x) ... (x) (I - H_g), for any choice of g where there are two. And one start is
    the product that was found, with a little of the prior added.
    """
    shares = []
    for z in search.rows.z:
        precision = diagonal_precision(z, search.weight)
        others = [tuple(e for e in range(len(z)) if e != g) for g in range(len(z))]
        shares.append([np.clip(1.0 / precision.max(axis=axes), 1e-3, 0.999) for axes in others])
    starts = []
    for g in range(max(len(own) for own in shares)):
        terms = []
        for t, own in enumerate(shares):
            if len(own) == 1:  # one group needs one piece
                terms.append(search.state.pieces[t])
                continue
            first = tuple(np.diag(np.sqrt(h if e == g else np.ones_like(h))) for e, h in enumerate(own))
            second = tuple(np.diag(np.sqrt(1.0 - h if e == g else h)) for e, h in enumerate(own))
            terms.append((first, second))
        starts.append(State(search.state.means, tuple(terms)))
    added = [
        (piece, tuple(0.3 * np.eye(len(L)) for L in piece)) if len(piece) > 1 else (piece,)
        for (piece,) in search.state.pieces
    ]
    return [*starts, State(search.state.means, tuple(added))]


def _split(search: Search, tolerance: float) -> tuple[Search, float]:
    """The search with two pieces, from the most promising start; never below the one piece it comes from."""
    trials = [search.moved(state) for state in _two_piece_starts(search)]
    *_, added = trials
    possible = [trial for trial in trials if trial.finite]
    for trial in possible:
        for _ in range(3):
            step_mean(trial)
    possible.sort(key=lambda trial: trial.sites.bound)
    nearest = [added] if added.finite and possible[-1] is not added else []
    for best in [*possible[-1:], *nearest]:
        slope = maximise_jointly(best, tolerance, _ROUND)
        if best.sites.bound >= search.sites.bound:
            return best, slope
    return search, maximise_jointly(search, tolerance, _ROUND)


def _in_coefficients(
    kind: Kind, whiteners: Sequence[tuple[np.ndarray, ...]], state: State
) -> tuple[tuple[np.ndarray, ...], Pieces]:
    """m and L of c = G h."""
    means, factors = [], []
    for own, h, pieces in zip(whiteners, state.means, state.pieces, strict=True):
        shape, grouped = [len(G) for G in own], (reduce(np.kron, own),) if kind == "factorised" else own
        means.append(apply_along(h, shape, [partial(np.matmul, G) for G in own]).reshape(shape))
        factors.append(tuple(tuple(G @ L for G, L in zip(grouped, piece, strict=True)) for piece in pieces))
    return tuple(means), tuple(factors)


def fit_structured(
    kind: Kind,
    terms: Sequence[ProductTerm],
    y: Any,
    w: np.ndarray | None,
    likelihood: Any,
    psi: Any,
    extra: Any,
    *,
    offset: np.ndarray | float = 0.0,
    means: Sequence[np.ndarray] | None = None,
    nodes: int = 32,
    tolerance: float = 1e-5,
) -> StructuredFit:
    """The best q of a kind.

    y and ``extra`` have one entry per row (``extra`` may be None), w are weights of rows (None for ones), and
    ``likelihood.log_density(y, f, extra, psi)`` is log p of one row in ``jax.numpy``; a likelihood must be hashable.
    ``offset`` is the prior mean of f, one or by row, and ``means`` are m of every term where a good guess is known.
    Expectations are taken with ``nodes`` nodes. The search ends when no derivative of the bound, per unit of q's own
    spread, exceeds ``tolerance``.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(shown, KINDS))}, not {shown(kind)}")
    weights = np.ones(len(terms[0].features[0])) if w is None else np.asarray(w, float)
    whiteners = [whiten(term, weights) for term in terms]
    rows = rows_of(kind, terms, whiteners, (y, weights, extra, psi), offset)
    objective = Objective(rows, getattr(likelihood, "form", likelihood), nodes)
    known = None
    if means is not None:  # h of c = G h
        both = zip(means, whiteners, strict=True)
        known = [
            apply_along(c.ravel(), [len(G) for G in own], [partial(np.linalg.solve, G) for G in own]) for c, own in both
        ]
    search = _begun(rows, objective, known)
    # for two pieces, one piece is only where to start
    splits = kind == "two kroneckers" and any(len(z) > 1 for z in rows.z)
    slope = iterate(search, 1e-2 if splits else tolerance, _SWEEPS)
    if splits:
        search, slope = _split(search, tolerance)
    size = sum(h.size + sum(L.size for L in piece) for h, (piece, *_) in zip(*search.state, strict=True))
    for _ in range(_ROUNDS):
        if slope < tolerance or (size > LARGEST_JOINT and not splits):
            break
        slope = maximise_jointly(search, tolerance, _ROUND)
    means, factors = _in_coefficients(kind, whiteners, search.state)
    return StructuredFit(
        kind=kind,
        means=means,
        factors=factors,
        whiteners=tuple((G / np.sqrt(t.variance), *more) for t, (G, *more) in zip(terms, whiteners, strict=True)),
        edf=tuple(float(h.size - trace(own)) for h, own in zip(search.state.means, search.state.pieces, strict=True)),
        elbo=search.sites.bound,
        converged=slope < tolerance,
        slope=slope,
        evaluations=search.objective.evaluations,
    )


# --- the constant of the latent function ---------------------------------------------------------------------------
# Where a term's covariance is dense, the constant is one more feature of the first term, so that with one term q has
# the full covariance still. Where covariances are Kronecker products it is a term of its own, independent of the others
# under q as they are of one another: the bound stays one, and f is a little less certain than with the full covariance.


def with_intercept(kind: Kind, terms: Sequence[ProductTerm]) -> list[ProductTerm]:
    """The terms and the constant, as ``fit_structured`` takes them."""
    first, *others = terms
    one = np.ones((len(first.features[0]), 1))
    if kind != "factorised":
        return [*terms, ProductTerm((one,), (np.eye(1),), _VARIANCE)]
    features = np.concatenate([product_rows(list(first.features)), one], axis=1)
    P, variance = features.shape[1] - 1, first.variance + _VARIANCE
    K = np.zeros((P + 1, P + 1))
    K[:P, :P], K[P, P] = variance / first.variance * reduce(np.kron, first.priors), variance / _VARIANCE
    varying = None if first.varying is None else first.varying + _VARIANCE
    return [ProductTerm((features,), (K,), variance, varying), *others]


def means_with_intercept(kind: Kind, means: Sequence[np.ndarray], intercept: float) -> list[np.ndarray]:
    """Means of the coefficients (P,) of every term, and of the constant, in the order of ``with_intercept``."""
    if kind != "factorised":
        return [*means, np.array([intercept])]
    first, *others = means
    return [np.append(first, intercept), *others]


def without_intercept(
    kind: Kind, fit: StructuredFit, terms: Sequence[ProductTerm], w: np.ndarray
) -> tuple[StructuredFit, InterceptPosterior]:
    """q of the terms themselves, the constant held, and q of the constant."""
    P = sum(int(np.prod([phi.shape[1] for phi in term.features])) for term in terms)
    if kind != "factorised":
        intercept = InterceptPosterior(
            float(fit.means[-1].item()), float(fit.covariance(len(terms)).item()), np.zeros(P)
        )
        left = {name: getattr(fit, name)[:-1] for name in ("means", "factors", "whiteners", "edf")}
        return replace(fit, **left), intercept
    first, own = terms[0], fit.means[0].size - 1
    ((L,),) = fit.factors[0]
    # a root of the same covariance with the constant first: what is left below it is that of the others, given it
    root = np.asarray(np.linalg.qr(np.concatenate([L[own:], L[:own]]).T, mode="r")).T
    variance = float(root[0, 0] ** 2)
    answer = np.concatenate([-root[1:, 0] / root[0, 0], np.zeros(P - own)])
    shape = [phi.shape[1] for phi in first.features]
    inner = replace(
        fit,
        means=(fit.means[0][:own].reshape(shape), *fit.means[1:]),
        factors=(((root[1:, 1:],),), *fit.factors[1:]),
        whiteners=(whiten(replace(first, variance=1.0), w), *fit.whiteners[1:]),
        edf=(fit.edf[0] - 1.0 + variance / _VARIANCE, *fit.edf[1:]),
    )
    return inner, InterceptPosterior(float(fit.means[0][own]), variance, answer)
