"""Several columns at once: tallies agree with loops over rows, readers are their transposes, choices say why."""

import re
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.linalg import DenseView
from vff.moments import (
    READERS,
    TALLIES,
    Codebook,
    ColumnRequest,
    ColumnRows,
    Coupling,
    Job,
    LetterFunction,
    MomentRequest,
    choose_set,
    column_rows,
    evaluate_letters,
    evaluate_several,
    pair_functions,
    plan_reading,
    read_arrays,
    summed,
)
from vff.moments.engines.sets import pivot

NUMBERS = ("integer", "decimal", "continuous", "constant")
SIZES = [(name, k) for name in TALLIES for k in (2, 3, 4) if name != "nufft" or k < 4]
LARGEST_M = {2: 9, 3: 4, 4: 2}


def _letters_of_row(job, columns, n):
    """All products of letters of one row, by the definition."""
    letters = np.ones(())
    for alphabet, column in zip(job.alphabets, columns, strict=True):
        letters = np.multiply.outer(letters, alphabet.evaluate(column.t[n : n + 1])[0])
    return letters


def _looped(job, columns, strengths):
    total = np.zeros(job.shape)
    for n in range(strengths.size):
        total += strengths[n] * _letters_of_row(job, columns, n)
    return total


def _tallied(name, jobs, columns, w, weighted, cuts=()):
    """What a tally answers when rows come in pieces."""
    tally = TALLIES[name](jobs, [replace(column, x=column.x[:0], remembered={}) for column in columns])
    ends = [0, *sorted(cuts), w.size]
    for start, stop in pairwise(ends):
        rows = [replace(column, x=column.x[start:stop], remembered={}) for column in columns]
        if start < stop:
            tally.add(rows, w[start:stop], weighted[start:stop])
    return tally.read()


def _assert_laws(name, jobs, columns, w, y, seed, cuts=()):
    """Sums are the loops, values are the letters times coefficients, and the two maps are adjoint."""
    rng = np.random.default_rng(seed)
    found = _tallied(name, jobs, columns, w, w * y, cuts)
    assert len(found) == len(jobs)
    for job, sums in zip(jobs, found, strict=True):
        strengths = w * y if job.targets else w
        assert sums.shape == job.shape
        size = np.abs(w).sum() * max(1.0, np.abs(y).max())
        np.testing.assert_allclose(sums, _looped(job, columns, strengths), rtol=0, atol=1e-10 * size)
        S = rng.normal(size=job.shape)
        values = READERS[name](columns, job, S)
        expected = [np.sum(_letters_of_row(job, columns, n) * S) for n in range(w.size)]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10 * np.abs(S).sum())
        assert np.sum(sums * S) == pytest.approx(strengths @ values, abs=1e-11 * size * np.abs(S).sum())


@st.composite
def bases_of(draw, k):
    """A basis per column, not too large for loops."""
    return [ColumnBasis(draw(st.integers(1, LARGEST_M[k])), draw(st.integers(0, 5 - k))) for _ in range(k)]


@pytest.mark.parametrize(("name", "k"), SIZES)
@settings(max_examples=12)
@given(data=st.data(), N=st.integers(1, 30), seed=st.integers(0, 10**6))
def test_sums_of_any_letters_of_several_columns(name, k, make_table, data, N, seed):
    """Single and double letters mixed at will, weights and targets, rows in any number of pieces."""
    kinds = data.draw(st.tuples(*[st.sampled_from(NUMBERS)] * k))
    table = make_table(N, seed, kinds).with_bases(data.draw(bases_of(k)))
    doubled = data.draw(st.lists(st.tuples(*[st.booleans()] * k), min_size=1, max_size=3))
    targets = data.draw(st.lists(st.booleans(), min_size=len(doubled), max_size=len(doubled)))
    bases = [column.basis for column in table.column_rows]
    jobs = [
        Job(tuple(b.double if two else b.single for b, two in zip(bases, both, strict=True)), target)
        for both, target in zip(doubled, targets, strict=True)
    ]
    cuts = data.draw(st.lists(st.integers(0, N), max_size=2))
    _assert_laws(name, jobs, table.column_rows, table.w, table.y, seed, cuts)


