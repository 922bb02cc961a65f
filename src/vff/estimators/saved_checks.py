"""What a model from a file must be like, so that it answers or was refused, and never fails in between.

Records whose fields say by themselves whether they make sense have a ``check`` of their own; here is what must hold
between them, and what sums over rows must be like, so that a model can be learnt from them.
"""

from collections.abc import Sequence
from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np

from vff.basis import Basis
from vff.data.schema import IN_MEMORY
from vff.estimators.saved_kernels import check_kernel, demand
from vff.estimators.saved_records import Pattern, Saved
from vff.estimators.statistics import Statistics
from vff.factors import KINDS, FactorOptions, Kernel
from vff.inference import METHODS, Fit, Posterior, Samples
from vff.inference.model.scale import REACH
from vff.inference.posterior.exact import TrainingRows
from vff.kernels.grammar import MOST_FACTORS
from vff.likelihoods import WIDEST_EXPONENT
from vff.linalg import AbstractSymmetric, entries_of
from vff.moments import MOST_FEW, ColumnRequest, FewRows, MomentRequest, Moments, numbers

LARGEST = 1e100  # of what belongs to targets near one; sums over rows may be larger
_MOST_FACTORED = 600  # features, of which it is asked whether any rows have these sums
_SMALL, _NEGATIVE = 1e-4, 1e-6  # of the largest square, and a square that rounding does not make negative
_LAST_DIGITS = 1e-9
_FEWEST_ROWS, _MOST_ROWS = 97, 1024  # at which a model from a file is asked for numbers


def _check_array(array: np.ndarray, shape: tuple[int, ...], what: str, most: float = LARGEST) -> None:
    demand(array.dtype == np.float64, f"{what} of float64", array.dtype)
    demand(array.shape == shape, f"{what} of shape {shape}", array.shape)
    demand(np.isfinite(array).all(), f"{what} of finite numbers", "NaN or inf")
    demand(most == np.inf or np.abs(array).max(initial=0.0) <= most, f"{what} of at most {most:g}", "others")


def _check_finite(value: float, what: str) -> None:
    demand(np.isfinite(value), f"a finite {what}", value)


def _check_positive(value: float, what: str) -> None:
    demand(np.isfinite(value) and value > 0.0, f"a positive {what}", value)


# --- sums over rows --------------------------------------------------------------------------------------------------


