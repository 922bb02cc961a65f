"""How the bound of a structured q is maximised.

*Fixed points.* Given the rest of q, with g and W = -E d^2 log p the slopes and weights of the rows, the mean solves
(I + Z'WZ) h = Z'(g + W mu), by a factor or, where features are many, by conjugate gradients; and one group of a
covariance of one piece is

    S_g^-1 = (P_g / P) [prod_{e != g} tr S_e  I + sum_n W_n (prod_{e != g} z_e' S_e z_e) z_g z_g']

Either step is shortened until the bound rises. *L-BFGS* moves everything together, in coordinates in which the bound is
nearly round; two pieces need it, and one piece if the fixed points stall.
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from vff.inference.methods.structured.bound import Coordinates, Objective, Piece, Pieces, Rows, State, flattened, placed
from vff.inference.model.products import evaluated, projected
from vff.linalg import conjugate_gradients, factorise, product_rows

_DENSE_FEATURES, _DENSE_ENTRIES = 2000, 2**26
_HALVINGS = 12
_SOLVED, _ITERATIONS = 1e-2, 200


class Search:
    """Where the search is."""

    def __init__(self, rows: Rows, objective: Objective, state: State, written: np.ndarray | None = None):
        """``written`` is Z of all terms, (N, P), if it is small enough to be written out."""
        self.rows, self.objective, self.state, self.sites = rows, objective, state, objective.sites(state)
        P, N = sum(h.size for h in state.means), rows.residual.size
        if written is None and P <= _DENSE_FEATURES and N * P <= _DENSE_ENTRIES:
            written = np.concatenate([product_rows(z) for z in rows.z], axis=1)
        self.written = written

    def moved(self, state: State) -> "Search":
        """The same search somewhere else."""
        return Search(self.rows, self.objective, state, self.written)

    @property
    def weight(self) -> np.ndarray:
        """Of the rows; where log p is not concave it counts as zero."""
        return np.maximum(self.sites.weight, 0.0)

    @property
    def finite(self) -> bool:
        """Whether the bound and what the rows say are numbers: a variance can be too much for a likelihood."""
        return all(np.isfinite(part).all() for part in (self.sites.bound, self.sites.slope, self.sites.weight))

    def improves(self, state: State) -> bool:
        """Go there if the bound does not fall, but for rounding."""
        there = self.moved(state)
        if not there.finite or there.sites.bound < self.sites.bound - 1e-12 * (1.0 + abs(self.sites.bound)):
            return False
        self.state, self.sites = state, there.sites
        return True


def _split(h: np.ndarray, like: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return tuple(np.split(h, np.cumsum([part.size for part in like])[:-1]))


def _precision_root(search: Search, Z: np.ndarray) -> np.ndarray:
    """Lower C with CC' = I + Z'WZ.

    Weights may span more decades than float64 has digits. The metric of a step need not be exact: the bound judges it.
    """
    precision = (Z.T * search.weight) @ Z
    precision[np.diag_indices_from(precision)] += 1.0
    return factorise(precision).lower


def _step_by_factor(search: Search, Z: np.ndarray, h: np.ndarray) -> tuple[float, np.ndarray]:
    root, gradient = _precision_root(search, Z), Z.T @ search.sites.slope - h
    slope = float(np.abs(solve_triangular(root, gradient, lower=True)).max())
    return slope, cho_solve((root, True), gradient)


def _step_by_iterations(search: Search, h: np.ndarray) -> tuple[float, np.ndarray]:
    """The same to a few digits, which the next step makes good, without any Z."""
    z, weight, spread = search.rows.z, search.weight, _diagonal_metric(search)

    def mv(v: np.ndarray) -> np.ndarray:
        inner = spread * v[:, 0]
        parts = zip(z, _split(inner, search.state.means), strict=True)
        values = weight * sum(evaluated(own, part) for own, part in parts)
        return (spread * (inner + np.concatenate([projected(own, values) for own in z])))[:, None]

    gradient = spread * (np.concatenate([projected(own, search.sites.slope) for own in z]) - h)
    solution = conjugate_gradients(mv, gradient[:, None], _SOLVED, _ITERATIONS)
    return float(np.abs(gradient).max()), spread * solution.X[:, 0]


def _diagonal_metric(search: Search) -> np.ndarray:
    """Standard deviations of the coefficients, were they independent, (P,)."""
    return np.concatenate([1.0 / np.sqrt(diagonal_precision(z, search.weight)).ravel() for z in search.rows.z])


def step_mean(search: Search) -> float:
    """One Newton step for the mean; returns the largest slope before it, in coordinates in which q's spread is one."""
    h, Z = np.concatenate(search.state.means), search.written
    slope, step = _step_by_iterations(search, h) if Z is None else _step_by_factor(search, Z, h)
    for halving in range(_HALVINGS):
        means = _split(h + 0.5**halving * step, search.state.means)
        if search.improves(search.state._replace(means=means)):
            break
    return slope