WITH_LEVELS = [
    ("levels", "continuous"),
    ("continuous", "levels"),
    ("integer", "levels"),
    ("levels", "levels"),
    ("levels", "continuous", "integer"),
    ("continuous", "levels", "decimal"),
    ("integer", "levels", "levels"),
    ("continuous", "integer", "levels", "decimal"),
]


@pytest.mark.parametrize("name", ["dense", "table", "grouped"])
@pytest.mark.parametrize("kinds", WITH_LEVELS, ids=" ".join)
def test_sums_with_levels_among_the_columns(name, kinds, make_table):
    small = {"continuous": ColumnBasis(2, 2), "integer": ColumnBasis(3, 1), "decimal": ColumnBasis(2, 0)}
    table = make_table(40, 8, kinds)
    table = table.with_bases([small.get(kind, LevelBasis(tuple("abcd"))) for kind in kinds])
    columns = table.column_rows
    if name == "grouped":  # no book for a continuous column: the groups are those of another
        columns = [replace(c, book=None) if kind == "continuous" else c for c, kind in zip(columns, kinds, strict=True)]
    bases = [column.basis for column in columns]
    jobs = [
        Job(tuple(basis.double for basis in bases)),
        Job(tuple(basis.single for basis in bases), targets=True),
        Job((bases[0].single, *(basis.double for basis in bases[1:]))),
    ]
    _assert_laws(name, jobs, columns, table.w, table.y, 3, cuts=(17,))


@pytest.mark.parametrize("name", ["table", "grouped", "dense", "nufft"])
def test_one_weight_for_all_rows_counts_like_weights_written_out(name, make_table):
    table = make_table(400, 2, ("constant", "integer"))  # more rows than cells, and then fewer
    jobs = [Job(tuple(column.basis.double for column in table.column_rows))]
    for rows in (table, table.rows(slice(2))):
        same, columns = np.broadcast_to(0.7, rows.y.size), rows.column_rows
        (short,), (long,) = (_tallied(name, jobs, columns, w, w) for w in (same, same.copy()))
        np.testing.assert_allclose(short, long, rtol=0, atol=1e-12 * rows.y.size)


@pytest.mark.parametrize("name", TALLIES)
def test_rows_at_both_edges_are_summed_like_others(name):
    """The lattice is periodic, the interval is not: rows at -1 and at 1 must not meet."""
    corners = np.array(list(product([-1.0, 1.0], repeat=2)))
    place = Interval(-1.0, 1.0)
    columns = [
        ColumnRows(ColumnRequest(place, ColumnBasis(4, 3)), x, Codebook(np.array([-1.0, 1.0]))) for x in corners.T
    ]
    jobs = [Job(tuple(column.basis.single for column in columns)), Job((ColumnBasis(4, 3).double,) * 2, True)]
    _assert_laws(name, jobs, columns, np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, -1.0, 3.0, 0.5]), 0)


def test_groups_are_those_of_levels_or_of_the_most_letters():
    job = Job((ColumnBasis(3, 0).single, ColumnBasis(5, 0).single, ColumnBasis(9, 0).single))
    assert pivot([None, 7, None], [job]) == 1
    assert pivot([4, 7, None], [job]) == 1
    assert pivot([4, 7, 900], [job]) == 2
    assert pivot([4, 7, 900], [Job((LevelBasis(("a", "b")).single, *job.alphabets[1:]))]) == 0


def _quad(table, rows, S, engine, engine_of_sets):
    """Phi c and diag(Phi S Phi') column by column and pair by pair; c is one everywhere."""
    places, total, mean = table.request.slices, np.zeros(table.y.size), np.zeros(table.y.size)
    for column, place in zip(rows, places, strict=True):
        name = "table" if isinstance(column.basis, LevelBasis) and engine != "auto" else engine
        size = place.stop - place.start
        value, square = evaluate_several(column, [np.ones(size)], column.basis.see(DenseView(S[place, place])), name)
        mean, total = mean + value, total + square
    terms = table.request.terms
    couplings = {(s, t): Coupling(terms[s], terms[t]) for s, t in table.request.pairs}
    blocks = {(s, t): S[places[s], places[t]] for s, t in table.request.pairs}
    return mean, total + 2.0 * summed(rows, pair_functions(couplings, blocks), engine_of_sets)


