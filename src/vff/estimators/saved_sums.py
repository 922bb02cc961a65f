"""What sums over rows from a file must be like, so that a model can be learnt from them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from vff.data.schema import IN_MEMORY
from vff.estimators.statistics import Statistics
from vff.factors import KINDS, FactorOptions, TailRows
from vff.kernels.grammar import MOST_FACTORS
from vff.linalg import AbstractSymmetric
from vff.moments import ColumnRequest, MomentRequest, Moments
from vff.storage import FileError

LARGEST = 1e100  # of what belongs to targets near one; sums over rows may be larger
_MOST_FACTORED = 600  # features, of which it is asked whether any rows have these sums
_SMALL, _NEGATIVE = 1e-4, 1e-6  # of the largest square, and a square that rounding does not make negative
_LAST_DIGITS = 1e-9
Shape = tuple[int, ...]


def demand(truth: bool | np.bool_, expected: str, found: object) -> None:
    """Refuse a file that is well formed and says what cannot be."""
    if not truth:
        raise FileError(f"{expected} was expected, found {found!r:.120}; write the file anew with save")


def with_file_error(check: Callable[[], None]) -> None:
    """What a record says of itself, as a refusal of the file."""
    try:
        check()
    except ValueError as error:
        raise FileError(f"{error}; write the file anew with save") from error


def check_array(array: np.ndarray, shape: Shape, what: str, most: float = LARGEST) -> None:
    demand(array.dtype == np.float64, f"{what} of float64", array.dtype)
    demand(array.shape == shape, f"{what} of shape {shape}", array.shape)
    demand(np.isfinite(array).all(), f"{what} of finite numbers", "NaN or inf")
    demand(most == np.inf or np.abs(array).max(initial=0.0) <= most, f"{what} of at most {most:g}", "others")


def check_finite(value: float, what: str) -> None:
    demand(np.isfinite(value), f"a finite {what}", value)


def check_positive(value: float, what: str) -> None:
    demand(np.isfinite(value) and value > 0.0, f"a positive {what}", value)


def check_rows(rows: Statistics, n_features: int) -> None:
    """The sums of an estimator over a table of so many columns."""
    columns, terms, request = rows.binding.columns, rows.binding.terms, rows.moments.request
    names = [term.name for term in terms]
    demand(len(set(names)) == len(names), "terms with different names", names)
    demand(len(terms) == len(request.terms) > 0, f"{len(request.terms)} terms", len(terms))
    for c, column in enumerate(columns):
        demand(0 <= column.index < n_features, f"one of {n_features} columns", column.index)
        demand(column.kind in list(IN_MEMORY), "a kind of column", column.kind)
        demand(any(c in term.columns for term in terms), "a term for every column", column.label)
    for term, requested in zip(terms, request.terms, strict=True):
        demand(term.columns == requested.columns, "the columns of a term", requested.columns)
        demand(len(term.term.factors) == len(requested.factors), "a factor per column", len(term.term.factors))
        demand(
            len(requested.factors) <= MOST_FACTORS, f"at most {MOST_FACTORS} factors in a term", len(requested.factors)
        )
        for c, leaf, factor in zip(requested.columns, term.term.factors, requested.factors, strict=True):
            demand(0 <= c < len(columns), f"one of {len(columns)} columns", c)
            wish = FactorOptions("auto", None, columns[c].levels or ())
            family = leaf.factor.least(wish).family
            demand(factor.basis.family == family, "features that suit the kernel", type(factor.basis).__name__)
            if factor.place.discrete:
                same = factor.basis == leaf.factor.least(wish)
                demand(same, "the levels of the column", columns[c].label)
    shapes = [len(term.factors) for term in request.terms]
    demand([len(own) for own in rows.harmonics] == shapes, "harmonics for every factor", rows.harmonics)
    for requested, summed in zip(rows.harmonics, request.harmonics, strict=True):
        for M, most in zip(requested, summed, strict=True):
            demand(M is None or (most is not None and 1 <= M <= most), f"at most {most} harmonics", M)
    demand(len(rows.highest_frequencies) == len(terms), "a detail for every term", rows.highest_frequencies)
    demand(
        len(rows.domain_from_data) == len(rows.ranges) == len(columns), "an extent for every column", len(rows.ranges)
    )
    demand(all(isinstance(text, str) for text in rows.options), "options in writing", "others")
    demand(rows.n >= 0 and rows.left_out >= 0, "numbers of rows", min(rows.n, rows.left_out))
    check_moments(rows.moments)
    _check_tails(rows.tails, alone=len(terms) == 1 and shapes == [1])


def check_moments(moments: Moments) -> None:
    """Every sum has the shape that was asked for."""
    request = moments.request
    check_sizes(request, [project.size for project in moments.projects])
    demand(moments.n >= 0, "a number of rows", moments.n)
    check_finite(moments.offset, "offset")
    check_finite(moments.target, "sum of targets")
    for value, what in ((moments.weight, "sum of weights"), (moments.target_squared, "sum of squares")):
        demand(np.isfinite(value) and value >= 0.0, f"a {what} of at least zero", value)
    demand(len(moments.grams) == len(request.terms), "a Gram matrix for every term", len(moments.grams))
    for term, gram, project in zip(request.terms, moments.grams, moments.projects, strict=True):
        check_array(gram, term.double_shape, "sums of double letters", np.inf)
        check_array(project, (term.size,), "sums of targets", np.inf)
    _check_blocks(moments.blocks, request)


def check_sizes(request: MomentRequest, sizes: Sequence[int]) -> None:
    """Before alphabets are made: a request is as large as the arrays of the file, and no larger."""
    demand(len(request.terms) == len(sizes) > 0, "sums for every term", len(sizes))
    for term, size in zip(request.terms, sizes, strict=True):
        demand(len(term.columns) == len(term.factors) > 0, "a factor per column", term.columns)
        demand(len(set(term.axes)) == len(term.axes), "different columns in a product", term.columns)
        demand(min(term.columns) >= 0, "columns from zero", term.columns)
        for factor in term.factors:
            _check_column(factor)
        demand(term.size == size, f"{term.size} features", size)
    used = {column for term in request.terms for column in term.columns}
    demand(used == set(range(len(used))), "columns that follow one another", sorted(used))
    places: dict[Any, Any] = {}
    for term in request.terms:
        for column, factor in zip(term.columns, term.factors, strict=True):
            kind = column, type(factor.place)
            demand(places.setdefault(kind, factor.place) == factor.place, "one place for a column", factor.place)
    _ = request.columns  # refuses two sets of levels on one column


def _check_column(column: ColumnRequest) -> None:
    with_file_error(column.basis.check)
    with_file_error(column.place.check)
    kind = next((kind for kind in KINDS if isinstance(column.basis, kind.basis)), None)
    suits = kind is not None and isinstance(column.place, kind.domain)
    demand(suits, "a domain that suits the features", column.place)


def _check_tails(tails: Sequence[TailRows], *, alone: bool) -> None:
    demand(alone or not tails, "no rows beyond the domains of several columns", len(tails))
    for tail in tails:
        demand(tail.side in (-1, 1), "a side", tail.side)
        for array, what in ((tail.r, "distances"), (tail.w, "weights"), (tail.y, "targets")):
            check_array(array, (tail.r.size,), what, np.inf)
        demand(tail.r.min(initial=0.0) >= 0.0 and tail.w.min(initial=0.0) >= 0.0, "weights from zero", "others")


def _check_blocks(blocks: Mapping[tuple[int, int], np.ndarray], request: MomentRequest) -> None:
    """All pairs of terms, or none; they are counted first, since a short file can have millions of pairs."""
    T, sizes = len(request.terms), request.sizes
    whole = len(blocks) == comb(T, 2) and set(blocks) == {*combinations(range(T), 2)}
    demand(not blocks or whole, "a block for every pair of terms", f"{len(blocks)} of {comb(T, 2)}")
    for (s, t), block in blocks.items():
        check_array(block, (sizes[s], sizes[t]), "sums between terms", np.inf)


def check_learnable(rows: Statistics) -> None:
    """Sums with Gaussian noise that learning can do its arithmetic with: those of rows that there may have been."""
    moments, tails = rows.moments, rows.tails
    weight = moments.weight + sum(float(tail.w.sum()) for tail in tails)
    check_positive(weight, "sum of weights")
    for value, what in ((moments.offset, "offset"), (moments.target / weight, "mean of the targets")):
        demand(abs(value) <= LARGEST, f"an {what} of at most {LARGEST:g}", value)
    squares = [moments.target_squared, *(tail.yy for tail in tails)]
    demand(max(squares) / weight <= LARGEST, f"squares of targets of at most {LARGEST:g}", max(squares))
    whole = len(moments.blocks) == comb(len(moments.request.terms), 2)
    together = whole and moments.request.size <= _MOST_FACTORED
    if together:
        _check_gram(moments.gram())
    for s, size in enumerate(moments.request.sizes):
        if size <= _MOST_FACTORED:
            G = moments.term(s).gram()
            check_array(G.diagonal(), (size,), "sums of products", LARGEST * max(weight, 1.0))
            if not together:
                _check_gram(G)
            _check_project(moments.projects[s], G.diagonal(), moments)


def _check_gram(G: AbstractSymmetric) -> None:
    """Products of functions over rows: no combination of them has a negative square."""
    squares = G.diagonal()
    check_array(squares, squares.shape, "sums of products", np.inf)
    top = max(float(squares.max()), np.finfo(float).tiny)
    scale = np.sqrt(np.maximum(squares, _SMALL * top))
    least = G.least_eigenvalue(scale)
    demand(least >= -_NEGATIVE, "sums of products of functions over rows, which are positive definite,", least)


def _check_project(b: np.ndarray, squares: np.ndarray, moments: Moments) -> None:
    """Products of functions and targets over rows: none is larger than the squares of both allow."""
    top = float(squares.max())
    # targets are known to their last digits, and so are sums of them
    rounding = (_LAST_DIGITS * moments.offset) ** 2 * moments.weight * top
    most = np.sqrt(np.maximum(squares, _SMALL * top) * moments.target_squared * (1.0 + _SMALL) + rounding)
    demand(bool(np.all(np.abs(b) <= most)), "sums of targets that rows can have", f"{np.abs(b).max():.3g}")
