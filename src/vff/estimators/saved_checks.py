"""What a model from a file must be like, so that it answers or was refused, and never fails in between."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from vff.basis import ColumnBasis, Interval, LevelBasis
from vff.estimators.cells import Grid
from vff.estimators.rows import Rows
from vff.estimators.saved_sums import (
    KINDS_OF_COLUMNS,
    Shape,
    check_array,
    check_blocks,
    check_finite,
    check_moments,
    check_positive,
    check_sizes,
    demand,
)
from vff.features import TermTransform
from vff.inference import METHODS, Fit, SampledPosterior, Samples, SumPosterior, TermPosterior
from vff.inference.posterior import AbstractSumPosterior
from vff.inference.probed_posterior import ProbedPosterior, ProbedTerm
from vff.inference.structured_posterior import StructuredTerm
from vff.inference.target import REACH
from vff.inference.term_posterior import AbstractFactor, ColumnFactor, LevelFactor
from vff.kernels import Categorical, Kernel, Term, normal_form
from vff.likelihoods import WIDEST_EXPONENT, predictive_mean
from vff.moments import ColumnRequest, MomentRequest

_HIGHEST_ORDER = 16
_FEWEST_ASKED, _MOST_ASKED = 97, 1024  # rows at which a model from a file is asked for numbers


class Member(Protocol):
    """An estimator within another."""

    @property
    def estimator(self) -> str: ...

    @property
    def fit(self) -> Fit | None: ...

    @property
    def members(self) -> Sequence[Any]: ...


M = TypeVar("M", bound=Member)


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


# --- posterior -------------------------------------------------------------------------------------------------------


def check_fit(fit: Fit, rows: Rows) -> None:
    """A fit of these sums."""
    check_positive(fit.target.scale, "scale of the targets")
    check_finite(fit.target.mean, "mean of the targets")
    demand(len(fit.history) > 0, "a history of learning", fit.history)
    check_posterior(fit.posterior, rows.moments.request)
    demand(len(fit.terms) == len(rows.terms), "what was learnt of every term", len(fit.terms))
    for term, own in zip(fit.terms, rows.terms, strict=True):
        demand(term.name == own.name, f"the term {own.name}", term.name)
        for value in (term.variance, *term.lengthscales):
            check_positive(value, "hyperparameter")
    _check_learnt(fit, rows)
    made = {method.name: method.needs == "sums" for method in METHODS}.get(fit.method)
    demand(made is not None and made == fit.from_sums, "a method, with a noise variance if it has one", fit.method)
    if fit.from_sums:
        check_positive(fit.noise_variance, "noise variance")
    if fit.memory is not None:
        memory, R = fit.memory, fit.memory.psi.size
        check_finite(memory.intercept, "constant")
        check_moments(memory.sums)
        check_array(memory.psi, (R,), "parameters of the likelihood")
        demand(memory.information.shape == (R, R), "information about them", memory.information.shape)
        demand(memory.sums.request == rows.moments.request, "sums of the same functions", "others")
    sampled = isinstance(fit.posterior, SampledPosterior)
    demand(sampled == (fit.samples is not None), "draws with a posterior of draws", type(fit.posterior).__name__)
    if fit.samples is not None and isinstance(fit.posterior, SampledPosterior):
        _check_samples(fit.samples, len(fit.posterior.coefficients))
    _check_answers(fit)


def _check_answers(fit: Fit) -> None:
    """At rows all over the domains, and far beyond: f is a number, and so is the mean of y, which may be exp(f)."""
    x = _rows_all_over(fit.posterior.request)
    mean, variance = fit.posterior.marginals(x)
    f, spread = fit.target.mean + fit.target.scale * mean, fit.target.scale**2 * variance
    demand(np.isfinite(f).all() and np.isfinite(spread).all(), "a function of finite values", "NaN or inf")
    if not fit.from_sums:
        if fit.likelihood.widest <= WIDEST_EXPONENT and fit.samples is None:  # no prior is wider
            most = WIDEST_EXPONENT + REACH**2
            demand(spread.max() <= 1.01 * most, f"a variance of f of at most {most:g}", f"{spread.max():.3g}")
        y = predictive_mean(fit.likelihood, f, spread, np.ones(f.size))
        demand(np.isfinite(y).all(), "a finite mean of new observations", f"a function of up to {f.max():.3g}")


def _rows_all_over(request: MomentRequest) -> np.ndarray:
    """Every level of every column of levels, unless they are very many, and numbers in no order of theirs, (N, C)."""
    sizes = [len(column.basis.levels) for column in request.columns if isinstance(column.basis, LevelBasis)]
    count = min(max([_FEWEST_ASKED, *sizes]), _MOST_ASKED)
    x, share = np.empty((count, len(request.columns))), np.arange(count) / (count - 1)
    for c, column in enumerate(request.columns):
        if isinstance(column.place, Interval):
            turned = (share + np.arange(count) * (0.618034 * c)) % 1.0 if c else share
            x[:, c] = column.place.a + turned * (column.place.b - column.place.a)
            x[-1, c] = column.place.b + 100.0 * (column.place.b - column.place.a)
        elif isinstance(column.basis, LevelBasis):
            x[:, c] = np.arange(count) % len(column.basis.levels)
    return x


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
    check_array(samples.t, (chains, draws, L), "draws")
    demand(len(samples.parameters) == L, f"{L} hyperparameters", len(samples.parameters))
    names = [own.name for own in samples.parameters]
    demand(len(set(names)) == L, "hyperparameters with different names", names)
    demand(samples.kept.dtype == np.int64 and samples.kept.shape == (kept,), f"{kept} draws", samples.kept.shape)
    demand(samples.kept.min() >= 0 and samples.kept.max() < chains * draws, "draws that exist", samples.kept)
    demand(samples.psi.ndim == 2 and len(samples.psi) == kept, "a likelihood for every draw", samples.psi.shape)
    check_array(samples.psi, samples.psi.shape, "parameters of the likelihood")
    demand({"diverging", "n_steps"} <= set(samples.stats), "how the chains went", sorted(samples.stats))
    for array in (*samples.stats.values(), *samples.function.values()):
        demand(array.shape == (chains, draws), f"shape {(chains, draws)}", array.shape)
    demand(samples.y is None, "no targets", "some")
    check_positive(samples.scale, "scale")


def check_posterior(posterior: AbstractSumPosterior, summed: MomentRequest) -> None:
    """Every array has the shape that the request asks for, which has no more harmonics than were summed."""
    request = posterior.request
    sizes = [term.coefficients.mean.size for term in posterior.terms]
    check_sizes(request, sizes)
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
        check_finite(posterior.constant.mean, "mean of the constant")
        check_positive(posterior.constant.variance, "variance of the constant")
        check_array(posterior.constant.answer, (request.size,), "how coefficients follow the constant")
    if isinstance(posterior, SumPosterior):
        check_blocks(posterior.shared, request)
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
        check_positive(factor.prior.rate, "rate")
        return ColumnRequest(factor.interval, factor.prior.basis)
    demand(isinstance(factor, LevelFactor), "a factor", type(factor).__name__)
    return factor.request


def _check_term(term: TermPosterior, shape: Shape) -> None:
    P, own = int(np.prod(shape)), term.coefficients
    check_positive(term.variance, "variance")
    for array, what in ((own.mean, "means"), (own.centre, "a centre"), (own.centre_covariance, "its covariance")):
        check_array(array, (P,), what)
    written = not isinstance(term, ProbedTerm | StructuredTerm)
    check_array(own.explained, (P, P) if written else (0, 0), "what was explained")
    _check_transform(term.transform, term.factors)
    if isinstance(term, ProbedTerm):
        for array in (term.away, term.signs):
            check_array(array, (P, term.signs.shape[-1]), "probes")
        demand(term.white.shape == shape, f"a term of shape {shape}", term.white.shape)
        corner = term.white.corner_places.size
        check_array(term.excess, (corner, corner), "a corner")
    if isinstance(term, StructuredTerm):
        demand(len(term.pieces) > 0, "a covariance", term.pieces)
        demand(len(term.whiteners) == len(shape), "a root for every factor", len(term.whiteners))
        for root, size in zip(term.whiteners, shape, strict=True):
            check_array(root, (size, root.shape[-1]), "a root of the prior")
        for piece in term.pieces:
            groups = shape if len(piece) == len(shape) else (P,)
            demand(len(piece) == len(groups), "a root for every group", len(piece))
            for root, size in zip(piece, groups, strict=True):
                check_array(root, (size, root.shape[-1]), "a root of the covariance")


def _check_transform(transform: TermTransform, factors: Sequence[AbstractFactor]) -> None:
    demand(len(transform.factors) == len(factors), "coordinates for every factor", len(transform.factors))
    for own, factor in zip(transform.factors, factors, strict=True):
        basis = factor.request.basis
        edges = basis.q if isinstance(basis, ColumnBasis) else 0
        check_array(own.X, (edges, basis.size - edges), "coordinates of the edge functions")


def _check_form(posterior: ProbedPosterior, request: MomentRequest) -> None:
    form = posterior.form
    check_array(form.b, (request.size,), "projections", np.inf)
    check_positive(form.noise, "noise variance")
    demand(len(form.terms) == len(request.terms), "every term in the solver", len(form.terms))
    for white, own in zip(form.terms, request.terms, strict=True):
        demand(white.shape == own.shape, f"a term of shape {own.shape}", white.shape)
        check_positive(white.scale, "scale")
        nodes = tuple(len(F) for F in white.features)
        check_array(white.weights, nodes, "weights of the nodes")
        for F, G, size in zip(white.features, white.by_column, own.shape, strict=True):
            check_array(F, (len(F), size), "functions at the nodes")
            check_array(G, (size, size), "a Gram matrix")
    demand(1 <= form.probes <= 2**12, "a number of probes", form.probes)
    check_blocks(form.blocks, request)
    probes = {term.signs.shape[1] for term in posterior.terms}
    demand(probes == {form.probes}, f"{form.probes} probes", probes)


def _check_sampled(posterior: SampledPosterior, summed: MomentRequest) -> None:
    S, P = len(posterior.coefficients), posterior.request.size
    demand(S > 0, "draws", S)
    check_array(posterior.coefficients, (S, P), "draws of the coefficients")
    check_array(posterior.level, (S,), "draws of the constant")
    if posterior.with_level is not None:
        check_array(posterior.with_level, (P + 1,), "how coefficients go with the constant")
    check_array(posterior.one, (posterior.request.sizes[0],), "the constant function")
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
    demand(set(kinds) <= set(KINDS_OF_COLUMNS), "kinds of columns", kinds)
    for (low, high), edge in zip(window, grid.edges, strict=True):
        demand(edge.ndim == 1 and edge.size >= 2, "edges of cells", edge.shape)
        check_array(edge, (edge.size,), "edges of cells", np.inf)
        demand(low < high and all(a < b for a, b in pairwise(edge.tolist())), "ascending edges", (low, high))
    for array, what in ((counts, "counts"), (exposure, "exposures")):
        check_array(array, grid.shape, what, np.inf)
        demand(array.min(initial=0.0) >= 0.0, f"{what} from zero", "others")
