"""What a model from a file must be like, so that it answers or was refused, and never fails in between."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from vff.basis import Basis
from vff.data.schema import IN_MEMORY
from vff.estimators.saved_records import Pattern, Saved
from vff.estimators.saved_sums import (
    check_array,
    check_finite,
    check_moments,
    check_positive,
    check_sizes,
    demand,
    with_file_error,
)
from vff.estimators.statistics import Statistics
from vff.factors import Kernel, Prior, Term, normal_form
from vff.inference import METHODS, Fit, Posterior, Samples
from vff.inference.model.scale import REACH
from vff.likelihoods import WIDEST_EXPONENT
from vff.moments import ColumnRequest, MomentRequest

_FEWEST_ASKED, _MOST_ASKED = 97, 1024  # rows at which a model from a file is asked for numbers


def check_member(member: Saved, estimator: str) -> Saved:
    """A model inside another: of the right kind, and learnt."""
    demand(member.estimator == estimator and member.fit is not None, f"a fitted {estimator}", member.estimator)
    demand(not member.members, f"a {estimator} of one function", f"{len(member.members)} within it")
    return member


def check_kernel(kernel: Kernel | None, rows: Statistics) -> None:
    """The kernel that a model prints is the one that its rows were summed for, whatever its starting values are."""
    summed = [term.term for term in rows.terms]
    requested = summed if kernel is None else normal_form(kernel)
    expected, found = _kernel_text(summed), _kernel_text(requested)
    demand(expected == found, f"the kernel {expected:.100} that the rows were summed for", found)


def check_columns(rows: Statistics, n_features: int, names: Sequence[str] | None) -> None:
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
    return " + ".join(" * ".join(own.bare().text(repr) for own in term.factors) for term in terms)


# --- posterior -------------------------------------------------------------------------------------------------------


def check_fit(fit: Fit, rows: Statistics) -> None:
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
    count = fit.posterior.covariance.count
    demand(bool(count) == (fit.samples is not None), "draws with a posterior of draws", count)
    if fit.samples is not None:
        _check_samples(fit.samples, count)
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
        y = fit.likelihood.predictive(f, spread, np.ones(f.size)).mean()
        demand(np.isfinite(y).all(), "a finite mean of new observations", f"a function of up to {f.max():.3g}")


def _rows_all_over(request: MomentRequest) -> np.ndarray:
    """Every level of every column of levels, unless they are very many, and numbers in no order of theirs, (N, C)."""
    sizes = [column.basis.size for column in request.columns if column.place.discrete]
    count = min(max([_FEWEST_ASKED, *sizes]), _MOST_ASKED)
    x, share = np.empty((count, len(request.columns))), np.arange(count) / (count - 1)
    for c, column in enumerate(request.columns):
        turned = (share + np.arange(count) * (0.618034 * c)) % 1.0 if c else share
        x[:, c] = column.place.spread(turned, column.basis.size)
    return x


def _check_learnt(fit: Fit, rows: Statistics) -> None:
    """The posterior is that of the kernel, and has the hyperparameters that are printed; draws have many."""
    for own, values, term in zip(rows.terms, fit.terms, fit.posterior.terms, strict=True):
        for leaf, prior in zip(own.term.factors, term.factors, strict=True):
            demand(prior.factor == leaf.factor, leaf.factor.title, prior.factor.title)
        parameters = own.inner.parameters
        demand(len(parameters) == len(values.lengthscales), "a lengthscale for every Matérn", values.lengthscales)
        for (_, d, parameter), value in zip(parameters, values.lengthscales, strict=True):
            prior = term.factors[d]
            if not fit.posterior.covariance.count:
                used = prior.values[parameter.name] * prior.domain.unit(parameter.unit)
                demand(np.isclose(used, value, rtol=1e-6, atol=0.0), f"a {parameter.name} of {used:g}", value)


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


def check_posterior(posterior: Posterior, summed: MomentRequest) -> None:
    """Every array has the shape that the request asks for, which has no more harmonics than were summed."""
    request, covariance = posterior.request, posterior.covariance
    demand(request.size == posterior.mean.size, f"{posterior.mean.size} features", request.size)
    check_sizes(request, request.sizes)
    demand(len(request.terms) == len(summed.terms) == len(posterior.terms), "the terms of the sums", len(request.terms))
    for own, other in zip(request.terms, summed.terms, strict=True):
        demand(own.columns == other.columns, "the columns of the sums", own.columns)
        for mine, theirs in zip(own.factors, other.factors, strict=True):
            demand(mine.place == theirs.place, "the domain of the sums", mine.place)
            demand(_within(mine.basis, theirs.basis), "features that were summed", mine.basis)
    for term, own in zip(posterior.terms, request.terms, strict=True):
        demand(term.columns == own.columns, "the columns of the term", term.columns)
        requests = [_request_of(prior) for prior in term.factors]
        demand(requests == list(own.factors), "the functions of the term", requests)
        check_positive(term.variance, "variance")
        transforms = term.transform.factors
        demand(len(transforms) == len(term.factors), "coordinates for every factor", len(transforms))
        for own, prior in zip(transforms, term.factors, strict=True):
            check_array(own.X, prior.transform.X.shape, "coordinates of the edge functions")
    P = request.size
    for array, what in ((posterior.mean, "means"), (posterior.centre, "a centre")):
        check_array(array, (P,), what)
    check_array(posterior.centre_covariance, (P,), "its covariance")
    if posterior.intercept is not None:
        check_finite(posterior.intercept.mean, "mean of the constant")
        check_positive(posterior.intercept.variance, "variance of the constant")
        check_array(posterior.intercept.answer, (P,), "how coefficients follow the constant")
    covariance.check()
    for array, shape, what in covariance.arrays():
        check_array(array, shape, what)


def _within(own: Basis, other: Basis) -> bool:
    """Whether the two differ in their detail alone, if at all, and the other has more."""
    if own.detail is None or other.detail is None:
        return own == other
    return own.detail <= other.detail and own.resized(other.detail) == other


def _request_of(prior: Prior) -> ColumnRequest:
    """Of a prior whose hyperparameters are numbers, and of a kind that there is."""
    with_file_error(prior.factor.check)
    for name, value in prior.values.items():
        check_positive(value, name)
    return ColumnRequest(prior.domain, prior.basis)


def check_cox(pattern: Pattern) -> None:
    """A pattern on its grid."""
    columns, kinds, window, grid = pattern.columns, pattern.kinds, pattern.window, pattern.grid
    demand(1 <= len(set(columns)) == len(columns) <= 3, "one to three columns", columns)
    demand(len(kinds) == len(window) == len(grid.edges) == len(columns), "a window for every column", window)
    demand(set(kinds) <= set(IN_MEMORY), "kinds of columns", kinds)
    for (low, high), edge in zip(window, grid.edges, strict=True):
        demand(edge.ndim == 1 and edge.size >= 2, "edges of cells", edge.shape)
        check_array(edge, (edge.size,), "edges of cells", np.inf)
        demand(low < high and all(a < b for a, b in pairwise(edge.tolist())), "ascending edges", (low, high))
    for array, what in ((pattern.counts, "counts"), (pattern.exposure, "exposures")):
        check_array(array, grid.shape, what, np.inf)
        demand(array.min(initial=0.0) >= 0.0, f"{what} from zero", "others")
