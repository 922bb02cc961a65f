"""What a model from a file must be like, so that it answers or was refused, and never fails in between."""

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from math import comb
from typing import Any, Protocol, TypeVar

import numpy as np

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.estimators.cells import Grid
from vff.estimators.rows import Rows
from vff.features import TailRows, TermTransform
from vff.inference import Fit, SampledPosterior, Samples, SumPosterior, TermPosterior
from vff.inference.posterior import AbstractSumPosterior
from vff.inference.probed_posterior import ProbedPosterior, ProbedTerm
from vff.inference.structured_posterior import StructuredTerm
from vff.inference.term_posterior import AbstractFactor, ColumnFactor, LevelFactor
from vff.kernels import Categorical, Kernel, Term, normal_form
from vff.kernels.descent import MOST_FACTORS
from vff.moments import ColumnRequest, MomentRequest, Moments
from vff.storage import FileError

_MOST_EDGES, _MOST_HARMONICS, _HIGHEST_ORDER = 16, 2**24, 16
_KINDS = ("number", "datetime", "duration", "boolean", "text")
_LARGEST = 1e100  # of what belongs to targets near one; sums over rows may be larger
Shape = tuple[int, ...]


class Member(Protocol):
    """An estimator within another."""

    @property
    def estimator(self) -> str: ...

    @property
    def fit(self) -> Fit | None: ...

    @property
    def members(self) -> Sequence[Any]: ...


M = TypeVar("M", bound=Member)


def demand(truth: bool | np.bool_, expected: str, found: object) -> None:
    """Refuse a file that is well formed and says what cannot be."""
    if not truth:
        raise FileError(f"{expected} was expected, found {found!r:.120}; write the file anew with save")


def _array(array: np.ndarray, shape: Shape, what: str, most: float = _LARGEST) -> None:
    demand(array.dtype == np.float64, f"{what} of float64", array.dtype)
    demand(array.shape == shape, f"{what} of shape {shape}", array.shape)
    demand(np.isfinite(array).all(), f"{what} of finite numbers", "NaN or inf")
    demand(most == np.inf or np.abs(array).max(initial=0.0) <= most, f"{what} of at most {most:g}", "others")


def _finite(value: float, what: str) -> None:
    demand(np.isfinite(value), f"a finite {what}", value)


def _positive(value: float, what: str) -> None:
    demand(np.isfinite(value) and value > 0.0, f"a positive {what}", value)


def check_member(member: M, estimator: str) -> M:
    """A model inside another: of the right kind, and learnt."""
    demand(member.estimator == estimator and member.fit is not None, f"a fitted {estimator}", member.estimator)
    demand(not member.members, f"a {estimator} of one function", f"{len(member.members)} within it")
    return member


def check_kernel(kernel: Kernel | None, rows: Rows) -> None:
    """The kernel that a model prints is the one that its rows were summed for, whatever its starting values are."""
    summed = [term.term for term in rows.terms]
    asked = summed if kernel is None else normal_form(kernel)
    expected, found = _kernel_text(summed), _kernel_text(asked)
    demand(expected == found, f"the kernel {expected:.100} that the rows were summed for", found)


def check_columns(rows: Rows, n_features: int, names: Sequence[str] | None) -> None:
    """The columns of the kernel are where their names, or their numbers, say."""
    demand(names is None or len(names) == n_features, f"names for {n_features} columns", names)
    for term in rows.terms:
        for c, factor in zip(term.columns, term.term.factors, strict=True):
            index, written = rows.binding.columns[c].index, factor.column
            if isinstance(written, str):
                demand(names is None or names[index] == written, f"column {written!r} in place {index}", names)
            else:
                demand(written % n_features == index, f"column {written} in place {written % n_features}", index)


def _kernel_text(terms: Sequence[Term]) -> str:
    return " + ".join(" * ".join(type(own)(own.column).text(repr) for own in term.factors) for term in terms)


# --- sums ------------------------------------------------------------------------------------------------------------