def _check_statistics(rows: Statistics, n_features: int) -> None:
    """The sums of an estimator over a table of so many columns."""
    columns, terms, request = rows.binding.columns, rows.binding.terms, rows.moments.request
    names = [term.name for term in terms]
    demand(len(set(names)) == len(names), "terms with different names", names)
    demand(len(terms) == len(request.terms) > 0, f"{len(request.terms)} terms", len(terms))
    for c, column in enumerate(columns):
        demand(0 <= column.index < n_features, f"one of {n_features} columns", column.index)
        demand(column.kind in list(IN_MEMORY), "a kind of column", column.kind)
        demand(any(c in term.numbers for term in terms), "a term for every column", column.label)
    for term, requested in zip(terms, request.terms, strict=True):
        count = len(requested.factors)
        demand(term.columns == requested.columns, "the columns of a term", requested.columns)
        demand(len(term.term.factors) == count, "a factor per column", len(term.term.factors))
        demand(count <= MOST_FACTORS, f"at most {MOST_FACTORS} factors in a term", count)
        gaps = tuple(own.domain.numbers is not own.domain for own in requested.factors)
        demand(term.gaps in (gaps, ()) and any(gaps) == any(term.gaps), "missing values as summed", term.gaps)
        for c, leaf, factor in zip(requested.columns, term.term.factors, requested.factors, strict=True):
            first, *more = numbers((c,))
            demand(all(0 <= one < len(columns) for one in (first, *more)), f"some of {len(columns)} columns", c)
            least = leaf.factor.least(FactorOptions("auto", None, columns[first].levels or ()))
            suits = factor.basis.family == least.family
            demand(suits, "features that suit the kernel", type(factor.basis).__name__)
            known = not factor.domain.discrete or factor.basis.numbers == least
            demand(known, "the levels of the column", columns[first].label)
    shapes = [len(term.factors) for term in request.terms]
    demand([len(own) for own in rows.harmonics] == shapes, "harmonics for every factor", rows.harmonics)
    for requested, summed in zip(rows.harmonics, request.harmonics, strict=True):
        for M, most in zip(requested, summed, strict=True):
            demand(M is None or (most is not None and 1 <= M <= most), f"at most {most} harmonics", M)
    demand(len(rows.highest_frequencies) == len(terms), "a detail for every term", rows.highest_frequencies)
    ranges = len(rows.domain_from_data) == len(rows.ranges) == len(columns)
    demand(ranges, "an extent for every column", len(rows.ranges))
    demand(all(isinstance(text, str | None) for text in rows.options), "options in writing", "others")
    demand(rows.n >= 0 and rows.left_out >= 0, "numbers of rows", min(rows.n, rows.left_out))
    for extent in rows.ranges:
        nowhere = extent.low > extent.high  # of no rows, and of missing values alone
        demand(nowhere or -np.inf < extent.low <= extent.high < np.inf, "a finite range", (extent.low, extent.high))
    _check_moments(rows.moments)
    if rows.few is not None:
        _check_rows(rows.few, request, rows.few.variances)
        demand(len(rows.few.x) in (0, rows.moments.n), f"{rows.moments.n} rows", len(rows.few.x))
    demand(shapes == [1] or not rows.tails, "no rows beyond the domains of several columns", len(rows.tails))
    for tail in rows.tails:
        demand(tail.side in (-1, 1), "a side", tail.side)
        for array, what in ((tail.r, "distances"), (tail.w, "weights"), (tail.y, "targets")):
            _check_array(array, (tail.r.size,), what, np.inf)
        demand(tail.r.min(initial=0.0) >= 0.0 and tail.w.min(initial=0.0) >= 0.0, "weights from zero", "others")


def _check_rows(rows: FewRows | TrainingRows, request: MomentRequest, variances: np.ndarray) -> None:
    """Rows that are few, of whole codes where columns have levels."""
    n = len(rows.w)
    demand(n <= MOST_FEW, f"at most {MOST_FEW} rows", n)
    _check_array(np.nan_to_num(rows.x, nan=0.0), (n, request.n_columns), "rows")
    for column, x in zip(request.columns, rows.x.T, strict=True):
        there = x[~np.isnan(x)]
        demand(there.size == n or column.numbers is not column, "no missing values in a column without any", "some")
        if column.domain.discrete:
            codes = (there == np.round(there)) & (there >= 0) & (there < column.numbers.basis.size)
            demand(bool(codes.all()), "codes of levels", there[~codes])
    for array, what in ((rows.y, "targets"), (rows.w, "weights"), (variances, "variances of rows")):
        _check_array(array, (n,), what, np.inf)
    demand(rows.w.min(initial=1.0) > 0.0, "positive weights", rows.w.min(initial=1.0))
    demand(variances.min(initial=0.0) >= 0.0, "variances from zero", variances.min(initial=0.0))


def _check_moments(moments: Moments) -> None:
    """Every sum has the shape that was asked for, between all pairs of terms or none."""
    request, T, blocks = moments.request, len(moments.request.terms), moments.blocks
    _check_sizes(request, [project.size for project in moments.projects])
    demand(moments.n >= 0, "a number of rows", moments.n)
    _check_finite(moments.offset, "offset")
    _check_finite(moments.target, "sum of targets")
    for value, what in ((moments.weight, "sum of weights"), (moments.target_squared, "sum of squares")):
        demand(np.isfinite(value) and value >= 0.0, f"a {what} of at least zero", value)
    demand(len(moments.grams) == T, "a Gram matrix for every term", len(moments.grams))
    for term, gram, project in zip(request.terms, moments.grams, moments.projects, strict=True):
        _check_array(gram, term.double_shape, "sums of double letters", np.inf)
        _check_array(project, (term.size,), "sums of targets", np.inf)
    # they are counted first, since a short file can have millions of pairs
    whole = not blocks or (len(blocks) == comb(T, 2) and set(blocks) == {*combinations(range(T), 2)})
    demand(whole, "a block for every pair of terms", f"{len(blocks)} of {comb(T, 2)}")
    for (s, t), block in blocks.items():
        _check_array(*entries_of(block, (request.sizes[s], request.sizes[t])), "sums between terms", np.inf)