def _optimal_precision(search: Search, t: int, g: int) -> np.ndarray:
    """What the precision of one group would be, were the weights of the rows as they are."""
    z, (piece,) = search.rows.z[t], search.state.pieces[t]
    weight, trace = search.sites.weight.copy(), 1.0
    for e, L in enumerate(piece):
        if e != g:
            weight *= np.sum((z[e] @ L) ** 2, axis=1)
            trace *= np.sum(L**2)
    share = len(piece[g]) / np.prod([len(L) for L in piece])
    return share * (trace * np.eye(len(piece[g])) + (z[g].T * weight) @ z[g])


def step_covariance(search: Search, t: int, g: int) -> float:
    """One natural step for one group; returns the largest slope before it, relative to the group itself."""
    pieces, goal = search.state.pieces, _optimal_precision(search, t, g)
    (piece,) = pieces[t]
    L = piece[g]
    relative = np.tril(np.eye(len(L)) - L.T @ goal @ L)
    slope = float(np.abs(relative).max()) * search.state.means[t].size / len(L)
    inverse = solve_triangular(L, np.eye(len(L)), lower=True)
    present = inverse.T @ inverse
    for halving in range(_HALVINGS):
        rate = 0.5**halving
        factor = _root_of_inverse((1.0 - rate) * present + rate * goal)
        if factor is None:  # log p is not concave everywhere
            continue
        changed = (*piece[:g], factor, *piece[g + 1 :])
        if search.improves(search.state._replace(pieces=(*pieces[:t], (changed,), *pieces[t + 1 :]))):
            break
    return slope


def _root_of_inverse(precision: np.ndarray) -> np.ndarray | None:
    """Lower L with LL' = precision^-1; None where the precision is not positive.

    With the order reversed, C C' = precision has an upper C, and L = C^-T: the inverse itself, in which a wide spread
    of precisions would leave no digit of the small variances, is never written out.
    """
    try:
        root = cholesky(precision[::-1, ::-1], lower=True)
    except np.linalg.LinAlgError:
        return None
    return solve_triangular(root, np.eye(len(root)), lower=True)[::-1, ::-1].T


def iterate(search: Search, tolerance: float, sweeps: int) -> float:
    """Fixed points in turn, for covariances of one piece; returns the largest slope met in the last sweep."""
    slope, groups = np.inf, [(t, g) for t, z in enumerate(search.rows.z) for g in range(len(z))]
    for _ in range(sweeps):
        slopes = [step_mean(search)] + [step_covariance(search, t, g) for t, g in groups]
        slope = max(slopes)
        if slope < tolerance:
            break
    return slope


def _balanced(piece: Piece) -> Piece:
    """The same product with the same average variance in every group."""
    scales = np.array([np.sqrt(np.mean(np.sum(L**2, axis=1))) for L in piece])
    common = np.exp(np.mean(np.log(scales)))
    return tuple(L * (common / scale) for L, scale in zip(piece, scales, strict=True))


def _root_of_mean(factors: Sequence[np.ndarray]) -> np.ndarray:
    """Lower R with RR' the mean of LL' over some L, which are not squared for it."""
    return np.linalg.qr(np.concatenate([L.T for L in factors])).R.T / np.sqrt(len(factors))


def coordinates(search: Search) -> tuple[Coordinates, Pieces]:
    """Coordinates around the present state, and where it is in them."""
    terms = [tuple(_balanced(piece) for piece in pieces) for pieces in search.state.pieces]
    bases = tuple(tuple(_root_of_mean(group) for group in zip(*pieces, strict=True)) for pieces in terms)
    T = tuple(
        tuple(
            tuple(solve_triangular(base, L, lower=True) for base, L in zip(own, piece, strict=True)) for piece in pieces
        )
        for own, pieces in zip(bases, terms, strict=True)
    )
    if search.written is not None:
        root = _precision_root(search, search.written)
        metric = solve_triangular(root, np.eye(len(root)), lower=True).T
    else:
        metric = _diagonal_metric(search)
    return Coordinates(search.state.means, metric, bases), T


def diagonal_precision(z: tuple[np.ndarray, ...], weight: np.ndarray) -> np.ndarray:
    """The diagonal of I + Z'WZ of a term, as a tensor over its groups."""
    squares = tuple(factor**2 for factor in z)
    return 1.0 + projected(squares, weight).reshape([factor.shape[1] for factor in z])


def maximise_jointly(search: Search, tolerance: float, iterations: int) -> float:
    """L-BFGS over the mean and all factors; returns the largest slope at the end."""
    at, T = coordinates(search)
    start, unpack = flattened((np.zeros(at.metric.shape[0]), T))

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, *slopes = search.objective.ascent(at, *unpack(x))
        if not np.isfinite(value):
            return np.inf, np.zeros_like(x)
        return -value, -flattened(slopes)[0]

    options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 30, "gtol": tolerance, "ftol": 0.0}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    a, T = unpack(found.x)
    search.improves(placed(at, a, T, np))
    return float(np.abs(found.jac).max())