def check_rows(rows: Rows, n_features: int) -> None:
    """The sums of an estimator over a table of so many columns."""
    columns, terms, request = rows.binding.columns, rows.binding.terms, rows.moments.request
    names = [term.name for term in terms]
    demand(len(set(names)) == len(names), "terms with different names", names)
    demand(len(terms) == len(request.terms) > 0, f"{len(request.terms)} terms", len(terms))
    for c, column in enumerate(columns):
        demand(0 <= column.index < n_features, f"one of {n_features} columns", column.index)
        demand(column.kind in _KINDS, "a kind of column", column.kind)
        demand(any(c in term.columns for term in terms), "a term for every column", column.label)
    for term, asked in zip(terms, request.terms, strict=True):
        demand(term.columns == asked.columns, "the columns of a term", asked.columns)
        demand(len(term.term.factors) == len(asked.factors), "a factor per column", len(term.term.factors))
        demand(len(asked.factors) <= MOST_FACTORS, f"at most {MOST_FACTORS} factors in a term", len(asked.factors))
        for c, inner, factor in zip(asked.columns, term.inner.factors, asked.factors, strict=True):
            demand(0 <= c < len(columns), f"one of {len(columns)} columns", c)
            smooth = isinstance(factor.basis, ColumnBasis)
            demand(smooth == hasattr(inner, "p"), "features that suit the kernel", type(factor.basis).__name__)
            if isinstance(factor.basis, LevelBasis):
                demand(factor.basis.levels == columns[c].levels, "the levels of the column", columns[c].label)
    shapes = [len(term.factors) for term in request.terms]
    demand([len(own) for own in rows.harmonics] == shapes, "harmonics for every factor", rows.harmonics)
    demand(len(rows.details) == len(terms), "a detail for every term", rows.details)
    demand(len(rows.hugging) == len(rows.extents) == len(columns), "an extent for every column", len(rows.extents))
    demand(all(isinstance(text, str) for text in rows.options), "options in writing", "others")
    check_moments(rows.moments)
    _check_tails(rows.tails, alone=len(terms) == 1 and shapes == [1])


def check_moments(moments: Moments) -> None:
    """Every sum has the shape that was asked for."""
    request = moments.request
    _check_sizes(request, [project.size for project in moments.projects])
    demand(moments.n >= 0, "a number of rows", moments.n)
    _finite(moments.offset, "offset")
    _finite(moments.target, "sum of targets")
    for value, what in ((moments.weight, "sum of weights"), (moments.target_squared, "sum of squares")):
        demand(np.isfinite(value) and value >= 0.0, f"a {what} of at least zero", value)
    demand(len(moments.grams) == len(request.terms), "a Gram matrix for every term", len(moments.grams))
    for term, gram, project in zip(request.terms, moments.grams, moments.projects, strict=True):
        _array(gram, term.double_shape, "sums of double letters", np.inf)
        _array(project, (term.size,), "sums of targets", np.inf)
    _check_blocks(moments.blocks, request, "sums between terms", np.inf)


def _check_sizes(request: MomentRequest, sizes: Sequence[int]) -> None:
    """Before alphabets are made: a request is as large as the arrays of the file, and no larger."""
    demand(len(request.terms) == len(sizes) > 0, "sums for every term", len(sizes))
    for term, size in zip(request.terms, sizes, strict=True):
        demand(len(term.columns) == len(term.factors) > 0, "a factor per column", term.columns)
        demand(len(set(term.columns)) == len(term.columns), "different columns in a product", term.columns)
        demand(min(term.columns) >= 0, "columns from zero", term.columns)
        for factor in term.factors:
            _check_column(factor)
        demand(term.size == size, f"{term.size} features", size)
    used = {column for term in request.terms for column in term.columns}
    demand(used == set(range(len(used))), "columns that follow one another", sorted(used))
    places: dict[int, Any] = {}
    for term in request.terms:
        for column, factor in zip(term.columns, term.factors, strict=True):
            demand(places.setdefault(column, factor.place) == factor.place, "one place for a column", factor.place)
    _ = request.columns  # refuses two sets of levels on one column