def _check_sizes(request: MomentRequest, sizes: Sequence[int]) -> None:
    """Before alphabets are made: a request is as large as the arrays of the file, and no larger."""
    demand(len(request.terms) == len(sizes) > 0, "sums for every term", len(sizes))
    domains: dict[Any, Any] = {}
    for term, size in zip(request.terms, sizes, strict=True):
        demand(len(term.columns) == len(term.factors) > 0, "a factor per column", term.columns)
        demand(len(set(term.axes)) == len(term.axes), "different columns in a product", term.columns)
        demand(min(term.numbers, default=-1) >= 0, "columns from zero", term.columns)
        for column, factor in zip(term.columns, term.factors, strict=True):
            _check_column(factor)
            count, places = len(factor.domain.parts), numbers((column,))
            demand(isinstance(column, int) == (count == 1) and len(set(places)) == count, f"{count} columns", column)
            known = domains.setdefault((column, type(factor.domain)), factor.domain)
            demand(known == factor.domain, "one domain for a column", factor.domain)
        demand(term.size == size, f"{term.size} features", size)
    used = {column for term in request.terms for column in term.numbers}
    demand(used == set(range(len(used))), "columns that follow one another", sorted(used))
    _ = request.columns  # refuses two sets of levels on one column


def _check_column(column: ColumnRequest) -> None:
    column.basis.check()
    column.domain.check()
    suits = any(isinstance(column.basis, kind.basis) and isinstance(column.domain, kind.domain) for kind in KINDS)
    demand(suits, "a domain that suits the features", column.domain)


def _check_learnable(rows: Statistics) -> None:
    """Sums with Gaussian noise that learning can do its arithmetic with: those of rows that there may have been."""
    moments, tails = rows.moments, rows.tails
    weight = moments.weight + sum(float(tail.w.sum()) for tail in tails)
    _check_positive(weight, "sum of weights")
    for value, what in ((moments.offset, "offset"), (moments.target / weight, "mean of the targets")):
        demand(abs(value) <= LARGEST, f"an {what} of at most {LARGEST:g}", value)
    squares = max(moments.target_squared, *(tail.yy for tail in tails), 0.0)
    demand(squares / weight <= LARGEST, f"squares of targets of at most {LARGEST:g}", squares)
    whole = len(moments.blocks) == comb(len(moments.request.terms), 2)
    together = whole and moments.request.size <= _MOST_FACTORED
    if together:
        _check_gram(moments.gram())
    for s, size in enumerate(moments.request.sizes):
        if size <= _MOST_FACTORED:
            G = moments.term(s).gram()
            _check_array(G.diagonal(), (size,), "sums of products", LARGEST * max(weight, 1.0))
            if not together:
                _check_gram(G)
            _check_project(moments.projects[s], G.diagonal(), moments)


def _check_gram(G: AbstractSymmetric) -> None:
    """Products of functions over rows: no combination of them has a negative square."""
    squares = G.diagonal()
    _check_array(squares, squares.shape, "sums of products", np.inf)
    top = max(float(squares.max()), np.finfo(float).tiny)
    least = G.least_eigenvalue(np.sqrt(np.maximum(squares, _SMALL * top)))
    demand(least >= -_NEGATIVE, "sums of products of functions over rows, which are positive definite,", least)


