"""Several columns at once: functions of any of them are evaluated together, choices say why."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.makers.engines import evaluated

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.linalg import DenseView
from vff.moments import (
    ENGINES,
    Choice,
    ColumnRequest,
    ColumnRows,
    DistinctValues,
    Job,
    LetterFunction,
    MomentRequest,
    TermPair,
    Work,
    choose,
    column_rows,
    moments_of_arrays,
    pair_functions,
    plan_pass,
    summed,
    synthesise,
)
from vff.moments.engines.grouped import pivot


def _at_row(function, rows, n):
    """A function of letters at one row, by the definition."""
    product = np.ones(())
    for c, letters in zip(function.columns, function.axis_letters, strict=True):
        product = np.multiply.outer(product, letters.evaluate(rows[c].t[n : n + 1])[0])
    return np.sum(product * function.coefficients)


def test_groups_are_those_of_levels_or_of_the_most_letters():
    job = Job((ColumnBasis(3, 0).single, ColumnBasis(5, 0).single, ColumnBasis(9, 0).single))
    assert pivot([None, 7, None], [job]) == 1
    assert pivot([4, 7, None], [job]) == 1
    assert pivot([4, 7, 900], [job]) == 2
    assert pivot([4, 7, 900], [Job((LevelBasis(("a", "b")).single, *job.letters[1:]))]) == 0


def _quad(table, rows, S, engine, engine_of_sets):
    """Phi c and diag(Phi S Phi') column by column and pair by pair; c is one everywhere."""
    places, total, mean = table.request.slices, np.zeros(table.y.size), np.zeros(table.y.size)
    for column, place in zip(rows, places, strict=True):
        name = "table" if isinstance(column.basis, LevelBasis) and engine != "auto" else engine
        size = place.stop - place.start
        value, square = evaluated(column, np.ones(size), column.basis.project(DenseView(S[place, place])), name)
        mean, total = mean + value, total + square
    terms = table.request.terms
    term_pairs = {(s, t): TermPair(terms[s], terms[t]) for s, t in table.request.pairs}
    blocks = {(s, t): S[places[s], places[t]] for s, t in table.request.pairs}
    return mean, total + 2.0 * summed(rows, pair_functions(term_pairs, blocks), engine_of_sets)


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
        axis_letters = tuple(rows[c].basis.single for c in numbers)
        functions.append(LetterFunction(numbers, axis_letters, rng.normal(size=Job(axis_letters).shape)))
        expected.append([_at_row(functions[-1], rows, n) for n in range(50)])
    values = synthesise(rows, functions, engine)
    for found, wanted, function in zip(values, expected, functions, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * np.abs(function.coefficients).sum())


def test_no_pairs_make_no_difference(make_table):
    np.testing.assert_array_equal(summed(make_table(7, 0).column_rows, pair_functions({}, {})), np.zeros(7))


@pytest.mark.parametrize("codes", [[], [1.0], [0.0, 1.0, 2.0], [2.0, -1.0, 2.0, -1.0, 0.0]])
def test_few_rows_of_levels_are_evaluated_too(codes):
    """A level never seen has no effect, wherever it stands."""
    effects = {-1.0: 0.0, 0.0: 5.0, 1.0: 6.0, 2.0: 7.0}
    rows = column_rows(_levels(), np.array(codes))
    found = evaluated(rows, np.array([5.0, 6.0, 7.0]), np.array([25.0, 36.0, 49.0]))
    np.testing.assert_array_equal(found[0], [effects[code] for code in codes])
    np.testing.assert_array_equal(found[1], [effects[code] ** 2 for code in codes])


@pytest.mark.parametrize("name", ["dense", "table", "grouped"])
def test_a_level_never_seen_has_no_interaction(name, rng):
    levels = column_rows(_levels(), np.array([2.0, -1.0, 0.0, -1.0, 1.0]))
    number = column_rows(_number(2), np.array([10.0, 10.0, 10.0, 500.0, 10.0]))
    job = Job((levels.basis.single, number.basis.single))
    number = replace(number, distinct=DistinctValues(np.array([10.0, 500.0])))
    (values,) = ENGINES[name].evaluate([levels, number], [job], [rng.normal(size=job.shape)])
    np.testing.assert_array_equal(values == 0.0, [False, True, False, True, False])


def _levels() -> ColumnRequest:
    return ColumnRequest(Codes(), LevelBasis(("a", "b", "c")))


def _number(M: int = 30) -> ColumnRequest:
    return ColumnRequest(Interval(0.0, 1000.0), ColumnBasis(M, 2))


def _book(size: int) -> DistinctValues:
    return DistinctValues(np.arange(float(size)), 0.0, 1.0)


def _block(*requests: ColumnRequest) -> list[Job]:
    return [Job(tuple(request.basis.single for request in requests))]


def _choice(N, jobs, requests, distinct_values) -> Choice:
    columns = [ColumnRows(own, np.empty(0), distinct) for own, distinct in zip(requests, distinct_values, strict=True)]
    return choose(Work(N, jobs(*requests), columns))


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
    distinct_values = [None if size is None else _book(size) for size in sizes]
    choice = _choice(N, _block, [_number(M), _number(M)], distinct_values)
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
    distinct_values = [None if size is None else _book(size) for size in sizes]
    choice = _choice(N, _own, [_number(4)] * len(sizes), distinct_values)
    assert choice.name == expected
    assert choice.reason.startswith(f"{expected}: ")
    assert number in choice.reason


@pytest.mark.parametrize("N", [100, 10**6])
def test_levels_beside_a_continuous_column_say_why(N):
    for requests, distinct_values in (
        ((_levels(), _number()), [_book(3), None]),
        ((_number(), _levels()), [None, _book(3)]),
    ):
        choice = _choice(N, _block, requests, distinct_values)
        assert choice.name == "grouped"
        assert f"{N} rows in 3 groups" in choice.reason


def test_a_plan_explains_every_column_and_set():
    request = MomentRequest.of_columns((_number(), _number(), _levels()))
    plan = plan_pass(10**6, request, [_book(40), None, _book(3)])
    names = {one.columns: one.choice and one.choice.name for one in plan.alone}
    assert names == {(0,): "table", (1,): None, (2,): "table"}
    assert {one.columns: one.choice.name for one in plan.sets} == {
        (0, 1): "nufft",
        (0, 2): "table",
        (1, 2): "grouped",
    }
    for choice in filter(None, (one.choice for one in (*plan.alone, *plan.sets))):
        assert choice.reason.startswith(f"{choice.name}: ")
        assert re.search(r"\d+ (rows|cells|levels)|\d+ x \d+ cells", choice.reason)
    asked = plan_pass(10**6, request, [_book(40), None, _book(3)], "nufft")
    assert asked.sets[0].choice.reason == "nufft: as asked"


def test_a_grid_that_is_none_is_refused_with_a_sentence():
    request, t = MomentRequest.of_columns((_number(3), _number(3))), np.linspace(0.0, 1000.0, 50)
    with pytest.raises(ValueError, match=r"engine='grid' in several columns needs every combination .* engine='auto'"):
        moments_of_arrays(request, [t, t], t, np.ones(50), "grid")
    twice = np.repeat(t, 2)
    with pytest.raises(ValueError, match=r"and 100 rows hold 50 x 50 values; use engine='auto'"):
        moments_of_arrays(request, [twice, twice], twice, np.ones(100), "grid")


def test_a_table_of_too_many_cells_is_refused_with_a_sentence(rng):
    request = MomentRequest.of_columns((_number(3), _number(3)))
    columns = [rng.uniform(0.0, 1000.0, 4200) for _ in range(2)]
    with pytest.raises(ValueError, match=r"counts rows per combination of .* 1\.76e\+07 .* round these columns"):
        moments_of_arrays(request, columns, columns[0], np.ones(4200), "table")