@pytest.mark.parametrize("engine", ["auto", "dense", "nufft", "table", "grouped"])
@settings(max_examples=20)
@given(N=st.integers(1, 90), seed=st.integers(0, 10**6))
def test_columns_and_pairs_make_up_the_whole_quadratic_form(engine, make_table, N, seed):
    table = make_table(N, seed)
    if engine in ("nufft", "grouped"):
        table = table.only(range(4))
    P, phi = table.request.size, table.features
    S = np.random.default_rng(seed).normal(size=(P, P))
    S = S + S.T
    parts = zip(table.request.columns, table.columns, strict=True)
    rows = [column_rows(*part) for part in parts] if engine == "auto" else table.column_rows
    mean, square = _quad(table, rows, S, "auto" if engine == "grouped" else engine, engine)
    np.testing.assert_allclose(mean, phi.sum(1), rtol=0, atol=1e-10 * P)
    np.testing.assert_allclose(square, np.einsum("np,pq,nq->n", phi, S, phi), rtol=0, atol=1e-10 * np.abs(S).sum())


@pytest.mark.parametrize("engine", ["auto", "dense", "nufft", "table"])
def test_functions_of_any_number_of_columns_are_evaluated_together(engine, make_table, rng):
    table = make_table(50, 6, ("integer", "continuous", "decimal", "continuous"))
    table = table.with_bases([ColumnBasis(2, 1), ColumnBasis(3, 2), ColumnBasis(2, 0), ColumnBasis(1, 1)])
    rows = table.column_rows
    if engine == "auto":
        rows = [column_rows(*part) for part in zip(table.request.columns, table.columns, strict=True)]
    functions, expected = [], []
    for numbers in ((1,), (0, 2), (1,), (0, 1, 3), (3, 0), (0, 1, 2, 3)):
        alphabets = tuple(rows[c].basis.single for c in numbers)
        job = Job(alphabets)
        functions.append(LetterFunction(numbers, alphabets, rng.normal(size=job.shape)))
        some = [rows[c] for c in numbers]
        expected.append([np.sum(_letters_of_row(job, some, n) * functions[-1].coefficients) for n in range(50)])
    values = evaluate_letters(rows, functions, engine)
    for found, wanted, function in zip(values, expected, functions, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * np.abs(function.coefficients).sum())


def test_no_pairs_make_no_difference(make_table):
    np.testing.assert_array_equal(summed(make_table(7, 0).column_rows, pair_functions({}, {})), np.zeros(7))


@pytest.mark.parametrize("codes", [[], [1.0], [0.0, 1.0, 2.0], [2.0, -1.0, 2.0, -1.0, 0.0]])
def test_few_rows_of_levels_are_evaluated_too(codes):
    """A level never seen has no effect, wherever it stands."""
    effects = {-1.0: 0.0, 0.0: 5.0, 1.0: 6.0, 2.0: 7.0}
    rows = column_rows(_levels(), np.array(codes))
    found = evaluate_several(rows, [np.array([5.0, 6.0, 7.0])], np.array([25.0, 36.0, 49.0]))
    np.testing.assert_array_equal(found[0], [effects[code] for code in codes])
    np.testing.assert_array_equal(found[1], [effects[code] ** 2 for code in codes])


@pytest.mark.parametrize("name", ["dense", "table", "grouped"])
def test_a_level_never_seen_has_no_interaction(name, rng):
    levels = column_rows(_levels(), np.array([2.0, -1.0, 0.0, -1.0, 1.0]))
    number = column_rows(_number(2), np.array([10.0, 10.0, 10.0, 500.0, 10.0]))
    job = Job((levels.basis.single, number.basis.single))
    number = replace(number, book=Codebook(np.array([10.0, 500.0])))
    values = READERS[name]([levels, number], job, rng.normal(size=job.shape))
    np.testing.assert_array_equal(values == 0.0, [False, True, False, True, False])


def _levels() -> ColumnRequest:
    return ColumnRequest(Codes(), LevelBasis(("a", "b", "c")))


def _number(M: int = 30) -> ColumnRequest:
    return ColumnRequest(Interval(0.0, 1000.0), ColumnBasis(M, 2))


def _book(size: int) -> Codebook:
    return Codebook(np.arange(float(size)), 0.0, 1.0)


def _block(*requests: ColumnRequest) -> list[Job]:
    return [Job(tuple(request.basis.single for request in requests))]