def _check_project(b: np.ndarray, squares: np.ndarray, moments: Moments) -> None:
    """Products of functions and targets over rows: none is larger than the squares of both allow."""
    top = float(squares.max())
    # targets are known to their last digits, and so are sums of them
    rounding = (_LAST_DIGITS * moments.offset) ** 2 * moments.weight * top
    most = np.sqrt(np.maximum(squares, _SMALL * top) * moments.target_squared * (1.0 + _SMALL) + rounding)
    demand(bool(np.all(np.abs(b) <= most)), "sums of targets that rows can have", f"{np.abs(b).max():.3g}")


# --- estimators ------------------------------------------------------------------------------------------------------


def check_estimator(saved: Saved, rows: Statistics, kernel: Kernel | None) -> None:
    """One that has summed these rows."""
    _check_statistics(rows, saved.n_features)
    check_kernel(kernel, rows, saved.interactions)
    _check_columns(rows, saved.n_features, saved.names)
    if saved.fit is None or saved.fit.from_sums:  # others are sums of sites, which may be negative
        _check_learnable(rows)


def check_member(member: Saved, estimator: str) -> Saved:
    """A model inside another: of the right kind, and learnt."""
    demand(member.estimator == estimator and member.fit is not None, f"a fitted {estimator}", member.estimator)
    demand(not member.members, f"a {estimator} of one function", f"{len(member.members)} within it")
    return member


def _check_columns(rows: Statistics, n_features: int, names: Sequence[str] | None) -> None:
    """The columns of the kernel are where their names, or their numbers, say."""
    demand(names is None or len(names) == n_features, f"names for {n_features} columns", names)
    for term in rows.terms:
        written_columns = [column for factor in term.term.factors for column in factor.columns]
        demand(len(written_columns) == len(term.numbers), f"{len(written_columns)} columns", term.columns)
        for c, written in zip(term.numbers, written_columns, strict=True):
            index = rows.binding.columns[c].index
            if isinstance(written, str):
                demand(names is None or names[index] == written, f"column {written!r} in place {index}", names)
            else:
                demand(written % n_features == index, f"column {written} in place {written % n_features}", index)


def check_pattern(pattern: Pattern) -> None:
    """A pattern on its grid."""
    columns, kinds, window, grid = pattern.columns, pattern.kinds, pattern.window, pattern.grid
    demand(1 <= len(set(columns)) == len(columns) <= 3, "one to three columns", columns)
    demand(len(kinds) == len(window) == len(grid.edges) == len(columns), "a window for every column", window)
    demand(set(kinds) <= set(IN_MEMORY), "kinds of columns", kinds)
    for (low, high), edge in zip(window, grid.edges, strict=True):
        demand(edge.ndim == 1 and edge.size >= 2, "edges of cells", edge.shape)
        _check_array(edge, (edge.size,), "edges of cells", np.inf)
        demand(low < high and all(a < b for a, b in pairwise(edge.tolist())), "ascending edges", (low, high))
    for array, what in ((pattern.counts, "counts"), (pattern.exposure, "exposures")):
        _check_array(array, grid.shape, what, np.inf)
        demand(array.min(initial=0.0) >= 0.0, f"{what} from zero", "others")


# --- posterior -------------------------------------------------------------------------------------------------------