def _check_column(column: ColumnRequest) -> None:
    place, basis = column.place, column.basis
    if isinstance(basis, ColumnBasis):
        demand(isinstance(place, Interval), "an interval", place)
        demand(1 <= basis.M <= _MOST_HARMONICS and 0 <= basis.q <= _MOST_EDGES, "harmonics and edges", basis)
    else:
        demand(isinstance(place, Codes), "codes of levels", place)
        demand(0 < len(set(basis.levels)) == len(basis.levels), "different levels", basis.levels[:5])
    if isinstance(place, Interval):
        demand(np.isfinite([place.a, place.b]).all() and place.a < place.b, "an interval", place)


def _check_tails(tails: Sequence[TailRows], *, alone: bool) -> None:
    demand(alone or not tails, "no rows beyond the domains of several columns", len(tails))
    for tail in tails:
        demand(tail.side in (-1, 1), "a side", tail.side)
        for array, what in ((tail.r, "distances"), (tail.w, "weights"), (tail.y, "targets")):
            _array(array, (tail.r.size,), what, np.inf)
        demand(tail.r.min(initial=0.0) >= 0.0 and tail.w.min(initial=0.0) >= 0.0, "weights from zero", "others")


# --- posterior -------------------------------------------------------------------------------------------------------


def check_fit(fit: Fit, rows: Rows) -> None:
    """A fit of these sums."""
    _positive(fit.target.scale, "scale of the targets")
    _finite(fit.target.mean, "mean of the targets")
    demand(len(fit.history) > 0, "a history of learning", fit.history)
    check_posterior(fit.posterior, rows.moments.request)
    demand(len(fit.terms) == len(rows.terms), "what was learnt of every term", len(fit.terms))
    for term, own in zip(fit.terms, rows.terms, strict=True):
        demand(term.name == own.name, f"the term {own.name}", term.name)
        for value in (term.variance, *term.lengthscales):
            _positive(value, "hyperparameter")
    _check_learnt(fit, rows)
    if fit.climb is None:
        _positive(fit.noise_variance, "noise variance")
    else:
        check_moments(fit.climb.sums)
        R = fit.climb.psi.size
        _array(fit.climb.psi, (R,), "parameters of the likelihood")
        demand(fit.climb.information.shape == (R, R), "information about them", fit.climb.information.shape)
        demand(fit.climb.sums.request == rows.moments.request, "sums of the same functions", "others")
    sampled = isinstance(fit.posterior, SampledPosterior)
    demand(sampled == (fit.samples is not None), "draws with a posterior of draws", type(fit.posterior).__name__)
    if fit.samples is not None and isinstance(fit.posterior, SampledPosterior):
        _check_samples(fit.samples, len(fit.posterior.coefficients))


def _check_learnt(fit: Fit, rows: Rows) -> None:
    """The posterior is that of the kernel, and has the lengthscales that are printed; draws have many."""
    for own, values, term in zip(rows.terms, fit.terms, fit.posterior.terms, strict=True):
        smooth = [
            (factor.order, other)
            for factor, other in zip(own.term.factors, term.factors, strict=True)
            if not isinstance(factor, Categorical) and isinstance(other, ColumnFactor)
        ]
        demand(len(smooth) == len(values.lengthscales), "a lengthscale for every Matérn", values.lengthscales)
        for (order, factor), lengthscale in zip(smooth, values.lengthscales, strict=True):
            demand(factor.prior.p == order, f"a Matérn of order {order}", factor.prior.p)
            if not isinstance(fit.posterior, SampledPosterior):
                used = np.sqrt(2 * order + 1) / factor.prior.rate * factor.interval.half_length
                demand(np.isclose(used, lengthscale, rtol=1e-6, atol=0.0), f"a lengthscale of {used:g}", lengthscale)