def _own(*requests: ColumnRequest) -> list[Job]:
    """What a product term asks of its columns."""
    return [
        Job(tuple(request.basis.double for request in requests)),
        Job(tuple(request.basis.single for request in requests), targets=True),
    ]


@pytest.mark.parametrize(
    ("N", "M", "sizes", "expected", "number"),
    [
        (20, 30, (None, None), "dense", "20 rows"),
        (10**6, 30, (None, None), "nufft", "1000000 rows"),
        (10**6, 30, (None, 50), "nufft", "1000000 rows spread"),  # fewer nodes than letters to write out
        (3000, 3, (None, 50), "grouped", "3000 rows in 50 groups"),
        (3000, 3, (50, None), "grouped", "3000 rows in 50 groups"),
        (10**6, 30, (40, 50), "table", "40 x 50 cells"),
        (10**8, 30, (2**13, 2**12), "nufft", "100000000 rows"),  # more cells than fit
    ],
)
def test_the_choice_for_a_pair_says_why(N, M, sizes, expected, number):
    books = [None if size is None else _book(size) for size in sizes]
    choice = choose_set(N, _block(_number(M), _number(M)), books)
    assert choice.name == expected
    assert choice.reason.startswith(f"{expected}: ")
    assert number in choice.reason


@pytest.mark.parametrize(
    ("N", "sizes", "expected", "number"),
    [
        (5, (None, None, None), "dense", "5 rows"),
        (10**6, (None, None, None), "nufft", "1000000 rows"),
        (10**6, (12, 24, 31), "table", "12 x 24 x 31 cells"),
        (10**6, (None, None, None, None), "dense", "1000000 rows"),  # the lattice ends at three columns
    ],
)
def test_the_choice_for_a_product_says_why(N, sizes, expected, number):
    books = [None if size is None else _book(size) for size in sizes]
    choice = choose_set(N, _own(*[_number(4)] * len(sizes)), books)
    assert choice.name == expected
    assert choice.reason.startswith(f"{expected}: ")
    assert number in choice.reason


@pytest.mark.parametrize("N", [100, 10**6])
def test_levels_beside_a_continuous_column_say_why(N):
    for requests, books in (((_levels(), _number()), [_book(3), None]), ((_number(), _levels()), [None, _book(3)])):
        choice = choose_set(N, _block(*requests), books)
        assert choice.name == "grouped"
        assert f"{N} rows in 3 groups" in choice.reason


def test_a_plan_explains_every_column_and_set():
    request = MomentRequest.of_columns((_number(), _number(), _levels()))
    plan = plan_reading(10**6, request, [_book(40), None, _book(3)])
    assert {c: choice and choice.name for c, choice in plan.columns.items()} == {0: "table", 1: None, 2: "table"}
    assert {one.columns: one.choice.name for one in plan.sets} == {
        (0, 1): "nufft",
        (0, 2): "table",
        (1, 2): "grouped",
    }
    for choice in [*filter(None, plan.columns.values()), *(one.choice for one in plan.sets)]:
        assert choice.reason.startswith(f"{choice.name}: ")
        assert re.search(r"\d+ (rows|cells|levels)|\d+ x \d+ cells", choice.reason)
    asked = plan_reading(10**6, request, [_book(40), None, _book(3)], "nufft")
    assert asked.sets[0].choice.reason == "nufft: as asked"


def test_a_grid_that_is_none_is_refused_with_a_sentence():
    request, t = MomentRequest.of_columns((_number(3), _number(3))), np.linspace(0.0, 1000.0, 50)
    with pytest.raises(ValueError, match=r"engine='grid' in several columns needs every combination .* engine='auto'"):
        read_arrays(request, [t, t], t, np.ones(50), "grid")
    twice = np.repeat(t, 2)
    with pytest.raises(ValueError, match=r"and 100 rows hold 50 x 50 values; use engine='auto'"):
        read_arrays(request, [twice, twice], twice, np.ones(100), "grid")


def test_a_table_of_too_many_cells_is_refused_with_a_sentence(rng):
    request = MomentRequest.of_columns((_number(3), _number(3)))
    columns = [rng.uniform(0.0, 1000.0, 4200) for _ in range(2)]
    with pytest.raises(ValueError, match=r"counts rows per combination of .* 1\.76e\+07 .* round these columns"):
        read_arrays(request, columns, columns[0], np.ones(4200), "table")