def check_fit(fit: Fit, rows: Statistics) -> None:
    """A fit of these sums."""
    _check_positive(fit.target.scale, "scale of the targets")
    _check_finite(fit.target.mean, "mean of the targets")
    demand(len(fit.history) > 0, "a history of learning", fit.history)
    count = fit.posterior.covariance.count
    _check_posterior(fit.posterior)
    demand(len(fit.terms) == len(rows.terms), "what was learnt of every term", len(fit.terms))
    demand(len(fit.posterior.terms) == len(rows.terms), "the terms of the sums", len(fit.posterior.terms))
    for s in range(len(rows.terms)):
        _check_learnt(fit, rows, s, drawn=count > 0)
    made = {method.name: method.needs == "sums" for method in METHODS}.get(fit.method)
    demand(made is not None and made == fit.from_sums, "a method, with a noise variance if it has one", fit.method)
    if fit.from_sums and not (fit.likelihood.known_errors and fit.noise_variance == 0.0):
        _check_positive(fit.noise_variance, "noise variance")
    if fit.memory is not None:
        memory, R = fit.memory, fit.memory.psi.size
        _check_finite(memory.intercept, "constant")
        _check_moments(memory.sums)
        _check_array(memory.psi, (R,), "parameters of the likelihood")
        demand(memory.information.shape == (R, R), "information about them", memory.information.shape)
        demand(memory.sums.request == rows.moments.request, "sums of the same functions", "others")
    demand(bool(count) == (fit.samples is not None), "draws with a posterior of draws", count)
    if fit.samples is not None:
        _check_samples(fit.samples, count)
    _check_answers(fit)


def _check_posterior(posterior: Posterior) -> None:
    """Every array has the shape that the terms ask for, whose hyperparameters are numbers, and of kinds that there are.

    These first: functions of many harmonics are not made unless there are as many coefficients.
    """
    terms, intercept = posterior.terms, posterior.intercept
    for term in terms:
        _check_positive(term.variance, "variance")
        for prior in term.factors:
            prior.factor.check()
            for name, value in prior.values.items():
                _check_positive(value, name)
    sizes = [term.request.size for term in terms]
    demand(sum(sizes) == posterior.mean.size, f"{posterior.mean.size} features", sum(sizes))
    _check_sizes(posterior.request, sizes)
    P = (posterior.mean.size,)
    for array, what in (
        (posterior.mean, "means"), (posterior.centre, "a centre"), (posterior.centre_covariance, "its covariance"),
    ):  # fmt: skip
        _check_array(array, P, what)
    if intercept is not None:
        _check_finite(intercept.mean, "mean of the constant")
        _check_positive(intercept.variance, "variance of the constant")
        _check_array(intercept.answer, P, "how coefficients follow the constant")
    for known in posterior.known_rows:
        _check_rows(known, posterior.request, known.noise)
        _check_positive(float(known.noise.min(initial=1.0)), "noise variance of every row")
        _check_positive(1.0 if known.intercept is None else known.intercept, "variance of the constant")
    posterior.covariance.check()
    for array, shape, what in posterior.covariance.arrays():
        _check_array(array, shape, what)


def _check_learnt(fit: Fit, rows: Statistics, s: int, *, drawn: bool) -> None:
    """A term is that of the kernel, has no more harmonics than were summed, and the hyperparameters that are printed.

    Draws have many of these.
    """
    own, values, term, summed = rows.terms[s], fit.terms[s], fit.posterior.terms[s], rows.moments.request.terms[s]
    demand(values.name == own.name, f"the term {own.name}", values.name)
    _check_positive(values.variance, "hyperparameter")
    demand(term.columns == summed.columns, "the columns of the sums", term.columns)
    for leaf, prior, other in zip(own.term.factors, term.factors, summed.factors, strict=True):
        known = leaf.factor, leaf.settled(prior.domain.numbers).factor
        demand(prior.factor.numbers in known, leaf.factor.title, prior.factor.title)
        demand(prior.domain == other.domain, "the domain of the sums", prior.domain)
        demand(_within(prior.basis, other.basis), "features that were summed", prior.basis)
    parameters, lengthscales = own.inner.parameters, values.lengthscales
    demand(len(parameters) == len(lengthscales), "a lengthscale for every Matérn", lengthscales)
    for (_, d, parameter), value in zip(parameters, lengthscales, strict=True):
        prior = term.factors[d]
        unit = prior.factor.measure(prior.domain, parameter)
        _check_positive(unit.inner(value), "hyperparameter")
        used = prior.values[parameter.name]
        same = drawn or np.isclose(used, unit.inner(value), rtol=1e-6, atol=0.0)
        demand(same, f"a {parameter.name} of {unit.outer(used):g}", value)