def _check_samples(samples: Samples, kept: int) -> None:
    demand(samples.t.ndim == 3 and samples.t.size > 0, "draws by chain", samples.t.shape)
    chains, draws, L = samples.t.shape
    _array(samples.t, (chains, draws, L), "draws")
    demand(len(samples.parameters) == L, f"{L} hyperparameters", len(samples.parameters))
    names = [own.name for own in samples.parameters]
    demand(len(set(names)) == L, "hyperparameters with different names", names)
    demand(samples.kept.dtype == np.int64 and samples.kept.shape == (kept,), f"{kept} draws", samples.kept.shape)
    demand(samples.kept.min() >= 0 and samples.kept.max() < chains * draws, "draws that exist", samples.kept)
    demand(samples.psi.ndim == 2 and len(samples.psi) == kept, "a likelihood for every draw", samples.psi.shape)
    _array(samples.psi, samples.psi.shape, "parameters of the likelihood")
    demand({"diverging", "n_steps"} <= set(samples.stats), "how the chains went", sorted(samples.stats))
    for array in (*samples.stats.values(), *samples.function.values()):
        demand(array.shape == (chains, draws), f"shape {(chains, draws)}", array.shape)
    demand(samples.y is None, "no targets", "some")
    _positive(samples.scale, "scale")


def check_posterior(posterior: AbstractSumPosterior, summed: MomentRequest) -> None:
    """Every array has the shape that the request asks for, which has no more harmonics than were summed."""
    request = posterior.request
    sizes = [term.coefficients.mean.size for term in posterior.terms]
    _check_sizes(request, sizes)
    demand(len(request.terms) == len(summed.terms), "the terms of the sums", len(request.terms))
    for own, other in zip(request.terms, summed.terms, strict=True):
        demand(own.columns == other.columns, "the columns of the sums", own.columns)
        for mine, theirs in zip(own.factors, other.factors, strict=True):
            demand(mine.place == theirs.place, "the domain of the sums", mine.place)
            demand(_within(mine.basis, theirs.basis), "features that were summed", mine.basis)
    for term, own in zip(posterior.terms, request.terms, strict=True):
        demand(term.columns == own.columns, "the columns of the term", term.columns)
        requests = [_factor_request(factor) for factor in term.factors]
        demand(requests == list(own.factors), "the functions of the term", requests)
        _check_term(term, own.shape)
    if posterior.constant is not None:
        _finite(posterior.constant.mean, "mean of the constant")
        _positive(posterior.constant.variance, "variance of the constant")
        _array(posterior.constant.answer, (request.size,), "how coefficients follow the constant")
    if isinstance(posterior, SumPosterior):
        _check_blocks(posterior.shared, request)
    elif isinstance(posterior, ProbedPosterior):
        _check_form(posterior, request)
    elif isinstance(posterior, SampledPosterior):
        _check_sampled(posterior, summed)


def _within(own: object, other: object) -> bool:
    if isinstance(own, ColumnBasis) and isinstance(other, ColumnBasis):
        return own.M <= other.M and own.q == other.q
    return own == other


def _factor_request(factor: AbstractFactor) -> ColumnRequest:
    if isinstance(factor, ColumnFactor):
        demand(0 <= factor.prior.p <= _HIGHEST_ORDER, "the order of a Matérn", factor.prior.p)
        _positive(factor.prior.rate, "rate")
        return ColumnRequest(factor.interval, factor.prior.basis)
    demand(isinstance(factor, LevelFactor), "a factor", type(factor).__name__)
    return factor.request


def _check_term(term: TermPosterior, shape: Shape) -> None:
    P, own = int(np.prod(shape)), term.coefficients
    _positive(term.variance, "variance")
    for array, what in ((own.mean, "means"), (own.centre, "a centre"), (own.centre_covariance, "its covariance")):
        _array(array, (P,), what)
    written = not isinstance(term, ProbedTerm | StructuredTerm)
    _array(own.explained, (P, P) if written else (0, 0), "what was explained")
    _check_transform(term.transform, term.factors)
    if isinstance(term, ProbedTerm):
        for array in (term.away, term.signs):
            _array(array, (P, term.signs.shape[-1]), "probes")
        demand(term.white.shape == shape, f"a term of shape {shape}", term.white.shape)
        corner = term.white.corner_places.size
        _array(term.excess, (corner, corner), "a corner")
    if isinstance(term, StructuredTerm):
        demand(len(term.pieces) > 0, "a covariance", term.pieces)
        demand(len(term.whiteners) == len(shape), "a root for every factor", len(term.whiteners))
        for root, size in zip(term.whiteners, shape, strict=True):
            _array(root, (size, root.shape[-1]), "a root of the prior")
        for piece in term.pieces:
            groups = shape if len(piece) == len(shape) else (P,)
            demand(len(piece) == len(groups), "a root for every group", len(piece))
            for root, size in zip(piece, groups, strict=True):
                _array(root, (size, root.shape[-1]), "a root of the covariance")


def _check_transform(transform: TermTransform, factors: Sequence[AbstractFactor]) -> None:
    demand(len(transform.factors) == len(factors), "coordinates for every factor", len(transform.factors))
    for own, factor in zip(transform.factors, factors, strict=True):
        basis = factor.request.basis
        edges = basis.q if isinstance(basis, ColumnBasis) else 0
        _array(own.X, (edges, basis.size - edges), "coordinates of the edge functions")


def _check_blocks(
    blocks: Mapping[tuple[int, int], np.ndarray],
    request: MomentRequest,
    what: str = "a covariance between terms",
    most: float = _LARGEST,
) -> None:
    """All pairs of terms, or none; they are counted first, since a short file can have millions of pairs."""
    T, sizes = len(request.terms), request.sizes
    whole = len(blocks) == comb(T, 2) and set(blocks) == {*combinations(range(T), 2)}
    demand(not blocks or whole, "a block for every pair of terms", f"{len(blocks)} of {comb(T, 2)}")
    for (s, t), block in blocks.items():
        _array(block, (sizes[s], sizes[t]), what, most)


def _check_form(posterior: ProbedPosterior, request: MomentRequest) -> None:
    form = posterior.form
    _array(form.b, (request.size,), "projections", np.inf)
    _positive(form.noise, "noise variance")
    demand(len(form.terms) == len(request.terms), "every term in the solver", len(form.terms))
    for white, own in zip(form.terms, request.terms, strict=True):
        demand(white.shape == own.shape, f"a term of shape {own.shape}", white.shape)
        _positive(white.scale, "scale")
        nodes = tuple(len(F) for F in white.features)
        _array(white.weights, nodes, "weights of the nodes")
        for F, G, size in zip(white.features, white.by_column, own.shape, strict=True):
            _array(F, (len(F), size), "functions at the nodes")
            _array(G, (size, size), "a Gram matrix")
    demand(1 <= form.probes <= 2**12, "a number of probes", form.probes)
    _check_blocks(form.blocks, request)
    probes = {term.signs.shape[1] for term in posterior.terms}
    demand(probes == {form.probes}, f"{form.probes} probes", probes)


def _check_sampled(posterior: SampledPosterior, summed: MomentRequest) -> None:
    S, P = len(posterior.coefficients), posterior.request.size
    demand(S > 0, "draws", S)
    _array(posterior.coefficients, (S, P), "draws of the coefficients")
    _array(posterior.level, (S,), "draws of the constant")
    _array(posterior.one, (posterior.request.sizes[0],), "the constant function")
    for inner in (posterior.moments, posterior.rest):
        demand(inner.request == posterior.request, "the request of the draws", "another")
        check_posterior(inner, summed)


def check_cox(
    columns: Sequence[object],
    kinds: Sequence[str],
    window: Sequence[tuple[float, float]],
    grid: Grid,
    counts: np.ndarray,
    exposure: np.ndarray,
) -> None:
    """A pattern on its grid."""
    demand(1 <= len(set(columns)) == len(columns) <= 3, "one to three columns", columns)
    demand(len(kinds) == len(window) == len(grid.edges) == len(columns), "a window for every column", window)
    demand(set(kinds) <= set(_KINDS), "kinds of columns", kinds)
    for (low, high), edge in zip(window, grid.edges, strict=True):
        demand(edge.ndim == 1 and edge.size >= 2, "edges of cells", edge.shape)
        _array(edge, (edge.size,), "edges of cells", np.inf)
        demand(low < high and all(a < b for a, b in pairwise(edge.tolist())), "ascending edges", (low, high))
    for array, what in ((counts, "counts"), (exposure, "exposures")):
        _array(array, grid.shape, what, np.inf)
        demand(array.min(initial=0.0) >= 0.0, f"{what} from zero", "others")