def _within(own: Basis, other: Basis) -> bool:
    """Whether the two differ in their detail alone, if at all, and the other has more."""
    if own.detail is None or other.detail is None:
        return own == other
    return own.detail <= other.detail and own.resized(other.detail) == other


def _check_answers(fit: Fit) -> None:
    """At rows all over the domains, and far beyond: f is a number, and so is the mean of y, which may be exp(f)."""
    posterior, x = fit.posterior, _rows_all_over(fit.posterior.request)
    if posterior.request.size <= _MOST_FACTORED:  # few enough to be written out, which takes half of the time
        mean, covariance = posterior.joint(x)
        variance = np.maximum(np.diagonal(covariance), 0.0)
    else:
        mean, variance = posterior.marginals(x)
    f, spread = fit.target.mean + fit.target.scale * mean, fit.target.scale**2 * variance
    demand(np.isfinite(f).all() and np.isfinite(spread).all(), "a function of finite values", "NaN or inf")
    if not all(term.constant_variance for term in posterior.terms):
        f, spread = f[:-1], spread[:-1]  # far beyond the domain, that of a trend or a line has grown, as it should
    if not fit.from_sums:
        if fit.likelihood.widest <= WIDEST_EXPONENT and fit.samples is None:  # no prior is wider
            most = WIDEST_EXPONENT + REACH**2
            demand(spread.max() <= 1.01 * most, f"a variance of f of at most {most:g}", f"{spread.max():.3g}")
        y = fit.likelihood.predictive(f, spread, np.ones(f.size)).mean()
        demand(np.isfinite(y).all(), "a finite mean of new observations", f"a function of up to {f.max():.3g}")


def _rows_all_over(request: MomentRequest) -> np.ndarray:
    """Every level of every column of levels, unless they are very many, and numbers in no order of theirs, (N, C)."""
    sizes = [column.basis.size for column in request.columns if column.domain.discrete]
    count = min(max([_FEWEST_ROWS, *sizes]), _MOST_ROWS)
    x, share = np.empty((count, len(request.columns))), np.arange(count) / (count - 1)
    for c, column in enumerate(request.columns):
        turned = (share + np.arange(count) * (0.618034 * c)) % 1.0 if c else share
        x[:, c] = column.domain.spread(turned, column.basis.size)
    return x


def _check_samples(samples: Samples, kept: int) -> None:
    demand(samples.t.ndim == 3 and samples.t.size > 0, "draws by chain", samples.t.shape)
    chains, draws, L = samples.t.shape
    _check_array(samples.t, (chains, draws, L), "draws")
    demand(len(samples.parameters) == L, f"{L} hyperparameters", len(samples.parameters))
    demand(len({own.name for own in samples.parameters}) == L, "hyperparameters with different names", "others")
    demand(all(own.real or own.lower >= 0.0 for own in samples.parameters), "lower ends of at least 0", "others")
    demand(samples.kept.dtype == np.int64 and samples.kept.shape == (kept,), f"{kept} draws", samples.kept.shape)
    demand(samples.kept.min() >= 0 and samples.kept.max() < chains * draws, "draws that exist", samples.kept)
    demand(samples.psi.ndim == 2 and len(samples.psi) == kept, "a likelihood for every draw", samples.psi.shape)
    _check_array(samples.psi, samples.psi.shape, "parameters of the likelihood")
    linked = {"diverging", "n_steps"} if samples.effective is None else {"lp"}
    demand(linked <= set(samples.stats), "how the draws were made", sorted(samples.stats))
    effective = 1.0 if samples.effective is None else samples.effective
    demand(1.0 <= effective <= draws, "a number of effective draws", effective)
    for array in (*samples.stats.values(), *samples.function.values()):
        demand(array.shape == (chains, draws), f"shape {(chains, draws)}", array.shape)
    demand(samples.y is None, "no targets", "some")
    _check_positive(float(np.min([samples.scale, *(own.unit for own in samples.parameters)])), "scale")
